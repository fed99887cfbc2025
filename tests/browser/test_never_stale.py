"""What the page shows stays true: after a lost network, a server that was started again, an answer given elsewhere."""

import asyncio
import signal
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, WebSocket

from tests.browser.chromium import play
from tests.browser.page import Visit, crow_web, expect, in_browser, restarted, visiting
from tests.support.scripts import DONE, TALK, allowing, edit, reply, run, say
from tests.support.warm import CROW


def test_after_a_restart_everything_is_there_once_and_the_draft_is_kept(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=TALK) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            await expect(visit.transcript.get_by_text("One.")).to_have_count(1)
            await visit.transcript.get_by_text("One.").evaluate("node => node.dataset.drawn = 'before'")
            await visit.composer.fill("half a thought")
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            await expect(visit.transcript.get_by_text("One.")).to_be_visible()  # what is known stays
            await visit.composer.fill("second")
            await visit.composer.press("Enter")
            await expect(visit.page.get_by_text("Your message is queued")).to_be_visible()
            await visit.composer.fill("a draft")
            async with restarted(web):
                await visit.connected()
                await expect(visit.transcript.get_by_text("Two.")).to_have_count(1)
                await expect(visit.messages).to_have_text(["You:first", "You:second"])
                # Nothing was drawn anew: the node is the one from before.
                await expect(visit.transcript.get_by_text("One.")).to_have_attribute("data-drawn", "before")
                await expect(visit.composer).to_have_value("a draft")
                await visit.page.reload()
                await visit.connected()
                await expect(visit.messages).to_have_text(["You:first", "You:second"])
                await expect(visit.composer).to_have_value("a draft")

        in_browser(web, story)


def test_a_network_that_is_gone_in_mid_turn_leaves_no_gap(tmp_path: Path) -> None:
    words = " ".join(f"w{number}" for number in range(40))
    script = reply(say("Before."), run("until [ -e go ]; do sleep 0.05; done")) + reply(say(words)) + DONE
    with crow_web(tmp_path, script=script, config=allowing("terminal")) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            for _ in range(3):
                await visit.page.context.set_offline(True)
                await expect(visit.page.locator('.app:not([data-connection="open"])')).to_be_attached()
                await visit.page.context.set_offline(False)
                await visit.connected()
            # The last time for so long that the socket is given up: the turn goes on, and ends, without any client.
            await visit.page.context.set_offline(True)
            await visit.connected("lost")
            (web.workspace / "go").touch()
            await visit.page.context.set_offline(False)
            await visit.connected()
            await visit.idle()
            await expect(visit.transcript.get_by_text(words)).to_have_count(1)
            await expect(visit.transcript.get_by_text("Before.")).to_have_count(1)
            await expect(visit.messages).to_have_text(["You:go"])

        in_browser(web, story)


def test_a_message_is_sent_once_however_often_the_page_is_opened(tmp_path: Path) -> None:
    script = reply(run("until [ -e go ]; do sleep 0.05; done")) + DONE
    with crow_web(tmp_path, script=script, config=allowing("terminal")) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            link = (await asyncio.to_thread(web.beside)).stdout.strip()  # later a command has run
            await visit.say("do it")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            await visit.page.reload()
            await visit.connected()
            stop = visit.page.get_by_role("button", name="Stop the turn")
            await expect(stop).to_be_visible()  # the page knows at once that it runs
            running = visit.transcript.locator(".call.is-in_progress")
            await expect(running.locator(".spinner")).to_be_visible()
            await expect(visit.page.locator(".turn-line .elapsed")).not_to_have_text("")
            await expect(running.locator(".elapsed")).to_have_count(0)  # for how long is not known here, so not said
            second = await visit.another()
            await second.open(link)
            await second.page.locator(".row-open").click()
            await expect(second.page.get_by_role("button", name="Stop the turn")).to_be_visible()
            (web.workspace / "go").touch()
            for one in (visit, second):
                await one.idle()
                await expect(one.messages).to_have_text(["You:do it"])
                await expect(one.page.get_by_role("alert")).to_have_count(0)
            assert (web.home / "record.jsonl").read_text().count("\n") == 2  # the call, and what came of it
            await visit.page.reload()
            await visit.connected()
            await expect(visit.transcript.get_by_text("Done.")).to_be_visible()
            await expect(visit.messages).to_have_text(["You:do it"])

        in_browser(web, story)


