"""Modes and config options on the wire: two views of the same choice, always in step."""

from typing import Any

import pytest

from tests.support.editor import EVERYTHING, Editor, Json, Later, chose
from tests.support.scripts import DONE, edit, reply, say

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
CHANGE = reply(edit("a.py", "one", "1")) + DONE


def opened(crow: Editor) -> Json:
    """The answer to session/new."""
    crow.session_id = (answer := crow.request("session/new", {"cwd": str(crow.workspace), "mcpServers": []}))[
        "sessionId"
    ]
    return answer


def option(options: list[Json], id: str) -> Json:
    return next(entry for entry in options if entry["id"] == id)


def set_mode(crow: Editor, mode: str) -> Json:
    return crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": mode})


def set_option(crow: Editor, id: str, value: str) -> list[Json]:
    params = {"sessionId": crow.session_id, "configId": id, "value": value}
    return crow.request("session/set_config_option", params)["configOptions"]


def told(crow: Editor, kind: str) -> list[Json]:
    return [update for update in crow.updates if update["sessionUpdate"] == kind]


@pytest.mark.rule("R32", "R37", "R137", "R138", "R141")
def test_a_new_session_says_what_can_be_chosen(open_editor):
    answer = opened(open_editor(script=HELLO))
    assert answer["modes"]["currentModeId"] == "ask"
    assert [mode["id"] for mode in answer["modes"]["availableModes"]] == ["ask", "edit", "plan", "auto"]
    mode, model = answer["configOptions"][:2]
    assert (mode["id"], mode["type"], mode["category"], mode["currentValue"]) == ("mode", "select", "mode", "ask")
    assert [choice["value"] for choice in mode["options"]] == ["ask", "edit", "plan", "auto"]
    assert {option["type"] for option in answer["configOptions"]} == {"select"}  # no boolean
    assert (model["id"], model["category"], model["currentValue"]) == ("model", "model", "scripted/test")


@pytest.mark.rule("R136", "R141")
def test_a_mode_that_is_set_is_in_force_and_the_option_follows(open_editor):
    crow = open_editor(script=CHANGE)
    (crow.workspace / "a.py").write_text("one\n")
    crow.new_session()
    assert set_mode(crow, "edit") == {}
    assert option(told(crow, "config_option_update")[-1]["configOptions"], "mode")["currentValue"] == "edit"
    crow.prompt("go")
    assert crow.permissions == []
    assert (crow.workspace / "a.py").read_text() == "1\n"


@pytest.mark.rule("R136", "R139")
def test_a_mode_that_is_set_as_an_option_changes_the_mode(open_editor):
    crow = open_editor(script=HELLO)
    before = opened(crow)["configOptions"]
    options = set_option(crow, "mode", "plan")
    assert [entry["id"] for entry in options] == [entry["id"] for entry in before]
    assert option(options, "mode")["currentValue"] == "plan"
    assert [update["currentModeId"] for update in told(crow, "current_mode_update")] == ["plan"]
    set_option(crow, "mode", "plan")
    assert len(told(crow, "current_mode_update")) == 1


@pytest.mark.rule("R139", "R141")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "yolo"}),
        ("session/set_mode", {"modeId": ""}),
        ("session/set_mode", {"modeId": None}),
        ("session/set_config_option", {"configId": "mode", "value": "yolo"}),
        ("session/set_config_option", {"configId": "model", "value": "no/such"}),
        ("session/set_config_option", {"configId": "colour", "value": "red"}),
        ("session/set_config_option", {"configId": "mode", "type": "boolean", "value": True}),
        ("session/set_config_option", {"configId": "mode"}),
    ],
)
def test_what_cannot_be_chosen_is_refused_and_changes_nothing(open_editor, method, params):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    assert crow.start(method, {"sessionId": session, **params}).error().code == -32602
    assert told(crow, "config_option_update") == []


@pytest.mark.rule("R139", "R141")
@pytest.mark.parametrize(
    ("method", "params"),
    [("session/set_mode", {"modeId": "ask"}), ("session/set_config_option", {"configId": "mode", "value": "ask"})],
)
def test_an_unknown_session_is_not_found(open_editor, method, params):
    crow = open_editor(script=HELLO)
    assert crow.start(method, {"sessionId": "no such", **params}).error().code == -32002


