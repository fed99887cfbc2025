"""A window as narrow as a phone's: nothing that a wide one shows is cut, covered or out of reach."""

from pathlib import Path

from playwright.async_api import ViewportSize

from tests.browser.page import PHONE, WIDE, Visit, ask_in_sessions, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, call, reply, run, say

SMALL: ViewportSize = {"width": 320, "height": 640}
ASKS = call("ask", question="Which?", options=["salt", "sugar"])


def test_a_long_title_ends_where_the_window_does(tmp_path: Path) -> None:
    title = "A title that is far too long for the head of a small phone"
    with crow_web(tmp_path, script=reply(ASKS, when="ask me") + DONE) as web:
        ask_in_sessions(web, ["ask me"])

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say(title)
            await visit.idle()
            await page.set_viewport_size(SMALL)
            elsewhere = page.get_by_role("button", name="1 question elsewhere")
            await expect(elsewhere).to_be_in_viewport(ratio=1)
            head, beside = await page.locator(".talk-head h2").bounding_box(), await elsewhere.bounding_box()
            assert head is not None
            assert beside is not None
            assert head["width"] > 0
            assert head["x"] + head["width"] <= beside["x"]

        in_browser(web, story)


def test_a_question_leaves_room_for_the_list_of_sessions(tmp_path: Path) -> None:
    script = reply(ASKS, when="ask me") + reply(say("Here I am."), when="hello") + DONE
    with crow_web(tmp_path, script=script) as web:
        ask_in_sessions(web, ["ask me"])

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("hello")
            await visit.idle()
            await page.set_viewport_size(SMALL)
            await page.get_by_role("button", name="All sessions").click()
            await expect(visit.question.get_by_role("button", name="sugar")).to_be_in_viewport(ratio=1)
            await expect(page.get_by_role("button", name="New session")).to_be_in_viewport(ratio=1)
            await page.locator(".row").filter(has_text="hello").click()
            await expect(visit.transcript).to_contain_text("Here I am.")

        in_browser(web, story)


def test_where_no_session_is_a_button_begins_one(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.locator(".session-rows").get_by_role("button", name="Start one").click()
            await expect(page.get_by_role("dialog", name="New session")).to_be_visible()

        in_browser(web, story, viewport=PHONE)


def test_a_window_that_grows_narrower_takes_nothing_from_a_commands_last_line(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("seq -s , 1 200; exit 1")) + DONE, config=allowing("terminal")) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("count")
            await visit.idle()
            rows = visit.transcript.locator(".xterm-rows")
            await expect(rows).to_contain_text("199,200")
            for size in (PHONE, SMALL, WIDE):
                before = await rows.bounding_box()
                await visit.page.set_viewport_size({"width": size["width"], "height": size["height"]})
                await expect(rows).not_to_have_css("width", f"{before and before['width']}px")
                await expect(rows).to_have_text(",".join(map(str, range(1, 201))))

        in_browser(web, story)


def test_yes_and_no_are_in_sight_however_long_a_path_is(tmp_path: Path) -> None:
    path = "/".join(["a-folder-with-a-long-name"] * 15) + "/the-end.py"
    with crow_web(tmp_path, script=reply(call("write", path=path, content="x = 1\n" * 50)) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("write")
            for name in ("Allow once", "Reject"):
                answer = visit.question.get_by_role("button", name=name)
                await expect(answer).to_be_enabled()
                await expect(answer).to_be_in_viewport(ratio=1)
            # The title is cut; what is asked for is not.
            await expect(visit.question.locator("h2")).to_contain_text("…")
            await expect(visit.question.get_by_role("group", name="What is asked for")).to_contain_text(path)

        in_browser(web, story, viewport=PHONE)
