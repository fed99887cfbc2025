"""`crow demo`: a scripted conversation through a real `crow acp` process; needs no key and no network.

The model is a script (demo.toml) and so is the person (SCENES, demo_person.py); everything in between is what an
editor would get. The project (demo_project.py), its failing test and what is done about it are real.
"""

import argparse
import asyncio
import os
import shlex
import sys
import tempfile

from crow.acp.client import start_agent
from crow.acp.wire import ContentToolContent, TextContent, ToolCall
from crow.cli.demo_person import Scene, ScriptedPerson
from crow.cli.demo_project import TESTS, environment, furnish, run_tests
from crow.cli.editors import EDITORS, launch
from crow.cli.log import log_to_file
from crow.cli.render import Renderer
from crow.cli.render_conversation import AGENT, Interrupts, exit_code_of, prepare_output, showing
from crow.cli.render_screen import BOLD, CODE, DIM, Screen

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
            person = ScriptedPerson(renderer, is_watched=screen.live)
            async with start_agent(AGENT, person, environment=environment(folder)) as agent:
                session = await agent.new_session(project)
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
        ("or try it here, in a folder of yours", 'run "explain this repository"'),
    ):
        screen.line()
        screen.line(f"  # {what}", DIM)
        screen.line(f"  {crow} {line}", CODE)
    screen.flush()
