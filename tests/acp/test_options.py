"""Modes and config options over the wire: mode, model and thought level, chosen for one session."""

from typing import Any

import pytest

from crow.model.scripted import Call, Think
from tests.support.editor import EVERYTHING, Later, chose
from tests.support.provider import Provider
from tests.support.scripts import DONE, call, reply

TWO_MODELS = """\
[providers.test.models.m]
[providers.test.models.gpt-5]
price_input = 2
price_output = 10
price_cached = 1
currency = "EUR"
context_window = 100000
"""


def ids(options: list[dict[str, Any]]) -> dict[str, str]:
    return {option["id"]: option["currentValue"] for option in options}


def choose(crow: Any, option: str, value: Any) -> Any:
    return crow.request("session/set_config_option", asked(crow, option, value))["configOptions"]


def asked(crow: Any, option: str, value: Any) -> dict[str, Any]:
    return {"sessionId": crow.session_id, "configId": option, "value": value}


def updates(crow: Any, kind: str) -> list[dict[str, Any]]:
    return [update for update in crow.updates if update["sessionUpdate"] == kind]


@pytest.mark.rule("R137", "R139")
def test_the_model_decides_whether_there_is_a_thought_level(open_editor):
    with Provider() as provider:
        crow = open_editor(base_url=provider.openai.url, config=TWO_MODELS)
        crow.new_session()
        options = choose(crow, "model", "test/gpt-5")
        assert ids(options) == {"mode": "ask", "model": "test/gpt-5", "thought_level": "default"}
        level = options[-1]
        assert level["category"] == "thought_level"
        assert [choice["value"] for choice in level["options"]] == ["default", "minimal", "low", "medium", "high"]
        assert ids(choose(crow, "model", "test/m")) == {"mode": "ask", "model": "test/m"}


@pytest.mark.rule("R139", "R140")
def test_what_is_chosen_reaches_the_provider_and_the_client(open_editor):
    with Provider() as provider:
        for _ in range(3):
            provider.openai.answer("Hi.")
        crow = open_editor(base_url=provider.openai.url, config=TWO_MODELS)
        crow.new_session()
        crow.prompt("one")
        choose(crow, "model", "test/gpt-5")
        choose(crow, "thought_level", "high")
        crow.prompt("two")
        choose(crow, "thought_level", "default")
        crow.prompt("three")
        sent = [request.body for request in provider.openai.requests]
        assert [(body["model"], body.get("reasoning_effort")) for body in sent] == [
            ("m", None),
            ("gpt-5", "high"),
            ("gpt-5", None),
        ]
        told = [ids(update["configOptions"]) for update in updates(crow, "config_option_update")]
        assert told == [
            {"mode": "ask", "model": "test/gpt-5", "thought_level": "default"},
            {"mode": "ask", "model": "test/gpt-5", "thought_level": "high"},
            {"mode": "ask", "model": "test/gpt-5", "thought_level": "default"},
        ]


def test_a_model_that_thinks_gets_its_thoughts_back_in_its_tool_rounds(open_editor):
    with Provider() as provider:
        provider.anthropic.answer(Think("Hm."), Call("read", {"path": "a.txt"}))
        provider.anthropic.answer("It says hello.")
        claude = f'[providers.claude]\ntype = "anthropic"\nbase_url = "{provider.anthropic.url}"\n'
        crow = open_editor(script=DONE, config=claude + "[providers.claude.models.claude-sonnet-4-5]\n")
        (crow.workspace / "a.txt").write_text("hello\n")
        crow.new_session()
        choose(crow, "model", "claude/claude-sonnet-4-5")
        choose(crow, "thought_level", "medium")
        assert crow.prompt("What does a.txt say?") == {"stopReason": "end_turn"}
        first, second = [request.body for request in provider.anthropic.requests]
        assert first["thinking"] == second["thinking"] == {"type": "enabled", "budget_tokens": 12_000}
        assert [block["type"] for block in second["messages"][1]["content"]] == ["thinking", "tool_use"]


@pytest.mark.rule("R139")
def test_a_model_chosen_during_a_turn_answers_from_the_next_request_on(open_editor):
    with Provider() as provider:
        provider.openai.answer(Call("terminal", {"command": "true"}))
        provider.openai.answer("Hi.")
        crow = open_editor(
            base_url=provider.openai.url,
            config=TWO_MODELS,
            permit=lambda request: Later(lambda: (choose(crow, "model", "test/gpt-5"), chose("once"))[1]),
        )
        crow.new_session()
        assert crow.prompt("go") == {"stopReason": "end_turn"}
        assert [request.body["model"] for request in provider.openai.requests] == ["m", "gpt-5"]


@pytest.mark.rule("R139", "R141")
@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("colour", "red", "mode, model"),
        ("mode", "yolo", "ask, edit, plan, auto"),
        ("model", "scripted/other", "scripted/test"),
        ("thought_level", "high", "mode, model"),
    ],
)
def test_what_is_not_on_offer_is_refused_and_the_rest_named(open_editor, option, value, named):
    crow = open_editor(script=DONE)
    crow.new_session()
    error = crow.start("session/set_config_option", asked(crow, option, value)).error()
    assert error.code == -32602
    assert named in error.message
    assert updates(crow, "config_option_update") == []


