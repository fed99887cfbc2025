"""Questions: answered while one writes, many at once, forms, and being told of them while one looks elsewhere."""

import asyncio
import json
from pathlib import Path

from playwright.async_api import Browser

from tests.browser.chromium import play
from tests.browser.page import Visit, ask_in_sessions, crow_web, expect, in_browser, visiting
from tests.mcp.guests import asking, configured
from tests.support.scripts import DONE, call, edit, reply, run

ASKED = reply(run("printf hello > done.txt")) + reply(run("printf 2 > two.txt"))


def test_a_question_is_answered_while_one_writes(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=ASKED + reply(run("printf 3 > three.txt")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await visit.begin()
            await visit.say("go")
            await expect(asked).to_contain_text("done.txt")
            await expect(visit.composer).to_be_focused()
            await visit.composer.fill("next time with ")
            once = asked.get_by_role("button", name="Allow once")
            await expect(once).to_be_enabled()
            hint = await once.locator("kbd").evaluate("key => getComputedStyle(key, '::before').content")
            assert hint == '"Alt "'
            await page.keyboard.type("a r")  # letters, here
            await expect(visit.composer).to_have_value("next time with a r")
            await page.keyboard.press("Alt+a")
            await expect(asked).to_contain_text("two.txt")
            assert (web.workspace / "done.txt").read_text() == "hello"
            await expect(once).to_be_enabled()
            await page.keyboard.press("Alt+r")
            # Why, or what instead? The question waits, and who writes a message goes on writing.
            await expect(asked).to_contain_text("Why, or what instead?")
            await expect(visit.composer).to_be_focused()
            await expect(page.locator(".row.is-asks")).to_have_count(1)
            await expect(page.locator(".turn-line")).to_contain_text("Waiting for you")
            await asked.get_by_label("Reason").fill("not two")
            await expect(asked.get_by_role("button", name="Send")).to_be_enabled()
            await asked.get_by_label("Reason").press("Enter")
            await expect(asked).to_contain_text("three.txt")
            await page.locator("h1").click()  # away from the composer
            await expect(once).to_be_enabled()
            await page.keyboard.press("r")
            await expect(asked.get_by_label("Reason")).to_be_focused()
            await expect(asked.get_by_role("button", name="Skip")).to_be_enabled()
            await asked.get_by_role("button", name="Skip").click()
            await visit.idle()
            await expect(visit.composer).to_have_value("next time with a r")
            assert sorted(path.name for path in web.workspace.iterdir()) == ["done.txt"]

        in_browser(web, story)


def test_what_stands_in_backticks_is_code(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("make lint")) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await expect(visit.question.locator(".answer code").first).to_have_text("make lint")
            await expect(visit.question.locator(".answers")).not_to_contain_text("`")

        in_browser(web, story)


def test_more_questions_than_can_be_shown_at_once_are_all_answered(tmp_path: Path) -> None:
    """Of twenty sessions that ask, those that are joined first make room for the others."""
    many = 20
    prompts = [f"ask me {number}." for number in range(many)]
    asks = call("ask", question="Which?", options=["a", "b"])
    script = "".join(reply(asks, when=prompt) for prompt in prompts) + DONE
    with crow_web(tmp_path, script=script) as web:
        ask_in_sessions(web, prompts)

        async def story(visit: Visit) -> None:
            asked = visit.page.get_by_label("Question", exact=True)
            await expect(visit.page.locator(".row.is-asks")).to_have_count(many)
            assert (await visit.page.title()).startswith(f"({many})")
            for left in range(many, 0, -1):
                answer = asked.first.get_by_role("button", name="a", exact=True)
                await expect(answer).to_be_enabled()
                this = await asked.first.get_attribute("data-question")
                await answer.click()
                await expect(visit.page.locator(f'[data-question="{this}"]')).to_have_count(0)
                await expect(visit.page.locator(".row.is-asks")).to_have_count(left - 1)
            await expect(asked).to_have_count(0)

        in_browser(web, story)


def test_a_form_of_many_fields_is_filled_in_by_keys(tmp_path: Path) -> None:
    config = configured(asking("for-a-lot"))
    with crow_web(tmp_path, script=reply(call("mcp__asking__go")) + DONE, config=config) as web:

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await visit.begin()
            await visit.say("bake")
            await asked.get_by_role("button", name="Allow once").click()
            await expect(asked).to_contain_text("What shall be baked?")
            send = asked.get_by_role("button", name="Send")
            await expect(send).to_be_disabled()
            name = asked.get_by_label("Your name")
            await expect(name).to_be_focused()
            await expect(name).to_have_accessible_description("As on the door.")
            await page.keyboard.type("Ada")
            await page.keyboard.press("Tab")
            await page.keyboard.type("3")
            await page.keyboard.press("Tab")
            await expect(asked.get_by_label("weight")).to_have_value("0.5")
            await page.keyboard.press("Tab")
            await page.keyboard.press("Space")
            await expect(asked.get_by_label("Sliced?")).to_be_checked()
            await page.keyboard.press("Tab")
            await page.keyboard.type("Wheat")
            await asked.get_by_label("with").select_option(["nuts", "salt"])
            await expect(send).to_be_enabled()
            await send.press("Enter")
            await visit.idle()
            await visit.transcript.locator(".call-head").last.click()
            told = await visit.transcript.locator(".call-body").last.inner_text()
            sent = {"name": "Ada", "loaves": 3, "weight": 0.5, "sliced": True, "flour": "w", "with": ["nuts", "salt"]}
            assert json.loads(told) == {"action": "accept", "content": sent}

        in_browser(web, story)


HIDE = "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});"
RECORD = """
window.told = [];
class Recorded extends Notification {
    constructor(title, options) {
        super(title, options);
        window.told.push({title, body: options.body, click: () => this.onclick()});
    }
}
window.Notification = Recorded;
"""


def test_who_looks_elsewhere_is_told_of_a_question_and_of_the_end(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(edit("a.txt", "one", "two")) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(browser: Browser) -> None:
            async with visiting(web, browser, permissions=["notifications"]) as visit:
                page = visit.page
                await page.context.add_init_script(RECORD)
                await page.reload()
                await visit.connected()
                await page.get_by_role("button", name="Notify me").click()
                await expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
                await visit.begin()
                session = page.url
                await page.get_by_role("button", name="New session").first.click()
                await page.keyboard.press("Escape")
                await page.evaluate("history.pushState(null, '', '#/'); dispatchEvent(new PopStateEvent('popstate'))")
                await page.evaluate(HIDE)
                token = await asyncio.to_thread(web.token)

                def ask() -> None:
                    with web.connect(token) as client:
                        client.initialize()
                        client.load(session.rpartition("/")[2], web.workspace)
                        client.start_prompt("change my file")
                        client.wait_for_question()

                await asyncio.to_thread(ask)
                await expect(visit.question).to_be_visible()
                told = "window.told.map(({title, body}) => [title, body])"
                assert await page.evaluate(told) == [["Crow is waiting for you", "change my file"]]
                await visit.question.get_by_role("button", name="Allow once").click()
                await expect(page.locator(".row.is-done")).to_have_count(1)
                assert await page.evaluate(told) == [
                    ["Crow is waiting for you", "change my file"],
                    ["Crow is done", "change my file"],
                ]
                await page.evaluate("window.told[1].click()")
                await expect(visit.messages).to_have_text(["You:change my file"])
                assert page.url == session

        play(story)


FORBIDDEN = """
window.Notification = class {
    static permission = "granted";
    static async requestPermission() { return "granted"; }
    constructor() { throw new TypeError("Failed to construct 'Notification': Illegal constructor."); }
};
"""


def test_a_browser_that_forbids_notifications_shows_the_list_all_the_same(tmp_path: Path) -> None:
    """As Chrome on Android does, which offers them and refuses each."""
    with crow_web(tmp_path, script=reply(edit("a.txt", "one", "two")) + DONE) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.context.add_init_script(FORBIDDEN)
            await page.reload()
            await visit.connected()
            bell = page.get_by_role("button", name="Notify me")
            await bell.click()
            await expect(bell).to_have_attribute("aria-pressed", "true")
            await visit.begin()
            await page.evaluate(HIDE)
            await visit.say("change my file")
            await expect(page.locator(".row.is-asks")).to_have_count(1)
            await expect(bell).to_have_count(0)  # it would promise what this browser does not do
            await visit.question.get_by_role("button", name="Allow once").click()
            await expect(page.locator(".row.is-done")).to_have_count(1)

        in_browser(web, story)


def test_a_key_answers_the_first_question_and_no_other(tmp_path: Path) -> None:
    """Also if the first has no such answer, being a form."""
    with crow_web(tmp_path, script=ASKED + DONE) as web:

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await visit.begin()
            await visit.say("go")
            await asked.get_by_role("button", name="Reject").click()
            await expect(asked).to_contain_text("Why, or what instead?")
            await visit.begin()
            await visit.say("go")
            await expect(asked.get_by_role("button", name="Allow once")).to_be_enabled()
            await page.goto(page.url.partition("#")[0] + "#/")
            await expect(asked).to_have_count(2)
            await expect(asked.first).to_contain_text("Why, or what instead?")
            await expect(asked.last.get_by_role("button", name="Allow once")).to_be_enabled()
            await page.locator("h1").click()
            await page.keyboard.press("a")
            await page.keyboard.press("A")
            await asked.first.get_by_role("button", name="Skip").click()
            await expect(asked.filter(has_text="two.txt")).to_have_count(1)  # it goes on, and the other one still waits
            await expect(asked.filter(has_text="done.txt")).to_have_count(1)
            assert list(web.workspace.iterdir()) == []

        in_browser(web, story)
