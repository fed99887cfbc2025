"""Connections to a provider: shared by those who ask it, closed when nobody does; no answer takes for ever to begin."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelError
from crow.model import catalog, connections, http
from crow.model.base import ModelRequest, Said
from tests.model.asking import HELLO, run
from tests.support.provider import Provider
from tests.support.timers import timers_left


async def speak(model: object) -> None:
    async for _ in model.reply(ModelRequest("", HELLO)):  # type: ignore[attr-defined]
        pass


def test_sessions_share_their_connections_and_idle_ones_are_closed_by_one_timer(monkeypatch):
    async def talk() -> None:
        with Provider() as provider:
            for _ in range(41):
                provider.openai.answer("Hello.")
            settings = {"house": provider.openai.settings()}
            models = [catalog.create("house/m", settings, Limits(), {}) for _ in range(20)]
            for model in models:
                await speak(model)
            assert provider.connections == 1
            await asyncio.gather(*map(speak, models))
            shared: Any
            [shared] = connections._shared[asyncio.get_running_loop()].values()
            assert len(shared.client()._transport._pool.connections) <= connections.MOST_IDLE
            pool = shared.client()._transport._pool
            timer = shared._timer
            timer.cancel()
            shared._expire()  # as that timer does when it is due
            await shared._closing
            assert (pool.connections, shared._timer, shared._client) == ([], None, None)
            await speak(models[0])
            assert shared._timer not in (None, timer)
            for model in models:
                await model.close()
            assert not connections._shared[asyncio.get_running_loop()]

    run(talk())


def test_the_timer_of_idle_connections_ends_with_the_last_who_would_ask():
    with Provider() as provider:
        provider.openai.answer("Hello.")

        async def talk() -> None:
            model = catalog.create("house/m", {"house": provider.openai.settings()}, Limits(), {})
            await speak(model)
            await model.close()

        assert timers_left(talk) == []


@contextlib.asynccontextmanager
async def dripping(answer: bytes, all_at_once: int) -> AsyncGenerator[str]:
    """A server that sends the rest of its answer byte by byte, without ever a pause that is too long."""

    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(answer[:all_at_once])
            for byte in answer[all_at_once:] + b" " * 100_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        for task in served:
            task.cancel()
        await asyncio.gather(*served)
        server.close()
        await server.wait_closed()


ERROR = b"HTTP/1.1 500 Oops\r\ncontent-length: 100000\r\n\r\n" + json.dumps({"error": {"message": "Oops."}}).encode()


@pytest.mark.parametrize(
    ("answer", "all_at_once", "words"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nx-long: " + b"x" * 60_000, 0, "did not start to answer", id="headers"),
        pytest.param(ERROR, ERROR.index(b"{"), "answered 500", id="the body of an error"),
    ],
)
def test_an_answer_that_drips_is_given_up(monkeypatch, answer, all_at_once, words):
    monkeypatch.setattr(http, "SPARE", 0.1)

    async def talk() -> ModelError:
        async with dripping(answer, all_at_once) as url:
            settings = ProviderSettings(type="openai", base_url=url, api_key="k")
            model = catalog.create(
                "house/m", {"house": settings}, Limits(retry_wait=0, stream_idle=0.2, first_token=0.2), {}
            )
            try:
                with pytest.raises(ModelError) as failure:
                    await speak(model)
            finally:
                await model.close()
            return failure.value

    assert words in str(run(talk()))


def test_many_streams_are_read_with_pauses_and_lose_nothing(monkeypatch):
    waits: list[float] = []
    plain = asyncio.sleep

    async def counted(seconds: float) -> None:
        waits.append(seconds)
        await plain(0)

    async def talk(few: int) -> tuple[str, float]:
        monkeypatch.setattr(connections, "FEW_STREAMS", few)
        monkeypatch.setattr(connections.asyncio, "sleep", counted)
        waits.clear()
        with Provider() as provider:
            provider.openai.answer(*[f"{number} " for number in range(500)])
            model = catalog.create("house/m", {"house": provider.openai.settings()}, Limits(), {})
            said = [event.text async for event in model.reply(ModelRequest("", HELLO)) if isinstance(event, Said)]
            await model.close()
        return "".join(said), len(waits)

    whole = "".join(f"{number} " for number in range(500))
    assert run(talk(25)) == (whole, 0)
    said, paused = run(talk(0))
    assert said == whole
    assert paused > 0
