"""The Chromium that the tests of a process share: no test sees what another one left, and one that died is replaced."""

import asyncio
import contextlib

import pytest
from playwright.async_api import Browser, Error, Route

from tests.browser.chromium import needed, play

SITE = "https://crow.test/"
SEEN = """async () => {
    const cache = await caches.open("kept");
    return [document.cookie, localStorage.length, (await cache.keys()).length, (await indexedDB.databases()).length];
}"""
LEAVE = """async () => {
    document.cookie = "left=here; max-age=1000";
    localStorage.setItem("left", "here");
    await (await caches.open("kept")).put("/left", new Response("here"));
    await new Promise((done) => (indexedDB.open("left").onsuccess = done));
}"""


async def answer(route: Route) -> None:
    await route.fulfill(body="<p>", content_type="text/html")


async def crash(browser: Browser) -> None:
    gone = asyncio.Event()
    browser.on("disconnected", lambda _: gone.set())
    session = await browser.new_browser_cdp_session()
    with contextlib.suppress(Error):
        await session.send("Browser.crash")
    await gone.wait()


def test_nothing_that_one_test_stores_is_seen_by_the_next() -> None:
    needed()
    seen: list[object] = []
    browsers: list[Browser] = []

    async def story(browser: Browser) -> None:
        browsers.append(browser)
        async with await browser.new_page() as page:
            await page.route("**", answer)
            await page.goto(SITE)
            seen.append(await page.evaluate(SEEN))
            await page.evaluate(LEAVE)
            seen.append(await page.evaluate(SEEN))

    play(story)
    play(story)
    assert browsers[0] is browsers[1]
    assert seen == [["", 0, 0, 0], ["left=here", 1, 1, 1]] * 2


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_browser_that_died_is_replaced_for_the_next_test(*, is_seen: bool) -> None:
    needed()

    async def story(browser: Browser) -> None:
        await crash(browser)
        if is_seen:
            await browser.new_page()

    with pytest.raises(Error) if is_seen else contextlib.nullcontext():
        play(story)
    titles: list[str] = []

    async def look(browser: Browser) -> None:
        async with await browser.new_page() as page:
            titles.append(await page.evaluate("location.href"))

    play(look)
    assert titles == ["about:blank"]


def test_a_test_that_leaves_its_pages_open_fails_and_the_next_does_not_see_them() -> None:
    needed()

    async def leave(browser: Browser) -> None:
        await browser.new_page()

    async def look(browser: Browser) -> None:
        assert browser.contexts == []

    with pytest.raises(AssertionError, match="left its pages open"):
        play(leave)
    play(look)
