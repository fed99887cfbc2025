"""What servers ask: the person's answers, the folders. And tools that are no longer what was allowed."""

import signal
import time

import pytest

from tests.mcp.guests import PATIENT, asking, bad, editing, good, notice_about, one_call, told_model
from tests.support.editor import EVERYTHING, NOTICES, SILENCE, Editor, chose
from tests.support.scripts import DONE, call, reply, say

FORMS = {**NOTICES, "elicitation": {"form": {}}}
LINKS = {**NOTICES, "elicitation": {"url": {}}}


@pytest.mark.rule("R131")
def test_a_servers_question_reaches_the_person_as_a_form(tmp_path):
    forms = []

    def answer(request: dict) -> dict:
        forms.append(request)
        return {"action": "accept", "content": {"flavour": "rye", "amount": 3}}

    more = {"capabilities": FORMS, "answers": {"elicitation/create": answer}}
    done, editor = one_call(tmp_path, good(), "order", more)
    [form] = forms
    assert form["message"].endswith("server good asks: What shall it be?")
    assert form["toolCallId"] == done["toolCallId"]
    assert form["requestedSchema"]["type"] == "object"
    assert set(form["requestedSchema"]["properties"]) == {"flavour", "amount"}
    assert told_model(editor) == "accept Order(flavour='rye', amount=3)"


def test_a_declined_form_and_a_client_without_forms_are_a_no(tmp_path):
    more = {"capabilities": FORMS, "answers": {"elicitation/create": lambda request: {"action": "decline"}}}
    _, editor = one_call(tmp_path / "declined", good(), "order", more)
    assert told_model(editor) == "decline None"
    _, editor = one_call(tmp_path / "without", good(), "order")
    assert told_model(editor) == "decline None"
    assert notice_about(editor, "good asks") == (
        "The MCP server good asks: What shall it be? Your editor cannot show this question, so Crow declined it."
    )


def in_a_subagent(folder, tool: str, **more) -> Editor:
    script = (
        reply(call("task", prompt="buy bread", kind="work"))
        + reply(call(f"mcp__good__{tool}"), when="buy bread")
        + reply(say("Bought."), when="buy bread")
        + DONE
    )
    config = PATIENT + '[[permission.rules]]\ntool = "mcp__good__*"\ndecision = "allow"\n'
    editor = editing(folder, script, config=config, **more)
    editor.new_session(mcpServers=[good()])
    editor.prompt("Go.")
    editor.close()
    return editor


def test_a_question_in_a_subagents_call_is_asked_in_the_call_that_the_editor_knows_and_names_it(tmp_path):
    forms = []

    def answer(request: dict) -> dict:
        forms.append(request)
        return {"action": "accept", "content": {"flavour": "rye", "amount": 3}}

    in_a_subagent(tmp_path, "order", capabilities=FORMS, answers={"elicitation/create": answer})
    [form] = forms
    assert form["toolCallId"] == "t1-c1"
    assert form["message"] == "Subagent “buy bread”: The MCP server good asks: What shall it be?"


def test_where_there_are_no_forms_a_single_choice_is_declined_and_never_a_permission(tmp_path):
    """A client that approves everything would have answered it in the person's name."""

    def permit(request: dict) -> dict:
        return chose(request["options"][0]["optionId"])

    _, editor = one_call(tmp_path / "own", good(), "choose", {"permit": permit})
    assert told_model(editor).startswith("decline")
    assert len(editor.permissions) == 1, "that of the call"
    assert "Your editor cannot show this question" in notice_about(editor, "good asks")
    editor = in_a_subagent(tmp_path / "subagent", "choose", permit=permit)
    assert editor.permissions == []


def test_the_titles_that_a_server_gives_to_values_are_shown_in_a_form(tmp_path):
    forms = []

    def answer(request: dict) -> dict:
        forms.append(request)
        return {"action": "accept", "content": {"flavour": "r"}}

    more = {"capabilities": FORMS, "answers": {"elicitation/create": answer}}
    _, editor = one_call(tmp_path, asking("plainly"), "go", more)
    choices = [{"const": "r", "title": "Rye"}, {"const": "w", "title": "Wheat"}]
    assert forms[0]["requestedSchema"]["properties"]["flavour"] == {"type": "string", "oneOf": choices}
    assert told_model(editor) == '{"action": "accept", "content": {"flavour": "r"}}'


def test_a_server_that_wants_the_models_words_is_refused_and_its_call_goes_on(tmp_path):
    done, editor = one_call(tmp_path, asking("for-words"), "go", {"capabilities": EVERYTHING})
    assert done["status"] == "completed"
    assert "not supported" in told_model(editor)
    assert len(editor.model_requests()) == 2, "the model was asked for the prompt and after the call alone"


