"""An answer is what the person pressed: none is lost, goes to another button, or comes before the question is seen."""

import asyncio
from pathlib import Path

from playwright.async_api import Locator, Route

from tests.browser.page import PHONE, Visit, ask_in_sessions, crow_web, expect, in_browser, until
from tests.support.scripts import DONE, call, edit, reply, run

LONG = "rm -f crow-tour.md crow-tour.png"
"""A command whose answers fill a row so far that a little more begins another."""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
MORE_BELOW = """() => {
    const more = document.createElement("p");
    more.textContent = "more";
    more.style.height = "90px";
    more.id = "more";
    document.querySelector(".dock").append(more);
}"""
"""What stands below a question grows, as a plan or a message does that is being written."""
SHAKEN = """() => {
    const shaken = document.createElement("p");
    document.querySelector(".dock").append(shaken);
    let frame = 0;
    const shake = () => {
        frame += 1;
        shaken.style.height = frame % 2 ? "90px" : "10px";
        requestAnimationFrame(shake);
    };
    shake();
}"""
"""What stands below a question has another height in each frame."""
MANY = 8


async def middle(button: Locator) -> tuple[float, float]:
    box = await button.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def places(visit: Visit) -> list[dict[str, float]]:
    script = "(all) => all.map((one) => one.getBoundingClientRect().toJSON())"
    return await visit.question.get_by_role("button").evaluate_all(script)


async def ready(visit: Visit, name: str) -> Locator:
    button = visit.question.get_by_role("button", name=name)
    await expect(button).to_be_enabled()
    return button


