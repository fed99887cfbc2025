"""Every view, light and dark, is free of what axe-core calls serious; and a phone gets a layout of its own."""

import asyncio
from pathlib import Path
from typing import Any

from playwright.async_api import FilePayload, Page

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.mcp.guests import asking, configured
from tests.support.page_build import ROOT
from tests.support.scripts import DONE, call, edit, reply, run, say

AXE = ROOT / "page/node_modules/axe-core/axe.min.js"
PROSE = """\
# Head

A *word*, `code`, [a link](https://example.org/).

```python
def f(x): return x  # so
```

- one
- two

| a | b |
|---|---|
| 1 | 2 |
"""
PLAN = call(
    "plan", entries=[{"content": "Look", "status": "completed"}, {"content": "Change", "status": "in_progress"}]
)
SCRIPT = (
    reply("{ thought = 'Hm.' }", say(PROSE), PLAN, edit("a.py", "x = 1", "x = 2"))
    + reply(run("printf '\\033[31mred\\033[0m\\n'; exit 3"))
    + DONE
)


async def serious(page: Page, view: str) -> list[str]:
    """What axe-core finds serious or critical in what is seen, light and dark."""
    found: list[str] = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await expect(page.locator(f'html[data-theme="{scheme}"]')).to_be_attached()
        result: dict[str, Any] = await page.evaluate(
            "async () => await axe.run(document, {resultTypes: ['violations']})"
        )
        for one in result["violations"]:
            if one["impact"] in ("serious", "critical"):
                found += [
                    f"{view}, {scheme}: {one['id']}: {node['html'][:160]} {node['failureSummary'][-200:]}"
                    for node in one["nodes"]
                ]
    return found


async def prepared(visit: Visit) -> None:
    await visit.page.evaluate(AXE.read_text())


