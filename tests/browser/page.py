"""The page of a real `crow web`, opened by its link in Chromium; whatever it does that it must not fails the test."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Locator, Page, Request, expect

from tests.browser.chromium import needed, play
from tests.support.patience import DEADLINE
from tests.support.warm import CROW, warm
from tests.support.web import Json, Web

WIDE = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 800}

TELL_OF_POLICY = """
document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
"""Some things that a page's policy forbids are kept quiet otherwise."""
AGE_WHAT_WAITS = """() => {
    const key = Object.keys(localStorage).find((key) => key.includes("outbox."));
    const kept = JSON.parse(localStorage.getItem(key));
    const aged = kept.map((one, index) => ({ ...one, id: `${Date.now() - 3_700_000}.${index}` }));
    localStorage.setItem(key, JSON.stringify(aged));
}"""
"""What waits to be sent was written more than an hour ago; seen by the page that is loaded next."""
PATIENCE = float(os.environ.get("CROW_BROWSER_PATIENCE", DEADLINE)) * 1000
"""Milliseconds that only a hang lasts; whoever writes a test sets less, to see sooner what is wrong."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def crow_web(folder: Path, *arguments: str, **more: Any) -> Generator[Web]:
    """A `crow web` with the page as it is built."""
    needed()
    web = Web(folder, *arguments, **{"program": warm(CROW), **more})
    try:
        yield web
    finally:
        web.close()


@asynccontextmanager
async def restarted(web: Web, *arguments: str) -> AsyncIterator[Web]:
    """The same `crow web` again, on its port, as after a crash."""
    again = await asyncio.to_thread(Web, web.folder, "--port", str(web.port), *arguments, program=warm(CROW))
    try:
        yield again
    finally:
        await asyncio.to_thread(again.close)


async def until(
    condition: Callable[[], Awaitable[object]], what: str, do: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Waits for what a locator cannot be asked for; `do` is done again and again meanwhile."""
    end = time.monotonic() + PATIENCE / 1000
    while not await condition():
        assert time.monotonic() < end, f"{what}: did not come true"
        if do is not None:
            await do()
        await asyncio.sleep(0.02)


class Visit:
    """One page in a browser, and all that went wrong in it."""

    def __init__(self, page: Page, web: Web) -> None:
        self.page = page
        self.web = web
        self.faults: list[str] = []
        self.expected = ["WebSocket connection to", "net::ERR_"]
        """Words of errors that are no faults: a socket that cannot be connected is what some tests are about."""
        self.expects_dialogs = False
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", self._said)
        page.on("dialog", self._asked)
        page.on("request", self._requested)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(words in message.text for words in self.expected):
            self.faults.append(f"console: {message.text}")

    async def _asked(self, dialog: Dialog) -> None:
        if self.expects_dialogs:
            return
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.web.origin, "data:", "blob:")):
            self.faults.append(f"request: {request.url}")

    # --- what is on the page

    @property
    def composer(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def question(self) -> Locator:
        return self.page.get_by_label("Question", exact=True)

    @property
    def messages(self) -> Locator:
        """What the person has said."""
        return self.transcript.locator(".said")

    async def another(self) -> "Visit":
        """A page that is still empty, in the same browser; its faults count as faults of this visit."""
        other = Visit(await self.page.context.new_page(), self.web)
        other.faults = self.faults
        return other

    async def open(self, link: str = "") -> None:
        """By the link that was printed, or by another one; nothing of it stays in the address."""
        await self.page.goto(link or f"{self.web.origin}/#link={self.web.link}")
        await self.connected()
        assert "link" not in self.page.url

    async def connected(self, state: str = "open") -> None:
        await expect(self.page.locator(f'.app[data-connection="{state}"]')).to_be_attached()

    async def begin(self, folder: Path | None = None) -> None:
        """A session in the folder of the test, or in another one."""
        await self.page.get_by_role("button", name="New session").first.click()
        await self.page.get_by_label("Folder").fill(str(folder or self.web.workspace))
        await self.page.keyboard.press("Enter")
        await expect(self.composer).to_be_focused()

    async def say(self, text: str) -> None:
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def idle(self) -> None:
        """The turn has ended."""
        await expect(self.page.get_by_role("button", name="Undo turn")).to_be_visible()


@asynccontextmanager
async def visiting(web: Web, browser: Browser, *, link: str = "", **options: Any) -> AsyncIterator[Visit]:
    """A page, opened by the link that was printed or by another one. The test fails with what went wrong in it."""
    context = await browser.new_context(**{"viewport": WIDE, **options})
    try:
        await context.add_init_script(TELL_OF_POLICY)
        visit = Visit(await context.new_page(), web)
        await visit.open(link)
        yield visit
        assert not visit.faults, "\n".join(visit.faults)
    finally:
        await context.close()


def in_browser(web: Web, story: Callable[[Visit], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Plays a story on a page of its own."""

    async def open_page(browser: Browser) -> None:
        async with visiting(web, browser, **options) as visit:
            await story(visit)

    play(open_page)


def ask_in_sessions(web: Web, prompts: Sequence[str]) -> None:
    """Begins a session with each prompt, by a client that leaves once all of them have asked with a form."""
    with web.connect(web.token()) as client:
        client.initialize(clientCapabilities={"elicitation": {"form": {}}})
        for prompt in prompts:
            session = client.new_session(web.workspace)
            client.start_prompt(prompt)
            client.wait_for(lambda message, session=session: _is_form_of(session, message))


def _is_form_of(session: str, message: Json) -> bool:
    return message.get("method") == "elicitation/create" and message["params"]["sessionId"] == session


__all__ = [
    "AGE_WHAT_WAITS",
    "PHONE",
    "WIDE",
    "BrowserContext",
    "Visit",
    "ask_in_sessions",
    "crow_web",
    "expect",
    "in_browser",
    "restarted",
    "until",
    "visiting",
]
