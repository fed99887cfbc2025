"""`crow demo`: a scripted conversation through a real `crow acp` process; needs no key and no network.

The model is a script (demo.toml) and so is the person (SCENES); everything in between is what an editor would get.
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
from importlib.resources import files
from typing import NamedTuple

from crow.acp.client import Agent, AgentFailed, start_agent
from crow.acp.wire import AgentMessageChunk, TextContent, Update
from crow.cli.editors import EDITORS, launch
from crow.cli.log import log_to_file
from crow.cli.render import Renderer
from crow.cli.render_conversation import AGENT, Interrupts, RenderingClient, exit_code_of, prepare_output, showing
from crow.cli.render_question import Answer, Choice, Keyboard
from crow.cli.render_screen import BOLD, CODE, DIM, Screen
from crow.cli.terminal import is_interactive

INTRODUCTION = "A script plays the model; `crow acp` and the protocol are real. No key, no network."
COUNTDOWN = 2
"""Seconds in which the person may answer a question before the demo does."""
PAUSE = 0.4
"""Seconds before each scene, and before a turn is cancelled: time to read."""


class Scene(NamedTuple):
    title: str
    prompt: str
    answer: str = ""
    """The kind of option that the demo chooses if the person does not."""
    cancel_at: str = ""
    """The words after which the demo cancels the turn."""


SCENES = (
    Scene("Crow thinks, reads a file, answers", "What is this project?"),
    Scene("Reading outside the folder asks first: yes", "Does it follow the team's style guide?", answer="allow_once"),
    Scene("Reading outside the folder asks first: no", "Then have a look at my diary.", answer="reject_once"),
    Scene("The provider fails: Crow says so and tries again", "Are you still there?"),
    Scene("A failure that cannot be mended ends the turn, with the reason", "And with a wrong key?"),
    Scene("Cancel, in the middle of a sentence", "Tell me a long story.", cancel_at="hills and"),
    Scene("A reply that reaches the length limit", "Count to a thousand."),
    Scene("A model that refuses", "Pick my neighbour's lock."),
)

FILES = {
    "project/README.md": "# Nest\n\nFinds the shortest way home for a bird.\n\n    python -m nest field\n",
    "project/src/nest.py": 'def way_home(start: str, nest: str) -> list[str]:\n    return [start, "hedge", nest]\n',
    "team/style.md": "# Style\n\nNames explain themselves. Comments say why.\n",
    "home/diary.md": "Nobody should read this.\n",
    "crow/config.toml": 'model = "demo/script"\n\n[providers.demo]\ntype = "scripted"\nscript = "demo.toml"\n',
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def main(arguments: argparse.Namespace) -> int:
    prepare_output()
    return asyncio.run(_play())


async def _play() -> int:
    screen = Screen.of(sys.stdout, os.environ)
    renderer = Renderer(screen)

    async def play(interrupts: Interrupts) -> str:
        with tempfile.TemporaryDirectory(prefix="crow-demo-") as folder, showing(renderer):
            renderer.mark("i", INTRODUCTION, DIM)
            _furnish(folder, with_tempo=screen.live)
            log_to_file(os.path.join(folder, "crow"))
            person = _ScriptedPerson(renderer, is_watched=screen.live)
            async with start_agent(AGENT, person, environment=_environment(folder)) as agent:
                session = await agent.new_session(os.path.join(folder, "project"))
                for number, scene in enumerate(SCENES, start=1):
                    renderer.scene(f"{number}. {scene.title}")
                    await person.play(scene, agent, session)
                await agent.close_session(session)
        _say_what_next(screen)
        return "end_turn"

    return await exit_code_of(play, Interrupts(renderer.interrupted))


class _ScriptedPerson(RenderingClient):
    """Says what is in the scene, and cancels where it says so."""

    def __init__(self, renderer: Renderer, *, is_watched: bool) -> None:
        keyboard = Keyboard() if is_watched and is_interactive() else None
        self._answers = _DemoAnswers(renderer, keyboard)
        super().__init__(renderer, self._answers)
        self._is_watched = is_watched
        self._cancel_at = self._heard = ""
        self._heard_enough = asyncio.Event()

    async def play(self, scene: Scene, agent: Agent, session: str) -> None:
        self._answers.kind = scene.answer
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
        self.kind = ""
        self._renderer = renderer
        self._keyboard = keyboard

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return self._keyboard.listening() if self._keyboard else contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice]) -> Answer:
        option = next(choice.option for choice in choices if choice.option.kind == self.kind)
        if self._keyboard is not None:
            counting = asyncio.create_task(self._count_down(choices, option.name))
            try:
                async with asyncio.timeout(COUNTDOWN):
                    return await self._keyboard.choose(choices)
            except TimeoutError:
                pass
            finally:
                counting.cancel()
        return option, f"{option.name} (the demo answered by itself)"

    async def _count_down(self, choices: Sequence[Choice], name: str) -> None:
        keys = " ".join(choice.key for choice in choices)
        for left in range(COUNTDOWN, 0, -1):
            self._renderer.hint(f"press {keys} or wait: the demo chooses “{name}” in {left} s")
            await asyncio.sleep(1)


def _furnish(folder: str, *, with_tempo: bool) -> None:
    script = files("crow.cli").joinpath("demo.toml").read_text("utf-8")
    if not with_tempo:
        script = re.sub(r"\b(pace|wait|retry_after) = \d+\.\d+", r"\1 = 0", script)
    for name, content in {**FILES, "crow/demo.toml": script}.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)


def _environment(folder: str) -> dict[str, str]:
    """Ours, but for the choices that the person made for real work."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("CROW_MODEL", "CROW_MODE")}
    return {**inherited, "CROW_HOME": os.path.join(folder, "crow")}


def _say_what_next(screen: Screen) -> None:
    how = launch(os.environ)
    crow = shlex.join([how.command, *how.args[:-1]])
    others = ", ".join(name for name in EDITORS if name != "zed")
    screen.line()
    screen.line("That was Crow, with a script in the place of a model. What comes next:", BOLD)
    for what, line in (
        ("connect a model: a vendor's, a gateway's, or one on this machine", "login"),
        (f"connect your editor; instead of zed: {others}", "setup zed"),
        ("or try it here, in a folder of yours", 'run "explain this repository"'),
    ):
        screen.line()
        screen.line(f"  # {what}", DIM)
        screen.line(f"  {crow} {line}", CODE)
    screen.flush()