def test_no_view_has_a_serious_fault(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:
        (web.workspace / "a.py").write_text("x = 1\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await prepared(visit)
            found = await serious(page, "nothing open")
            for key, name in (("n", "New session"), ("?", "Keys"), ("Control+k", "Command palette")):
                await page.keyboard.press(key)
                await expect(page.get_by_role("dialog", name=name)).to_be_visible()
                found += await serious(page, name)
                await page.keyboard.press("Escape")
            await visit.begin()
            await visit.say("change it")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            await expect(visit.question.locator(".add")).to_be_visible()
            found += await serious(page, "a question with a diff")
            await visit.question.get_by_role("button", name="Allow once").click()
            await expect(visit.question).to_contain_text("printf")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            found += await serious(page, "a question with a command")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            await page.get_by_role("button", name="Changed files").first.click()
            await visit.transcript.get_by_text("Thought").click()
            await page.locator(".plan summary").click()
            found += await serious(page, "talk")
            await page.set_viewport_size({"width": 390, "height": 800})
            found += await serious(page, "phone")
            assert not found, "\n".join(found)

        in_browser(web, story)


def test_no_view_of_setting_up_and_losing_crow_has_a_serious_fault(tmp_path: Path) -> None:
    with crow_web(tmp_path) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await prepared(visit)
            await page.keyboard.press("n")
            await page.get_by_label("Folder").fill(str(web.workspace / "not there"))
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
            found = await serious(page, "a folder that is not there")
            await page.get_by_label("Folder").fill(str(web.workspace))
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Try without a key")).to_be_visible()
            found += await serious(page, "setting up a model")
            await page.get_by_role("button", name="Try without a key").click()
            await visit.say("hello")
            await visit.idle()
            await asyncio.to_thread(web.end)
            await visit.connected("lost")
            await visit.say("and now?")
            await expect(page.locator(".turn-line")).to_contain_text("is queued")
            found += await serious(page, "a lost connection")
            await page.set_viewport_size({"width": 390, "height": 800})
            found += await serious(page, "a lost connection, phone")
            assert not found, "\n".join(found)

        in_browser(web, story)


def test_no_view_of_forms_files_and_what_is_found_has_a_serious_fault(tmp_path: Path) -> None:
    config = configured(asking("for-a-lot"))
    choice = call("ask", question="Which `one`?", options=["salt", "sugar"])
    broken = "{ fail = { status = 400, message = 'No such thing.' } }"
    script = reply(call("mcp__asking__go"), choice, when="bake") + reply(broken, when="break") + DONE
    with crow_web(tmp_path, script=script, config="context_window = 50000\n" + config) as web:
        (web.workspace / "notes.md").write_text("some notes\n")

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await prepared(visit)
            await visit.begin()
            text: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"some notes"}
            await page.get_by_label("Files", exact=True).set_input_files([text])
            await visit.composer.press_sequentially("@no")
            await expect(page.get_by_role("listbox", name="Suggestions")).to_be_visible()
            found = await serious(page, "attachments and suggestions")
            await visit.say("bake")
            await expect(asked.get_by_role("button", name="Allow once")).to_be_enabled()
            await page.keyboard.press("Alt+a")
            await expect(asked).to_contain_text("What shall be baked?")
            await asked.get_by_label("Your name").fill("Ada")
            found += await serious(page, "a form")
            await asked.get_by_role("button", name="Skip").click()
            await expect(asked.get_by_role("button", name="sugar")).to_be_enabled()
            found += await serious(page, "a choice")
            await asked.get_by_role("button", name="sugar").click()
            await visit.idle()
            await visit.messages.locator("summary").click()
            await page.get_by_label("Search all sessions").fill("done")
            await expect(page.locator(".match mark").first).to_be_visible()
            found += await serious(page, "what was found")
            await page.get_by_label("Search all sessions").fill("no such word")
            await expect(page.get_by_text("Nothing found.")).to_be_visible()
            found += await serious(page, "nothing found")
            await page.keyboard.press("Control+k")
            await page.keyboard.type("a")
            found += await serious(page, "the palette of a session")
            await page.keyboard.press("Escape")
            await visit.say("break")
            await expect(page.get_by_text("No such thing.").first).to_be_visible()
            found += await serious(page, "an error")
            assert not found, "\n".join(found)

        in_browser(web, story)


def test_no_view_of_changes_and_commands_has_a_serious_fault(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(80))
    edits = [{"old": f"line {number}\n", "new": f"row {number} \u202e\n"} for number in (5, 70)]
    asks = "read -p 'Name? ' name; seq 1 40; sleep 600"
    script = reply(call("edit", path="a.txt", edits=edits)) + reply(run(asks)) + DONE
    with crow_web(tmp_path, script=script) as web:
        (web.workspace / "a.txt").write_text(old)

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await prepared(visit)
            await visit.begin()
            await visit.say("go")
            await expect(asked.locator(".add")).to_have_count(2)
            await asked.get_by_role("checkbox").first.uncheck()
            await expect(asked.get_by_role("button", name="Allow 1 of 2")).to_be_enabled()
            found = await serious(page, "one of two changes")
            await asked.get_by_role("button", name="Allow 1 of 2").click()
            await asked.get_by_label("Let me type into it").check()
            await expect(asked.get_by_role("button", name="Allow once")).to_be_enabled()
            await asked.get_by_role("button", name="Allow once").click()
            command = visit.transcript.locator(".command")
            await expect(command.locator(".xterm-rows")).to_contain_text("Name?")
            await expect(command.get_by_label("Type into")).to_be_visible()
            await command.locator(".xterm-helper-textarea").focus()
            found += await serious(page, "a command that is typed into")
            await page.keyboard.type("crow")
            await page.keyboard.press("Enter")
            await expect(command.locator(".xterm-rows")).to_contain_text("40")
            await command.get_by_role("button", name="All output").click()
            await expect(command.get_by_role("status")).to_contain_text("lines")
            found += await serious(page, "all output of a command that runs")
            await command.get_by_role("button", name="Stop").click()
            await visit.idle()
            await page.get_by_role("button", name="Changed files").first.click()
            panel = page.get_by_role("region", name="Changed files")
            await panel.locator(".file").click()
            await panel.locator(".add").click()
            await page.keyboard.press("c")
            await expect(panel.get_by_label("Comment on line")).to_be_focused()
            found += await serious(page, "a comment on a changed line")
            await page.keyboard.type("not so")
            await page.keyboard.press("Control+Enter")
            await expect(panel.locator(".comment-said")).to_be_visible()
            found += await serious(page, "a comment that was made")
            await panel.get_by_role("button", name="Side by side").click()
            await expect(panel.locator(".diff-body.beside")).to_be_visible()
            found += await serious(page, "side by side")
            await page.get_by_role("button", name="Undo turn").click()
            await expect(page.get_by_role("dialog", name="Undo the last turn").locator(".add").first).to_be_visible()
            found += await serious(page, "undo")
            await page.keyboard.press("Escape")
            await page.set_viewport_size({"width": 390, "height": 800})
            for name in ("Changes", "Questions", "Talk"):
                await page.get_by_role("navigation", name="Views").get_by_role("button", name=name).click()
                found += await serious(page, f"{name}, phone")
            await page.get_by_role("button", name="All sessions").click()
            found += await serious(page, "all sessions, phone")
            assert not found, "\n".join(found)

        in_browser(web, story)


def test_a_phone_shows_one_thing_at_a_time_and_enter_is_a_new_line(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:
        (web.workspace / "a.py").write_text("x = 1\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.get_by_role("button", name="New session").click()
            await page.get_by_label("Folder").fill(str(web.workspace))
            await page.get_by_role("button", name="Begin").tap()
            await expect(page.get_by_role("navigation", name="Sessions")).to_be_hidden()
            await visit.composer.fill("change")
            await visit.composer.press("Enter")
            await visit.composer.press_sequentially("it")
            await expect(visit.composer).to_have_value("change\nit")
            await page.get_by_role("button", name="Send").tap()
            views = page.get_by_role("navigation", name="Views")
            await expect(views.get_by_role("button", name="Questions")).to_contain_text("1")
            await views.get_by_role("button", name="Questions").tap()
            await expect(visit.transcript).to_be_hidden()
            answer = visit.question.get_by_role("button", name="Allow once")
            await expect(answer).to_be_enabled()
            box = await answer.bounding_box()
            assert box is not None
            assert box["height"] >= 44  # what a thumb can hit
            assert box["width"] > PHONE["width"] * 0.8
            await answer.tap()
            await expect(visit.question).to_contain_text("printf")
            await views.get_by_role("button", name="Talk").tap()
            await expect(visit.transcript).to_be_visible()
            await views.get_by_role("button", name="Changes").tap()
            await expect(page.get_by_role("complementary", name="Changed files")).to_be_visible()
            await expect(visit.transcript).to_be_hidden()
            await views.get_by_role("button", name="Talk").tap()
            await page.get_by_role("button", name="All sessions").tap()
            await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width == PHONE["width"]  # nothing sticks out

        in_browser(web, story, viewport=PHONE, has_touch=True, is_mobile=True)


def test_long_names_stick_out_nowhere_on_a_phone(tmp_path: Path) -> None:
    name = "/".join(["a-folder-with-a-long-name"] * 4) + "/and_a_file_with_a_long_name.py"
    text = "x = 1\n" * 200
    with crow_web(tmp_path, script=reply(call("write", path=name, content=text)) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.composer.fill("write")
            await page.get_by_role("button", name="Send").tap()
            await page.get_by_role("button", name="Questions").tap()
            answer = visit.question.get_by_role("button", name="Allow once")
            await expect(answer).to_be_in_viewport(ratio=1)
            assert await page.locator(".all-questions").evaluate("one => one.scrollWidth - one.clientWidth") == 0
            await answer.tap()
            await page.get_by_role("button", name="Talk").tap()
            await page.get_by_role("button", name="Undo turn").tap()
            dialog = page.get_by_role("dialog")
            await expect(dialog.get_by_text("and_a_file_with_a_long_name.py").first).to_be_visible()
            assert await dialog.evaluate("one => one.scrollWidth - one.clientWidth") == 0
            await expect(dialog.get_by_role("button", name="Keep it")).to_be_in_viewport(ratio=1)

        in_browser(web, story, viewport=PHONE, has_touch=True, is_mobile=True)


def test_a_page_that_is_refused_has_no_serious_fault(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await prepared(visit)
            await asyncio.to_thread(web.beside, "--forget", "all")
            await visit.connected("refused")
            await expect(visit.page.get_by_role("alert")).to_be_visible()
            found = await serious(visit.page, "refused")
            assert not found, "\n".join(found)

        in_browser(web, story)
