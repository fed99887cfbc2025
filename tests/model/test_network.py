import asyncio
from pathlib import Path
from typing import Any

import pytest

from crow.config.hosts import proxy_for
from crow.config.settings import Limits, ProviderSettings
from crow.errors import ConfigError
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import Done, ModelRequest, Said, Waiting
from tests.model.asking import HELLO, ask, run
from tests.support.models import session_model
from tests.support.provider import Provider, Stall
from tests.support.provider_dialect import Answer, Pause
from tests.support.timers import timers_left

PROXY = "http://proxy.lan:3128"


def proxied(url: str, **environ: str) -> str | None:
    proxy = proxy_for(url, environ)
    return str(proxy.url) if proxy else None


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.example.com/v1", {}, None),
        ("https://api.example.com/v1", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example.com/v1", {"https_proxy": "proxy.lan:3128"}, PROXY),
        ("https://api.example.com/v1", {"HTTP_PROXY": PROXY}, None),
        ("https://api.example.com/v1", {"ALL_PROXY": PROXY}, PROXY),
        ("http://10.1.2.3:8000/v1", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://10.1.2.3:8000/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, None),
        ("http://10.1.2.3:8000/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, None),
        ("https://api.example.com/v1", {"HTTPS_PROXY": PROXY, "no_proxy": "other.com, .example.com"}, None),
        ("https://api.example.com/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.com,1/x"}, PROXY),
        ("https://api.example.com/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ("http://127.0.0.1:8080/v1", {"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}, None),
        ("http://localhost:8080/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://[::1]:8080/v1", {"HTTP_PROXY": PROXY}, None),
    ],
)
def test_proxies_from_the_environment(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxied(url, **environ) == proxy


@pytest.mark.parametrize("written", ["socks5://me:hunter2@proxy.lan", "http://[::1", "gopher://x"])
def test_a_proxy_that_cannot_be_used(written: str) -> None:
    with pytest.raises(ConfigError, match="ALL_PROXY") as caught:
        proxied("https://api.example.com/v1", ALL_PROXY=written)
    assert "hunter2" not in str(caught.value)


def test_ssl_cert_file_is_honoured() -> None:
    with Provider(tls=True) as provider:
        provider.openai.answer("Hi")
        environ = {"SSL_CERT_FILE": provider.ca_file}
        model = catalog.create("house/m", {"house": provider.openai.settings()}, Limits(), environ)
        assert ask(model).events == [Said("Hi"), Done(StopReason.END_TURN)]


def test_ssl_cert_file_that_is_none(tmp_path: Path) -> None:
    settings = ProviderSettings(type="openai", base_url="https://127.0.0.1:1/v1")
    for content in (None, "no certificate"):
        path = tmp_path / "ca.pem"
        if content:
            path.write_text(content)
        with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
            catalog.create("house/m", {"house": settings}, Limits(), {"SSL_CERT_FILE": str(path)})


def test_tls_to_a_server_that_speaks_plain_http() -> None:
    with Provider() as provider:
        settings = ProviderSettings(type="openai", base_url=provider.url.replace("http:", "https:"))
        outcome = ask(catalog.create("house/m", {"house": settings}, Limits(retry_wait=0), {}))
        assert "TLS" in str(outcome.error)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("when", ["before the answer", "in the text"])
def test_cancelling_ends_the_request_at_once(kind: str, when: str) -> None:
    async def cancel(model: Any) -> None:
        async def consume() -> None:
            async for _ in model.reply(ModelRequest("", HELLO)):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()

    with Provider() as provider:
        dialect = getattr(provider, kind)
        if when == "in the text":
            dialect.answer("Hello", then=Stall())
        else:
            dialect.keep_silent()
        model = catalog.create("house/m", {"house": dialect.settings()}, Limits(), {})
        run(cancel(model))
        assert len(dialect.requests) == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_closing_a_reply_half_way_leaves_the_model_usable(kind: str) -> None:
    async def leave_and_return(model: Any) -> list[Any]:
        first = model.reply(ModelRequest("", HELLO))
        await anext(first)
        await first.aclose()
        second = [event async for event in model.reply(ModelRequest("", HELLO))]
        await model.close()
        return second

    with Provider() as provider:
        dialect = getattr(provider, kind)
        dialect.answer("A long story", then=Stall())
        dialect.answer("Hi")
        model = catalog.create("house/m", {"house": dialect.settings()}, Limits(), {})
        assert run(leave_and_return(model)) == [Said("Hi"), Done(StopReason.END_TURN)]


@pytest.mark.parametrize("body", [(), (b": OPENROUTER PROCESSING\n\n",), (b'data: {"choices": [{"del',), None])
@pytest.mark.parametrize("kind", ["openai", "anthropic", "responses"])
def test_no_timer_outlives_an_answer(kind: str, body: tuple[bytes, ...] | None) -> None:
    """Also of an answer that ends before its first event: a timer would cancel whatever its task does next."""
    with Provider() as provider:
        dialect = getattr(provider, kind)
        if body is not None:
            dialect.send(*body)
        dialect.answer("Hi")
        seen: list[Any] = []
        limits = Limits(stream_idle=300)

        async def ask_and_go_on() -> None:
            model = session_model(catalog.create("house/m", {"house": dialect.settings()}, limits, {}), limits)
            seen.extend([event async for event in model.reply(ModelRequest("", HELLO))])
            await model.close()

        assert timers_left(ask_and_go_on) == []
    assert [event for event in seen if isinstance(event, Said | Waiting)][body is not None :] == [Said("Hi")]


def test_a_reply_that_does_not_begin_is_not_waited_for_longer_than_first_token() -> None:
    with Provider() as provider:
        provider.openai.keep_silent()
        limits = Limits(retry_wait=0, stream_idle=300, first_token=0.2)
        outcome = ask(catalog.create("house/m", {"house": provider.openai.settings()}, limits, {}))
    assert "sent nothing for 0.2 s" in str(outcome.error)
    assert "first_token" in str(outcome.error)


def test_what_keeps_a_connection_alive_is_no_beginning_of_a_reply() -> None:
    with Provider() as provider:
        dialect = provider.openai
        steps = [*dialect.opening(None), *dialect.spoken(("Hi",)), *dialect.closing("stop", None)]
        dialect._queue(Answer([b": still loading\n\n", Pause(1.2), *steps]))
        limits = Limits(retry_wait=0, stream_idle=1, first_token=300)
        outcome = ask(catalog.create("house/m", {"house": dialect.settings()}, limits, {}))
    assert (outcome.error, outcome.events[0]) == (None, Said("Hi"))
