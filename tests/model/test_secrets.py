"""No part of a key that tells anything is ever shown, however a provider quotes it and wherever text is cut."""

import base64
from typing import Any
from urllib.parse import quote

import pytest

from crow.config.hosts import shown_address
from crow.config.settings import Limits, ProviderSettings
from crow.model import catalog, endpoint
from crow.model.base import Waiting
from crow.model.endpoint import Endpoint
from tests.model.asking import Outcome, ask, ask_with_retries
from tests.support.provider import Provider

SECRET = "sk-SECRET-a1b2c3d4e5f6g7h8"
PASSWORD = "p@ss/w0rd+with=signs"


def parts(secret: str) -> list[str]:
    return [secret[:size] for size in range(8, len(secret) + 1)]


def shown(outcome: Outcome) -> str:
    """Everything that a person or a log may see of it."""
    waits = " ".join(event.reason for event in outcome.events if isinstance(event, Waiting))
    error = outcome.error
    assert error is not None
    return f"{error} {error!r} {error.said} {waits}"


both = pytest.mark.parametrize("kind", ["openai", "anthropic"])


@both
@pytest.mark.parametrize("before", [270, 280, 290, 64 * 1024 - 40])
def test_a_key_where_the_message_is_cut(kind: str, before: int) -> None:
    with Provider(key=SECRET) as provider:
        dialect = getattr(provider, kind)
        dialect.fail(401, "x" * before + SECRET)
        dialect.fail(401, body=b"<p>" + b" " * (before + 20) + SECRET.encode())
        for _ in range(2):
            outcome = ask(catalog.create("house/m", {"house": dialect.settings()}, Limits(), {}))
            assert not [part for part in parts(SECRET) if part in shown(outcome)]


@both
@pytest.mark.parametrize("before", [0, 60, 70, 75])
def test_a_key_where_rubbish_is_cut(kind: str, before: int) -> None:
    with Provider(key=SECRET) as provider:
        dialect = getattr(provider, kind)
        for _ in range(5):
            dialect.send(b"data: %b%b\n\n" % (b"x" * before, SECRET.encode()))
        outcome = ask_with_retries("house/m", {"house": dialect.settings()}, Limits())
        assert not [part for part in parts(SECRET) if part in shown(outcome)]
        assert len(dialect.requests) == 5


@pytest.mark.parametrize(
    "form",
    [
        str,
        str.upper,
        str.lower,
        lambda secret: quote(secret, safe=""),
        lambda secret: quote(secret, safe="").lower(),
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.b64encode(secret.encode()).decode().rstrip("="),
        lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
        lambda secret: secret[:14] + "…",
        lambda secret: secret[:14] + "...",
        lambda secret: secret[:8] + "…",
        lambda secret: secret[:-2],
    ],
)
@pytest.mark.parametrize("sent", ["key", "password"])
def test_its_other_forms(form: Any, sent: str) -> None:
    secret = SECRET if sent == "key" else PASSWORD
    credentials: Any = {"key": secret} if sent == "key" else {"login": ("me", secret)}
    place = Endpoint("house", "http://x/v1", **credentials)
    clean = place.scrub(f"Wrong: {form(secret)} (said the gate)" if "…" not in form(secret) else form(secret))
    assert "[secret]" in clean
    assert form(secret).rstrip("….=") not in clean


def test_a_login_as_its_header_carries_it() -> None:
    sent = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    place = Endpoint("house", "http://x/v1", login=("me", PASSWORD))
    assert place.scrub(f"Basic {sent} is wrong") in ("Basic [secret] is wrong", "Basic [secret]= is wrong")
    assert place.scrub(f"Basic {sent[:20]}…") == "Basic [secret]…"


def test_what_providers_mask_themselves_may_stay() -> None:
    place = Endpoint("house", "http://x/v1", key="sk-proj-0123456789abcdef")
    for said in ("Wrong key sk-proj-********cdef.", "Keys begin with sk-proj- here."):
        assert place.scrub(said) == said


