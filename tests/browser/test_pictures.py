"""The pictures of README.md and docs/browser.md: six views of the page, in one story that plays them all.

`make pictures` puts them into docs/pictures. In every other run they are made as well, and thrown away: a picture that
can no longer be made shows something that is no longer there.
"""

import os
import struct
from pathlib import Path

from playwright.async_api import Locator

from crow.cli.demo import project_files
from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, call, edit, reply, run, say

FOLDER = os.environ.get("CROW_PICTURES", "")
SIZE = {"width": 1180, "height": 780}

PLAN = ("See the test fail", "Find out why", "Mend it", "See it pass")


def plan(done: int) -> str:
    states = ["completed"] * done + ["in_progress"] * (done < len(PLAN)) + ["pending"] * (len(PLAN) - done - 1)
    entries = [{"content": text, "status": state} for text, state in zip(PLAN, states, strict=True)]
    return call("plan", entries=entries)


MENDS = "A test fails."
SCRIPT = (
    reply("{ thought = 'I want to see it fail first.' }", plan(0), run("python3 test_nest.py"), when=MENDS)
    + reply(
        say("From the **field** the bird takes the way round by the river. Who decides which way is followed?"),
        plan(1),
        call("read", path="nest.py"),
        when=MENDS,
    )
    + reply(
        say(
            "`ways.pop()` takes the way that was found **last**, so the search goes deep before it goes wide. "
            "The first one is the shortest, and it can stop as soon as it is there:"
        ),
        plan(2),
        edit("nest.py", "        way = ways.pop()\n", "        way = ways.pop(0)  # the oldest is the shortest\n"),
        when=MENDS,
    )
    + reply(plan(3), run("python3 test_nest.py"), when=MENDS)
    + reply(plan(4), when=MENDS)
    + reply(say("Mended: one line in `nest.py`, and all four ways are the shortest."), when=MENDS)
    + reply(say("I look at what has changed since the last release."), "{ wait = 600 }", when="release notes")
    + reply(say("Two old logs are all that is there. I would remove them:"), run("rm -rf build"), when="Tidy up")
    + DONE
)

ALLOWED = '[[permission.rules]]\ntool = "terminal"\ncommand = "python3 test_nest.py"\ndecision = "allow"\n'


def test_six_views_can_be_pictured(tmp_path: Path) -> None:
    folder = Path(FOLDER) if FOLDER else tmp_path / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with crow_web(tmp_path, script=SCRIPT, config=ALLOWED) as web:
        project = _furnish(web.workspace / "nest")

        async def story(visit: Visit) -> None:
            page = visit.page

            async def take(name: str) -> None:
                # Where the mouse is and what blinks would make each picture another one.
                await page.mouse.move(0, 0)
                await expect(page.locator('.answer[aria-disabled="true"]')).to_have_count(0)  # they take answers
                await page.screenshot(path=folder / f"{name}.png", animations="disabled", caret="hide")

            await visit.begin(project)
            await visit.say("A test fails. Can you fix it?")
            await expect(visit.question.locator(".add")).to_contain_text("the oldest")
            await expect(visit.question.get_by_role("button", name="Reject")).to_be_enabled()
            await take("question")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            diff = visit.transcript.locator(".call .diff")
            await _in_the_middle(diff)
            await expect(diff).to_be_visible()
            await take("talk")
            await page.emulate_media(color_scheme="dark")
            await take("dark")
            await page.emulate_media(color_scheme="light")
            first_run = visit.transcript.locator(".item.is-call").filter(has_text="python3 test_nest.py").first
            await _in_the_middle(first_run)
            await expect(first_run).to_contain_text("3 of 4 ways are the shortest")
            await take("terminal")

            await visit.begin(project)
            await visit.say("Write the release notes")
            await expect(visit.transcript).to_contain_text("since the last release")
            await visit.begin(project)
            await visit.say("Tidy up, please")
            await expect(visit.question).to_contain_text("rm -rf build")
            await expect(page.locator(".session-rows .row")).to_have_count(3)
            await take("inbox")
            await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
            await expect(visit.question.get_by_role("button", name="Reject")).to_be_in_viewport()
            await expect(visit.question.get_by_role("button", name="Reject")).to_be_enabled()
            await take("phone")

        in_browser(web, story, viewport=SIZE)
    sizes = {path.stem: _size(path) for path in folder.iterdir()}
    wide = (SIZE["width"], SIZE["height"])
    assert sizes == {
        **dict.fromkeys(("question", "talk", "dark", "terminal", "inbox"), wide),
        "phone": (PHONE["width"], PHONE["height"]),
    }


def _furnish(project: Path) -> Path:
    """The project of `crow demo`, whose tests print in colour."""
    colours = {'"pass"': '"\\033[32mpass\\033[0m"', '"FAIL"': '"\\033[1;31mFAIL\\033[0m"'}
    files = project_files()
    tests = files["project/test_nest.py"]
    for plain, coloured in colours.items():
        tests = tests.replace(plain, coloured)
    (project / "build").mkdir(parents=True)
    (project / "build" / "monday.log").write_text("built\n")
    (project / "nest.py").write_text(files["project/nest.py"])
    (project / "test_nest.py").write_text(tests)
    return project


async def _in_the_middle(place: Locator) -> None:
    await place.evaluate("element => element.scrollIntoView({block: 'center'})")


def _size(picture: Path) -> tuple[int, ...]:
    """The width and height that stand at the beginning of a PNG file."""
    return struct.unpack(">II", picture.read_bytes()[16:24])