def test_a_question_is_shown_everywhere_and_vanishes_everywhere(tmp_path: Path) -> None:
    script = reply(edit("a.txt", "one", "two")) + DONE
    with crow_web(tmp_path, script=script) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(browser: Browser) -> None:
            async with visiting(web, browser) as visit:
                await visit.begin()
                await visit.say("change it")
                await expect(visit.question).to_be_visible()
                link = (await asyncio.to_thread(web.beside)).stdout
                # The other page has nothing open, and is asked all the same.
                async with visiting(web, browser, link=link.split()[-1]) as other:
                    await expect(other.question).to_contain_text("a.txt")
                    assert (await other.page.title()).startswith("(1)")
                    await other.question.get_by_role("button", name="Allow once").click()
                    await expect(visit.question).to_have_count(0)
                    await visit.idle()
                assert (web.workspace / "a.txt").read_text() == "two\n"

        play(story)


def test_a_page_that_is_not_known_any_more_says_so(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await asyncio.to_thread(web.beside, "--forget", "all")
            await visit.connected("refused")
            await expect(visit.page.get_by_role("alert")).to_contain_text("no longer known")
            await visit.page.reload()  # its token is not stored any more
            await visit.connected("refused")
            await expect(visit.page.get_by_role("alert")).to_contain_text("opened by a link")

        in_browser(web, story)


def test_a_link_that_somebody_else_has_used_is_said_to_be_used(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            second = await visit.another()
            await second.page.goto(f"{web.origin}/#link={web.link}")
            await second.connected("refused")
            await expect(second.page.get_by_role("alert")).to_contain_text("opened before")
            await expect(second.page.get_by_role("alert")).to_contain_text("crow web --forget all")

        in_browser(web, story)


def test_a_link_is_not_used_up_by_a_try_that_takes_long(tmp_path: Path) -> None:
    """Somebody looks at the page meanwhile, which otherwise is a reason to try anew."""
    with crow_web(tmp_path, program=[CROW], script=DONE) as web:  # a process of its own, which can be stopped

        async def story(visit: Visit) -> None:
            link = (await asyncio.to_thread(web.beside)).stdout.strip().partition("#")[2]
            second = await visit.another()
            await second.page.clock.install()
            await second.page.goto(web.origin)
            await second.connected("refused")
            tries: list[WebSocket] = []
            second.page.on("websocket", lambda socket: tries.append(socket))  # noqa: PLW0108 -- Playwright marks what it is given
            web.process.send_signal(signal.SIGSTOP)
            try:
                async with second.page.expect_websocket():
                    await second.page.evaluate("(link) => { location.hash = link; }", link)
                await second.page.clock.fast_forward(20_000)
                await second.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            finally:
                web.process.send_signal(signal.SIGCONT)
            await second.connected()
            assert len(tries) == 1

        in_browser(web, story)


def test_a_session_whose_folder_is_gone_takes_no_message_until_it_is_back(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=TALK) as web:
        folder = tmp_path / "project"
        folder.mkdir()

        async def story(visit: Visit) -> None:
            await visit.begin(folder)
            await visit.say("first")
            await visit.idle()
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            folder.rmdir()
            async with restarted(web):
                problem = visit.page.get_by_role("alert")
                await expect(problem).to_contain_text(str(folder))
                await expect(visit.transcript).to_contain_text("One.")
                await visit.say("second")
                await expect(visit.composer).to_have_value("second")  # not taken, and not lost
                folder.mkdir()
                await problem.get_by_role("button", name="Try again").click()
                await expect(problem).to_have_count(0)
                await visit.composer.press("Enter")
                await expect(visit.transcript.get_by_text("Two.")).to_have_count(1)

        in_browser(web, story)


def test_a_session_among_hundreds_is_listed_found_and_has_its_undo(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:
        with web.connect(web.token()) as client:
            client.initialize()
            for number in range(120):
                client.new_session(web.workspace)
                client.answer(client.start_prompt(f"apples {number}"))
                client.request("session/close", {"sessionId": client.session_id})
            client.received.clear()

        async def story(visit: Visit) -> None:
            rows = visit.page.locator(".session-rows .row")
            await expect(rows).to_have_count(120)  # three times what one page of the list has
            await rows.filter(has_text="apples 3").last.locator(".row-open").click()
            await expect(visit.messages).to_have_text(["You:apples 3"])
            await visit.page.reload()
            await visit.connected()
            await expect(visit.messages).to_have_text(["You:apples 3"])
            await visit.idle()

        in_browser(web, story)


NO_TIME_LIMIT = "() => { AbortSignal.timeout = () => new AbortController().signal; }"


def test_a_proof_from_before_the_machine_slept_holds_up_nothing(tmp_path: Path) -> None:
    """The page asks Crow for its proof, the machine sleeps, and on waking nobody will ever answer that."""
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            asked = asyncio.Event()

            async def answer_only_later(route: Route) -> None:
                if asked.is_set():
                    await route.continue_()
                asked.set()

            await page.clock.install()
            await page.evaluate(NO_TIME_LIMIT)
            await page.route("**/proof?*", answer_only_later)
            await asyncio.to_thread(web.end, 9)
            await asked.wait()
            async with restarted(web):
                await page.clock.fast_forward(60_000)
                await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
                await visit.connected()

        in_browser(web, story)


NO_STORAGE = """
for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, {get: () => { throw new DOMException("Access is denied", "SecurityError"); }});
}
"""
FULL = """Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };"""


@pytest.mark.parametrize("storage", [NO_STORAGE, FULL], ids=["forbidden", "full"])
def test_a_browser_that_stores_nothing_connects_and_connects_again(tmp_path: Path, storage: str) -> None:
    with crow_web(tmp_path, script=TALK) as web:

        async def story(visit: Visit) -> None:
            link = (await asyncio.to_thread(web.beside)).stdout.split()[-1]
            await visit.page.context.add_init_script(storage)
            other = Visit(await visit.page.context.new_page(), web)
            await other.page.goto(link)
            await other.connected()
            await other.begin()
            await other.say("first")
            await other.idle()
            await asyncio.to_thread(web.end, 9)
            await other.connected("lost")
            async with restarted(web):
                await other.connected()
                await other.say("second")
                await expect(other.transcript.get_by_text("Two.")).to_have_count(1)
            assert other.faults == []

        in_browser(web, story)


def test_what_is_typed_before_a_dialog_is_fetched_goes_into_it(tmp_path: Path) -> None:
    """And nowhere else: neither into the composer, nor as an answer."""
    with crow_web(tmp_path, script=reply(run("printf 1 > one.txt")) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            address, let_go = page.url, asyncio.Event()

            async def late(route: Route) -> None:
                await let_go.wait()
                await route.continue_()

            await page.route("**/seldom-*.js", late)
            await page.reload()
            await page.goto(address)
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            await page.keyboard.press("Control+k")
            await page.keyboard.type("dark a")
            await page.keyboard.press("Backspace")
            await page.keyboard.press("Enter")
            let_go.set()
            await expect(page.locator('html[data-theme="dark"]')).to_be_attached()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(visit.composer).to_have_value("")
            await expect(visit.question).to_have_count(1)

        in_browser(web, story)


def test_a_part_that_nobody_needs_any_more_is_not_fetched_again_and_again(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            tries: list[str] = []

            async def refuse(route: Route) -> None:
                tries.append(route.request.url)
                await route.abort()

            await page.route("**/seldom-*.js", refuse)
            await page.reload()
            await visit.connected()
            await page.clock.install()
            await page.keyboard.press("Control+k")
            await expect(page.get_by_role("button", name="Load the page again")).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("button", name="Load the page again")).to_have_count(0)
            before = len(tries)
            for _ in range(10):
                await page.clock.run_for(5000)
            assert len(tries) == before

        in_browser(web, story)


def test_the_changed_files_are_asked_for_once_when_a_turn_ends(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            sent: list[str] = []
            page.on("websocket", lambda socket: socket.on("framesent", lambda text: sent.append(str(text))))
            await page.reload()
            await visit.connected()
            await visit.begin()
            await page.get_by_role("button", name="Changed files").first.click()
            await expect(page.get_by_role("complementary", name="Changed files")).to_contain_text("Nothing has changed")
            sent.clear()
            await visit.say("go")
            await visit.idle()
            await visit.say("again")
            await expect(visit.transcript.get_by_text("Done.")).to_have_count(2)
            await visit.idle()
            assert sum("_crow/changes" in text for text in sent) <= 2

        in_browser(web, story)
