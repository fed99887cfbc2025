"""What is found without a configuration: variables, and servers on this machine."""

import asyncio
import contextlib
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from crow.config.discovery import (
    LOCAL_SERVERS,
    Discovery,
    can_chat,
    discover,
    from_environment,
    local_servers,
)
from crow.config.hosts import shown_address
from crow.config.settings import VENDORS, ModelSettings, ProviderSettings, Settings
from crow.errors import ConfigError
from tests.config.support import ModelServer
from tests.support.patience import DEADLINE

LOCAL = ProviderSettings(type="openai", base_url="http://127.0.0.1:8080/v1")
NO_SERVERS = {"CROW_LOCAL_SERVERS": ""}


def found(settings: Settings, environ: dict[str, str]) -> Discovery:
    return asyncio.run(discover(settings, environ))


# --- without the network


def test_nothing_is_found_in_an_empty_environment() -> None:
    assert from_environment(Settings(), {}) == Discovery(providers={})


@pytest.mark.parametrize("name", list(VENDORS))
def test_each_vendors_variable(name: str) -> None:
    vendor = VENDORS[name]
    provider = ProviderSettings(type=vendor.type, base_url=vendor.base_url, api_key_env=vendor.key_variable)
    assert from_environment(Settings(), {vendor.key_variable: "sk-1"}) == Discovery(
        providers={name: provider}, default=f"{name}/{vendor.default_model}", chosen_by=vendor.key_variable
    )


def test_an_empty_variable_is_none() -> None:
    assert from_environment(Settings(), {"OPENAI_API_KEY": " "}) == Discovery(providers={})


def test_another_address_for_openai_has_no_default_model() -> None:
    environ = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "https://gateway.example/v1"}
    assert from_environment(Settings(), environ) == Discovery(
        providers={
            "openai": ProviderSettings(
                type="openai", base_url="https://gateway.example/v1", api_key_env="OPENAI_API_KEY"
            )
        }
    )


def test_configured_providers_come_first_and_are_not_replaced() -> None:
    configured = ProviderSettings(type="anthropic", base_url="https://proxy.example", api_key="k")
    settings = Settings(providers={"local": LOCAL, "anthropic": configured})
    discovery = from_environment(settings, {"GROQ_API_KEY": "1", "ANTHROPIC_API_KEY": "2"})
    assert list(discovery.providers) == ["local", "anthropic", "groq"]
    assert discovery.providers["anthropic"] == configured
    assert discovery.default == "groq/openai/gpt-oss-120b"


