"""`crow demo`: plays a scripted conversation through a real `crow acp` process; needs no key and no network.

The model is a script (demo.toml) and so is the person (SCENES, ScriptedPerson); everything in between is what an editor
would get. The project (demo_project.toml), its failing test and what is done about it are real.
"""

import argparse
import asyncio
import contextlib
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from crow.acp.client import RemoteAgent, start_agent
from crow.acp.wire import (
    AgentMessageChunk,
    PermissionOption,
    TextContent,
    ToolCall,
    Update,
    UserMessageChunk,
)
from crow.cli.answer_keys import Answer, Answerer, Choice, Invite
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
from crow.config.discovery import ALLOW, MODE, MODEL
from crow.timeouts import timeout

COUNTDOWN = 1.0
"""Seconds in which the person may answer a question before the demo does."""
PAUSE = 0.15
"""Seconds before each scene, and before a turn is cancelled: time to read."""
_TEMPO = re.compile(r"\b(pace|wait|retry_after|MOMENT) = \d+\.\d+")


class Scene(NamedTuple):
    """What the person says in one turn of the demo, and does in it."""

    title: str
    prompt: str
    answers: tuple[str, ...] = ()
    """The kinds of options that the demo chooses if the person does not, question by question."""
    cancel_at: str = ""
    """The words after which the demo cancels the turn."""


INTRODUCTION = (
    "A script plays the model. `crow acp`, the protocol, the project and its failing test are real. No key, no network."
)
SCENES = (
    Scene(
        "Crow fixes a failing test: plan, command, search, edit",
        "A test fails. Can you fix it?",
        answers=("allow_always", "allow_once"),
    ),
    Scene("A command is rejected: Crow carries on without it", "Is there anything to clean up?", ("reject_once",)),
    Scene("Plan mode: nothing changes before you agree", "/plan Make the search faster", ("allow_always",)),
    Scene("Undo: the last turn is taken back, its changes to files included", "/undo"),
    Scene("The provider fails: Crow says so and tries again", "Are you still there?"),
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
            project = renderer.folder = _create_project(folder, with_tempo=screen.live)
            log_to_file(os.path.join(folder, "crow"))
            person = ScriptedPerson(renderer, is_watched=screen.live)
            async with start_agent(AGENT, person, environment=_environment(folder)) as agent:
                session = (await agent.new_session(project)).session_id
                for number, scene in enumerate(SCENES, start=1):
                    renderer.scene(f"{number}. {scene.title}")
                    await person.play(scene, agent, session)
            renderer.scene(f"{len(SCENES) + 1}. {LAST_SCENE.title}")
            async with start_agent(AGENT, person, environment=_environment(folder)) as agent:
                await person.load(agent, session, project)
                await person.play(LAST_SCENE, agent, session)
                await agent.close_session(session)
        _say_what_next(screen)
        return "end_turn"

    return await exit_code_of(play, Interrupts(renderer.interrupted))


def _say_what_next(screen: Screen) -> None:
    how = launch(os.environ)
    crow = shlex.join([how.command, *how.args[:-1]])
    others = ", ".join(name for name in EDITORS if name != "zed")
    screen.line()
    screen.line("That was Crow, with a script instead of a model. Next steps:", BOLD)
    for what, line in (
        ("connect a model: a vendor's, a gateway's, or one on this machine", "login"),
        (f"connect your editor; instead of zed: {others}", "setup zed"),
        ("or chat with it here, in a folder of yours", "chat"),
        ("or use it in your browser", "web --open"),
    ):
        screen.line()
        screen.line(f"  # {what}", DIM)
        screen.line(f"  {crow} {line}", CODE)
    screen.flush()


# --- the person


class ScriptedPerson(RenderingClient):
    """Says what is in the scene, and cancels where it says so."""

    def __init__(self, renderer: Renderer, *, is_watched: bool) -> None:
        terminal = keyboard_of(sys.stdout) if is_watched else None
        keyboard = Keyboard(terminal, at_stake=False) if terminal is not None else None
        self._answers = _DemoAnswers(keyboard)
        super().__init__(renderer, self._answers)
        self._is_watched = is_watched
        self._cancel_at = self._heard = ""
        self._heard_enough = asyncio.Event()
        self._replay: list[Update] | None = None

    async def load(self, agent: RemoteAgent, session: str, folder: str) -> None:
        """Counts what a replay brings instead of showing all of it again."""
        await self._pause()
        self.renderer.wait("loading")
        replay: list[Update] = []
        self._replay = replay
        loaded = await agent.load_session(session, folder)
        self._replay = None
        prompts = {update.message_id for update in replay if isinstance(update, UserMessageChunk)}
        replies = {update.message_id for update in replay if isinstance(update, AgentMessageChunk)}
        calls = sum(isinstance(update, ToolCall) for update in replay)
        mode = loaded.modes.current_mode_id if loaded.modes else "none"
        self.renderer.mark(
            "i",
            f"Loaded {len(prompts)} prompts, {len(replies)} messages and {calls} calls. The mode is still `{mode}`.",
            DIM,
        )

    async def play(self, scene: Scene, agent: RemoteAgent, session: str) -> None:
        self._answers.kinds = list(scene.answers)
        self._cancel_at, self._heard, self._heard_enough = scene.cancel_at, "", asyncio.Event()
        await self._pause()
        self.renderer.prompt(scene.prompt)
        self.renderer.begin_turn()
        cancelling = asyncio.create_task(self._cancel_when_heard(agent, session))
        try:
            self.renderer.stop(await agent.prompt(session, scene.prompt))
        finally:
            cancelling.cancel()
            await asyncio.wait([cancelling])

    def update(self, update: Update) -> None:
        if self._replay is not None:
            self._replay.append(update)
            return
        super().update(update)
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContent):
            self._heard += update.content.text
            if self._cancel_at and self._cancel_at in self._heard:
                self._heard_enough.set()

    async def _cancel_when_heard(self, agent: RemoteAgent, session: str) -> None:
        await self._heard_enough.wait()
        await self._pause()
        agent.cancel(session)

    async def _pause(self) -> None:
        if self._is_watched:
            await asyncio.sleep(PAUSE)


