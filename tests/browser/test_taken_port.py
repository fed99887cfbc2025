"""Another program gets the port of a `crow web` that has ended: pages that are still open tell it nothing."""

import asyncio
import http.client
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.page import Visit, crow_web, expect, in_browser, restarted, until
from tests.support.scripts import TALK
from tests.support.web import Web

WAKE = "document.dispatchEvent(new Event('visibilitychange'))"
STORED = "sessionStorage.getItem('crow.token')"


@contextmanager
def impostor(port: int, answer: Callable[[str], bytes]) -> Generator[list[str]]:
    """A program at that port which answers everything, and all that it was sent. Its page shows what is stored."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.requestline}\n{self.headers}")
            body = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield heard
        finally:
            server.shutdown()
            thread.join()


def asking(other: Web) -> Callable[[str], bytes]:
    """Passes on what it is asked to the crow web that knows the answer, at its own address."""

    def answer(path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", other.port)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    return answer


@pytest.mark.parametrize("proof", ["made up", "asked for"])
def test_who_has_taken_the_port_is_shown_no_token(tmp_path: Path, proof: str) -> None:
    with crow_web(tmp_path, script=TALK) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            token = await visit.page.evaluate(STORED)
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            with (
                crow_web(tmp_path) if proof == "asked for" else nullcontext() as other,
                impostor(web.port, asking(other) if other else lambda path: b"0" * 64) as heard,
            ):
                await visit.connected("refused")
                await expect(visit.page.get_by_text("This page is no longer known")).to_be_visible()
                assert any("/proof" in request for request in heard)
                # A page that the other program served could read what is stored.
                assert await visit.page.evaluate(STORED) is None
                await visit.page.get_by_role("button", name="Try again").click()
                await visit.connected("refused")
                assert not [request for request in heard if token in request or "Upgrade" in request]
            async with restarted(web):
                # Not with the button: if the other program left before it had answered, the page tries by itself.
                app = visit.page.locator(".app[data-connection=open]")
                await until(app.is_visible, "the connection", lambda: visit.page.evaluate(WAKE))
                await visit.connected()
                await visit.say("second")
                await expect(visit.transcript.get_by_text("Two.")).to_be_visible()
                assert await visit.page.evaluate(STORED) == token
                await visit.page.reload()
                await visit.connected()

        in_browser(web, story)
