"""Servers over HTTP that give something else than answers: the person reads what it was, and what to look at."""

import pytest

from tests.mcp.guests import editing, notice_about, one_call, over_http, shown, wrong
from tests.support.scripts import DONE

LATER = " Restarting it."
ELSEWHERE = "it redirects to https://elsewhere.example/mcp, which Crow does not follow: check the url."


@pytest.mark.parametrize(
    ("path", "kind", "cause"),
    [
        ("status/500", "http", f"it answered with HTTP status 500.{LATER}"),
        ("status/403", "http", "it answered with HTTP status 403: check the url."),
        ("status/404", "http", "it answered with HTTP status 404: check the url."),
        ("redirect", "http", ELSEWHERE),
        ("circle", "http", "it keeps redirecting, finally to ROOT/circle: check the url."),
        ("page", "http", "it answered with a web page, not MCP: check the url."),
        ("nothing", "http", "it answered with no type, not MCP: check the url."),
        ("garbage", "http", f"its answer is malformed.{LATER}"),
        ("old/status/503", "sse", f"it answered with HTTP status 503.{LATER}"),
        ("old/status/404", "sse", "it answered with HTTP status 404: check the url."),
        ("old/redirect", "sse", ELSEWHERE),
        ("old/page", "sse", "it answered with a web page, not MCP: check the url."),
    ],
)
def test_what_is_wrong_at_its_start_is_told(tmp_path, path, kind, cause):
    with wrong() as root:
        editor = editing(tmp_path, DONE)
        editor.new_session(mcpServers=[over_http(f"{root}/{path}", kind=kind)])
        editor.prompt("Go.")
        told = notice_about(editor, "`web`", "cannot be used")
        editor.close()
    assert told == f"The MCP server `web` (from your editor) cannot be used: {cause.replace('ROOT', root)}"


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("500", "it answered with HTTP status 500"),
        ("page", "it answered with a web page, not MCP: check the url"),
        ("garbage", "its answer is malformed"),
    ],
)
def test_what_is_wrong_in_a_call_is_told_and_the_server_stays(tmp_path, what, cause):
    with wrong() as root:
        done, editor = one_call(tmp_path, over_http(f"{root}/call/{what}"), "go")
    assert shown(done) == f"The MCP server `web` gave no result: {cause}."
    assert not [notice for notice in editor.notices if "`web`" in notice]


def test_in_a_call_the_model_is_not_told_where_a_redirect_leads(tmp_path):
    with wrong() as root:
        done, _ = one_call(tmp_path, over_http(f"{root}/call/redirect"), "go")
    cause = "it redirects to another address, which Crow does not follow"
    assert shown(done) == f"The MCP server `web` gave no result: {cause}."


def test_a_call_in_a_session_that_the_server_forgot_is_made_in_a_new_one(tmp_path):
    with wrong() as root:
        done, _ = one_call(tmp_path, over_http(f"{root}/forgets"), "go")
    assert shown(done) == "```text\nin session 2\n```"


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("X-Key", "schlüssel", "the value of its header `X-Key` contains invalid characters."),
        ("X-Key", "one\r\nX-Other: two", "the value of its header `X-Key` contains invalid characters."),
        ("X Key", "key", "`X Key` is not a valid header name."),
    ],
)
def test_a_header_that_cannot_be_sent_is_named_without_its_value_and_not_tried_again(tmp_path, name, value, cause):
    editor = editing(tmp_path, DONE)
    server = {**over_http("http://127.0.0.1:9/mcp"), "headers": [{"name": name, "value": value}]}
    editor.new_session(mcpServers=[server])
    editor.prompt("Go.")
    assert notice_about(editor, "`web`") == f"The MCP server `web` (from your editor) cannot be used: {cause}"
    editor.close()