class _DemoAnswers(Answerer):
    """Answers as the scene says; whoever watches may be quicker."""

    def __init__(self, keyboard: Keyboard | None) -> None:
        self.kinds: list[str] = []
        """The answers of the scene."""
        self._keyboard = keyboard

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return self._keyboard.listening() if self._keyboard else contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        kind = self.kinds.pop(0) if len(self.kinds) > 1 else self.kinds[0]
        option = next(choice.option for choice in choices if choice.option.kind == kind)
        if self._keyboard is not None:
            keys = {choice.option.option_id: choice.key for choice in choices}
            how = f"Press {' '.join(keys.values())}, or wait: the demo chooses {keys[option.option_id]}"
            with contextlib.suppress(TimeoutError):
                async with timeout(COUNTDOWN):
                    answer = await self._keyboard.choose(choices, lambda hint: invite(hint or how))
                    return _said_otherwise(answer, option)
        return Answer(option, f"{option.name} (answered by the demo)")


def _said_otherwise(answer: Answer, expected: PermissionOption) -> Answer:
    chosen = answer.option
    if chosen is not None and chosen.kind[:5] == expected.kind[:5]:  # both allow, or both reject
        return answer
    return answer._replace(words=f"{answer.words} (the model is a script: its next words may not fit)")


# --- the project


def project_files() -> dict[str, str]:
    """The text of each file of the project and around it, by path."""
    return tomllib.loads(files("crow.cli").joinpath("demo_project.toml").read_text("utf-8"))


def _create_project(folder: str, *, with_tempo: bool) -> str:
    """Creates the project, its surroundings and the script; returns the project's folder."""
    script = files("crow.cli").joinpath("demo.toml").read_text("utf-8")
    # Some machines have no `python3`, but this very Python is there. It must not take `nest.py` for unchanged, which
    # it does by a bytecode file when the edit comes within the same second: so it keeps none.
    python = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B "$@"\n'
    for name, content in {**project_files(), "crow/demo.toml": script, "bin/python3": python}.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if with_tempo else _TEMPO.sub(r"\1 = 0", content))
    os.chmod(os.path.join(folder, "bin/python3"), 0o700)
    return os.path.join(folder, "project")


def _environment(folder: str) -> dict[str, str]:
    """Ours, but for the choices that the person made for real work."""
    inherited = {name: value for name, value in os.environ.items() if name not in (MODEL, MODE, ALLOW)}
    path = os.path.join(folder, "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    return {**inherited, "CROW_HOME": os.path.join(folder, "crow"), "PATH": path}
