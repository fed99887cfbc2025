"""What the page costs in Chromium, with the long session of `page_session.py` on a screen of 420 pixels.

The processor time is that of all of Chromium's processes, from the tap on the session in the list until its last words
are drawn. Typing is measured from a key to the frame that shows it. Where something is missing, `missing` says what.
"""

import asyncio
import contextlib
import gzip
import importlib.resources
import os
import re
import shutil
import statistics

from acp_client import cpu_seconds, tree
from page_session import EDITS, LAST_WORDS, LINES, TURNS, LongSession

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chromium-headless-shell")
ARGUMENTS = [
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--disable-dev-shm-usage"),
]
SCREEN = {"width": 420, "height": 860}
ROUNDS = 3

OPEN = """(words) => new Promise((done) => {
  document.querySelector(".row-open").click();
  const look = () => {
    const items = document.querySelectorAll(".transcript .item:nth-last-of-type(-n+8)");
    if ([...items].some((item) => item.textContent.includes(words))) requestAnimationFrame(() => setTimeout(done));
    else setTimeout(look, 25);
  };
  look();
})"""
LISTEN = """() => {
  window.delays = [];
  document.activeElement.addEventListener("keydown", () => {
    const began = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.delays.push(performance.now() - began)));
  }, true);
}"""


def missing():
    """What keeps this from being measured; empty if nothing does."""
    if not any(map(shutil.which, NAMES)):
        return "no Chromium was found: `make browser` installs it, or says how"
    try:
        import playwright.async_api  # noqa: F401 -- only whether it is there
    except ImportError:
        return "playwright is not installed"
    return "" if (_built() / "page.js").is_file() else "the page is not built: `make page` says why"


def _built():
    return importlib.resources.files("crow.web_server") / "built"


def first_load_kb():
    """Script that is fetched before anything is drawn, compressed: page.js and what it imports."""
    todo, seen = ["page.js"], {}
    while todo:
        name = todo.pop()
        if name not in seen:
            seen[name] = (_built() / name).read_bytes()
            text = seen[name].decode()
            todo += re.findall(r'(?:from|import)\s*"\./([\w.-]+\.js)"', text)
    return sum(len(gzip.compress(data, 9)) for data in seen.values()) / 1000


def measure(crow, work):
    """The figures of the page, as medians of a few openings."""
    session = LongSession(crow, work)
    try:
        rounds = [asyncio.run(_open(session)) for _ in range(ROUNDS)]
    finally:
        session.close()
    figures = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    return {**figures, "page_script_kb": first_load_kb()}


async def _open(session):
    from playwright.async_api import async_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    path = next(filter(None, map(shutil.which, NAMES)))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, *as_root])
        try:
            page = await browser.new_page(viewport=SCREEN)
            await page.goto(session.new_link())
            await page.locator(".row-open").wait_for()
            await page.wait_for_timeout(1000)  # what the start of the page itself still has to do is not counted
            before = _chromium_cpu()
            await page.evaluate(OPEN, LAST_WORDS)
            opened = _chromium_cpu() - before
            await _check(page)
            await page.locator("#composer").focus()
            await page.evaluate(LISTEN)
            for key in "how is it done":
                await page.keyboard.press("Space" if key == " " else key)
                await page.wait_for_timeout(40)
            delays = sorted(await page.evaluate("window.delays"))
            return {"page_open_cpu_s": opened, "page_typing_ms": delays[int(len(delays) * 0.95)]}
        finally:
            await browser.close()


async def _check(page):
    """That what was opened is what the figure says."""
    for selector, wanted in ((".item.is-user", TURNS), (".item.is-agent", TURNS), (".call .diff", EDITS)):
        found = await page.locator(f".transcript {selector}").count()
        if found < wanted:
            raise RuntimeError(f"{found} of {wanted} {selector} are on the page")
    command = page.locator(".call", has_text="of a long output")
    await command.locator(".call-head").click()
    await command.get_by_text("All output").click()
    await command.get_by_text(f"line {LINES // 1000} of a long output").first.wait_for()


def _chromium_cpu():
    """Of the processes that Playwright started for us: all that are Chromium's."""
    total = 0.0
    for pid in tree(os.getpid()):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
            if "chrom" in os.path.basename(f.read().split("\0")[0]):
                total += cpu_seconds(pid, children=False)
    return total
