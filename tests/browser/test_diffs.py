"""Diffs in the page: words, folds, columns, blanks, large ones, hostile ones, single changes, comments."""

from pathlib import Path

from playwright.async_api import Locator

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, call, reply, say

EDITS_ALLOWED = '[[permission.rules]]\ntool = "write"\ndecision = "allow"\n'
OLD = "".join(f"line_{number} = {number}\n" for number in range(60))


def write(name: str, text: str) -> str:
    return reply(call("read", path=name)) + reply(call("write", path=name, content=text)) + reply(say("Written."))


async def changed(visit: Visit) -> Locator:
    """The diff of the one file that the script writes, after the turn."""
    await visit.begin()
    await visit.say("write it")
    await visit.idle()
    diff = visit.transcript.locator(".diff")
    await expect(diff.locator(".l").first).to_be_visible()
    return diff


async def copied(diff: Locator) -> str:
    """What the clipboard would get of all its lines."""
    return await diff.locator(".diff-body").evaluate(
        "(body) => { getSelection().selectAllChildren(body); return getSelection().toString(); }"
    )


def test_a_diff_marks_words_folds_what_is_the_same_and_copies_lines_alone(tmp_path: Path) -> None:
    new = OLD.replace("line_30 = 30", "line_30 = 3000")
    with crow_web(tmp_path, script=write("a.py", new), config=EDITS_ALLOWED) as web:
        (web.workspace / "a.py").write_text(OLD)

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            await expect(diff.locator(".del .w")).to_have_text("30")
            await expect(diff.locator(".add .w")).to_have_text("3000")
            await expect(diff.locator(".hljs-number").first).to_be_visible()  # colours come a moment later
            await expect(diff.locator(".l")).to_have_count(8)
            text = await copied(diff)
            assert [line for line in text.split("\n") if line] == [
                *(f"line_{number} = {number}" for number in range(27, 31)),
                "line_30 = 3000",
                *(f"line_{number} = {number}" for number in range(31, 34)),
            ]
            await diff.get_by_role("button", name="27 unchanged lines").click()
            await expect(diff.locator(".l")).to_have_count(35)
            await expect(diff.locator('.l i[data-n="1"]').first).to_be_visible()

        in_browser(web, story, viewport={"width": 800, "height": 900})


def test_columns_follow_the_width_until_the_person_says_otherwise(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=write("a.py", OLD.replace("= 7\n", "= 77\n")), config=EDITS_ALLOWED) as web:
        (web.workspace / "a.py").write_text(OLD)

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            body = diff.locator(".diff-body")
            narrow = diff.get_by_role("button", name="Side by side")
            await expect(narrow).to_have_attribute("aria-pressed", "false")
            await narrow.click()
            await expect(body).to_have_class("diff-body can-comment beside")
            await expect(diff.locator(".l.pair code")).to_have_text(["line_7 = 7", "line_7 = 77"])
            await visit.page.reload()
            await expect(body).to_have_class("diff-body can-comment beside")
            await diff.get_by_role("button", name="Side by side").click()
            await expect(diff.locator(".l.del code")).to_have_text("line_7 = 7")

        in_browser(web, story, viewport={"width": 820, "height": 900})


def test_changes_of_blanks_can_be_left_out(tmp_path: Path) -> None:
    new = OLD.replace("line_3 = 3\n", "    line_3 = 3\n").replace("= 50\n", "= 51\n")
    with crow_web(tmp_path, script=write("a.py", new), config=EDITS_ALLOWED) as web:
        (web.workspace / "a.py").write_text(OLD)

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            await expect(diff.locator(".add")).to_have_count(2)
            await diff.get_by_role("button", name="Leave out changes of blanks").click()
            await expect(diff.locator(".add")).to_have_count(1)
            await expect(diff.locator(".add")).to_have_text("line_50 = 51")
            await diff.get_by_role("button", name="Leave out changes of blanks").click()
            await expect(diff.locator(".add")).to_have_count(2)

        in_browser(web, story, viewport={"width": 800, "height": 900})


def test_a_diff_of_20000_lines_is_folded_and_nothing_of_it_is_omitted(tmp_path: Path) -> None:
    """Only what is near is drawn, however long it is; the last line is there once somebody goes there."""
    lines = "".join(f"value_{number} = {number}\n" for number in range(20_000))
    with crow_web(tmp_path, script=write("long.py", lines), config=EDITS_ALLOWED) as web:

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            await expect(diff.locator(".chip")).to_have_text("new")
            await expect(diff.locator(".counts")).to_have_text("+20,000")
            await diff.get_by_role("button", name="Show 19,900 more lines").click()
            await expect(diff.locator(".rows")).to_have_count(200)
            assert await diff.locator(".l").count() < 3000
            await diff.locator(".rows").last.scroll_into_view_if_needed()
            await expect(diff.get_by_text("value_19999 = 19999")).to_be_visible()
            assert await diff.locator(".l").count() < 6000

        in_browser(web, story)


