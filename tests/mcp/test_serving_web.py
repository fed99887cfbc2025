"""The web over `crow mcp`: the user's rules hold for every host on the way to a page."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from crow.tools.web import PAGE
from tests.mcp.hosts import RawServer, serving_http, text_of
from tests.support.patience import DEADLINE
from tests.support.website import Website, answer, redirect

EVERY_NAME_IS_HERE = """
import sys
from crow.web import addresses

async def resolve(host, port):
    return ["127.0.0.1"]

addresses.resolve = resolve
from crow.__main__ import main
sys.exit(main())
"""
CONFIG = '[web]\nallow_private = ["ex.test", "*.ex.test", "other.test"]\n'


def fetched(folder: Path, url: str, rules: str = "") -> dict[str, Any]:
    program = [sys.executable, "-c", EVERY_NAME_IS_HERE]
    server = RawServer(folder, program=program, config=CONFIG + rules)
    server.begin()
    server.call(2, "web_fetch", url=url)
    result = server.answer(2)["result"]
    _, complained = server.process.communicate(timeout=DEADLINE)
    assert complained == b""
    return result


def rule(host: str, decision: str) -> str:
    return f'[[permission.rules]]\ntool = "web_fetch"\nhost = "{host}"\ndecision = "{decision}"\n'


def test_a_redirect_to_the_same_site_is_followed(tmp_path: Path):
    with Website() as site:
        site.pages["/"] = redirect(f"http://www.ex.test:{site.port}/there")
        site.pages["/there"] = answer("arrived", "text/plain")
        result = fetched(tmp_path, f"http://ex.test:{site.port}/")
    assert (result["isError"], "arrived" in result["content"][0]["text"]) == (False, True)


def test_a_redirect_to_another_host_is_told_and_not_followed(tmp_path: Path):
    with Website() as site:
        site.pages["/"] = redirect(f"http://other.test:{site.port}/there")
        result = fetched(tmp_path, f"http://ex.test:{site.port}/")
        assert [request.path for request in site.requests] == ["/"]
    assert "which the user has not approved" in result["content"][0]["text"]


def test_a_redirect_to_a_host_that_a_rule_forbids_is_refused(tmp_path: Path):
    for decision, told in (("deny", "a rule forbids it"), ("ask", "Nobody can be asked here")):
        with Website() as site:
            site.pages["/"] = redirect(f"http://www.ex.test:{site.port}/there")
            result = fetched(tmp_path, f"http://ex.test:{site.port}/", rule("www.ex.test", decision))
            assert [request.headers["host"] for request in site.requests] == [f"ex.test:{site.port}"]
        assert result["isError"]
        assert told in result["content"][0]["text"]


def test_the_page_that_a_client_reads_on_in_is_not_changed_by_another_client(tmp_path: Path):
    async def talk(site: Website) -> str:
        url = f"{site.url}/"
        with serving_http(tmp_path, config='[web]\nallow_private = ["127.0.0.1"]\n') as server:
            async with server.connect() as one, server.connect() as other:
                site.pages["/"] = answer("a" * PAGE + "old", "text/plain")
                await one.call_tool("web_fetch", {"url": url})
                site.pages["/"] = answer("a" * PAGE + "new", "text/plain")
                await other.call_tool("web_fetch", {"url": url})
                return text_of(await one.call_tool("web_fetch", {"url": url, "offset": PAGE}))

    with Website() as site:
        assert "old" in asyncio.run(talk(site))
