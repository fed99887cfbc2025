"""Whole conversations in the page: with the mouse, by keys alone, into a running turn."""

from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, edit, reply, run, say

EDIT = reply(
    "{ thought = 'A small change.' }",
    say("I change **it**."),
    edit("notes.txt", "one", "two"),
) + reply(say("All `done`."))

ALLOWED = allowing("terminal")


def test_a_change_is_asked_about_made_and_shown(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=EDIT) as web:
        (web.workspace / "notes.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("change my notes")
            await expect(visit.question).to_contain_text("Edit notes.txt")
            await expect(visit.question.locator(".add")).to_contain_text("two")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            assert (web.workspace / "notes.txt").read_text() == "two\n"
            await expect(visit.question).to_have_count(0)
            await expect(visit.transcript.locator("strong")).to_have_text("it")
            await expect(visit.transcript.locator(".call .add")).to_contain_text("two")
            await expect(visit.transcript.locator(".thought .prose")).to_have_count(0)  # folded, and not even drawn
            await visit.transcript.get_by_text("Thought").click()
            await expect(visit.transcript.locator(".thought")).to_contain_text("A small change.")
            assert "change my notes" in await visit.page.title()

        in_browser(web, story)


def test_everything_is_done_by_keys_alone(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=EDIT + DONE) as web:
        (web.workspace / "notes.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            page, press = visit.page, visit.page.keyboard.press
            await press("n")
            await page.keyboard.type(str(web.workspace))
            await press("Enter")
            await expect(visit.composer).to_be_focused()
            await page.keyboard.type("change")
            await press("Shift+Enter")
            await page.keyboard.type("my notes")
            await press("Enter")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            await press("Tab")  # out of the composer, where `a` is a letter
            await press("a")
            await visit.idle()
            assert (web.workspace / "notes.txt").read_text() == "two\n"
            await expect(visit.messages).to_have_text("You:change\nmy notes", use_inner_text=False)
            await press("k")
            await expect(visit.transcript.locator(".item").last).to_be_focused()
            await press("k")
            await expect(visit.transcript.locator(".item.is-call")).to_be_focused()
            await press("o")
            await expect(visit.transcript.locator(".item.is-call .diff")).to_have_count(0)
            await press("?")
            await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
            await press("Escape")
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await press("Control+k")
            await page.keyboard.type("mode plan")
            await press("Enter")
            await expect(page.get_by_label("Mode", exact=True)).to_have_value("plan")
            await press("/")
            await expect(page.get_by_label("Search all sessions")).to_be_focused()
            await page.keyboard.type("change")
            await expect(page.locator(".session-rows .row")).to_have_count(1)
            await press("Escape")
            await press("Tab")
            await press("i")
            await expect(visit.composer).to_be_focused()
            await page.keyboard.type("/help")
            await press("Enter")
            await expect(visit.messages).to_have_count(2)

        in_browser(web, story)


def test_a_message_goes_into_the_running_turn_and_the_turn_is_stopped(tmp_path: Path) -> None:
    script = reply(say("I wait."), run("touch began; sleep 600")) + DONE
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("wait")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            await visit.say("and use tabs")
            await expect(visit.messages).to_have_count(2)
            await expect(visit.composer).to_have_value("")
            await visit.page.get_by_role("button", name="Stop the turn").click()
            await visit.idle()
            await expect(visit.transcript.locator(".call.is-failed")).to_be_visible()
            # The model did not get it: it is offered again.
            await expect(visit.composer).to_have_value("and use tabs")
            await expect(visit.messages).to_have_text(["You:wait"])

        in_browser(web, story)


def test_a_message_that_came_too_late_does_not_take_the_place_of_the_next(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("sleep 600")) + DONE, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("wait")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            await visit.say("and use tabs")
            await expect(visit.messages).to_have_count(2)
            await visit.composer.fill("half a thought")
            await visit.page.get_by_role("status").get_by_role("button", name="Stop").click()
            await visit.idle()
            await expect(visit.composer).to_have_value("and use tabs\n\nhalf a thought")

        in_browser(web, story)


def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.composer.press_sequentially("/con")
            await expect(visit.page.get_by_role("option").first).to_contain_text("/context")
            await visit.composer.press("Tab")
            await expect(visit.composer).to_have_value("/context ")
            await visit.composer.press("Enter")
            await expect(visit.messages).to_have_text(["You:/context"])

        in_browser(web, story)


def test_a_key_that_is_refused_is_said_and_nothing_else_is_used_instead(tmp_path: Path) -> None:
    """Also by somebody who tried Crow without a key before: the scripted model of then must not answer now."""
    with crow_web(tmp_path, script=reply("{ fail = { status = 401, message = 'expired key' } }") + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.page.evaluate("localStorage.setItem('crow.method', JSON.stringify('crow-demo'))")
            await visit.say("hello")
            setup = visit.page.get_by_label("Set up a model")
            await expect(setup).to_contain_text("expired key")
            await expect(setup).not_to_contain_text("No model is set up yet")
            await expect(visit.transcript.locator(".is-agent")).to_have_count(0)

        in_browser(web, story)
