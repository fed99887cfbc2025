"""The changed files beside the talk: live, with their diffs, and with comments that go into the next prompt."""

from pathlib import Path

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, call, edit, reply, run, say

ALLOWED = "".join(f'[[permission.rules]]\ntool = "{tool}"\ndecision = "allow"\n' for tool in ("write", "edit"))
SCRIPT = (
    reply(edit("src/a.py", "one", "two"), call("write", path="package-lock.json", content="{}\n"))
    + reply(say("Changed."))
    + reply(call("write", path="src/b.py", content="new\n"))
    + reply(say("Added."))
    + DONE
)


def test_changed_files_are_listed_live_with_their_diffs_and_take_comments(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT, config=ALLOWED) as web:
        (web.workspace / "src").mkdir()
        (web.workspace / "src/a.py").write_text("zero\none\n")

        async def story(visit: Visit) -> None:
            press = visit.page.keyboard.press
            await visit.begin()
            await press("Tab")
            await press("d")
            panel = visit.page.get_by_role("region", name="Changed files")
            await expect(panel).to_contain_text("Nothing has changed in this session yet.")
            await visit.say("change it")
            await visit.idle()
            await expect(panel.locator(".file")).to_have_count(1)  # and one that a program writes, folded
            await panel.get_by_role("button", name="1 generated file").click()
            await expect(panel.locator(".file")).to_have_count(2)
            await visit.say("add one")
            await expect(panel.locator(".file")).to_have_count(3)
            # By keys alone: to the file, open it, to the changed line, and say something about it.
            await panel.get_by_role("button", name="changed a.py").focus()
            await press("Enter")
            diff = panel.get_by_role("region", name="Changes in")
            await expect(diff.locator(".add")).to_contain_text("two")
            await diff.locator(".diff-body").focus()
            await press("n")
            await press("ArrowDown")
            await press("c")
            await visit.page.keyboard.type("three, please")
            await press("Control+Enter")
            await expect(visit.composer).to_have_value("src/a.py:2\n> two\nthree, please\n")

        in_browser(web, story)


def test_what_a_command_did_to_files_is_not_called_nothing(tmp_path: Path) -> None:
    unseen = "It does not know which files commands or servers have changed."
    script = (
        reply(call("read", path="a.py"), run("touch c.py"), when="look")
        + reply(run("touch b.py"), when="make")
        + reply(edit("a.py", "one", "two"), when="edit")
        + DONE
    )
    with crow_web(tmp_path, script=script, config=ALLOWED + allowing("read")) as web:
        (web.workspace / "a.py").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.page.get_by_role("button", name="Changed files").click()
            panel = visit.page.get_by_role("region", name="Changed files")
            await visit.say("look")
            await visit.question.get_by_role("button", name="Reject").click()
            await visit.question.get_by_role("button", name="Skip").click()
            await visit.idle()
            await expect(panel).to_have_text("Nothing has changed in this session yet.")  # the command did not run
            await visit.say("make it")
            await visit.question.get_by_role("button", name="Allow once").click()
            await expect(panel).to_contain_text(unseen)
            await visit.idle()
            await visit.page.reload()
            await visit.page.get_by_role("button", name="Changed files").click()
            await expect(panel).to_contain_text(unseen)
            await visit.say("edit it")
            await expect(panel).to_contain_text("a.py")
            await expect(panel).to_contain_text("Files that commands or servers changed are not listed.")

        in_browser(web, story)


def test_on_a_phone_the_changes_are_a_tab(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT, config=ALLOWED) as web:
        (web.workspace / "src").mkdir()
        (web.workspace / "src/a.py").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("change it")
            await visit.idle()
            await visit.page.get_by_label("Views").get_by_text("Changes").click()
            panel = visit.page.get_by_role("region", name="Changed files")
            await panel.get_by_role("button", name="changed a.py").click()
            await expect(panel.locator(".add")).to_contain_text("two")
            assert await visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

        in_browser(web, story, viewport=PHONE)
