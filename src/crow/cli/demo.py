"""`crow demo`: plays a scripted conversation through a real `crow acp` process; needs no key and no network.

The model is a script (demo.toml) and so is the person (SCENES, ScriptedPerson); everything in between is what an editor
would get. The project (demo_project.py), its failing test and what is done about it are real.
"""

import argparse
import asyncio
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from crow.acp.client import AgentFailed, Client, RemoteAgent, start_agent
from crow.acp.wire import (
    AgentMessageChunk,
    ContentToolContent,
    Notice,
    PermissionOption,
    RequestPermissionRequest,
    StateNotification,
    TextContent,
    ToolCall,
    Update,
    UserMessageChunk,
)
from crow.cli.answer_keys import Answer, Answerer, Choice, Invite
from crow.cli.demo_project import TESTS, environment, furnish, run_tests
from crow.cli.editors import EDITORS, launch
from crow.cli.interactive_client import (
    AGENT,
    Interrupts,
    Keyboard,
    RenderingClient,
    exit_code_of,
    prepare_output,
    showing,
)
from crow.cli.process import log_to_file
from crow.cli.render import Renderer
from crow.cli.render_screen import BOLD, CODE, DIM, Screen
from crow.cli.terminal import keyboard_of
from crow.errors import CrowError
from crow.timeouts import timeout

COUNTDOWN = 1.0
"""Seconds in which the person may answer a question before the demo does."""
PAUSE = 0.15
"""Seconds before each scene, and before a turn is cancelled: time to read."""
CODE_SHOWN = re.compile(r"type this code there: (\S+)")
"""The notice about a client that joins once a command has run."""


class Scene(NamedTuple):
    """What the person says in one turn of the demo, and does in it."""

    title: str
    prompt: str
    answers: tuple[str, ...] = ()
    """The kinds of options that the demo chooses if the person does not, question by question."""
    cancel_at: str = ""
    """The words after which the demo cancels the turn."""
    is_joined: bool = False
    """Whether a second window joins the turn once it asks, and answers in the place of the first."""