def test_a_press_stays_on_its_button_while_one_writes(tmp_path: Path) -> None:
    """A mouse press takes the focus from what is written; with it, answers once moved from under the pointer."""
    with crow_web(tmp_path, script=reply(run(LONG)) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await ready(visit, "Reject")
            await visit.composer.press_sequentially("half a sen")
            before = await places(visit)
            for name in ("Allow once", "this session", "this project", "Reject"):
                await page.mouse.move(*await middle(visit.question.get_by_role("button", name=name)))
                await page.mouse.down()
                await page.evaluate(FRAMES)
                assert await places(visit) == before, name
                await page.mouse.move(1, 1)  # away: no answer
                await page.mouse.up()
                await expect(visit.composer).to_be_focused()
            await page.locator("h1").click()
            await expect(visit.composer).not_to_be_focused()
            assert await places(visit) == before
            await visit.composer.focus()
            await page.mouse.move(*await middle(visit.question.get_by_role("button", name="Reject")))
            await page.mouse.down()
            await page.evaluate(FRAMES)
            await page.mouse.up()
            await expect(visit.question).to_contain_text("Why, or what instead?")
            await page.keyboard.type("tence")
            await expect(visit.composer).to_have_value("half a sentence")

        in_browser(web, story)


def test_a_press_counts_for_what_it_began_on_whatever_moves(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("printf 1 > one.txt")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            allow = await ready(visit, "Allow once")
            await page.mouse.move(*await middle(allow))
            await page.mouse.down()
            await page.evaluate(MORE_BELOW)
            await page.evaluate(FRAMES)
            await page.mouse.up()
            await expect(visit.question).to_have_count(0)
            await visit.idle()
            assert (web.workspace / "one.txt").read_text() == "1"

        in_browser(web, story)


def test_what_moves_under_the_pointer_is_not_pressed(tmp_path: Path) -> None:
    """A press that comes in the frame after the buttons moved was meant for what stood there before."""
    with crow_web(tmp_path, script=reply(run(LONG)) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            reject = await ready(visit, "Reject")
            allow = visit.question.get_by_role("button", name="Allow once")
            now = await allow.bounding_box()
            assert now is not None
            await page.evaluate(MORE_BELOW)
            await expect(allow).to_be_disabled()
            then = await allow.bounding_box()
            assert then is not None
            assert then["y"] < now["y"]
            # No time passes for the page between the move and the press.
            await page.evaluate(FRAMES)
            await expect(allow).to_be_enabled()
            await page.evaluate("""() => {
                document.getElementById("more").remove();
                const allow = document.querySelector(".question .answer");
                const {x, y} = allow.getBoundingClientRect();
                const at = {clientX: x + 5, clientY: y + 5, bubbles: true, button: 0, pointerId: 1, detail: 1};
                allow.dispatchEvent(new PointerEvent("pointerdown", at));
                allow.dispatchEvent(new PointerEvent("click", at));
            }""")
            await page.evaluate(FRAMES)
            await expect(visit.question).to_have_count(1)
            await expect(reject).to_be_enabled()
            await allow.click()
            await visit.idle()

        in_browser(web, story)


def test_no_answer_is_taken_before_the_change_is_drawn(tmp_path: Path) -> None:
    """What draws diffs is fetched when the first one is shown: who answers before has not seen it."""
    with crow_web(tmp_path, script=reply(edit("a.txt", "one", "two")) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            let_go = asyncio.Event()
            asked_for: list[str] = []

            async def late(route: Route) -> None:
                asked_for.append(route.request.url)
                await let_go.wait()
                await route.continue_()

            await visit.begin()
            await page.clock.install()
            await page.route("**/*.js", late)
            await visit.say("change it")
            allow = visit.question.get_by_role("button", name="Allow once")
            await expect(allow).to_be_visible()
            await page.clock.run_for(1000)
            await expect(allow).to_be_disabled()
            await page.locator("h1").click()
            await page.keyboard.press("a")
            await page.keyboard.press("Alt+a")
            await expect(visit.question).to_have_count(1)
            assert asked_for
            let_go.set()
            await expect(visit.question.locator(".add")).to_be_visible()
            await page.clock.run_for(1000)
            await expect(allow).to_be_enabled()
            await page.keyboard.press("a")
            await visit.idle()
            assert (web.workspace / "a.txt").read_text() == "two\n"

        in_browser(web, story)


def test_a_double_click_answers_one_question(tmp_path: Path) -> None:
    """Where all questions are shown, the next one takes the place of the one that was answered."""
    asks = call("ask", question="Which?", options=["a", "b"])
    with crow_web(tmp_path, script=reply(asks, when="ask me") + DONE) as web:
        ask_in_sessions(web, ["ask me"] * MANY)

        async def story(visit: Visit) -> None:
            asked = visit.question
            await expect(asked).to_have_count(MANY)
            first = asked.first.get_by_role("button", name="a", exact=True)
            await expect(first).to_be_enabled()
            at = await middle(first)
            await first.dblclick()
            await expect(asked).to_have_count(MANY - 1)
            assert await middle(first) == at
            await expect(first).to_be_enabled()
            await expect(asked).to_have_count(MANY - 1)

        in_browser(web, story)


def test_a_key_that_is_held_down_answers_one_question(tmp_path: Path) -> None:
    script = reply(run("printf 1 > one.txt")) + reply(run("printf 2 > two.txt")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await ready(visit, "Allow once")
            await page.locator("h1").click()
            await page.keyboard.down("a")
            await expect(visit.question).to_contain_text("two.txt")
            await ready(visit, "Allow once")
            await page.keyboard.down("a")  # it repeats
            await page.evaluate(FRAMES)
            await expect(visit.question).to_contain_text("two.txt")
            await page.keyboard.up("a")

        in_browser(web, story)


CHANGE = edit("a.txt", "one\n", "two\n")


def test_a_change_that_cannot_be_drawn_is_not_answered(tmp_path: Path) -> None:
    """After Crow was started again it may have other files than the page knows."""
    with crow_web(tmp_path, script=reply(CHANGE) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            visit.expected.append("status of 404 (Not Found)")
            missing = [True]  # until the page is loaded again: it is also tried by itself

            async def serve(route: Route) -> None:
                await (route.fulfill(status=404) if missing else route.continue_())

            await visit.page.clock.install()
            await visit.page.route("**/view-*.js", serve)
            await visit.say("go")
            await expect(visit.question.get_by_role("button", name="Load the page again")).to_be_visible()
            allow = visit.question.get_by_role("button", name="Allow once")
            await expect(allow).to_have_attribute("aria-disabled", "true")
            await visit.page.clock.run_for(1000)
            await visit.page.keyboard.press("Alt+a")
            await expect(allow).to_have_attribute("aria-disabled", "true")
            visit.page.once("framenavigated", lambda _: missing.clear())
            await visit.question.get_by_role("button", name="Load the page again").click()
            await expect(visit.question.locator(".add")).to_contain_text("two")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            assert (web.workspace / "a.txt").read_text() == "two\n"

        in_browser(web, story)


def test_keys_answer_what_never_stands_still(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(edit("a.txt", "one", "two")) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.page.evaluate(SHAKEN)
            await visit.say("go")
            await expect(visit.question.locator(".add")).to_be_visible()
            allow = visit.question.get_by_role("button", name="Allow once")
            await expect(allow).to_have_attribute("aria-disabled", "true")

            async def is_answered() -> bool:
                return await visit.question.count() == 0

            await until(is_answered, "a key was an answer", lambda: visit.page.keyboard.press("Alt+a"))
            await visit.idle()
            assert (web.workspace / "a.txt").read_text() == "two\n"

        in_browser(web, story)


def test_what_is_asked_is_seen_on_the_smallest_screens_and_at_twice_the_size(tmp_path: Path) -> None:
    folder = "src/a/place/with/a/very/long/name"
    change = edit(f"{folder}/and_a_long_file.py", "one\n", "two\n")
    command = run("rm -rf build && " + "echo word " * 30)
    with crow_web(tmp_path, script=reply(change, when="change") + reply(command, when="command") + DONE) as web:
        (web.workspace / folder).mkdir(parents=True)
        (web.workspace / folder / "and_a_long_file.py").write_text("one\n")

        async def story(visit: Visit) -> None:
            for word, shown in (("change", ".add"), ("command", "pre")):
                await visit.begin()
                await visit.say(word)
                await expect(visit.question.locator(shown)).to_be_visible()
                for width, height in ((320, 640), (640, 430), (320, 480)):
                    await visit.page.set_viewport_size({"width": width, "height": height})
                    await expect(visit.question.locator(shown)).to_be_in_viewport()
                    answer = visit.question.get_by_role("button", name="Reject")
                    await answer.scroll_into_view_if_needed()
                    await expect(answer).to_be_in_viewport(ratio=0.9)
                    await visit.question.evaluate("card => card.scrollTo(0, 0)")
                await visit.page.set_viewport_size({"width": 1280, "height": 860})

        in_browser(web, story)


def test_no_key_answers_a_question_under_a_dialog(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("printf 1 > one.txt")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await ready(visit, "Allow once")
            await page.keyboard.press("Control+k")
            await expect(page.get_by_role("dialog")).to_be_visible()
            await page.keyboard.press("Alt+a")
            await page.evaluate(FRAMES)
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await ready(visit, "Allow once")
            await page.keyboard.press("Alt+a")
            await visit.idle()

        in_browser(web, story)


def test_no_key_answers_a_question_that_another_tab_hides(tmp_path: Path) -> None:
    """In a narrow window the talk is not shown beside the changes, and neither is what it asks."""
    with crow_web(tmp_path, script=reply(run("printf 1 > one.txt")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            views = page.get_by_role("navigation", name="Views")
            await visit.begin()
            await page.clock.install()
            await visit.composer.fill("go")
            await page.get_by_role("button", name="Send").click()
            await views.get_by_role("button", name="Changes").click()
            await expect(views.get_by_role("button", name="Questions").locator(".count")).to_have_text("1")
            await page.clock.run_for(1000)
            for key in ("a", "Alt+a"):
                await page.keyboard.press(key)
            await page.evaluate(FRAMES)
            assert not (web.workspace / "one.txt").exists()
            await views.get_by_role("button", name="Talk").click()
            await page.clock.run_for(1000)
            await ready(visit, "Allow once")
            await page.keyboard.press("a")
            await visit.idle()

        in_browser(web, story, viewport=PHONE)


MAC = "Object.defineProperty(navigator, 'platform', {get: () => 'MacIntel'});"
OPTION_A = """(area) => area.dispatchEvent(new KeyboardEvent("keydown",
    {key: "\u0105", code: "KeyA", altKey: true, bubbles: true, cancelable: true}))"""


def test_on_a_mac_a_letter_that_option_types_is_no_answer(tmp_path: Path) -> None:
    script = reply(run("printf 1 > one.txt")) + reply(run("printf 2 > two.txt")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.context.add_init_script(MAC)
            await page.reload()
            await visit.connected()
            await visit.begin()
            await visit.say("go")
            once = await ready(visit, "Allow once")
            hint = await once.locator("kbd").evaluate("key => getComputedStyle(key, '::before').content")
            assert hint == '"⌃⌥ "'
            is_typed = await visit.composer.evaluate(OPTION_A)
            assert is_typed
            await page.evaluate(FRAMES)
            await expect(visit.question).to_contain_text("one.txt")
            await page.keyboard.press("Control+Alt+a")
            await expect(visit.question).to_contain_text("two.txt")
            await page.locator("h1").click()
            await ready(visit, "Allow once")
            await page.keyboard.press("Alt+a")  # nothing is typed here
            await visit.idle()

        in_browser(web, story)


PRESS = """(element, key) => element.dispatchEvent(
    new KeyboardEvent("keydown", {bubbles: true, cancelable: true, ...key}))"""


def test_caps_lock_asks_for_nothing_that_lasts(tmp_path: Path) -> None:
    script = reply(run("printf 1 > one.txt")) + reply(run("printf 1 > one.txt")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await ready(visit, "Allow once")
            await visit.page.locator("body").evaluate(PRESS, {"key": "A", "code": "KeyA"})
            await expect(visit.transcript.get_by_text("printf 1 > one.txt")).to_have_count(2)
            await expect(visit.question).to_contain_text("one.txt")  # the same is asked again: it was allowed once
            await ready(visit, "Allow once")
            await visit.page.locator("body").evaluate(PRESS, {"key": "a", "code": "KeyA"})
            await visit.idle()

        in_browser(web, story)


def test_letters_are_those_of_the_layout(tmp_path: Path) -> None:
    """On a French keyboard Q lies where A does elsewhere; a Cyrillic one has no A, and its place counts."""
    script = reply(run("printf 1 > one.txt")) + reply(run("printf 2 > two.txt")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await ready(visit, "Allow once")
            await visit.composer.evaluate(PRESS, {"key": "q", "code": "KeyA", "altKey": True})
            await visit.page.evaluate(FRAMES)
            await expect(visit.question).to_contain_text("one.txt")
            await visit.composer.evaluate(PRESS, {"key": "a", "code": "KeyQ", "altKey": True})
            await expect(visit.question).to_contain_text("two.txt")
            await ready(visit, "Allow once")
            await visit.composer.evaluate(PRESS, {"key": "ф", "code": "KeyA", "altKey": True})
            await visit.idle()

        in_browser(web, story)


def test_enter_that_ends_a_composition_runs_no_command(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.page.keyboard.press("Control+k")
            palette = visit.page.get_by_role("combobox", name="Command")
            await palette.fill("plan")
            await palette.evaluate(PRESS, {"key": "Enter", "isComposing": True})
            await palette.evaluate(PRESS, {"key": "Enter", "keyCode": 229})
            await visit.page.evaluate(FRAMES)
            await expect(palette).to_be_visible()
            await palette.evaluate(PRESS, {"key": "Enter"})
            await expect(palette).to_have_count(0)

        in_browser(web, story)