@pytest.mark.rule("R133")
def test_an_address_that_a_server_wants_opened_is_shown_where_the_client_can(tmp_path):
    links = []

    def answer(request: dict) -> dict:
        links.append(request)
        return {"action": "accept"}

    more = {"capabilities": LINKS, "answers": {"elicitation/create": answer}}
    done, editor = one_call(tmp_path, asking("to-visit"), "go", more)
    [link] = links
    assert (link["mode"], link["url"]) == ("url", "https://bakery.example/pay")
    assert link["message"] == "The MCP server asking asks: Please pay."
    assert link["toolCallId"] == done["toolCallId"]
    assert told_model(editor) == '{"action": "accept"}'
    complete = editor.wait_for_call("elicitation/complete")
    assert complete["params"]["elicitationId"] == link["elicitationId"]


def test_where_it_cannot_the_server_is_told_no_and_the_person_is_told_the_address(tmp_path):
    _, editor = one_call(tmp_path, asking("to-visit"), "go")
    assert told_model(editor) == '{"action": "decline"}'
    assert notice_about(editor, "`asking`") == (
        "The MCP server `asking` (from your editor): It asks you to open https://bakery.example/pay. Your editor "
        "cannot open links, so the request was declined. It said: Please pay."
    )


def test_what_a_server_hides_in_its_words_is_made_visible_and_the_person_is_told(tmp_path):
    forms = []

    def answer(request: dict) -> dict:
        forms.append(request)
        return {"action": "decline"}

    more = {"capabilities": FORMS, "answers": {"elicitation/create": answer}}
    _, editor = one_call(tmp_path, asking("hiding"), "go", more)
    assert notice_about(editor, "`asking`") == (
        "The MCP server `asking` (from your editor): Tool descriptions contain invisible characters: go. It used "
        "invisible characters (U+202E, U+E0041, U+200B), which are now shown like ⟨U+202E⟩."
    )
    [tool] = [tool for tool in editor.model_requests()[0]["tools"] if tool["name"] == "mcp__asking__go"]
    assert tool["description"] == "Bakes.⟨U+202E⟩⟨U+E0041⟩"
    assert "Flour.⟨U+200B⟩" in str(tool)
    [form] = forms
    assert form["message"] == (
        "The MCP server asking asks: Burn⟨U+202E⟩ it?\n"
        "It used invisible characters (U+202E, U+200B), which are now shown like ⟨U+202E⟩."
    )


def test_a_form_that_is_none_never_reaches_the_editor_and_the_server_is_told_why(tmp_path):
    _, editor = one_call(tmp_path, good(), "nonsense", {"capabilities": FORMS})
    assert not [message for message in editor.received if message.get("method") == "elicitation/create"]
    assert "The person was not asked: the form must be" in told_model(editor)


def test_the_clock_of_a_call_stands_still_while_the_person_thinks(tmp_path):
    def answer(request: dict) -> dict:
        time.sleep(1.5)
        return {"action": "accept", "content": {"flavour": "rye", "amount": 3}}

    config = "[limits]\nmcp_start = 50\nmcp_call = 1\n"
    more = {"capabilities": FORMS, "answers": {"elicitation/create": answer}, "config": config}
    _, editor = one_call(tmp_path, good(), "order", more)
    assert told_model(editor).startswith("accept")


def test_a_server_learns_the_folders_of_the_session(tmp_path):
    _, editor = one_call(tmp_path, good(), "roots")
    assert told_model(editor) == (tmp_path / "work").as_uri()


def test_a_client_that_can_show_everything_is_asked_nothing_by_a_quiet_server(tmp_path):
    done, editor = one_call(tmp_path, bad("plain"), "go", {"capabilities": EVERYTHING})
    assert done["status"] == "completed"
    assert not [message for message in editor.received if message.get("method") == "elicitation/create"]


@pytest.mark.parametrize("way", ["hang_up", "SIGTERM"])
def test_an_end_while_a_server_asks_leaves_nothing_unsaid_in_the_log(tmp_path, way):
    config = PATIENT + '[[permission.rules]]\ntool = "mcp__good__*"\ndecision = "allow"\n'
    answers = {"elicitation/create": lambda request: SILENCE}
    editor = editing(
        tmp_path, reply(call("mcp__good__order")) + DONE, config=config, capabilities=FORMS, answers=answers
    )
    editor.new_session(mcpServers=[good()])
    editor.start_prompt("Go.")
    editor.wait_for_call("elicitation/create")
    if way == "SIGTERM":
        editor.signal(signal.SIGTERM)
    else:
        editor.hang_up()
    editor.exit_status()
    editor.close()
    log = editor.home / "log" / "crow.log"
    assert "never retrieved" not in (log.read_text() if log.exists() else "")