INTRODUCTION = (
    "A script plays the model. `crow acp`, the protocol, the project and its failing test are real. No key, no network."
)
SCENES = (
    Scene(
        "Crow mends a failing test: plan, command, search, edit",
        "A test fails. Can you mend it?",
        answers=("allow_always", "allow_once"),
    ),
    Scene("A command is refused: Crow goes on without it", "Is there anything to tidy up?", answers=("reject_once",)),
    Scene("Reading outside the folder asks first", "Does it follow the team's style guide?", answers=("allow_once",)),
    Scene("Plan mode: nothing is changed before you agree", "/plan Make the search faster", answers=("allow_always",)),
    Scene("Second thoughts: the last turn is taken back, its changes to files included", "/undo"),
    Scene("Two windows on one turn: asked here, answered there", "Then remove the build folder.", is_joined=True),
    Scene("A command of Crow's own: what fills the model's window", "/context"),
    Scene("The provider fails: Crow says so and tries again", "Are you still there?"),
    Scene("A failure that cannot be mended ends the turn, with the reason", "And with a wrong key?"),
    Scene("Cancel, in the middle of a sentence", "Tell me a long story.", cancel_at="hills and"),
)
LAST_SCENE = Scene("Another process loads the session: nothing is lost", "Where were we?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def main(arguments: argparse.Namespace) -> int:
    prepare_output()
    return asyncio.run(_play())


async def _play() -> int:
    screen = Screen.of(sys.stdout, os.environ)
    renderer = Renderer(screen)

    async def play(interrupts: Interrupts) -> str:
        with tempfile.TemporaryDirectory(prefix="crow-demo-") as made, showing(renderer):
            renderer.mark("i", INTRODUCTION, DIM)
            folder = os.path.realpath(made)
            project = renderer.folder = furnish(folder, with_tempo=screen.live)
            log_to_file(os.path.join(folder, "crow"))
            second = SecondWindow(project, environment(folder))
            person = ScriptedPerson(renderer, second, is_watched=screen.live)
            async with start_agent(AGENT, person, environment=environment(folder)) as agent:
                session = (await agent.new_session(project)).session_id
                for number, scene in enumerate(SCENES, start=1):
                    renderer.scene(f"{number}. {scene.title}")
                    await person.play(scene, agent, session)
            renderer.scene(f"{len(SCENES) + 1}. {LAST_SCENE.title}")
            async with start_agent(AGENT, person, environment=environment(folder)) as agent:
                await person.load(agent, session, project)
                await person.play(LAST_SCENE, agent, session)
                await agent.close_session(session)
            passed = await _show_tests(renderer, project)
        _say_what_next(screen)
        return "end_turn" if passed else "tests_failed"

    return await exit_code_of(play, Interrupts(renderer.interrupted))


async def _show_tests(renderer: Renderer, project: str) -> bool:
    """The proof of the pudding: the demo itself runs the tests of the project that Crow has worked on."""
    renderer.scene("And the project's tests, run once more without Crow?")
    renderer.wait(TESTS)
    passed, output, message = await run_tests(project)
    renderer.update(
        ToolCall(
            tool_call_id="demo",
            title=TESTS,
            kind="execute",
            status="completed" if passed else "failed",
            content=[ContentToolContent(content=TextContent(text=output))],
            raw_output={"message": message},
        )
    )
    return passed


def _say_what_next(screen: Screen) -> None:
    how = launch(os.environ)
    crow = shlex.join([how.command, *how.args[:-1]])
    others = ", ".join(name for name in EDITORS if name != "zed")
    screen.line()
    screen.line("That was Crow, with a script in the place of a model. What comes next:", BOLD)
    for what, line in (
        ("connect a model: a vendor's, a gateway's, or one on this machine", "login"),
        (f"connect your editor; instead of zed: {others}", "setup zed"),
        ("or talk to it here, in a folder of yours", "chat"),
        ("or in your browser: it works without a model too, as a tour", "web --open"),
    ):
        screen.line()
        screen.line(f"  # {what}", DIM)
        screen.line(f"  {crow} {line}", CODE)
    screen.flush()


# --- the person


class ScriptedPerson(RenderingClient):
    """Says what is in the scene, and cancels where it says so."""

    def __init__(self, renderer: Renderer, second: "SecondWindow", *, is_watched: bool) -> None:
        terminal = keyboard_of(sys.stdout) if is_watched else None
        keyboard = Keyboard(terminal, at_stake=False) if terminal is not None else None
        self._answers = _DemoAnswers(keyboard)
        super().__init__(renderer, self._answers)
        self._second = second
        self._is_watched = is_watched
        self._cancel_at = self._heard = ""
        self._heard_enough = asyncio.Event()
        self._replay: _Replay | None = None

    async def load(self, agent: RemoteAgent, session: str, folder: str) -> None:
        """Says what a replay brings instead of showing all of it again."""
        await self._pause()
        self.renderer.wait("loading")
        self._replay = replay = _Replay()
        loaded = await agent.load_session(session, folder)
        self._replay = None
        mode = loaded.modes.current_mode_id if loaded.modes else "none"
        self.renderer.mark("i", f"{replay.in_words()}; the mode is still `{mode}`.", DIM)

    async def play(self, scene: Scene, agent: RemoteAgent, session: str) -> None:
        self._answers.kinds = list(scene.answers)
        self._answers.is_asked = asyncio.Event()
        self._cancel_at, self._heard, self._heard_enough = scene.cancel_at, "", asyncio.Event()
        await self._pause()
        self.renderer.prompt(scene.prompt)
        self.renderer.begin_turn()
        beside = [asyncio.create_task(self._cancel_when_heard(agent, session))]
        if scene.is_joined:
            beside.append(asyncio.create_task(self._join_when_asked(agent, session)))
        try:
            self.renderer.stop(await agent.prompt(session, scene.prompt))
            if scene.is_joined:
                self.renderer.mark("i", await self._second.experience(self._heard), DIM)
        except AgentFailed as error:
            self.renderer.fail(str(error))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    def update(self, update: Update) -> None:
        if self._replay is not None:
            self._replay.take(update)
            return
        super().update(update)
        if isinstance(update, Notice) and (shown := CODE_SHOWN.search(update.title)):
            self._second.read(shown[1])
        elif isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContent):
            self._heard += update.content.text
            if self._cancel_at and self._cancel_at in self._heard:
                self._heard_enough.set()

    async def _cancel_when_heard(self, agent: RemoteAgent, session: str) -> None:
        await self._heard_enough.wait()
        await self._pause()
        agent.cancel(session)

    async def _join_when_asked(self, agent: RemoteAgent, session: str) -> None:
        await self._answers.is_asked.wait()
        try:
            await self._second.stay(session)
        except CrowError as error:
            self._second.fail(error)
            agent.cancel(session)  # nobody else answers its question

    def why_withdrawn(self) -> str:
        return self._second.answer or "cancelled"

    async def _pause(self) -> None:
        if self._is_watched:
            await asyncio.sleep(PAUSE)


