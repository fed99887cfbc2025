"""A page on which nothing happens does nothing: no frame, no timer, no change of the document, nothing drawn anew.

It only goes on to ask Crow for signs of life, twice a second, which is also the clock of these tests.
"""

from pathlib import Path

from playwright.async_api import WebSocket

from tests.browser.page import Visit, crow_web, expect, in_browser, until
from tests.support.scripts import DONE, allowing, call, reply

COUNT = """
window.stirred = { frames: 0, timers: 0, changes: 0 };
const frame = requestAnimationFrame, timer = setTimeout;
window.requestAnimationFrame = (work) => (stirred.frames++, frame(work));
window.setTimeout = (...given) => (stirred.timers++, timer(...given));
const watcher = new MutationObserver((changes) => (stirred.changes += changes.length));
watcher.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
"""
SIGNS = 6
"""So many signs of life are waited for: three seconds, in which whatever shows the time has had to show another one."""
MOST_CALLS = 100
"""Calls of functions for one sign of life. One row of the list that is drawn anew takes half as many."""
SESSIONS, ITEMS = 30, 100
PASSED_OVER = """() => [...document.querySelectorAll(".transcript, .transcript *")]
    .filter((element) => getComputedStyle(element).contentVisibility === "auto").length"""
"""Elements of the talk for each of which the browser asks itself with every frame whether it may pass over them."""


class SignsOfLife:
    """Counts how often the page asks Crow whether it is there."""

    def __init__(self, visit: Visit) -> None:
        self.count = 0
        visit.page.on("websocket", self._watch)

    def _watch(self, socket: WebSocket) -> None:
        socket.on("framesent", self._sent)

    def _sent(self, text: str | bytes) -> None:
        self.count += "_crow/ping" in str(text)

    async def wait(self, more: int) -> None:
        wanted = self.count + more

        async def have_come() -> bool:
            return self.count >= wanted

        await until(have_come, f"{more} signs of life")


def test_an_idle_page_rests_however_many_sessions_and_items_it_shows(tmp_path: Path) -> None:
    script = reply(*(call("read", path=f"{number}.txt") for number in range(ITEMS)), when="look") + DONE
    with crow_web(tmp_path, script=script, config=allowing("read")) as web:
        for number in range(ITEMS):
            (web.workspace / f"{number}.txt").write_text("a\n")
        with web.connect(web.token()) as client:
            client.initialize()
            for _ in range(SESSIONS):
                client.new_session(web.workspace)
                client.answer(client.start_prompt("hello"))

        async def story(visit: Visit) -> None:
            page = visit.page
            signs = SignsOfLife(visit)
            await page.add_init_script(COUNT)
            await page.reload()
            await visit.connected()
            await visit.begin()
            await visit.say("look around")
            await visit.idle()
            seen = None

            async def rests() -> bool:
                nonlocal seen
                await signs.wait(2)
                before, seen = seen, await page.evaluate("({...stirred})")
                return seen == before

            await until(rests, "rest")
            assert 0 < await page.evaluate(PASSED_OVER) <= ITEMS / 20
            profiler = await page.context.new_cdp_session(page)
            await profiler.send("Profiler.enable")
            await profiler.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
            began = signs.count
            await signs.wait(SIGNS)
            found = await profiler.send("Profiler.takePreciseCoverage")
            calls = sum(
                function["ranges"][0]["count"]
                for script in found["result"]
                if script["url"].startswith(web.origin)
                for function in script["functions"]
            )
            assert await page.evaluate("({...stirred})") == seen
            assert calls <= MOST_CALLS * (signs.count - began)

        in_browser(web, story)


def test_the_list_says_how_long_ago_something_was_also_while_nothing_else_happens(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:
        web.command("run", "hello")

        async def story(visit: Visit) -> None:
            page = visit.page
            row = page.locator(".session-rows .row")
            await page.clock.install()
            await page.reload()
            await visit.connected()
            await expect(row).to_contain_text("now")
            await page.clock.fast_forward(90_000)
            await expect(row).to_contain_text("1 min")

        in_browser(web, story)
