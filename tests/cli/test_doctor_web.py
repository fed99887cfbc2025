"""`crow doctor` on the section [web]: what it finds right and wrong with searching and fetching."""

import json
import socket
from pathlib import Path

import pytest

from crow.cli.doctor import TIME_LIMIT
from tests.config.support import crow, write_config
from tests.support.ports import free_port
from tests.support.website import Website, answer

KEY = "brave-secret-1234"


def told(user: Path, web: str, *arguments: str, **environ: str) -> str:
    """What the doctor says; whatever the web is like, Crow itself works, and no key is shown."""
    script = user / "script.toml"
    script.write_text("")
    model = f'model = "s/demo"\n[providers.s]\ntype = "scripted"\nscript = "{script}"\n'
    write_config(user, f"{model}[web]\n{web}")
    said = crow(user, "doctor", *arguments, **environ)
    assert said.returncode == 0, said.stdout
    assert said.stderr == ""
    assert KEY not in said.stdout
    return said.stdout


def test_without_a_configuration_the_library_is_looked_at(tmp_path: Path) -> None:
    assert "✓ web search: DuckDuckGo, no key needed (not tried)\n" in told(tmp_path, "")


def test_a_library_that_cannot_be_imported_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "ddgs"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise OSError('half installed')\n")
    said = told(tmp_path, "", PYTHONPATH=str(broken.parent))
    assert "! web search: the ddgs library does not work (OSError)\n    Reinstall it: pip install ddgs." in said


def test_a_service_on_this_machine_is_tried(tmp_path: Path) -> None:
    with Website() as site:
        site.pages["/search"] = answer(json.dumps({"results": []}), "application/json")
        web = f'search = "searxng"\nurl = "{site.url}"\n'
        assert "✓ web search: SearXNG at 127.0.0.1 answers\n" in told(tmp_path, web)
        assert "✓ web search: SearXNG at 127.0.0.1 (not tried)\n" in told(tmp_path, web, "--offline")
        assert len(site.requests) == 1


def test_a_service_that_refuses_says_how_to_mend_it(tmp_path: Path) -> None:
    with Website() as site:
        site.pages["/search"] = answer("no", status="403 Forbidden")
        said = told(tmp_path, f'search = "searxng"\nurl = "{site.url}"\n')
    assert "! web search: SearXNG at 127.0.0.1 rejected the request (status 403).\n    SearXNG gives results" in said


def test_a_service_that_is_not_there_and_one_that_hangs_are_said(tmp_path: Path) -> None:
    port = free_port()
    web = f'search = "searxng"\nurl = "http://127.0.0.1:{port}"\n'
    with socket.create_server(("127.0.0.1", port)):
        said = told(tmp_path, web)
    assert f"! web search: SearXNG at 127.0.0.1 did not answer within {TIME_LIMIT:g} s\n" in said
    assert "! web search: SearXNG at 127.0.0.1 cannot be reached.\n    Check url" in told(tmp_path, web)


def test_a_host_that_was_named_as_ones_own_is_tried_with_its_key(tmp_path: Path) -> None:
    with Website() as site:
        site.pages["/res/v1/web/search"] = answer('{"type": "search"}', "application/json")
        web = f'search = "brave"\nurl = "http://0.0.0.0:{site.port}"\napi_key_env = "BRAVE_KEY"\n'
        assert "✓ web search: Brave Search at 0.0.0.0 (not tried)\n" in told(tmp_path, web, BRAVE_KEY=KEY)
        assert site.accepted == 0
        web += 'allow_private = ["0.0.0.0"]\n'
        assert "✓ web search: Brave Search at 0.0.0.0 answers\n" in told(tmp_path, web, BRAVE_KEY=KEY)
        assert [request.headers["x-subscription-token"] for request in site.requests] == [KEY]


@pytest.mark.parametrize(
    ("web", "line"),
    [
        ('search = "bing"\n', "! web search: Unknown search service “bing”.\n    Set search in"),
        ('search = "searxng"\n', "! web search: The address of SearXNG is missing.\n    Set url in"),
        ('search = "brave"\n', "! web search: The key of Brave Search is missing.\n    Set api_key_env"),
        ('search = "brave"\napi_key_env = "K"\n', "The key of Brave Search is missing.\n    Set the variable K,"),
        (f'search = "brave"\napi_key = "{KEY}"\n', "✓ web search: Brave Search at api.search.brave.com (not tried)\n"),
    ],
)
def test_what_is_configured_wrongly_is_said_with_its_remedy(web: str, line: str, tmp_path: Path) -> None:
    assert line in told(tmp_path, web)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_is_said_not_to_be_used(name: str, tmp_path: Path) -> None:
    said = told(tmp_path, "", **{name: f"http://me:{KEY}@proxy.example:3128"})
    assert f"! {name} is set, but web_fetch uses no proxy\n    Behind a proxy" in said


def test_a_proxy_for_no_host_is_not_worth_a_word(tmp_path: Path) -> None:
    assert "no proxy" not in told(tmp_path, "", HTTPS_PROXY="http://proxy.example:3128", NO_PROXY="*")
