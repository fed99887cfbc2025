"""The list of sessions follows the store: what other programs begin, end and delete is seen; what is found opens."""

import asyncio
from pathlib import Path

from playwright.async_api import WebSocketRoute

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, reply, say

SCRIPT = reply(say("Hello."), when="hello") + DONE


def without_news_of_the_list(route: WebSocketRoute) -> None:
    """The page is connected, and is told of nothing that changes in the list."""
    server = route.connect_to_server()
    server.on_message(lambda text: None if '"method":"_crow/inbox"' in str(text) else route.send(text))


def test_a_session_of_a_terminal_is_listed_opens_and_goes_when_it_is_deleted_there(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            rows = page.locator(".session-rows .row-open")
            await expect(page.get_by_text("No sessions yet.")).to_be_visible()
            await asyncio.to_thread(web.command, "run", "hello")
            await expect(rows).to_have_count(1)
            await rows.click()
            await expect(visit.transcript).to_contain_text("Hello.")
            session = page.url.rpartition("/")[2]
            await page.get_by_role("button", name="New session").first.click()
            await page.keyboard.press("Escape")
            await asyncio.to_thread(web.command, "run", "hello again")
            await expect(rows).to_have_count(2)
            await rows.filter(has_text="hello again").click()
            await asyncio.to_thread(web.command, "sessions", "delete", session, "--yes")
            await expect(rows).to_have_count(1)

        in_browser(web, story)


def test_what_a_search_finds_opens_also_where_the_list_does_not_know_it_yet(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await expect(page.get_by_text("No sessions yet.")).to_be_visible()
            await page.route_web_socket("**/acp", without_news_of_the_list)
            await page.reload()
            await visit.connected()
            await expect(page.get_by_text("No sessions yet.")).to_be_visible()
            await asyncio.to_thread(web.command, "run", "hello")
            await page.get_by_label("Search all sessions").fill("hello")
            await page.locator(".session-rows .row-open").filter(has_text="hello").click()
            await expect(visit.transcript).to_contain_text("Hello.")

        in_browser(web, story)