class _DemoAnswers(Answerer):
    """Answers as the scene says; whoever watches may be quicker."""

    def __init__(self, keyboard: Keyboard | None) -> None:
        self.kinds: list[str] = []
        """The answers of the scene; without any, somebody else is waited for."""
        self.is_asked = asyncio.Event()
        self._keyboard = keyboard

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return self._keyboard.listening() if self._keyboard else contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        self.is_asked.set()
        if not self.kinds:
            await asyncio.Future[None]()  # until the question is withdrawn, as it is answered elsewhere
        kind = self.kinds.pop(0) if len(self.kinds) > 1 else self.kinds[0]
        option = next(choice.option for choice in choices if choice.option.kind == kind)
        if self._keyboard is not None:
            keys = {choice.option.option_id: choice.key for choice in choices}
            how = f"press {' '.join(keys.values())}, or wait: the demo chooses {keys[option.option_id]}"
            with contextlib.suppress(TimeoutError):
                async with timeout(COUNTDOWN):
                    answer = await self._keyboard.choose(choices, lambda hint: invite(hint or how))
                    return _said_otherwise(answer, option)
        return Answer(option, f"{option.name} (the demo answered by itself)")


class SecondWindow(Client):
    """Another client, with a process of its own: it joins the session while a turn runs, takes part with the code that
    the first one shows, and answers the question."""

    def __init__(self, folder: str, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._replay = _Replay()
        self._heard = ""
        self._has_loaded = asyncio.Event()
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._turn_end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answer = ""
        """What was answered here, in words."""

    async def stay(self, session: str) -> None:
        """Joins the session, until it is cancelled."""
        window = start_agent(
            AGENT, self, environment=self._environment, name="second-window", on_state=self._state_changed
        )
        async with window as agent:
            await agent.load_session(session, self._folder)
            self._has_loaded.set()
            await agent.prompt(session, await self._code)
            raise await agent.gone()

    def read(self, code: str) -> None:
        """The person has read in the first window what is to be typed here."""
        if not self._code.done():
            self._code.set_result(code)

    def fail(self, error: CrowError) -> None:
        if not self._turn_end.done():
            self._turn_end.set_exception(error)

    async def experience(self, heard: str) -> str:
        """What was shown here, in words, once the turn has ended; `heard` is what the first window was told of it."""
        await self._turn_end
        same = "the same reply" if self._heard == heard else f"another reply: {self._heard}"
        return f"The second window: {self._replay.in_words()}; then the question, and {same}."

    def update(self, update: Update) -> None:
        if not self._has_loaded.is_set():
            self._replay.take(update)
        elif isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContent):
            self._heard += update.content.text

    async def permit(self, request: RequestPermissionRequest) -> str | None:
        await self._has_loaded.wait()
        option = next(option for option in request.options if option.kind == "allow_once")
        self.answer = f"{option.name} (answered in the second window)"
        return option.option_id

    def _state_changed(self, state: StateNotification) -> None:
        if self.answer and state.state == "idle" and not self._turn_end.done():
            self._turn_end.set_result(None)


def _said_otherwise(answer: Answer, expected: PermissionOption) -> Answer:
    chosen = answer.option
    if chosen is not None and chosen.kind[:5] == expected.kind[:5]:  # both allow, or both reject
        return answer
    return answer._replace(words=f"{answer.words} (the model is only a script: what it says next may not fit)")


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