@pytest.mark.parametrize("key", ["x", "no", "none", "test"])
def test_a_short_key_tears_no_holes_into_words(key: str) -> None:
    said = "nonetheless, extra testing knows nothing"
    assert Endpoint("house", "http://x/v1", key=key).scrub(said) == said


def test_the_name_is_the_secret_if_there_is_no_password() -> None:
    assert "hunter22" not in Endpoint("house", "http://x/v1", login=("hunter22", "")).scrub("no: hunter22!")


def test_a_key_in_the_query_of_the_address() -> None:
    with Provider() as provider:
        provider.openai.path += f"?api-version=2024-10-21&key={SECRET}"
        provider.openai.fail(400, f"{SECRET} is no key, 2024-10-21 no version")
        url = f"{provider.openai.url}?api-version=2024-10-21&key={SECRET}"
        settings = ProviderSettings(type="openai", base_url=url)
        error = ask(catalog.create("house/m", {"house": settings}, Limits(), {})).error
        assert "[secret] is no key, 2024-10-21 no version" in str(error)
    error = ask(catalog.create("house/m", {"house": settings}, Limits(retry_wait=0), {})).error
    assert f"at {provider.openai.url}." in str(error)


def test_secrets_that_are_sent_in_the_body_and_shown_in_an_address() -> None:
    extra = {"token": "EXTRA-VALUE-123", "auth": {"id": "EXTRA-VALUE-456"}, "meta": {"api_key": ["EXTRA-VALUE-789"]}}
    place = endpoint.find_endpoint("x", ProviderSettings(type="openai", base_url="http://h/v1", extra_body=extra), {})
    assert place.scrub(str(extra)).count("[secret]") == 3
    for path, seen in {
        "/v1/QSECRETVALUE1/x": "/v1/[secret]/x",
        "/v1/0f8fad5b-d9cb-469f-a165-70867728950e": "/v1/[secret]",
        "/v1/sk-proj-0123456789abcdef/": "/v1/[secret]/",
        "/s/key%3Dabcdef0123456789": "/s/[secret]",
        "/QSECRETVALUE1": "/[secret]",
        "": "",
        "/openai/deployments/gpt-4o-mini-2024-07-18": "/openai/deployments/gpt-4o-mini-2024-07-18",
        "/openai/deployments/gpt-4o-mini-2024": "/openai/deployments/gpt-4o-mini-2024",
        "/compatible-mode/v1beta": "/compatible-mode/v1beta",
    }.items():
        settings = ProviderSettings(type="openai", base_url=f"http://u:p@127.0.0.1:11434{path}?k=v")
        assert shown_address(settings.base_url) == f"http://127.0.0.1:11434{seen}"


def test_a_key_in_the_path_of_the_address_is_in_no_error() -> None:
    key = "SECRET0a1b2c3d4e5f"

    def error_at(address: str) -> str:
        settings = ProviderSettings(type="openai", base_url=address)
        error = ask(catalog.create("house/m", {"house": settings}, Limits(retry_wait=0), {})).error
        assert error is not None
        assert key not in f"{error} {error.remedy} {error.said}"
        return str(error)

    with Provider() as provider:
        address = provider.openai.url.removesuffix("/v1") + f"/v1/{key}"
        provider.openai.path = f"/v1/{key}/chat/completions"
        provider.openai.fail(400, f"There is nothing at /v1/{key}.")
        assert "There is nothing at /v1/[secret]." in error_at(address)
        provider.openai.send(b"<html>", headers={"content-type": "text/html"})
        assert "answered with a web page at http://127.0.0.1" in error_at(address)
        assert "does not speak TLS at https://127.0.0.1" in error_at(address.replace("http:", "https:"))
    assert "refused the connection at http://127.0.0.1" in error_at(address)
