"""Questions that a server leaves open: they end with their call and their turn, and hold up nobody else."""

from tests.mcp.guests import (
    PATIENT,
    asking,
    bad,
    calling,
    editing,
    one_call,
    restless,
    shown,
    told_model,
)
from tests.support.editor import NOTICES, SILENCE, Editor, Later
from tests.support.patience import eventually
from tests.support.scripts import call, reply, say

FORMS = {**NOTICES, "elicitation": {"form": {}}}
EVERY_KIND = {**NOTICES, "elicitation": {"form": {}, "url": {}}}
OPEN = {"capabilities": FORMS, "answers": {"elicitation/create": lambda request: SILENCE}}


def forms(editor: Editor) -> list[dict]:
    return [message for message in editor.received if message.get("method") == "elicitation/create"]


def withdrawn(editor: Editor) -> list[int]:
    return [
        message["params"]["requestId"] for message in editor.received if message.get("method") == "$/cancel_request"
    ]


def test_a_form_ends_with_its_turn_though_the_server_does_not_care(tmp_path):
    editor = editing(
        tmp_path, reply(call("mcp__asking__go")) + calling(("write", {"path": "a", "content": ""})), **OPEN
    )
    editor.new_session(mcpServers=[asking("and-waits")])
    prompt = editor.start_prompt("Go.")
    form = editor.wait_for_call("elicitation/create")
    editor.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert editor.prompt("Go on.") == {"stopReason": "end_turn"}
    assert withdrawn(editor) == [form["id"]]
    assert len(editor.permissions) == 2, "the next question was asked"
    editor.close()


def test_a_form_ends_with_its_call_and_the_next_question_is_asked(tmp_path):
    script = calling(("mcp__asking__go", {}), ("write", {"path": "a", "content": ""}))
    editor = editing(tmp_path, script, **OPEN)
    editor.new_session(mcpServers=[asking("and-answers")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    assert len(editor.permissions) == 2
    editor.wait_until(lambda: len(withdrawn(editor)) == len(forms(editor)), "no form stays open")
    editor.close()


def test_forms_outside_any_call_hold_up_nothing_and_most_of_many_are_declined(tmp_path):
    editor = editing(tmp_path, calling(("mcp__asking__go", {})), **OPEN)
    answers = tmp_path / "answers"
    editor.new_session(mcpServers=[asking("at-once", answers)])
    eventually(
        lambda: answers.exists() and answers.read_text() == "496 answers: {'decline'}", "all but four are declined"
    )
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    assert len(editor.permissions) == 1
    assert len(forms(editor)) == 1
    assert "toolCallId" not in forms(editor)[0]["params"]
    editor.request("session/close", {"sessionId": editor.session_id})
    assert withdrawn(editor) == [forms(editor)[0]["id"]]
    editor.close()


def test_a_call_of_a_server_that_no_longer_reads_is_cancelled_at_once(tmp_path):
    script = reply(call("mcp__stops-reading__go", text="x" * 500_000)) + reply(say("Going on."))
    editor = editing(tmp_path, script)
    editor.new_session(mcpServers=[bad("stops-reading")])
    prompt = editor.start_prompt("Go.")
    editor.wait_until(lambda: "in_progress" in [one.get("status") for one in editor.updates], "the call runs")
    editor.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert editor.prompt("Go on.") == {"stopReason": "end_turn"}
    editor.close()


def test_a_question_while_two_calls_run_is_asked_in_the_servers_name_and_outlives_the_first_to_end(tmp_path):
    def answer(request: dict) -> Later:
        def when_one_call_is_over() -> dict:
            eventually(lambda: "completed" in [one.get("status") for one in editor.updates], "one of the calls is over")
            return {"action": "accept", "content": {"flavour": "rye"}}

        return Later(when_one_call_is_over)

    script = reply(
        call("task", prompt="ALPHA", kind="work", title="Alpha"), call("task", prompt="BETA", kind="work", title="Beta")
    )
    for name in ("ALPHA", "BETA"):
        script += reply(call("mcp__of-two__go"), when=name) + reply(say("Bought."), when=name)
    config = PATIENT + '[[permission.rules]]\ntool = "mcp__of-two__*"\ndecision = "allow"\n'
    more = {"capabilities": FORMS, "answers": {"elicitation/create": answer}, "config": config}
    editor = editing(tmp_path, script + reply(say("Done.")), **more)
    editor.new_session(mcpServers=[restless("of-two")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    [form] = forms(editor)
    assert form["params"]["message"] == "The MCP server of-two asks: Which?"
    assert "toolCallId" not in form["params"]
    assert withdrawn(editor) == []
    told = [
        message["text"]
        for asked in editor.model_requests()
        for message in asked["messages"]
        if message["role"] == "tool"
    ]
    assert {"gone", "accept"} <= set(told)
    editor.close()


def visiting(folder, server: dict, answer) -> Editor:
    _, editor = one_call(folder, server, "go", {"capabilities": EVERY_KIND, "answers": {"elicitation/create": answer}})
    return editor


def test_an_address_that_a_call_needs_first_is_shown_and_the_call_is_made_again_when_the_person_is_done(tmp_path):
    def answer(request: dict) -> dict:
        return {"action": "accept"} if request["mode"] == "url" else {"action": "accept", "content": {"done": True}}

    editor = visiting(tmp_path, asking("to-visit-first"), answer)
    link, question = (form["params"] for form in forms(editor))
    assert (link["url"], link["message"]) == (
        "https://bakery.example/pay",
        "The MCP server asking asks: Please pay.",
    )
    assert question["message"] == "The MCP server asking asks: Have you finished at https://bakery.example/pay?"
    assert told_model(editor) == "Paid."


def test_a_server_can_say_itself_that_the_person_is_done(tmp_path):
    paid = tmp_path / "paid"

    def answer(request: dict) -> object:
        if request["mode"] == "url":
            return {"action": "accept"}
        paid.write_text("")
        return SILENCE

    editor = visiting(tmp_path, asking("to-visit-first-and-tells", paid), answer)
    assert told_model(editor) == "Paid."
    assert withdrawn(editor) == [forms(editor)[1]["id"]]


def test_without_the_persons_yes_or_a_client_that_shows_addresses_the_call_fails_and_names_the_address(tmp_path):
    editor = visiting(tmp_path / "declined", asking("to-visit-first"), lambda request: {"action": "decline"})
    assert "it needs you to open https://bakery.example/pay first, which was declined" in told_model(editor)
    done, _ = one_call(tmp_path / "without", asking("to-visit-first"), "go")
    assert "it asks you to open https://bakery.example/pay first" in shown(done)
    assert done["status"] == "failed"