def test_who_names_the_model_in_which_order() -> None:
    environ = {"ANTHROPIC_API_KEY": "1"}
    described = ProviderSettings(type="openai", base_url="http://h/v1", models={"m": ModelSettings()})
    providers = {"mine": described}
    steps = [
        (Settings(model="local/a", providers=providers), environ | {"CROW_MODEL": "x/y"}, ("x/y", "CROW_MODEL")),
        (Settings(model="local/a", providers=providers), environ, ("local/a", "the config file")),
        (Settings(providers=providers), environ, ("mine/m", "the config file")),
        (Settings(), environ, ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY")),
        (Settings(), {}, ("", "")),
    ]
    for settings, variables, expected in steps:
        discovery = from_environment(settings, variables)
        assert (discovery.default, discovery.chosen_by) == expected


def test_a_configured_provider_whose_variable_is_not_set_is_not_chosen() -> None:
    provider = ProviderSettings(type="openai", base_url="http://h/v1", api_key_env="K", models={"m": ModelSettings()})
    assert from_environment(Settings(providers={"p": provider}), {}).default == ""
    assert from_environment(Settings(providers={"p": provider}), {"K": "1"}).default == "p/m"


def test_a_local_servers_model_can_be_named_without_configuring_the_server() -> None:
    discovery = from_environment(Settings(model="ollama/qwen3"), {})
    assert discovery.providers == {"ollama": ProviderSettings(type="openai", base_url="http://127.0.0.1:11434/v1")}


def test_the_table_of_servers_can_be_replaced() -> None:
    assert local_servers({}) == LOCAL_SERVERS
    assert local_servers({"CROW_LOCAL_SERVERS": ""}) == {}
    assert local_servers({"CROW_LOCAL_SERVERS": "a=1, b-2=65535,"}) == {"a": 1, "b-2": 65535}


@pytest.mark.parametrize("text", ["a", "a=", "=1", "a=0", "a=65536", "a/b=1", "a=1=2", "a=-1"])
def test_a_wrong_table_of_servers_is_said(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        local_servers({"CROW_LOCAL_SERVERS": text})
    assert str(caught.value) == f'CROW_LOCAL_SERVERS: expected "name=port,name=port", found "{text}".'


def test_embedding_models_are_told_apart() -> None:
    assert [can_chat(model) for model in ("qwen3", "nomic-embed-text", "text-Embedding-3")] == [True, False, False]


def test_a_password_in_an_address_is_not_shown() -> None:
    provider = ProviderSettings(type="openai", base_url="https://me:secret@host/v1@x")
    assert shown_address(provider.base_url) == "https://host/v1@x"


# --- servers on this machine


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server answers is the subject, not how soon a busy machine lets it."""
    monkeypatch.setattr("crow.config.discovery.PROBE_TIMEOUT", 10)


@contextlib.contextmanager
def answering(answer: bytes, asked: threading.Barrier | None = None, *, stay: bool = False) -> Iterator[int]:
    """A server that says just these bytes to anyone; with `stay` it then keeps the connection open."""
    done = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            if asked:
                with contextlib.suppress(threading.BrokenBarrierError):
                    asked.wait(DEADLINE)
            with contextlib.suppress(OSError):
                self.request.sendall(answer)
            if stay:
                done.wait()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            done.set()
            if asked:
                asked.abort()
            server.shutdown()
            thread.join()


BODY = b'{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3-coder","owned_by":"me"}]}'
OK = b"HTTP/1.1 200 OK\r\n"

ANSWERS = {
    "content-length": OK + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
    "chunked": OK
    + b"Transfer-Encoding: chunked\r\n\r\n%x;note=1\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (10, BODY[:10], len(BODY) - 10, BODY[10:]),
    "until the end": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
}


@pytest.mark.parametrize("kind", list(ANSWERS))
@pytest.mark.usefixtures("unhurried")
def test_a_model_server_is_found_however_it_frames_its_answer(kind: str) -> None:
    with answering(ANSWERS[kind]) as port:
        discovery = found(Settings(), {"CROW_LOCAL_SERVERS": f"mine={port}"})
    assert discovery == Discovery(
        providers={"mine": ProviderSettings(type="openai", base_url=f"http://127.0.0.1:{port}/v1")},
        local_models={"mine": ["nomic-embed-text", "qwen3-coder"]},
        default="mine/qwen3-coder",
        chosen_by=f"the server at 127.0.0.1:{port}",
    )


STRANGERS = {
    "not found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "a web page": OK + b"Content-Length: 6\r\n\r\n<html>",
    "other JSON": OK + b'Content-Length: 13\r\n\r\n{"data":["a"]',
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "silence and end": b"",
    "cut off": OK + b"Content-Length: 500\r\n\r\n{",
    "endless header": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000,
    "too long by its own word": OK + b"Content-Length: 262145\r\n\r\n" + b" " * 262145,
    "too long in chunks": OK
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"20000\r\n" % ()
    + b" " * 0x20000
    + b"\r\n"
    + b"20001\r\n",
    "too long without a word": OK + b"\r\n" + b" " * 300_000,
    "a broken chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a negative chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
    "not UTF-8": OK + b'Content-Length: 24\r\n\r\n{"data":[{"id":"\xff\xff\xff\xff"}]}',
}


@pytest.mark.parametrize("kind", list(STRANGERS))
@pytest.mark.usefixtures("unhurried")
def test_whatever_else_answers_is_passed_over(kind: str) -> None:
    with answering(STRANGERS[kind]) as port, ModelServer("m") as server:
        discovery = found(Settings(), {"CROW_LOCAL_SERVERS": f"stranger={port},mine={server.port}"})
    assert discovery.local_models == {"mine": ["m"]}
    assert discovery.default == "mine/m"


def test_a_server_that_keeps_silent_is_given_up() -> None:
    with answering(b"", stay=True) as one, answering(OK, stay=True) as two:
        discovery = found(Settings(), {"CROW_LOCAL_SERVERS": f"one={one},two={two}"})
    assert discovery.local_models == {}


@pytest.mark.usefixtures("unhurried")
def test_servers_are_asked_at_the_same_time() -> None:
    """None of them answers before each was asked."""
    all_asked, answer = threading.Barrier(3), ANSWERS["content-length"]
    with answering(answer, all_asked) as a, answering(answer, all_asked) as b, answering(answer, all_asked) as c:
        discovery = found(Settings(), {"CROW_LOCAL_SERVERS": f"a={a},b={b},c={c}"})
    assert list(discovery.local_models) == ["a", "b", "c"]


def test_nobody_there() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        port = placeholder.getsockname()[1]
        assert found(Settings(), {"CROW_LOCAL_SERVERS": f"mine={port}"}) == Discovery(providers={})


@pytest.mark.usefixtures("unhurried")
def test_a_server_without_a_model_is_found_but_not_chosen() -> None:
    with ModelServer() as empty, ModelServer("all-minilm-embed") as embedding:
        environ = {"CROW_LOCAL_SERVERS": f"empty={empty.port},embedding={embedding.port}"}
        discovery = found(Settings(), environ)
    assert discovery.local_models == {"empty": [], "embedding": ["all-minilm-embed"]}
    assert (discovery.default, discovery.chosen_by) == ("", "")


def test_no_server_is_asked_when_a_model_is_known() -> None:
    with ModelServer("m") as server:
        environ = {"CROW_LOCAL_SERVERS": f"mine={server.port}", "OPENAI_API_KEY": "k"}
        assert found(Settings(), environ) == from_environment(Settings(), environ)
    assert server.keys_seen == []


def test_a_configured_provider_hides_the_server_of_its_name() -> None:
    with ModelServer("m") as server:
        settings = Settings(providers={"mine": LOCAL})
        discovery = found(settings, {"CROW_LOCAL_SERVERS": f"mine={server.port}"})
    assert discovery == Discovery(providers={"mine": LOCAL})


def test_probing_imports_no_http_library() -> None:
    code = (
        "import asyncio, sys; from crow.config.discovery import discover; from crow.config.settings import Settings;"
        "asyncio.run(discover(Settings(), {'CROW_LOCAL_SERVERS': 'a=1'}));"
        "print(*sorted({'httpx2', 'http.client', 'urllib.request', 'tomllib', 'argparse'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("\n", "")


# --- vendors with habits of their own


def test_a_key_under_its_other_name() -> None:
    known = from_environment(Settings(), {"ZHIPU_API_KEY": "k"})
    assert known.providers["zai"].api_key_env == "ZHIPU_API_KEY"
    assert (known.default, known.chosen_by) == ("zai/glm-5.3", "ZHIPU_API_KEY")


@pytest.mark.parametrize(
    ("environ", "region"),
    [({}, "us-east-1"), ({"AWS_REGION": "eu-west-3"}, "eu-west-3"), ({"AWS_REGION": "evil.example/"}, "us-east-1")],
)
def test_amazons_address_is_that_of_the_region(environ: dict[str, str], region: str) -> None:
    known = from_environment(Settings(), {"AWS_BEARER_TOKEN_BEDROCK": "k", **environ})
    assert known.providers["bedrock"].base_url == f"https://bedrock-mantle.{region}.api.aws/v1"
    assert known.default == "bedrock/openai.gpt-oss-120b"


def test_a_server_on_this_machine_goes_before_a_key_with_other_uses() -> None:
    with ModelServer("qwen3-coder") as server:
        local = {"CROW_LOCAL_SERVERS": f"mine={server.port}"}
        assert found(Settings(), {"HF_TOKEN": "hf_1", **local}).default == "mine/qwen3-coder"
        assert found(Settings(), {"MISTRAL_API_KEY": "k", **local}).default == "mistral/mistral-medium-latest"
    assert found(Settings(), {"HF_TOKEN": "hf_1", **NO_SERVERS}).default == "huggingface/openai/gpt-oss-120b"


def test_the_documentation_names_every_vendor() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for name, vendor in VENDORS.items():
        variables = " or ".join(f"`{variable}`" for variable in vendor.key_variables)
        assert f"| `{name}` | {variables} | `{vendor.default_model}` |" in page
