"""What a configuration may say and cannot work: `crow config check` names it, with what was expected."""

from pathlib import Path

import pytest

from crow.config.load import doubts, parse_settings
from tests.config.support import crow, write_config

AN_ADDRESS = "expected an address that begins with http:// or https:// and a host"
ADDRESS = 'url = "http://h"\n'
STAR = (
    "only stands for itself; expected it as the last word of its own, which stands for any further words, or in quotes"
)

SECTION = "[web] of config.toml"
SERVICES = "searxng, brave, tavily, serper, kagi, duckduckgo"
BOTH = "a name or password in providers.p.base_url, and a key (providers.p.api_key)"
SERVERS = [
    ('url = "htp:/x"', f".url: {AN_ADDRESS}"),
    ('url = "http://"', f".url: {AN_ADDRESS}"),
    ('url = "http://h:99999"', f".url: {AN_ADDRESS}, found one that cannot be read"),
    (f'{ADDRESS}type = "stdio"', '.type: expected "http" or "sse" beside url, found "stdio"'),
    (f'{ADDRESS}args = ["x"]', ".args: expected only with command; Crow does not start a server with a url"),
    (f'{ADDRESS}headers = {{ "a b" = "x" }}', ".headers: expected the name of a header, found 'a b'"),
    (f'{ADDRESS}headers = {{ a = "x\\ny" }}', ".headers.a: expected plain ASCII text without line breaks"),
    ('command = "x"\ntype = "http"', '.type: expected "stdio" beside command, found "http"'),
    (
        'command = "x"\nheaders = { a = "b" }',
        ".headers: expected only with url; for a program, use env",
    ),
    ('command = " "', ": expected a program and arguments without null characters"),
    ('command = "x"\nenv = { "A=B" = "x" }', ".env: expected the name of a variable, found 'A=B'"),
]


@pytest.mark.parametrize(("text", "doubt"), SERVERS)
def test_a_server_that_cannot_work(text: str, doubt: str) -> None:
    assert list(doubts(parse_settings(f"[mcp_servers.docs]\n{text}\n", "/c"))) == [f"mcp_servers.docs{doubt}"]


@pytest.mark.parametrize("command", ["npm run test:*", "npm * test", "git push*"])
def test_a_star_that_stands_for_nothing_else(command: str) -> None:
    rule = f'[[permission.rules]]\ntool = "terminal"\ndecision = "deny"\ncommand = "{command}"\n'
    (doubt,) = doubts(parse_settings(rule, "/c"))
    assert doubt == f'permission.rules[0].command: the * in "{command}" {STAR}'


@pytest.mark.parametrize("command", ["npm test *", "*", "find . -name '*.py'", r"find . -name \\*.py *", "npm test"])
def test_a_star_that_does(command: str) -> None:
    rule = f'[[permission.rules]]\ntool = "terminal"\ndecision = "deny"\ncommand = "{command}"\n'
    assert list(doubts(parse_settings(rule, "/c"))) == []


def test_a_key_that_the_type_has_no_use_for() -> None:
    text = '[providers.p]\ntype = "scripted"\nscript = "x"\nbase_url = "http://h"\n'
    assert list(doubts(parse_settings(text, "/c"))) == ['providers.p.base_url: has no effect with type "scripted"']
    text = '[providers.p]\ntype = "scripted"\nscript = "x"\napi_key_command = "x"\nheaders = { a = "b" }\n'
    assert [doubt.split(":")[0] for doubt in doubts(parse_settings(text, "/c"))] == [
        "providers.p.api_key_command",
        "providers.p.headers",
    ]
    text = '[providers.p]\ntype = "anthropic"\nwire = "chat"\n'
    assert list(doubts(parse_settings(text, "/c"))) == ['providers.p.wire: has no effect with type "anthropic"']


def test_the_check_names_all_that_cannot_work(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        '[providers.p]\ntype = "openai"\nbase_url = "http://me:pw@127.0.0.1/v1"\napi_key = "sk-secret"\n'
        '[providers.q]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\napi_key_env = "NOT_SET_HERE"\n'
        '[web]\nsearch = "google"\n[mcp_servers.docs]\nurl = "htp:/x"\n',
    )
    said = crow(tmp_path, "config", "check", CROW_MODE="wild")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.splitlines() == [
        f"crow: {path}: mcp_servers.docs.url: {AN_ADDRESS}.",
        f"crow: {path}: Unknown search service “google”. Set search in {SECTION}: {SERVICES}.",
        f"crow: {path}: p has two credentials: {BOTH}. Only one of them can be sent. Remove one of them.",
        'crow: CROW_MODE: expected "ask", "edit", "plan" or "auto", found "wild".',
    ]


def test_whatever_a_provider_can_be_told_is_understood(tmp_path: Path) -> None:
    """Variables count as set, and no command is run."""
    path = write_config(
        tmp_path,
        '[providers.p]\ntype = "openai"\nbase_url = "https://a.example/openai/v1"\nwire = "responses"\n'
        f'api_key_command = "touch {tmp_path}/ran"\napi_key_header = "X-Key"\n'
        'headers = { X-Team = "${TEAM}" }\nextra_body = { provider = { order = ["a"] } }\n',
    )
    said = crow(tmp_path, "config", "check")
    assert (said.returncode, said.stdout, said.stderr) == (0, f"{path} is valid.\n", "")
    assert not (tmp_path / "ran").exists()
