import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from crow.config.settings import Limits, ModelSettings, ProviderSettings
from crow.errors import ConfigError, SetupNeeded
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import Done, ModelInfo
from crow.model.listing import list_models
from tests.model.asking import ask
from tests.support.provider import Provider

LOCAL = ProviderSettings(type="openai", base_url="http://127.0.0.1:8080/v1")


def test_the_demo_needs_no_configuration() -> None:
    outcome = ask(catalog.create("scripted/demo", {}, Limits(), {}))
    assert outcome.events[-1] == Done(StopReason.END_TURN)
    assert catalog.describe("scripted/demo", {}).name == "scripted/demo"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("qwen", ["'qwen'", "provider/model"]),
        ("/qwen", ["provider/model"]),
        ("local/", ["provider/model"]),
        ("", ["provider/model"]),
        ("elsewhere/qwen", ['provider "elsewhere"', "local", "crow login", "[providers.elsewhere]"]),
        ("scripted/other", ['provider "scripted"']),
    ],
)
def test_names_that_lead_nowhere(name: str, words: list[str]) -> None:
    for ask_catalog in (
        lambda: catalog.create(name, {"local": LOCAL}, Limits(), {}),
        lambda: catalog.describe(name, {"local": LOCAL}),
    ):
        with pytest.raises(ConfigError) as caught:
            ask_catalog()
        for word in words:
            assert word in str(caught.value)


def test_a_missing_key_is_something_to_set_up() -> None:
    settings = ProviderSettings(type="anthropic", api_key_env="HOUSE_KEY")
    with pytest.raises(SetupNeeded, match="HOUSE_KEY"):
        catalog.create("house/claude", {"house": settings}, Limits(), {"HOUSE_KEY": " "})


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x/v1", "http://", "http://x:port", "nonsense", "http://[::1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.house\.base_url"):
        catalog.create("house/m", {"house": ProviderSettings(type="openai", base_url=url)}, Limits(), {})


def test_what_create_would_refuse_is_known_before(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    providers = {"play": ProviderSettings(type="scripted", script=str(script))}
    with pytest.raises(ConfigError, match=r"script\.toml"):
        catalog.check("play/it", providers, {})
    script.write_text("")
    catalog.check("play/it", providers, {})
    catalog.check(catalog.DEMO, {}, {})


@pytest.mark.parametrize("url", ["http://me:hunter22@127.0.0.1:1/v1", "http://hunter22@127.0.0.1:1/v1"])
def test_two_credentials_are_one_too_many(url: str) -> None:
    for settings in (
        ProviderSettings(type="openai", base_url=url, api_key="sk-0123456789"),
        ProviderSettings(type="openai", base_url=url, api_key_env="HOUSE_KEY"),
    ):
        with pytest.raises(ConfigError, match="two credentials") as caught:
            catalog.check("house/m", {"house": settings}, {"HOUSE_KEY": "sk-0123456789"})
        assert "hunter22" not in str(caught.value)
        assert "sk-0123456789" not in str(caught.value)


def test_a_gate_before_a_messages_api_does_not_take_its_key() -> None:
    with Provider(key="k-0123456789") as provider:
        provider.anthropic.url = provider.anthropic.url.replace("//", "//me:hunter22@")
        provider.anthropic.answer("Hi")
        assert ask(catalog.create("house/m", {"house": provider.anthropic.settings()}, Limits(), {})).error is None
        assert provider.anthropic.requests[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("base", ["/v1?api-version=2024-10-21", "/v1/?api-version=2024-10-21#x"])
def test_a_query_in_the_address_goes_with_every_request(kind: str, base: str) -> None:
    with Provider() as provider:
        dialect = getattr(provider, kind)
        dialect.url = provider.url + base
        dialect.path += "?api-version=2024-10-21"
        dialect.models = {"data": [{"id": "m"}]}
        dialect.answer("Hi")
        assert ask(catalog.create("house/m", {"house": dialect.settings()}, Limits(), {})).error is None
        assert len(asyncio.run(list_models("house", dialect.settings(), {}))) == 1
        listed = "/v1/models?api-version=2024-10-21" + ("&limit=1000" if kind == "anthropic" else "")
        assert [request.path for request in (*dialect.requests, *dialect.looks)] == [dialect.path, listed]


@pytest.mark.parametrize(
    ("model", "window", "images"),
    [
        ("claude-sonnet-4-5", 200_000, True),
        ("gpt-4o-mini", 128_000, True),
        ("gpt-4.1", 1_047_576, True),
        ("gpt-5-codex", 272_000, True),
        ("o3", 200_000, True),
        ("o4-mini", 200_000, True),
        ("o3-mini", 200_000, False),
        ("gemini-2.5-pro", 1_048_576, True),
        ("qwen2.5-vl-7b-instruct", None, True),
        ("qwen2.5vl:7b", None, True),
        ("llava:13b", None, True),
        ("pixtral-12b", None, True),
        ("gemma-3-27b-it", 131_072, True),
        ("gemma3:4b", 131_072, True),
        ("gemma3:1b", None, False),
        ("meta-llama/llama-4-scout", None, True),
        ("anthropic/claude-opus-4", 200_000, True),
        ("qwen3-coder", None, False),
        ("solo3", None, False),
        ("mevil", None, False),
    ],
)
def test_well_known_families(model: str, window: int | None, images: bool) -> None:
    info = catalog.describe(f"local/{model}", {"local": LOCAL})
    assert (info.provider, info.model, info.context_window, info.images) == ("local", model, window, images)


def test_the_configuration_knows_better() -> None:
    models = {"claude-3-opus": ModelSettings(context_window=5, max_output=6, images=False, audio=True)}
    info = catalog.describe("a/claude-3-opus", {"a": ProviderSettings(type="anthropic", models=models)})
    assert info == ModelInfo("a", "claude-3-opus", 5, 6, images=False, audio=True)


def loaded_after(code: str) -> set[str]:
    """Which of the expensive modules a fresh process has loaded after this code."""
    expensive = ("httpx2", "httpcore2", "h11", "anyio", "truststore", "tomllib", "random")
    check = f"{code}\nimport sys; print(*(m for m in {expensive!r} if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_catalog_alone_loads_nothing_expensive() -> None:
    assert (
        loaded_after(
            "from crow.model import base, catalog\n"
            "from crow.config.settings import ProviderSettings as P\n"
            "catalog.describe('a/claude', {'a': P(type='anthropic')})"
        )
        == set()
    )


def test_the_demo_loads_no_http() -> None:
    code = "from crow.model import catalog\nfrom crow.config.settings import Limits\n"
    assert "httpx2" not in loaded_after(code + "catalog.create('scripted/demo', {}, Limits(), {})")


def test_after_warming_up_a_request_loads_nothing() -> None:
    code = """
import asyncio, sys, threading
from crow.model import catalog
from crow.model.base import ModelRequest
from crow.messages import Text, UserMessage
from crow.config.settings import Limits, ProviderSettings
from tests.support.provider import Provider

async def ask(model):
    async for _ in model.reply(ModelRequest("", [UserMessage((Text("Hi"),))])):
        pass
    await model.close()

with Provider() as provider:
    for dialect in (provider.openai, provider.anthropic):
        providers = {"house": dialect.settings()}
        thread = threading.Thread(target=catalog.warm, args=("house/m", providers))
        thread.start()
        thread.join()
        before = set(sys.modules)
        dialect.answer("Hi")
        asyncio.run(ask(catalog.create("house/m", providers, Limits(), {})))
        print(*sorted(set(sys.modules) - before))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