HOSTILE = (
    '<img src=x onerror="alert(1)"><script>alert(2)</script>\r\n'
    'const level = "user\u202e \u2066// only admins\u2069 \u2066";\n'
    "a\u200bb = 1;" + " " * 400 + "evil();\n"
    "javascript:alert(3)\x1b[31m\x07\nno line feed here"
)


def test_hostile_text_is_shown_as_what_it_is(tmp_path: Path) -> None:
    """No HTML, no script, no turned text, nothing out of sight; the page itself asks for nothing (see Visit)."""
    with crow_web(tmp_path, script=write("x.js", HOSTILE), config=EDITS_ALLOWED) as web:

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            await expect(diff.locator(".diff-warning")).to_be_visible()
            codes = diff.locator(".l code")
            await expect(codes.nth(0)).to_contain_text('<img src=x onerror="alert(1)"><script>alert(2)</script>')
            await expect(codes.nth(1)).to_contain_text('"user⟨U+202E⟩ ⟨U+2066⟩// only admins⟨U+2069⟩ ⟨U+2066⟩";')
            await expect(codes.nth(2)).to_contain_text("a⟨U+200B⟩b = 1;")
            await expect(codes.nth(3)).to_contain_text("javascript:alert(3)⟨U+001B⟩[31m⟨U+0007⟩")
            await expect(diff.get_by_text("No newline at end of file")).to_be_visible()
            await expect(diff.locator(".cr")).to_have_count(1)
            assert await visit.page.locator(".diff img, .diff script, .diff a").count() == 0
            # What stands behind 400 blanks is inside of the window all the same.
            seen = await codes.nth(2).evaluate("(code) => code.scrollWidth <= code.clientWidth + 1")
            assert seen

        in_browser(web, story)


def test_keys_walk_through_a_diff_and_comment_on_a_line(tmp_path: Path) -> None:
    new = OLD.replace("= 7\n", "= 77\n").replace("= 50\n", "= 51\n")
    with crow_web(tmp_path, script=write("a.py", new) + DONE, config=EDITS_ALLOWED) as web:
        (web.workspace / "a.py").write_text(OLD)

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            press = visit.page.keyboard.press
            await expect(diff.locator(".l").first).to_be_visible()
            await diff.locator(".diff-body").focus()
            await press("n")
            await expect(diff.locator(".l:focus code")).to_have_text("line_7 = 7")
            await press("n")
            await expect(diff.locator(".l:focus code")).to_have_text("line_50 = 50")
            await press("ArrowDown")
            await expect(diff.locator(".l:focus code")).to_have_text("line_50 = 51")
            await press("c")
            await expect(diff.get_by_label("Comment on line 51")).to_be_focused()
            await visit.page.keyboard.type("why 51?")
            await press("Control+Enter")
            await expect(diff.locator(".l:focus code")).to_have_text("line_50 = 51")
            await expect(visit.composer).to_have_value("a.py:51\n> line_50 = 51\nwhy 51?\n")
            await press("p")
            await expect(diff.locator(".l:focus code")).to_have_text("line_7 = 7")

        in_browser(web, story, viewport={"width": 800, "height": 900})


def test_on_a_phone_every_line_fits_the_screen(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=write("a.py", "x = '" + "word " * 60 + "'\n"), config=EDITS_ALLOWED) as web:

        async def story(visit: Visit) -> None:
            diff = await changed(visit)
            await expect(diff.locator(".l")).to_have_count(1)
            box = await diff.locator(".l code").bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= PHONE["width"]
            assert await visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

        in_browser(web, story, viewport=PHONE, has_touch=False)


def test_single_changes_are_accepted_before_they_are_written(tmp_path: Path) -> None:
    """By keys and with the mouse: what is refused stays as it was, and the model is told."""
    new = OLD.replace("= 7\n", "= 77\n").replace("= 30\n", "= 31\n").replace("= 50\n", "= 51\n")
    with crow_web(tmp_path, script=write("a.py", new)) as web:
        (web.workspace / "a.py").write_text(OLD)

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("write it")
            asked = visit.question
            await expect(asked.get_by_role("checkbox", name="Change")).to_have_count(3)
            await expect(asked.locator(".choose")).to_contain_text("All 3 changes will be made")
            await asked.get_by_role("checkbox", name="Change 2 of 3").uncheck()
            await asked.locator(".diff-body").focus()
            await visit.page.keyboard.press("n")
            await visit.page.keyboard.press("x")
            await expect(asked.locator(".choose")).to_contain_text("1 of 3 changes will be made")
            await expect(asked.locator(".rows.refused")).to_have_count(2)
            await asked.get_by_role("button", name="Allow 1 of 3 changes").click()
            await visit.idle()
            assert (web.workspace / "a.py").read_text() == OLD.replace("= 50\n", "= 51\n")
            await expect(visit.transcript.locator(".diff .add")).to_have_count(1)
            await expect(visit.transcript.locator(".diff .add")).to_contain_text("line_50 = 51")

        in_browser(web, story, viewport={"width": 800, "height": 900})