def test_a_model_without_a_key_says_which_is_missing(open_editor):
    other = '[providers.other]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "OTHER_KEY"\n'
    crow = open_editor(script=DONE, config=other + "[providers.other.models.m]\n")
    crow.new_session()
    error = crow.start("session/set_config_option", asked(crow, "model", "other/m")).error()
    assert error.code == -32603
    assert "OTHER_KEY is not set" in error.message
    assert crow.prompt("go") == {"stopReason": "end_turn"}


@pytest.mark.rule("R136")
def test_models_of_several_providers_come_in_groups(open_editor):
    other = '[providers.other]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n[providers.other.models.m]\n'
    crow = open_editor(script=DONE, config=other)
    opened = crow.request("session/new", {"cwd": str(crow.workspace), "mcpServers": []})
    model = next(option for option in opened["configOptions"] if option["id"] == "model")
    assert model["currentValue"] == "scripted/test"
    assert [(group["group"], [choice["value"] for choice in group["options"]]) for group in model["options"]] == [
        ("scripted", ["scripted/test"]),
        ("other", ["other/m"]),
    ]


def test_what_is_chosen_is_for_one_session_and_never_written_to_the_config(open_editor):
    crow = open_editor(script=DONE)
    config = (crow.home / "config.toml").read_bytes()
    first = crow.new_session()
    crow.new_session()
    choose(crow, "mode", "auto")
    assert ids(choose(crow, "mode", "edit"))["mode"] == "edit"
    crow.session_id = first
    assert ids(choose(crow, "model", "scripted/test"))["mode"] == "ask"
    assert (crow.home / "config.toml").read_bytes() == config


@pytest.mark.rule("R48")
def test_what_was_chosen_comes_back_with_the_session(open_editor):
    crow = open_editor(script=DONE)
    session = crow.new_session()
    crow.prompt("go")
    choose(crow, "mode", "plan")
    crow.request("session/close", {"sessionId": session})
    loaded = crow.request("session/load", {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []})
    assert ids(loaded["configOptions"]) == {"mode": "plan", "model": "scripted/test"}
    assert loaded["modes"]["currentModeId"] == "plan"


def test_a_stored_session_whose_model_is_gone_says_so_and_goes_on(open_editor):
    gone = '[providers.gone]\ntype = "scripted"\nscript = "script.toml"\n[providers.gone.models.m]\n'
    crow = open_editor(script=DONE, config=gone, capabilities=EVERYTHING)
    session = crow.new_session()
    crow.prompt("go")
    choose(crow, "model", "gone/m")
    crow.request("session/close", {"sessionId": session})
    config = crow.home / "config.toml"
    config.write_text(config.read_text().replace(gone, ""))
    loaded = crow.request("session/load", {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []})
    assert ids(loaded["configOptions"])["model"] == "scripted/test"
    crow.wait_until(lambda: "gone/m, which this session used" in str(crow.notices), "the notice")
    assert crow.prompt("on") == {"stopReason": "end_turn"}


def test_providers_without_a_list_of_models_are_asked_for_theirs_afterwards(open_editor):
    with Provider() as provider:
        provider.openai.models = {"data": [{"id": "m"}, {"id": "big"}]}
        crow = open_editor(base_url=provider.openai.url)
        crow.new_session()
        crow.wait_until(lambda: bool(updates(crow, "config_option_update")), "the complete list")
        (update,) = updates(crow, "config_option_update")
        model = next(option for option in update["configOptions"] if option["id"] == "model")
        assert [choice["value"] for choice in model["options"]] == ["test/m", "test/big"]
        crow.new_session()
        assert ids(choose(crow, "model", "test/big"))["model"] == "test/big"
        assert [request.path for request in provider.openai.looks] == ["/v1/models"]


@pytest.mark.rule("R144")
def test_what_a_reply_cost_is_told_where_prices_are_configured(open_editor):
    with Provider() as provider:
        usage = {"input": 500, "cached": 100, "output": 50}
        provider.openai.answer("Hi.", usage=usage)
        provider.openai.answer("Hi.", usage=usage)
        crow = open_editor(base_url=provider.openai.url, config=TWO_MODELS)
        crow.new_session()
        choose(crow, "model", "test/gpt-5")
        crow.prompt("one")
        crow.prompt("two")
        costs = [update["cost"] for update in updates(crow, "usage_update")]
        each = (400 * 2 + 100 * 1 + 50 * 10) / 1_000_000
        assert costs[-1] == {"amount": pytest.approx(2 * each), "currency": "EUR"}


def test_in_edit_mode_a_file_is_changed_unasked(open_editor):
    crow = open_editor(script=reply(call("write", path="b.txt", content="x")) + DONE)
    crow.new_session()
    choose(crow, "mode", "edit")
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.permissions == []
    assert (crow.workspace / "b.txt").read_text() == "x"