@pytest.mark.rule("R139")
def test_a_mode_that_is_set_in_a_turn_applies_to_what_comes_next(open_editor):
    """The first call is asked about; while the question waits, the mode changes; the second call is not asked about."""
    script = reply(say("First."), edit("a.py", "one", "1")) + reply(edit("a.py", "1", "2")) + DONE
    crow = open_editor(script=script)
    (crow.workspace / "a.py").write_text("one\n")
    crow.new_session()

    def permit(request: Json) -> Json:
        crow.start("session/set_mode", {"sessionId": crow.session_id, "modeId": "edit"})
        return chose("once")

    crow.permit = permit
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert len(crow.permissions) == 1
    assert (crow.workspace / "a.py").read_text() == "2\n"


@pytest.mark.rule("R139")
def test_a_yes_that_comes_after_the_change_to_plan_changes_nothing(open_editor):
    crow = open_editor(script=CHANGE)
    (crow.workspace / "a.py").write_text("one\n")
    crow.new_session()

    def permit(request: Json) -> Later:
        return Later(lambda: [set_mode(crow, "plan"), chose("once")][1])

    crow.permit = permit
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert (crow.workspace / "a.py").read_text() == "one\n"
    seen = crow.the_call()
    assert seen["status"] == "failed"
    assert "plan" in str(seen["content"])


@pytest.mark.rule("R41", "R136")
def test_what_was_chosen_is_stored_with_the_session_and_with_no_other(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    set_mode(crow, "auto")
    crow.close()
    other = open_editor(folder=crow.folder)
    answer = other.load_session(session)
    assert answer["modes"]["currentModeId"] == "auto"
    assert option(answer["configOptions"], "mode")["currentValue"] == "auto"
    assert opened(other)["modes"]["currentModeId"] == "ask"


@pytest.mark.rule("R127", "R36")
def test_commands_are_advertised_after_the_answer_with_their_hints(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()

    def advertised() -> list[dict[str, Any]]:
        return [u for u in crow.all_updates_of(crow.session_id) if u["sessionUpdate"] == "available_commands_update"]

    crow.wait_until(lambda: bool(advertised()), "the commands")
    [update] = advertised()
    commands = {command["name"]: command for command in update["availableCommands"]}
    assert not any(name.startswith("/") for name in commands)
    assert all(command["description"] for command in commands.values())
    assert any("hint" in command.get("input", {}) for command in commands.values())


@pytest.mark.rule("R128")
def test_a_command_is_answered_by_crow_and_replayed(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    assert crow.prompt("/help") == {"stopReason": "end_turn"}
    answer = crow.text()
    assert "/help" in answer
    assert crow.model_requests() == []
    crow.prompt("hi")
    assert "help" not in str(crow.model_requests()[-1]["messages"])
    crow.close()
    other = open_editor(folder=crow.folder)
    other.load_session(session)
    assert [update["content"]["text"] for update in other.updates] == ["/help", answer, "hi", "Hello there."]


@pytest.mark.rule("R128")
def test_an_unknown_command_goes_to_the_model(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.prompt("/no-such-thing at all")
    assert crow.last_prompt()[0]["text"] == "/no-such-thing at all"


@pytest.mark.rule("R128")
def test_a_command_that_stands_for_a_prompt_is_replayed_as_it_was_typed(open_editor):
    crow = open_editor(script=DONE)
    (crow.home / "commands").mkdir()
    (crow.home / "commands" / "review.md").write_text("Review $ARGUMENTS with care.\n")
    session = crow.new_session()
    crow.prompt("/review the parser")
    assert crow.last_prompt()[0]["text"].strip() == "Review the parser with care."
    crow.close()
    other = open_editor(folder=crow.folder)
    other.load_session(session)
    assert [update["content"]["text"] for update in other.updates] == ["/review the parser", "Done."]
    assert other.request("session/list")["sessions"][0]["title"] == "/review the parser"


@pytest.mark.rule("R68", "R128")
def test_a_command_can_be_cancelled_like_any_turn(open_editor):
    hanging = "[[reply]]\nrepeat = true\nevents = [{ wait = 60 }]\n"
    crow = open_editor(script=reply(say("Hello. " * 500), when="hi") * 8 + hanging, capabilities=EVERYTHING)
    crow.new_session()
    for _ in range(8):
        crow.prompt("hi")
    prompt = crow.start_prompt("/compact")
    crow.wait_until(lambda: bool(told(crow, "compaction_update")), "the compaction")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert [update["status"] for update in told(crow, "compaction_update")] == ["in_progress", "cancelled"]
