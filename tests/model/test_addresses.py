"""Where requests go and what goes with them: addresses as people write them, headers, keys, fields of their own."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ConfigError, ModelRefusedKey, ModelRejected, SetupNeeded
from crow.model import catalog, credentials, endpoint
from crow.model.base import Awaiting, ModelRequest, Said
from crow.model.listing import list_models
from tests.model.asking import HELLO, Outcome, ask_all, run
from tests.support.provider import Provider
from tests.support.terminals import wait_until_gone

CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/messages"


@pytest.mark.parametrize(
    ("kind", "written", "path", "sent", "otherwise"),
    [
        # A host alone
        ("openai", "https://a.example", CHAT, "/v1/chat/completions", "/chat/completions"),
        ("openai", "https://a.example/", CHAT, "/v1/chat/completions", "/chat/completions"),
        ("anthropic", "https://a.example", MESSAGES, "/v1/messages", "/messages"),
        ("openai", "https://h.openai.azure.com", RESPONSES, "/openai/v1/responses", "/responses"),
        # A version is there
        ("openai", "https://a.example/v1/", CHAT, "/v1/chat/completions", None),
        ("openai", "https://a.example/v1beta/openai", CHAT, "/v1beta/openai/chat/completions", None),
        ("openai", "https://a.example/api/paas/v4", CHAT, "/api/paas/v4/chat/completions", None),
        # None is
        (
            "openai",
            "https://a.example/inference",
            CHAT,
            "/inference/chat/completions",
            "/inference/v1/chat/completions",
        ),
        ("openai", "https://a.example/openai", "/models", "/openai/models", "/openai/v1/models"),
        ("anthropic", "https://a.example/anthropic", MESSAGES, "/anthropic/v1/messages", "/anthropic/messages"),
        (
            "openai",
            "https://h.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21",
            CHAT,
            "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            "/openai/deployments/gpt/v1/chat/completions?api-version=2024-10-21",
        ),
        # A method is there
        ("openai", "https://a.example/chat/completions", CHAT, "/chat/completions", None),
        ("openai", "https://a.example/x/chat/completions/?a=b", CHAT, "/x/chat/completions?a=b", None),
        ("openai", "https://a.example/x/responses", RESPONSES, "/x/responses", None),
        ("openai", "https://a.example/x/responses", "/models", "/x/models", None),
        ("anthropic", "https://a.example/v1/messages", MESSAGES, "/v1/messages", None),
    ],
)
def test_addresses(kind: Any, written: str, path: str, sent: str, otherwise: str | None) -> None:
    place = endpoint.find_endpoint("house", ProviderSettings(kind, base_url=written), {})
    assert place.address(path).partition("/")[2].partition("/")[2].partition("/")[2] == sent[1:]
    if otherwise is None:
        assert place.other_url == ""
    else:
        assert place.other_url + path + (f"?{place.query}" if place.query else "") == (
            f"https://{place.host}{otherwise}"
        )


def talk(settings: ProviderSettings, environ: dict[str, str] | None = None, times: int = 1) -> list[Outcome]:
    model: Any = catalog.create("house/m", {"house": settings}, Limits(), environ or {})
    return run(ask_all(model, *[ModelRequest("", HELLO)] * times))


@pytest.mark.parametrize("there", ["/v1/chat/completions", "/chat/completions"])
def test_a_host_alone_is_tried_with_and_without_a_version(there: str) -> None:
    with Provider() as provider:
        provider.openai.path = there
        provider.openai.answer("Hi")
        provider.openai.answer("Hi")
        outcomes = talk(ProviderSettings("openai", base_url=provider.url), times=2)
        assert [outcome.events[0] for outcome in outcomes] == [Said("Hi")] * 2
        paths = [request.path for request in provider.openai.requests]
        assert paths == [*(["/v1/chat/completions"] if there == "/chat/completions" else []), there, there]


def test_where_there_is_nothing_the_first_address_is_named() -> None:
    with Provider() as provider:
        provider.openai.path = "/elsewhere"
        (outcome,) = talk(ProviderSettings("openai", base_url=provider.url))
        assert isinstance(outcome.error, ModelRejected)
        assert "/v1/chat/completions" in str(outcome.error)


# --- headers


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"type": "openai"}, {"authorization": "Bearer k-123456"}),
        ({"type": "anthropic"}, {"x-api-key": "k-123456", "anthropic-version": "2023-06-01"}),
        ({"type": "openai", "base_url": "https://h.openai.azure.com"}, {"api-key": "k-123456"}),
        ({"type": "openai", "api_key_header": "X-Key"}, {"X-Key": "k-123456"}),
        ({"type": "anthropic", "api_key_header": "Authorization"}, {"Authorization": "Bearer k-123456"}),
        (
            {"type": "openai", "headers": {"X-Team": "tools of ${TEAM}"}},
            {"authorization": "Bearer k-123456", "x-team": "tools of ours"},
        ),
    ],
)
def test_headers(settings: dict[str, Any], sent: dict[str, str]) -> None:
    given = ProviderSettings(api_key="k-123456", **{"base_url": "https://a.example/v1", **settings})
    place = endpoint.find_endpoint("house", given, {"TEAM": "ours"})
    everything = {**place.headers, **place.credentials()}
    assert {name: everything.get(name) for name in sent} == sent


def test_a_variable_of_a_header_that_is_missing_is_named() -> None:
    settings = ProviderSettings("openai", base_url="https://a.example/v1", headers={"X-Team": "${TEAM}"})
    with pytest.raises(SetupNeeded, match="TEAM"):
        endpoint.find_endpoint("house", settings, {"TEAM": " "})
    with pytest.raises(ConfigError, match="header"):
        endpoint.find_endpoint("house", settings, {"TEAM": "a\nb"})


def test_secrets_in_headers_are_not_shown() -> None:
    headers = {"X-Auth": "Bearer hush-hush-1234", "X-Team": "${TEAM}", "X-Plain": "plain"}
    settings = ProviderSettings("openai", base_url="https://a.example/v1", headers=headers)
    place = endpoint.find_endpoint("house", settings, {"TEAM": "secret-team-5678"})
    assert place.scrub("Bearer hush-hush-1234 secret-team-5678 plain") == "[secret] [secret] plain"
    assert "hush" not in repr(place)


def test_headers_and_fields_go_with_every_request() -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        provider.openai.models = {"data": [{"id": "m"}]}
        settings = msgspec.structs.replace(
            provider.openai.settings(),
            headers={"X-Team": "${TEAM}"},
            extra_body={"provider": {"order": ["a"]}, "stream_options": {"extra": True}, "temperature": 0.5},
        )
        (outcome,) = talk(settings, {"TEAM": "ours"})
        assert outcome.events[0] == Said("Hi")
        run(list_models("house", settings, {"TEAM": "ours"}))
        sent = [*provider.openai.requests, *provider.openai.looks]
        assert [request.headers["x-team"] for request in sent] == ["ours", "ours"]
        body = provider.openai.requests[0].body
        assert (body["provider"], body["temperature"]) == ({"order": ["a"]}, 0.5)
        assert body["stream_options"] == {"include_usage": True, "extra": True}


# --- a key from a command


@pytest.fixture
def command(tmp_path: Path) -> Any:
    """A command that prints key-1, then key-2, and so on."""
    counter = tmp_path / "counter"
    counter.write_text("")
    credentials._PRINTED.clear()
    return f"printf x >> {counter}; printf 'token-number-%s\\n' $(wc -c < {counter})"


def test_the_key_is_printed_once_and_again_when_it_is_refused(command: str) -> None:
    with Provider() as provider:
        settings = ProviderSettings("openai", base_url=provider.openai.url, api_key_command=command)
        for _ in range(4):
            provider.openai.answer("Hi")
        provider.openai.key = "token-number-1"
        assert [outcome.error for outcome in (*talk(settings, times=2), *talk(settings))] == [None] * 3
        provider.openai.key = "token-number-2"
        assert talk(settings)[0].error is None
        provider.openai.key = "another"
        (refused,) = talk(settings)
        assert isinstance(refused.error, ModelRefusedKey)
        assert f"providers.{'house'}.api_key_command" in str(refused.error)
        keys = [request.headers["authorization"].removeprefix("Bearer ") for request in provider.openai.requests]
        assert keys == [f"token-number-{number}" for number in (1, 1, 1, 1, 2, 2, 3)]


def test_a_key_from_a_command_is_not_shown(command: str) -> None:
    with Provider() as provider:
        settings = ProviderSettings("openai", base_url=provider.openai.url, api_key_command=command)
        provider.openai.fail(400, "token-number-1 is no key")
        assert "[secret] is no key" in str(talk(settings)[0].error)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo told >&2; exit 3", "The command for the key of house ended with exit code 3."),
        ("true", "The command for the key of house printed nothing."),
        ("echo two words", "The command for the key of house printed more than a key."),
        ("no-such-program-here", "ended with exit code 127."),
        ("yes", "printed more than a key."),
        ("head -c 70000 /dev/zero | tr '\\0' a", "printed more than a key."),
    ],
)
def test_a_command_that_prints_no_key(line: str, said: str) -> None:
    settings = ProviderSettings("openai", base_url="http://127.0.0.1:9/v1", api_key_command=line)
    (outcome,) = talk(settings)
    assert isinstance(outcome.error, ModelRefusedKey)
    assert said in str(outcome.error)
    assert "told" not in str(outcome.error)
    assert "providers.house.api_key_command" in outcome.error.remedy


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("printf sk-first; sleep 0.1; echo -second", "sk-first-second"),
        ("head -c 20000 /dev/zero | tr '\\0' a | dd bs=1000", "a" * 20_000),
    ],
)
def test_a_key_that_is_printed_in_pieces(line: str, key: str) -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        settings = ProviderSettings("openai", base_url=provider.openai.url, api_key_command=line)
        assert talk(settings)[0].error is None
        assert provider.openai.requests[0].headers["authorization"] == f"Bearer {key}"


def test_what_a_command_leaves_running_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    line = f"(sleep 600 & echo $! > {tmp_path}/child); echo sk-1234567890"
    with Provider() as provider:
        provider.openai.answer("Hi")
        settings = ProviderSettings("openai", base_url=provider.openai.url, api_key_command=line)
        assert talk(settings)[0].error is None
        assert provider.openai.requests[0].headers["authorization"] == "Bearer sk-1234567890"
    wait_until_gone(int((tmp_path / "child").read_text()))


def test_the_command_is_waited_for_by_name(command: str) -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        settings = ProviderSettings("openai", base_url=provider.openai.url, api_key_command=command)
        (outcome,) = talk(settings)
    assert outcome.events[:3] == [Awaiting("the command that prints the key of house"), Awaiting(), Said("Hi")]


def test_a_command_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "COMMAND_TIMEOUT", 0.05)
    settings = ProviderSettings("openai", base_url="http://127.0.0.1:9/v1", api_key_command="sleep 600 | cat")
    (outcome,) = talk(settings)
    assert "0.05 s" in str(outcome.error)
