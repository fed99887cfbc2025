"""Finds the Chromium of the system's packages, and starts it for a test."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

from tests.support.page_build import is_built

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = os.environ.get("CROW_BROWSER_TESTS") == "required"
"""Set where a run without a browser would show nothing, and so has failed."""
ARGUMENTS = (
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--disable-dev-shm-usage"),
)


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


@asynccontextmanager
async def chromium(*more: str) -> AsyncIterator[Browser]:
    """A browser of its own for one test; `more` are arguments that this one is started with."""
    path = needed()
    as_root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, *as_root, *more])
        try:
            yield browser
        finally:
            await browser.close()
