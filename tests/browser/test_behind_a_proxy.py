"""A proxy stands between the page and `crow web`: it answers also while there is no Crow, and the page comes back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser

from tests.browser.chromium import play
from tests.browser.page import PATIENCE, crow_web, expect, restarted, visiting
from tests.support.ports import free_port
from tests.support.scripts import TALK

NOBODY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 11\r\nConnection: close\r\n\r\nBad Gateway"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Passes each connection on to Crow, under Crow's own address; says itself that there is none."""

    def __init__(self, port: int, crow: int) -> None:
        self.origin = f"http://crow.localhost:{port}"
        self.refuses_sockets = False
        self._refused: asyncio.Queue[None] = asyncio.Queue()
        self._port = port
        self._crow = crow

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            try:
                crow_reader, crow_writer = await asyncio.open_connection("127.0.0.1", self._crow)
            except OSError:
                self._refused.put_nowait(None)
                writer.write(NOBODY)
                await writer.drain()
                writer.close()
                return
            if self.refuses_sockets and head.startswith(b"GET /acp"):
                self._refused.put_nowait(None)
                writer.write(TOO_MANY)
                crow_writer.close()
                writer.close()
                return
            host = self.origin.partition("//")[2].encode()
            crow_writer.write(head.replace(b"Host: " + host, b"Host: 127.0.0.1:%d" % self._crow))
            await asyncio.gather(_pass_on(reader, crow_writer), _pass_on(crow_reader, writer))

    async def has_refused(self, times: int) -> None:
        """From now on."""
        while not self._refused.empty():
            self._refused.get_nowait()
        async with asyncio.timeout(PATIENCE / 1000):
            for _ in range(times):
                await self._refused.get()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        try:
            yield
        finally:
            server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def test_a_page_behind_a_proxy_comes_back_after_a_restart(tmp_path: Path) -> None:
    port = free_port()
    with crow_web(tmp_path, "--behind", f"http://crow.localhost:{port}", script=TALK) as web:

        async def story(browser: Browser) -> None:
            proxy = Proxy(port, web.port)
            behind = ("--behind", proxy.origin)
            async with proxy.serving(), visiting(web, browser) as visit:
                visit.expected.append("status of 502 (Bad Gateway)")
                await visit.begin()
                await visit.say("first")
                await visit.idle()
                await asyncio.to_thread(web.end, 9)
                await proxy.has_refused(4)
                await visit.connected("lost")
                assert await visit.page.evaluate("sessionStorage.getItem('crow.token')")
                async with restarted(web, *behind) as again:
                    await visit.connected()
                    proxy.refuses_sockets = True
                    await asyncio.to_thread(again.end, 9)
                    await visit.connected("lost")
                    async with restarted(web, *behind):
                        await proxy.has_refused(3)
                        await visit.connected("lost")
                        proxy.refuses_sockets = False
                        await visit.connected()
                        await visit.say("second")
                        await expect(visit.transcript.get_by_text("Two.")).to_be_visible()

        play(story)
