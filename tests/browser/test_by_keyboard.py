"""Everything that a mouse can do in the page is done once by keys alone: no mouse, and no focus that a script sets."""

import asyncio
import json
from collections import Counter
from pathlib import Path

from playwright.async_api import Dialog, Route

from crow.web_server.built_files import find_built_files
from tests.browser.by_keyboard import Keys, sites
from tests.browser.page import AGE_WHAT_WAITS, PHONE, Visit, crow_web, expect, in_browser, restarted, until
from tests.mcp.guests import asking, configured
from tests.support.scripts import DONE, call, edit, reply, run, say

STORIES = {
    "the list, dialogs and the page's own settings": (
        "app.tsx button: New session, where none is open",
        "view/new_session.tsx input: folder",
        "view/new_session.tsx button: Begin",
        "view/new_session.tsx button: a recent folder",
        "view/dialog.tsx dialog: closed by a click beside it",
        "view/sidebar.tsx button: New session",
        "view/sidebar.tsx input: search",
        "view/sidebar.tsx button: a session that was found",
        "view/sidebar.tsx button: a session",
        "view/sidebar.tsx button: delete",
        "view/footer.tsx button: Notify me",
        "view/footer.tsx button: colours",
        "view/footer.tsx button: Keys",
        "view/help.tsx button: Close",
        "view/palette.tsx input: words",
        "view/palette.tsx li: a command",
    ),
    "a message and what goes along": (
        "view/composer.tsx textarea: message",
        "view/completions.tsx li: a suggestion",
        "view/attachments.tsx button: Attach files",
        "view/attachments.tsx input: files",
        "view/attachments.tsx button: remove an attachment",
        "view/composer.tsx button: Send",
        "view/content.tsx summary: a file that went along",
        "view/content.tsx pre: the file's text",
        "view/options.tsx select: mode",
        "view/meters.tsx button: meters",
        "view/transcript.tsx summary: what was summed up",
        "view/undo.tsx button: Undo turn",
        "view/undo_dialog.tsx button: Keep it",
        "view/undo_dialog.tsx button: Undo it",
    ),
    "a question and its diff": (
        "view/question.tsx div: what is asked for",
        "view/question.tsx button: an answer",
        "diff/view.tsx button: All",
        "diff/view.tsx button: None",
        "diff/view.tsx button: leave out blanks",
        "diff/view.tsx button: side by side",
        "diff/view.tsx div: a line that is commented on",
        "diff/body.ts button: more lines",
        "diff/body.ts button: unchanged lines",
        "diff/rows.ts button: the rest of a line",
        "diff/body.ts input: one of several changes",
        "diff/comment.ts textarea: a comment",
        "diff/comment.ts button: Add to next message",
        "changes/panel.tsx button: a file",
        "changes/panel.tsx button: generated files",
        "view/talk.tsx button: Changed files",
        "view/plan.tsx summary: plan",
        "view/transcript.tsx summary: thought",
        "view/transcript.tsx button: To the end",
        "view/call.tsx button: fold and unfold",
        "markdown/inline.ts a: an address in brackets",
        "markdown/inline.ts a: an address",
        "markdown/drawing.ts input: a task, which nobody ticks off here",
        "view/plan.tsx ol: the steps of a long one",
    ),
    "commands": (
        "view/question.tsx input: Let me type into it",
        "terminal/view.tsx input: type into it",
        "terminal/view.tsx button: Send",
        "terminal/view.tsx button: Ctrl-C",
        "terminal/view.tsx button: Ctrl-D",
        "terminal/view.tsx button: All output",
        "terminal/view.tsx button: To the end",
        "terminal/view.tsx button: Stop",
        "terminal/view.tsx div: output of a session that was loaded",
        "terminal/view.tsx div: all output",
        "terminal/view.tsx pre: a command of many lines",
        "terminal/screen.ts Terminal: typing in the terminal itself",
        "view/turn_line.tsx button: Stop",
        "view/composer.tsx button: Stop the turn",
    ),
    "forms": (
        "view/form.tsx button: a choice",
        "view/form.tsx button: Send",
        "view/form.tsx button: Skip",
        "view/form.tsx input: yes or no",
        "view/form.tsx select: one or several of many",
        "view/form.tsx input: a number",
        "view/form.tsx input: an address of mail",
        "view/form.tsx textarea: words",
        "view/talk.tsx button: questions elsewhere",
    ),
    "no model and no token": (
        "view/setup.tsx button: Not now",
        "view/setup.tsx button: Try without a key",
        "app.tsx button: Try again",
        "view/talk.tsx button: Try again, where the folder was gone",
    ),
    "a part of the page that could not be fetched": ("widgets.tsx button: Load the page again",),
    "a page of another build than Crow's": ("app.tsx button: Load the page again, after an upgrade",),
    "a reply that is copied": ("view/copying.tsx button: a reply", "view/copying.tsx button: a block of code"),
    "messages that wait for the connection": (
        "view/waiting.tsx button: Send, what waited for long",
        "view/waiting.tsx button: Edit",
        "view/waiting.tsx button: Remove",
    ),
    "a narrow window": (
        "app.tsx button: talk, changes, questions",
        "view/talk.tsx button: All sessions",
        "view/sidebar.tsx button: Start one, where no session is",
    ),
}
"""Each thing that a mouse can operate: the file and the tag, what it is, and the story in which keys do it."""
THE_SAME = {"view/attachments.tsx drop: what is dropped": "view/attachments.tsx input: files"}
"""What no key does, and what keys do instead, to the same end."""


