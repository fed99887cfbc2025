"""A window as narrow as a phone's: nothing that a wide one shows is cut, covered or out of reach."""

from pathlib import Path

import pytest
from playwright.async_api import ViewportSize

from tests.browser.page import PHONE, WIDE, Visit, ask_in_sessions, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, call, reply, run, say

SMALL: ViewportSize = {"width": 320, "height": 640}
ASKS = call("ask", question="Which?", options=["salt", "sugar"])
LONG_NAMES = """
thought_levels = ["low", "medium", "high"]
price_input = 5
price_output = 50
[providers.scripted.models.a-large-model-with-a-rather-long-name-of-november]
"""
CUT = """(all) => {
    const shown = all.map((one) => one.offsetWidth);
    for (const one of all) one.style.flexShrink = 0;
    return all.filter((one, index) => shown[index] < one.offsetWidth).map((one) => one.ariaLabel);
}"""
OVERLAPS = """() => {
    const seenOf = (element) => {
        let { left, top, right, bottom } = element.getBoundingClientRect();
        for (let one = element.parentElement; one; one = one.parentElement) {
            if (getComputedStyle(one).overflow === "visible") continue;
            const clip = one.getBoundingClientRect();
            [left, top] = [Math.max(left, clip.left), Math.max(top, clip.top)];
            [right, bottom] = [Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
        }
        return { element, left, top, right, bottom };
    };
    const pressed = "button:not(.row-open), select, input, textarea";
    const read = "h1, h2, .row-title > .cut, .row-facts > *, .talk-title > *";
    const seen = [...document.querySelectorAll(`${pressed}, ${read}`)]
        .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
        .map(seenOf)
        .filter(({ left, top, right, bottom }) => right - left > 1 && bottom - top > 1);
    const cover = (one, other) =>
        Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
        Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1 &&
        !one.element.contains(other.element) && !other.element.contains(one.element);
    const name = ({ element }) => element.ariaLabel || element.textContent || element.className;
    const coveredBy = (one, at) => seen.slice(at + 1).filter((other) => cover(one, other));
    const found = seen.flatMap((one, at) => coveredBy(one, at).map((other) => `${name(one)} | ${name(other)}`));
    if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
    return found;
}"""
"""Which of the parts that are read or pressed lie over each other, as far as they are seen."""


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


@pytest.mark.parametrize("touch", [True, False], ids=["touch", "mouse"])
def test_nothing_lies_over_anything_else_and_the_mode_is_read_at_every_width(tmp_path: Path, *, touch: bool) -> None:
    usage = "{ usage = { input_tokens = 1000, output_tokens = 90000 } }"
    script = (
        reply(ASKS, when="ask me")
        + reply(say("I look."), "{ wait = 600 }", when="go on and on")
        + reply(say("Here I am."), usage, when="a request with many words")
        + DONE
    )
    with crow_web(tmp_path, script=script, config=LONG_NAMES) as web:
        ask_in_sessions(web, ["ask me, please, and do not forget a word of it"])

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await _send(visit, "go on and on, as long as you like to")
            await expect(visit.transcript).to_contain_text("I look.")
            await visit.begin()
            await _send(visit, "a request with many words, whose title is a long one")
            await visit.idle()
            await expect(page.locator(".meters .cost")).to_be_visible()
            mode, room = page.get_by_label("Mode", exact=True), page.locator(".choices")
            wide = await mode.bounding_box()
            assert wide is not None
            for width in (1280, 1024, 768, 390, 360):
                await page.set_viewport_size({"width": width, "height": 800})
                box, around = await mode.bounding_box(), await room.bounding_box()
                assert box is not None
                assert around is not None
                assert box["width"] >= wide["width"], f"the mode's name is cut at {width}"
                assert box["x"] >= around["x"]
                assert box["x"] + box["width"] <= around["x"] + around["width"]
                assert await page.evaluate(OVERLAPS) == [], width
                if width < 760:
                    await page.get_by_role("button", name="All sessions").click()
                await page.locator(".row", has_text="ask me").hover()
                assert await page.evaluate(OVERLAPS) == [], width
                if width < 760:
                    await page.locator(".row-open", has_text="many words").click()

        in_browser(web, story, has_touch=touch, is_mobile=touch)


def test_model_and_thought_level_are_read_on_a_small_phone(tmp_path: Path) -> None:
    usage = "{ usage = { input_tokens = 1000, output_tokens = 90000 } }"
    priced = 'thought_levels = ["off", "low", "high"]\nprice_input = 5\nprice_output = 50\n'
    with crow_web(tmp_path, script=reply(say("Here I am."), usage), config=priced) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("hello")
            await visit.idle()
            await page.set_viewport_size({"width": 360, "height": 800})
            assert await page.locator(".choice").evaluate_all(CUT) == []

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


async def _send(visit: Visit, text: str) -> None:
    """Also where Enter makes a new line, as on a phone."""
    await visit.composer.fill(text)
    await visit.page.get_by_role("button", name="Send", exact=True).click()
