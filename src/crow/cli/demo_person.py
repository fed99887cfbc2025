"""The person of `crow demo`: says what the scenes say, answers if nobody else does, and cancels where it is written."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from crow.acp.client import Agent, AgentFailed
from crow.acp.wire import AgentMessageChunk, PermissionOption, TextContent, ToolCall, Update, UserMessageChunk
from crow.cli.render import Renderer
from crow.cli.render_conversation import RenderingClient
from crow.cli.render_question import Answer, Choice, Keyboard
from crow.cli.render_screen import DIM
from crow.cli.terminal import keyboard_of
from crow.timeouts import timeout

COUNTDOWN = 1.0
"""Seconds in which the person may answer a question before the demo does."""
PAUSE = 0.15
"""Seconds before each scene, and before a turn is cancelled: time to read."""


class Scene(NamedTuple):
    """What the person says in one turn of the demo, and does in it."""

    title: str
    prompt: str
    answers: tuple[str, ...] = ()
    """The kinds of options that the demo chooses if the person does not, question by question."""
    cancel_at: str = ""
    """The words after which the demo cancels the turn."""


class ScriptedPerson(RenderingClient):
    """Says what is in the scene, and cancels where it says so."""

    def __init__(self, renderer: Renderer, *, is_watched: bool) -> None:
        terminal = keyboard_of(sys.stdout) if is_watched else None
        keyboard = Keyboard(terminal) if terminal is not None else None
        self._answers = _DemoAnswers(renderer, keyboard)
        super().__init__(renderer, self._answers)
        self._is_watched = is_watched
        self._cancel_at = self._heard = ""
        self._heard_enough = asyncio.Event()
        self._replay: _Replay | None = None

    async def load(self, agent: Agent, session: str, folder: str) -> None:
        """Says what a replay brings instead of showing all of it again."""
        await self._pause()
        self.renderer.wait("loading")
        self._replay = replay = _Replay()
        loaded = await agent.load_session(session, folder)
        self._replay = None
        mode = loaded.modes.current_mode_id if loaded.modes else "none"
        self.renderer.mark("i", f"{replay.in_words()}; the mode is still `{mode}`.", DIM)

    async def play(self, scene: Scene, agent: Agent, session: str) -> None:
        self._answers.kinds = list(scene.answers)
        self._cancel_at, self._heard, self._heard_enough = scene.cancel_at, "", asyncio.Event()
        await self._pause()
        self.renderer.prompt(scene.prompt)
        self.renderer.begin_turn()
        cancelling = asyncio.create_task(self._cancel_when_heard(agent, session))
        try:
            self.renderer.stop(await agent.prompt(session, scene.prompt))
        except AgentFailed as error:
            self.renderer.fail(str(error))
        finally:
            cancelling.cancel()

    def update(self, update: Update) -> None:
        if self._replay is not None:
            self._replay.take(update)
            return
        super().update(update)
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContent):
            self._heard += update.content.text
            if self._cancel_at and self._cancel_at in self._heard:
                self._heard_enough.set()

    async def _cancel_when_heard(self, agent: Agent, session: str) -> None:
        await self._heard_enough.wait()
        await self._pause()
        agent.cancel(session)

    async def _pause(self) -> None:
        if self._is_watched:
            await asyncio.sleep(PAUSE)


class _DemoAnswers:
    """Answers as the scene says; whoever watches may be quicker."""

    def __init__(self, renderer: Renderer, keyboard: Keyboard | None) -> None:
        self.kinds: list[str] = []
        self._renderer = renderer
        self._keyboard = keyboard

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return self._keyboard.listening() if self._keyboard else contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice]) -> Answer:
        kind = self.kinds.pop(0) if len(self.kinds) > 1 else self.kinds[0]
        option = next(choice.option for choice in choices if choice.option.kind == kind)
        if self._keyboard is not None:
            keys = {choice.option.option_id: choice.key for choice in choices}
            self._renderer.hint(f"press {' '.join(keys.values())}, or wait: the demo chooses {keys[option.option_id]}")
            with contextlib.suppress(TimeoutError):
                async with timeout(COUNTDOWN):
                    return _said_otherwise(await self._keyboard.choose(choices), option)
        return option, f"{option.name} (the demo answered by itself)"


def _said_otherwise(answer: Answer, expected: PermissionOption) -> Answer:
    chosen, words = answer
    if chosen is not None and chosen.kind[:5] == expected.kind[:5]:  # both allow, or both reject
        return answer
    return chosen, f"{words} (the model is only a script: what it says next may not fit)"


class _Replay:
    """Counts what a loaded session brings back."""

    def __init__(self) -> None:
        self._prompts: set[str | None] = set()
        self._replies: set[str | None] = set()
        self._calls = 0

    def take(self, update: Update) -> None:
        match update:
            case UserMessageChunk():
                self._prompts.add(update.message_id)
            case AgentMessageChunk():
                self._replies.add(update.message_id)
            case ToolCall():
                self._calls += 1
            case _:
                pass

    def in_words(self) -> str:
        return (
            f"{len(self._prompts)} prompts, {len(self._replies)} messages and {self._calls} calls came back, "
            "with their diffs, their outputs and the plan"
        )