def test_everything_that_a_mouse_can_operate_is_in_a_story() -> None:
    """Who adds a button adds a row, and does it by keys."""
    done = [what for story in STORIES.values() for what in story]
    assert set(THE_SAME.values()) <= set(done)
    listed = Counter(what.partition(":")[0] for what in (*done, *THE_SAME))
    there = Counter(sites())
    assert not there - listed, "no story does this by keys"
    assert not listed - there, "these are gone from the page"


def ended(keys: Keys, story: str) -> None:
    assert sorted(set(keys.done)) == sorted(STORIES[story])


def test_the_list_the_dialogs_and_the_settings(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say("About herons.")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await keys.begin()
            new = page.get_by_role("dialog", name="New session")
            await keys.operate(
                "app.tsx button: New session, where none is open",
                page.get_by_role("main").get_by_role("button", name="New session"),
            )
            await expect(new).to_be_visible()
            await keys.press("Escape")
            await expect(new).to_have_count(0)
            await keys.did("view/dialog.tsx dialog: closed by a click beside it")
            await keys.operate(
                "view/sidebar.tsx button: New session",
                page.get_by_role("navigation", name="Sessions").get_by_role("button", name="New session"),
                back=True,
            )
            await keys.to(new.get_by_label("Folder"))
            await keys.type(str(web.workspace))
            await keys.did("view/new_session.tsx input: folder")
            await keys.operate("view/new_session.tsx button: Begin", new.get_by_role("button", name="Begin"))
            await expect(visit.composer).to_be_focused()
            await keys.type("tell me about birds")
            await keys.press("Enter")
            await visit.idle()
            await keys.press("Escape")
            await keys.press("n")
            recent = new.get_by_role("button", name=str(web.workspace))
            await keys.operate("view/new_session.tsx button: a recent folder", recent)
            await expect(new).to_have_count(0)
            await expect(visit.messages).to_have_count(0)

            rows = page.locator(".session-rows .row")
            await expect(rows).to_have_count(2)
            await keys.operate(
                "view/sidebar.tsx button: a session", rows.filter(has_text="birds").locator(".row-open"), back=True
            )
            await expect(visit.messages).to_have_count(1)
            await keys.press("[")
            await keys.press("/")
            await keys.type("herons")
            await expect(rows).to_have_count(1)
            await expect(page.locator(".match mark")).to_have_text("herons")
            await keys.did("view/sidebar.tsx input: search")
            await keys.operate("view/sidebar.tsx button: a session that was found", rows.locator(".row-open"))
            await expect(visit.messages).to_have_count(1)
            await keys.press("/")
            await keys.press("Escape")
            await expect(rows).to_have_count(2)

            bell = page.get_by_role("button", name="Notify me")
            await keys.operate("view/footer.tsx button: Notify me", bell)
            await expect(bell).to_have_attribute("aria-pressed", "true")
            await keys.operate("view/footer.tsx button: colours", page.get_by_role("button", name="Dark colours"))
            await expect(page.locator('html[data-theme="dark"]')).to_be_attached()
            await keys.operate("view/footer.tsx button: Keys", page.get_by_role("button", name="Keys"))
            keys_shown = page.get_by_role("dialog", name="Keys")
            await keys.operate("view/help.tsx button: Close", keys_shown.get_by_role("button", name="Close"))
            await expect(keys_shown).to_have_count(0)
            await expect(page.get_by_role("button", name="Keys")).to_be_focused()

            await keys.press("Control+k")
            await keys.type("light or")
            await keys.did("view/palette.tsx input: words")
            await keys.press("ArrowDown")
            await keys.press("Enter")
            await expect(page.locator('html[data-theme="light"]')).to_be_attached()
            await keys.did("view/palette.tsx li: a command")
            await keys.press("Control+k")
            await keys.type("/compact")
            await keys.press("Enter")
            await expect(visit.composer).to_be_focused()  # where the rest of the command is written
            await expect(visit.composer).to_have_value("/compact ")
            await keys.press("Control+a")
            await keys.press("Delete")
            await keys.press("Control+k")
            await keys.type("ask")
            modes = page.get_by_role("dialog").get_by_role("option").filter(has=page.locator("span", has_text="Mode"))
            await expect(modes.filter(has=page.get_by_text("Ask", exact=True))).to_have_count(1)
            await keys.press("Escape")
            await expect(visit.composer).to_be_focused()
            await keys.press("Escape")

            visit.expects_dialogs = True

            async def agree(dialog: Dialog) -> None:
                await dialog.accept()

            page.on("dialog", agree)
            birds = rows.filter(has_text="birds")
            await keys.operate("view/sidebar.tsx button: delete", birds.get_by_role("button", name="Delete"), back=True)
            await expect(rows).to_have_count(1)
            await keys.kept()
            ended(keys, "the list, dialogs and the page's own settings")

        in_browser(web, story, permissions=["notifications"])


def test_a_message_and_what_goes_along(tmp_path: Path) -> None:
    script = reply(call("write", path="new.txt", content="new\n"), when="look")
    script += reply(say("A long story. " * 2000), when="tell me")
    with crow_web(tmp_path, script=script + DONE, config="context_window = 50000\n") as web:
        (web.workspace / "notes.md").write_text("some notes\n")
        (web.workspace / "nothing.md").write_text("none\n")

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await begun(visit, keys)
            mode = page.get_by_label("Mode", exact=True)
            before = await mode.input_value()
            await keys.operate("view/options.tsx select: mode", mode, "ArrowDown")
            await expect(mode).not_to_have_value(before)
            await keys.press("e")
            await expect(mode).to_have_value("edit")
            async with page.expect_file_chooser() as choosing:
                await keys.operate(
                    "view/attachments.tsx button: Attach files",
                    page.get_by_role("button", name="Attach files"),
                    back=True,
                )
            chosen = [
                {"name": f"{name}.txt", "mimeType": "text/plain", "buffer": f"{name}\n".encode() * 300}
                for name in ("one", "two", "three")
            ]
            await (await choosing.value).set_files(chosen)  # pyright: ignore[reportArgumentType]
            attached = page.get_by_role("list", name="Attachments").get_by_role("listitem")
            await expect(attached).to_have_count(3)
            await keys.did("view/attachments.tsx input: files")
            remove = "view/attachments.tsx button: remove an attachment"
            await keys.operate(remove, attached.last.get_by_role("button"), back=True)
            await expect(attached).to_have_count(2)
            await keys.operate(remove, page.get_by_role("button", name="Remove one.txt"), back=True)
            await expect(attached).to_have_count(1)
            await expect(page.get_by_role("button", name="Remove two.txt")).to_be_focused()

            await keys.to(visit.composer)
            await keys.type("look at @not")
            offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
            await expect(offered).to_have_count(2)
            await keys.press("ArrowDown")
            await expect(offered.last).to_have_attribute("aria-selected", "true")
            second = await offered.last.locator("bdi").inner_text()
            await keys.press("Enter")
            await expect(visit.composer).to_have_value(f"look at @{second} ")
            await keys.did("view/completions.tsx li: a suggestion")
            await keys.type("please")
            await keys.did("view/composer.tsx textarea: message")
            await keys.operate("view/composer.tsx button: Send", page.get_by_role("button", name="Send"))
            await visit.idle()
            await expect(visit.messages).to_contain_text(f"look at @{second} please")
            await expect(visit.composer).to_be_focused()

            resource = visit.messages.locator(".resource", has_text="two.txt")
            await keys.operate(
                "view/content.tsx summary: a file that went along", resource.locator("summary"), back=True
            )
            text = resource.locator("pre")
            await expect(text).to_be_visible()
            await keys.press("Tab")
            await expect(text).to_be_focused()
            await keys.press("End")
            await expect_scrolled(visit, "pre.plain")
            await keys.did("view/content.tsx pre: the file's text")

            undo, preview = page.get_by_role("button", name="Undo turn"), page.get_by_role("dialog")
            await keys.operate("view/undo.tsx button: Undo turn", undo)
            await keys.operate("view/undo_dialog.tsx button: Keep it", preview.get_by_role("button", name="Keep it"))
            await expect(preview).to_have_count(0)
            await expect(undo).to_be_focused()
            await keys.press("Enter")
            await keys.operate(
                "view/undo_dialog.tsx button: Undo it", preview.get_by_role("button", name="Undo it"), back=True
            )
            await expect(visit.messages.last).to_contain_text("/undo")
            await visit.idle()
            assert not (web.workspace / "new.txt").exists()
            await keys.kept()

            await keys.operate("view/meters.tsx button: meters", page.get_by_role("button", name="Context"))
            await expect(visit.messages.last).to_contain_text("/context")
            await visit.idle()
            await keys.kept()
            await keys.to(visit.composer)
            for said in ("tell me", "go on", "and then"):
                await keys.type(said)
                await keys.press("Enter")
                await expect(visit.messages.last).to_contain_text(said)
                await visit.idle()
            await keys.type("/compact all of it")
            await keys.press("Enter")
            summary = visit.transcript.locator("details.thought", has_text="summed up")
            await keys.operate("view/transcript.tsx summary: what was summed up", summary.locator("summary"), back=True)
            await expect(summary.locator(".prose")).to_be_visible()
            ended(keys, "a message and what goes along")

        in_browser(web, story)


def test_a_question_and_its_diff(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(80))
    edits = [{"old": f"line {number}\n", "new": f"row {number}\n"} for number in (5, 70)]
    long = "".join(f"new {number}\n" for number in range(600))
    plan = call("plan", entries=[{"content": f"Step {number}", "status": "pending"} for number in range(40)])
    script = (
        reply(
            "{ thought = 'Hm.' }",
            say("See [there](https://a.example/), <https://b.example/> or https://c.example.\n\n- [x] looked\n"),
            plan,
            call("edit", path="a.txt", edits=edits),
        )
        + reply(call("write", path="long.txt", content=long))
        + reply(call("write", path="wide.txt", content="x" * 9000 + "\n"))
        + reply(call("write", path="package-lock.json", content="{}\n"))
        + DONE
    )
    with crow_web(tmp_path, script=script) as web:
        (web.workspace / "a.txt").write_text(old)

        async def story(visit: Visit) -> None:
            page, keys, asked = visit.page, Keys(visit), visit.question
            await begun(visit, keys)
            await keys.type("go")
            await keys.press("Enter")
            await expect(asked.locator(".add")).to_have_count(2)
            # The question: what is asked for, each change, and the answer.
            await keys.operate(
                "view/question.tsx div: what is asked for", asked.get_by_label("What is asked for"), "End", back=True
            )
            await expect_scrolled(visit, ".question-body")
            await keys.press("Home")
            made = asked.get_by_role("status")
            await keys.operate("diff/view.tsx button: None", asked.get_by_role("button", name="None"))
            await expect(made).to_contain_text("0 of 2")
            await expect(asked.get_by_role("button", name="Allow 0 of 2")).to_be_disabled()
            await keys.operate("diff/view.tsx button: All", asked.get_by_role("button", name="All", exact=True))
            await expect(made).to_contain_text("All 2")
            tool = asked.get_by_role("button", name="Side by side")
            pressed = await tool.get_attribute("aria-pressed")
            await keys.operate("diff/view.tsx button: side by side", tool)
            await expect(tool).to_have_attribute("aria-pressed", "false" if pressed == "true" else "true")
            await keys.press("Enter")
            await expect(tool).to_have_attribute("aria-pressed", pressed or "")
            await expect(asked.locator(".add")).to_have_count(2)
            await keys.operate(
                "diff/body.ts input: one of several changes", asked.get_by_role("checkbox").first, "Space"
            )
            await expect(made).to_contain_text("1 of 2")
            fold = asked.locator(".fold").first
            folds = await asked.locator(".fold").count()
            await keys.operate("diff/body.ts button: unchanged lines", fold)
            await expect(asked.locator(".fold")).to_have_count(folds - 1)
            allow = asked.get_by_role("button", name="Allow 1 of 2 changes")
            await expect(allow).to_be_enabled()
            await keys.operate("view/question.tsx button: an answer", allow)
            await expect(asked).to_contain_text("long.txt")
            assert (web.workspace / "a.txt").read_text() == old.replace("line 70", "row 70")

            await keys.operate("diff/body.ts button: more lines", asked.locator(".fold.more"), back=True)
            await expect(asked.locator(".fold.more")).to_have_count(0)
            await keys.kept()
            await allowed(visit, keys)
            await expect(asked).to_contain_text("wide.txt")
            await keys.operate("diff/rows.ts button: the rest of a line", asked.locator(".rest"), back=True)
            await expect(asked.locator(".rest")).to_have_count(0)
            await keys.kept()
            await allowed(visit, keys)
            await expect(asked).to_contain_text("package-lock")
            await keys.operate("view/plan.tsx summary: plan", page.locator(".plan summary"))
            await expect(page.locator(".plan ol")).to_be_visible()
            await keys.operate("view/plan.tsx ol: the steps of a long one", page.get_by_label("Steps"), "End")
            await expect_scrolled(visit, ".plan ol")
            await allowed(visit, keys)
            await visit.idle()

            # The talk: folded and unfolded, from end to end.
            await keys.to(visit.composer)
            await keys.press("Escape")
            head = visit.transcript.locator(".call-head", has_text="a.txt")
            await keys.operate("view/call.tsx button: fold and unfold", head)
            await expect(head).to_have_attribute("aria-expanded", "false")
            thought = visit.transcript.locator("details.thought")
            await keys.operate("view/transcript.tsx summary: thought", thought.locator("summary"), back=True)
            await expect(thought.locator(".prose")).to_be_visible()
            links = visit.transcript.get_by_role("link")
            for number, what in enumerate(("", "an address in brackets", "an address")):
                await keys.to(links.nth(number))
                async with page.context.expect_page() as opening:
                    await keys.press("Enter")
                await (await opening.value).close()
                if what:
                    await keys.did(f"markdown/inline.ts a: {what}")
            await expect(visit.transcript.get_by_role("checkbox", name="Task")).to_be_disabled()
            await keys.did("markdown/drawing.ts input: a task, which nobody ticks off here")
            await keys.press("k")
            await keys.press("PageUp")
            end = page.get_by_role("button", name="To the end")
            await expect(end).to_be_visible()
            await keys.press("i")
            await keys.operate("view/transcript.tsx button: To the end", end, back=True)
            await expect(end).to_have_count(0)
            await keys.kept()

            # The changed files, and a comment on a line.
            await keys.operate(
                "view/talk.tsx button: Changed files", page.get_by_role("button", name="Changed files").first, back=True
            )
            panel = page.get_by_role("region", name="Changed files")
            await expect(panel.locator(".file")).to_have_count(3)
            await keys.operate(
                "changes/panel.tsx button: generated files", panel.get_by_role("button", name="1 generated file")
            )
            await expect(panel.locator(".file")).to_have_count(4)
            await keys.operate("changes/panel.tsx button: a file", panel.locator(".file", has_text="a.txt"), back=True)
            blanks = panel.get_by_role("button", name="Leave out changes of blanks")
            await keys.operate("diff/view.tsx button: leave out blanks", blanks)
            await expect(blanks).to_have_attribute("aria-pressed", "true")
            await expect(panel.locator(".add")).to_have_count(1)
            await keys.to(panel.get_by_label("Lines of"))
            await keys.press("n")
            await keys.press("ArrowDown")
            await keys.press("c")
            await expect(panel.get_by_role("textbox")).to_be_focused()
            await keys.did("diff/view.tsx div: a line that is commented on")
            await keys.type("not so")
            await keys.did("diff/comment.ts textarea: a comment")
            await keys.operate(
                "diff/comment.ts button: Add to next message", panel.get_by_role("button", name="Add to next message")
            )
            await expect(visit.composer).to_have_value("a.txt:71\n> row 70\nnot so\n")
            ended(keys, "a question and its diff")

        in_browser(web, story)


def test_commands(tmp_path: Path) -> None:
    asks = "read -p 'One? ' a; read -p 'Two? ' b; cat > c.txt; echo got $a $b; trap 'echo cut' INT; sleep 600"
    script = (
        reply(run(asks), when="type")
        + reply(say("Interrupted."), when="type")
        + reply(run("seq 1 300\n" + "true\n" * 60 + "sleep 600"), when="stop it")
        + reply(say("Stopped."), when="stop it")
        + reply("{ wait = 600 }", when="wait")
        + reply("{ wait = 600 }", when="wait")
        + DONE
    )
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            page, keys, asked = visit.page, Keys(visit), visit.question
            await begun(visit, keys)
            await keys.type("type")
            await keys.press("Enter")
            box = asked.get_by_label("Let me type into it")
            await keys.operate("view/question.tsx input: Let me type into it", box, "Space", back=True)
            await expect(box).to_be_checked()
            await allowed(visit, keys)
            command = visit.transcript.locator(".command")
            screen = command.locator(".xterm-rows")
            await expect(screen).to_contain_text("One?")
            line = command.get_by_label("Type into")
            await keys.to(line, back=True)
            await keys.type("first")
            await keys.did("terminal/view.tsx input: type into it")
            await keys.operate("terminal/view.tsx button: Send", command.get_by_role("button", name="Send"))
            await expect(screen).to_contain_text("Two?")
            inside = command.locator(".xterm-helper-textarea")
            await keys.to(inside, back=True)
            await keys.type("second")
            await keys.press("Enter")
            await keys.type("a line")
            await keys.press("Enter")
            await expect(screen).to_contain_text("a line")
            await keys.did("terminal/screen.ts Terminal: typing in the terminal itself")
            await keys.press("Shift+Escape")
            await expect(line).to_be_focused()
            await keys.operate("terminal/view.tsx button: Ctrl-D", command.get_by_role("button", name="Ctrl-D"))
            await expect(screen).to_contain_text("got first second")
            assert (web.workspace / "c.txt").read_text() == "a line\n"
            await keys.operate(
                "terminal/view.tsx button: Ctrl-C", command.get_by_role("button", name="Ctrl-C"), back=True
            )
            await visit.idle()
            await keys.kept()

            await keys.to(visit.composer)
            await keys.type("stop it")
            await keys.press("Enter")
            await allowed(visit, keys)
            second = visit.transcript.locator(".command").last
            await expect(second.locator(".xterm-rows")).to_contain_text("300")
            await keys.operate(
                "terminal/view.tsx pre: a command of many lines", second.get_by_label("Command"), "End", back=True
            )
            await expect_scrolled(visit, ".terminal-command")
            output = second.get_by_role("button", name="All output")
            await keys.operate("terminal/view.tsx button: All output", output, back=True)
            await keys.to(second.get_by_label("All output").locator("visible=true").last)
            await expect(second.get_by_role("status")).to_contain_text("300 lines")
            await keys.press("End")
            await expect_scrolled(visit, ".terminal-text")
            await keys.did("terminal/view.tsx div: all output")
            to_end = second.get_by_role("button", name="To the end")
            await keys.operate("terminal/view.tsx button: To the end", to_end)
            await keys.press("Shift+Tab")
            await keys.operate("terminal/view.tsx button: Stop", second.get_by_role("button", name="Stop"), back=True)
            await visit.idle()
            await keys.kept()

            for what, stop in (
                ("view/turn_line.tsx button: Stop", page.locator(".turn-line").get_by_role("button", name="Stop")),
                ("view/composer.tsx button: Stop the turn", page.get_by_role("button", name="Stop the turn")),
            ):
                await keys.to(visit.composer)
                await keys.type("wait")
                await keys.press("Enter")
                await keys.operate(what, stop)
                await visit.idle()
                await keys.kept()

            await page.reload()
            await keys.begin()
            loaded = visit.transcript.get_by_label("Output", exact=True).last
            await keys.operate("terminal/view.tsx div: output of a session that was loaded", loaded, "Home")
            ended(keys, "commands")

        in_browser(web, story)


def test_forms(tmp_path: Path) -> None:
    config = configured(asking("for-a-lot"))
    choice = call("ask", question="Which?", options=["salt", "sugar"])
    another = call("ask", question="Which one?", options=["milk", "honey"])
    script = reply(call("mcp__asking__go"), when="bake") + reply(choice, when="ask") + reply(another, when="ask") + DONE
    with crow_web(tmp_path, script=script, config=config) as web:

        async def story(visit: Visit) -> None:
            page, keys, asked = visit.page, Keys(visit), visit.question
            await begun(visit, keys)
            await keys.type("bake")
            await keys.press("Enter")
            await allowed(visit, keys)
            await keys.to(asked.get_by_label("Your name"), back=True)
            await keys.type("Ada")
            await keys.did("view/form.tsx textarea: words")
            await keys.to(asked.get_by_label("loaves"))
            await keys.type("3")
            await keys.press("ArrowUp")
            await keys.did("view/form.tsx input: a number")
            await keys.operate("view/form.tsx input: yes or no", asked.get_by_label("Sliced?"), "Space")
            await keys.to(asked.get_by_label("flour"))
            await keys.type("Wheat")
            await keys.to(asked.get_by_label("with"))
            await keys.press("ArrowDown")
            await keys.press("Shift+ArrowDown")
            await keys.did("view/form.tsx select: one or several of many")
            await keys.to(asked.get_by_label("E-mail"))
            await keys.type("ada@example.org")
            await keys.did("view/form.tsx input: an address of mail")
            await expect(asked.get_by_role("button", name="Send")).to_be_enabled()
            await keys.operate("view/form.tsx button: Send", asked.get_by_role("button", name="Send"))
            await visit.idle()
            await keys.kept()
            await keys.to(visit.transcript.locator(".call-head").last, back=True)
            await keys.press("Enter")
            told = json.loads(await visit.transcript.locator(".call-body").last.inner_text())
            assert told["content"] == {
                "name": "Ada", "loaves": 4, "weight": 0.5, "sliced": True, "flour": "w", "with": ["nuts", "seeds"],
                "mail": "ada@example.org",
            }  # fmt: skip

            await keys.to(visit.composer)
            await keys.type("ask")
            await keys.press("Enter")
            sugar = asked.get_by_role("button", name="sugar")
            await expect(sugar).to_be_enabled()
            await keys.operate("view/form.tsx button: a choice", sugar, back=True)
            await expect(sugar).to_have_count(0)
            skip = asked.get_by_role("button", name="Skip")
            await expect(skip).to_be_enabled()
            # From another session, by the button that says where.
            await keys.to(visit.composer)
            await keys.press("Tab")  # Escape would end the turn
            await keys.press("n")
            await keys.type(str(web.workspace))
            await keys.press("Enter")
            await expect(asked).to_have_count(0)
            await keys.operate(
                "view/talk.tsx button: questions elsewhere",
                page.get_by_role("button", name="1 question elsewhere"),
                back=True,
            )
            await expect(skip).to_be_enabled()
            await keys.operate("view/form.tsx button: Skip", skip)
            await visit.idle()
            await keys.kept()
            ended(keys, "forms")

        in_browser(web, story)


def test_no_model_and_no_token(tmp_path: Path) -> None:
    with crow_web(tmp_path) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await keys.begin()
            await keys.press("n")
            await keys.type(str(web.workspace))
            await keys.press("Enter")
            await keys.operate("view/setup.tsx button: Not now", page.get_by_role("button", name="Not now"))
            await expect(page.get_by_label("Set up a model")).to_have_count(0)
            folder = tmp_path / "project"
            folder.mkdir()
            await keys.press("n")
            await keys.type(str(folder))
            await keys.press("Enter")
            await keys.operate(
                "view/setup.tsx button: Try without a key", page.get_by_role("button", name="Try without a key")
            )
            await expect(visit.composer).to_be_visible()
            await keys.kept()
            await keys.to(visit.composer)
            await keys.type("hello")
            await keys.press("Enter")
            await visit.idle()

            again = page.get_by_role("button", name="Try again")
            await asyncio.to_thread(web.end)
            folder.rmdir()
            async with restarted(web) as started:
                await keys.to(again, back=True)
                folder.mkdir()
                await keys.press("Enter")
                await expect(again).to_have_count(0)
                await keys.did("view/talk.tsx button: Try again, where the folder was gone")

                await asyncio.to_thread(started.beside, "--forget", "all")
                await visit.connected("refused")
                async with page.expect_request("**/proof?*"):
                    await keys.operate("app.tsx button: Try again", again)
                await page.reload()
                await visit.connected("refused")
                await expect(again).to_have_count(0)  # there is nothing to try it with
            ended(keys, "no model and no token")

        in_browser(web, story)


def test_a_part_of_the_page_that_could_not_be_fetched(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(edit("a.txt", "one", "two")) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await page.route("**/view-*.js", lambda route: route.abort())
            await begun(visit, keys)
            await keys.type("go")
            await keys.press("Enter")
            again = visit.question.get_by_role("button", name="Load the page again")
            await keys.to(again, back=True)
            await page.unroute("**/view-*.js")
            await keys.press("Enter")
            await expect(visit.question.locator(".add")).to_contain_text("two")
            keys.done.append("widgets.tsx button: Load the page again")
            ended(keys, "a part of the page that could not be fetched")

        in_browser(web, story)


def test_a_page_of_another_build(tmp_path: Path) -> None:
    """Crow was upgraded while the page was open: what runs in it is the script from before."""
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            served = find_built_files().build
            assert served

            async def older(route: Route) -> None:
                answer = await route.fetch()
                await route.fulfill(response=answer, body=(await answer.text()).replace(served, "older"))

            await begun(visit, keys)
            await keys.type("half a thought")
            await expect(page.get_by_text("Crow was upgraded")).to_have_count(0)
            await page.route("**/*.js", older)
            await page.reload()
            await visit.connected()
            again = page.get_by_role("status").get_by_role("button", name="Load the page again")
            await keys.to(again)
            await page.unroute("**/*.js")
            await keys.press("Enter")
            await expect(again).to_have_count(0)
            await visit.connected()
            await expect(visit.composer).to_have_value("half a thought")
            keys.done.append("app.tsx button: Load the page again, after an upgrade")
            ended(keys, "a page of another build than Crow's")

        in_browser(web, story)


def test_a_narrow_window(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("true")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await keys.begin()
            await keys.operate(
                "view/sidebar.tsx button: Start one, where no session is", page.get_by_role("button", name="Start one")
            )
            await expect(page.get_by_role("dialog", name="New session")).to_be_visible()
            await keys.press("Escape")
            await expect(page.get_by_role("dialog", name="New session")).to_have_count(0)
            await begun(visit, keys)
            await keys.type("go")
            await keys.press("Enter")
            await expect(visit.question).to_have_count(1)
            views = page.get_by_role("navigation", name="Views")
            for name, shown in (
                ("Questions", page.get_by_role("region", name="Questions")),
                ("Changes", page.get_by_role("complementary", name="Changed files")),
                ("Talk", visit.transcript),
            ):
                await keys.operate("app.tsx button: talk, changes, questions", views.get_by_role("button", name=name))
                await expect(shown).to_be_visible()
            for shown in (page.get_by_role("complementary", name="Changed files"), visit.transcript):
                await keys.press("Control+k")
                await keys.type("changed files")
                await keys.press("Enter")
                await expect(shown).to_be_visible()
            await keys.operate(
                "view/talk.tsx button: All sessions", page.get_by_role("button", name="All sessions"), back=True
            )
            await expect(page.locator(".row-open")).to_be_visible()
            await keys.kept()
            ended(keys, "a narrow window")

        in_browser(web, story, viewport=PHONE)


async def begun(visit: Visit, keys: Keys) -> None:
    """A session in the folder of the test."""
    await keys.begin()
    await keys.press("n")
    await keys.type(str(visit.web.workspace))
    await keys.press("Enter")
    await expect(visit.composer).to_be_focused()


async def allowed(visit: Visit, keys: Keys) -> None:
    """The question that is asked is answered, and gone."""
    this = await visit.question.get_attribute("data-question")
    allow = visit.question.get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    await keys.press("Alt+a")
    await expect(visit.page.locator(f'[data-question="{this}"]')).to_have_count(0)
    await keys.kept()


async def expect_scrolled(visit: Visit, selector: str) -> None:
    is_scrolled = "(all) => all.some((one) => one.scrollTop > 0)"
    await until(lambda: visit.page.locator(selector).evaluate_all(is_scrolled), f"{selector} is scrolled")


def test_a_reply_is_copied(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say("Look:\n\n```\nprint(1)\n```")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            await begun(visit, keys)
            await keys.type("go")
            await keys.press("Enter")
            await visit.idle()
            whole, code = (page.get_by_role("button", name=f"Copy this {what}") for what in ("reply", "code"))
            await keys.operate("view/copying.tsx button: a reply", whole, back=True)
            await keys.operate("view/copying.tsx button: a block of code", code, back=True)
            ended(keys, "a reply that is copied")

        in_browser(web, story)


def test_messages_that_wait(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page, keys = visit.page, Keys(visit)
            await begun(visit, keys)
            await keys.type("go")
            await keys.press("Enter")
            await visit.idle()
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            for text in ("one", "two", "three"):
                await keys.type(text)
                await keys.press("Enter")
            waiting = page.get_by_role("article", name="Waits to be sent")
            await expect(waiting).to_have_count(3)
            remove = waiting.last.get_by_role("button", name="Remove")
            await keys.operate("view/waiting.tsx button: Remove", remove, back=True)
            await keys.operate(
                "view/waiting.tsx button: Edit", waiting.last.get_by_role("button", name="Edit"), back=True
            )
            await expect(visit.composer).to_be_focused()
            await expect(waiting).to_have_count(1)
            await page.evaluate(AGE_WHAT_WAITS)
            async with restarted(web):
                await page.reload()
                await visit.connected()
                await keys.begin()
                await expect(waiting).to_contain_text("Send it now?")
                send = waiting.get_by_role("button", name="Send")
                await keys.operate("view/waiting.tsx button: Send, what waited for long", send, back=True)
                await expect(visit.messages).to_have_text(["You:go", "You:one"])
            ended(keys, "messages that wait for the connection")

        in_browser(web, story)
