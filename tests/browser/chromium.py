"""Finds the Chromium of the system's packages, and starts it for the tests."""

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine, Sequence
from multiprocessing.util import Finalize
from typing import Any

import pytest
from playwright.async_api import Browser, async_playwright

from tests.support.page_build import is_built

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first draws pages like the others, and costs half of their processor time: it has nothing around a page."""
REQUIRED = os.environ.get("CROW_BROWSER_TESTS") == "required"
"""Set where a run without a browser would show nothing, and so has failed."""
ARGUMENTS = (
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--disable-dev-shm-usage"),
)

Story = Callable[[Browser], Coroutine[Any, Any, None]]
"""What a test does in a browser. Each context that it opens it also closes."""


def found() -> str | None:
    """The path of a Chromium that is installed."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def missing() -> str:
    """Why no test can run in a browser here, with the remedy; empty if they can."""
    if found() is None:
        return "no Chromium was found: `make browser` installs it, or says how"
    return "" if is_built() else "the page is not built: `make page` says why"


def needed() -> str:
    """The path of Chromium; skips the test where there is none, or fails it where one is required."""
    reason = missing()
    if reason and REQUIRED:
        pytest.fail(reason)
    if reason:
        pytest.skip(f"tests in a browser: {reason}")
    return found() or ""


class Shared:
    """A driver and a Chromium that all tests of this process share, on an event loop that stays as long."""

    def __init__(self) -> None:
        self._path = needed()
        self._runner = asyncio.Runner()
        self._playwright = self._runner.run(async_playwright().start())
        self._browser: Browser | None = None

    def play(self, story: Story, arguments: Sequence[str]) -> None:
        self._runner.run(self._play_alone(story, arguments) if arguments else self._play(story))

    def close(self) -> None:
        """The driver ends the browsers that it has started."""
        try:
            self._runner.run(self._playwright.stop())
        finally:
            self._runner.close()

    async def _play(self, story: Story) -> None:
        if self._browser is None or not self._browser.is_connected():
            self._browser = await self._launch()
        await story(self._browser)
        assert not self._browser.contexts, "a test left its pages open"

    async def _play_alone(self, story: Story, arguments: Sequence[str]) -> None:
        browser = await self._launch(*arguments)
        try:
            await story(browser)
        finally:
            await browser.close()

    async def _launch(self, *arguments: str) -> Browser:
        as_root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        return await self._playwright.chromium.launch(
            executable_path=self._path, args=[*ARGUMENTS, *as_root, *arguments]
        )


_shared: list[Shared] = []


def play(story: Story, *arguments: str) -> None:
    """Plays a story in the Chromium of this process, or in one of its own that is started with `arguments`.

    A story that fails may have left something behind, or have been the browser's end: the next gets another browser.
    """
    if not _shared:
        _shared.append(Shared())
        Finalize(None, _end, exitpriority=0)  # also runs at the end of a process that multiprocessing has forked
    try:
        _shared[0].play(story, arguments)
    except BaseException:
        _end()
        raise


def _end() -> None:
    while _shared:
        _shared.pop().close()
