"""Pages of other origins, on this machine or by a name that was made to lead here, try what a page can try against a
running `crow web`. Nothing of theirs reaches a session, and nothing of ours reaches them.
"""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.async_api import Browser

from tests.browser.chromium import play
from tests.browser.page import Visit, crow_web, expect, visiting
from tests.support.scripts import DONE, reply, run
from tests.support.web import Web

REBOUND = "rebound.example"

ATTACK = """async ({origin, link, token}) => {
    const seen = {};
    const settled = (name, promise) => Promise.race([
        promise.then((value) => { seen[name] = value; }, (error) => { seen[name] = `refused`; }),
        new Promise((done) => setTimeout(done, 8000)).then(() => { seen[name] ??= "nothing came"; }),
    ]);
    const element = (name, tag, attributes) => settled(name, new Promise((done, fail) => {
        const made = Object.assign(document.createElement(tag), attributes);
        made.onload = () => done("loaded");
        made.onerror = fail;
        document.body.append(made);
    }));
    const socket = (name, protocols) => settled(name, new Promise((done, fail) => {
        const made = new WebSocket(origin.replace("http", "ws") + "/acp", protocols);
        made.onopen = () => done("opened");
        made.onerror = fail;
    }));
    await Promise.all([
        settled("fetch", fetch(origin + "/").then((answer) => answer.text())),
        settled("fetch of a script", fetch(origin + "/page.js").then((answer) => answer.text())),
        settled("blind fetch", fetch(origin + "/", {mode: "no-cors"}).then((answer) => answer.type)),
        settled("post", fetch(origin + "/acp", {method: "POST", body: "{}"}).then((answer) => answer.text())),
        element("script", "script", {src: origin + "/page.js", type: "module"}),
        element("plain script", "script", {src: origin + "/page.js"}),
        element("style", "link", {rel: "stylesheet", href: origin + "/page.css"}),
        element("image", "img", {src: origin + "/crow.svg"}),
        socket("socket", ["acp.v1"]),
        socket("socket with a link", ["acp.v1", "crow.link." + link]),
        socket("socket with a token", ["acp.v1", "crow.token." + token]),
    ]);
    seen.storage = [localStorage.length, sessionStorage.length, document.cookie].join();
    return seen;
}"""
REFUSED = {
    **dict.fromkeys(("fetch", "fetch of a script", "post", "script", "plain script", "style", "image"), "refused"),
    **dict.fromkeys(("socket", "socket with a link", "socket with a token"), "refused"),
    "storage": "0,0,",
}

OPEN = """({address}) => {
    window.opened = window.open(address);
    return window.opened !== null;
}"""
LOOK_INTO = """() => {
    const look = (deed) => { try { return String(deed()); } catch (error) { return "refused"; } };
    const other = window.opened;
    return [other.closed, look(() => other.document.title), look(() => other.sessionStorage.length)];
}"""
FRAME = """({address}) => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.src = address;
    frame.onload = () => {
        let inside = "refused";
        try { inside = frame.contentDocument?.title ?? "refused"; } catch { /* as it should be */ }
        done(inside);
    };
    document.body.append(frame);
})"""
FORM = """({address}) => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = address;
    document.body.append(form);
    form.submit();
}"""


class Hostile(BaseHTTPRequestHandler):
    """An empty page that allows itself everything. `asked` has the lines and headers of all requests."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(f"{self.path} {self.headers}")
        body = b"<!doctype html><title>hostile</title><body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Nothing is printed."""


@contextmanager
def hostile_site() -> Generator[tuple[int, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Hostile,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()


async def attack(web: Web, visit: Visit, link: str, at: str) -> None:
    """From a tab beside ours: everything that leaves the hostile page where it is, then what leads away from it."""
    token = await visit.page.evaluate("sessionStorage.getItem('crow.token')")
    assert token
    session = visit.page.url.partition("#")[2]
    page = await visit.page.context.new_page()
    await page.goto(at)
    # Even with a link and a token that are good: what another origin holds must not do.
    seen = await page.evaluate(ATTACK, {"origin": web.origin, "link": link, "token": token})
    seen.pop("blind fetch")  # refused, or an answer that cannot be looked into
    assert seen == REFUSED
    address = f"{web.origin}/#{session}"
    assert await page.evaluate(FRAME, {"address": address}) == "refused"
    # A window that was opened knows neither us nor the token of the page beside it.
    async with page.context.expect_page() as opening:
        assert await page.evaluate(OPEN, {"address": address})
    opened = await opening.value
    await opened.wait_for_load_state()
    closed, title, storage = await page.evaluate(LOOK_INTO)
    assert closed or (title, storage) == ("refused", "refused")
    await expect(opened.locator("#page")).to_have_count(0)
    await opened.close()
    async with page.expect_navigation() as leaving:
        await page.evaluate(FORM, {"address": f"{web.origin}/acp"})
    answer = await leaving.value
    assert answer is not None
    assert answer.status in (403, 405)
    await page.close()


def test_another_site_reaches_no_session_and_gets_nothing(tmp_path: Path) -> None:
    script = reply(run("touch done-by-somebody")) + DONE
    with crow_web(tmp_path, script=script) as web, hostile_site() as (port, asked):

        async def story(browser: Browser) -> None:
            async with visiting(web, browser) as visit:
                await visit.begin()
                await visit.say("run it")
                await expect(visit.question).to_be_visible()
                link = (await asyncio.to_thread(web.beside)).stdout.split()[-1].partition("#link=")[2]
                for host in ("127.0.0.1", "abc.localhost", REBOUND):
                    await attack(web, visit, link, f"http://{host}:{port}/")
                # The session is as it was.
                await expect(visit.question).to_be_visible()
                await visit.connected()
                token = await visit.page.evaluate("sessionStorage.getItem('crow.token')")
                assert not [one for one in asked if token in one or "cookie" in one.lower()]
                await visit.question.get_by_role("button", name="Reject").click()
                await visit.question.get_by_role("button", name="Skip").click()
                await visit.idle()

        play(story, f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1")
        assert list(web.workspace.iterdir()) == []


def test_a_rebound_name_with_our_own_port_is_refused(tmp_path: Path) -> None:
    """To the browser the hostile page and `crow web` then are one origin: only the name tells."""
    with crow_web(tmp_path, script=DONE) as web:

        async def story(browser: Browser) -> None:
            async with visiting(web, browser) as visit:
                page = await visit.page.context.new_page()
                for host in (REBOUND, "localhost", "abc.localhost"):
                    answer = await page.goto(f"http://{host}:{web.port}/")
                    assert answer is not None
                    assert answer.status == 421
                    assert "page.js" not in await answer.text()
                    token = await visit.page.evaluate("sessionStorage.getItem('crow.token')")
                    opened = await page.evaluate(
                        """(token) => new Promise((done) => {
                            const socket = new WebSocket(`/acp`, ["acp.v1", `crow.token.${token}`]);
                            socket.onopen = () => done("opened");
                            socket.onerror = () => done("refused");
                        })""",
                        token,
                    )
                    assert opened == "refused"
                    assert await page.evaluate("sessionStorage.length + localStorage.length") == 0

        play(story, f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1")
