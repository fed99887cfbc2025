"""Subagents in conversations with a real `crow acp`: what the person sees, is asked, and finds again."""

import json
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from crow.model.scripted import Call
from tests.mcp.guests import PATIENT, good
from tests.support.editor import EVERYTHING, NOTICES, SILENCE, Editor, Json, chose
from tests.support.fold import assert_looks_as_it_did
from tests.support.provider import Provider
from tests.support.provider_dialect import Spoken
from tests.support.scripts import DONE, call, edit, reply, run, say
from tests.support.terminals import wait_until_gone
from tests.support.windowed import WindowedDialect, is_summary, texts
from tests.support.zed import Zed

HANGS = "{ wait = 600 }"
SERVER = "echo process $$; exec sleep 600"
FRUIT = "apple\npear\n"


def task(prompt: str, kind: str = "work", **more: Any) -> str:
    return call("task", prompt=prompt, kind=kind, **more)


def subagent(prompt: str, *replies: str) -> str:
    """The script of the subagent that was given this prompt."""
    return "".join(reply(events, when=prompt) for events in replies)


def steps(crow: Editor, id: str = "t1-c1") -> list[str]:
    """Every line that the person saw in a call, in the order of its first appearance."""
    lines: dict[str, None] = {}
    for update in crow.updates:
        if update.get("toolCallId") == id:
            for block in update.get("content") or []:
                lines |= dict.fromkeys(block.get("content", {}).get("text", "").splitlines())
    return list(lines)


def diffs(call: Json) -> list[tuple[str, str | None, str]]:
    return [
        (Path(item["path"]).name, item.get("oldText"), item["newText"])
        for item in call["content"]
        if item["type"] == "diff"
    ]


def told(crow: Editor) -> list[str]:
    """The results that the session's own model was given with its last request."""
    return [message["text"] for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]


def requests_of(crow: Editor, prompt: str) -> list[Json]:
    """What the model of the subagent with this prompt was sent."""
    return [request for request in crow.model_requests() if prompt in json.dumps(request["messages"][0])]


def processes(crow: Editor) -> list[int]:
    """The ids that commands have printed."""
    return [int(id) for id in re.findall(r"process (\d+)", json.dumps(crow.updates))]


def offered(request: Json) -> set[str]:
    return {tool["name"] for tool in request["tools"]}


@pytest.fixture
def open_crow(open_editor: Any) -> Callable[..., Editor]:
    """An editor with a session and a file in it."""

    def start(script: str, kind: type[Editor] = Editor, servers: Sequence[Json] = (), **options: Any) -> Editor:
        crow = open_editor(kind, script=script, **options)
        (crow.workspace / "fruit.txt").write_text(FRUIT)
        crow.new_session(mcpServers=servers)
        return crow

    return start


# --- what it does, and what is seen of it


def test_its_steps_are_shown_in_the_call_and_its_last_words_are_the_result(open_crow):
    script = (
        reply(say("I send someone."), task("count the fruit", "explore", title="Fruit"))
        + subagent("count the fruit", call("read", path="fruit.txt"), say("There are two: apple and pear."))
        + DONE
    )
    crow = open_crow(script)
    assert crow.prompt("how many?") == {"stopReason": "end_turn"}
    [done] = crow.tool_calls().values()
    assert (done["toolCallId"], done["title"], done["status"]) == ("t1-c1", "Explore: Fruit", "completed")
    assert any(line.startswith("✓ Read fruit.txt") for line in steps(crow))
    assert done["content"][-1]["content"]["text"] == "There are two: apple and pear."
    assert done["rawOutput"] == {"ok": True, "message": "1 step"}
    assert told(crow) == ["There are two: apple and pear."]
    assert "two: apple" not in crow.text(), "its words are no message of the session's"


def test_it_knows_its_task_and_nothing_of_the_conversation(open_crow):
    script = reply(task("count the fruit")) + subagent("count the fruit", say("Two.")) + DONE
    crow = open_crow(script)
    crow.prompt("a secret of the conversation")
    [sent] = requests_of(crow, "count the fruit")
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert "a secret" not in json.dumps(sent)
    assert "You are a subagent" in sent["system"]
    assert offered(sent).isdisjoint({"task", "ask", "plan", "leave_plan"})
    assert {"read", "write", "edit", "terminal"} <= offered(sent)
    assert "Two." in json.dumps(crow.model_requests()[-1]["messages"])


def test_an_explorer_can_only_look_whatever_it_calls(open_crow):
    """Each tool that changes something is refused by its name, also one of a server, and nobody is asked."""
    tries = {
        "write": call("write", path="new.txt", content="x"),
        "edit": edit("fruit.txt", "pear", "plum"),
        "terminal": run("touch new.txt"),
        "terminal_stop": call("terminal_stop", id="b1"),
        "task": task("do it for me"),
        "mcp__good__add": call("mcp__good__add", a=1, b=2),
    }
    script = (
        reply(task("look around", "explore"))
        + subagent("look around", *tries.values(), call("nonsense"), say("I could not."))
        + DONE
    )
    crow = open_crow(script, config=PATIENT, permit=lambda request: chose("once"), servers=[good()])
    crow.prompt("go")
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT
    assert not (crow.workspace / "new.txt").exists()
    assert crow.permissions == []
    sent = requests_of(crow, "look around")
    assert offered(sent[0]) == {"read", "find", "search", "terminal_read", "web_fetch", "web_search"}
    assert "mcp__good__add" in offered(crow.model_requests()[0]), "the session itself has it"
    assert sent[0]["system"] != crow.model_requests()[0]["system"], "it is told what it is"
    *refused, unknown = (message["text"] for message in sent[-1]["messages"] if message["role"] == "tool")
    for name, text in zip(tries, refused, strict=True):
        assert f"`{name}`" in text
    assert "`nonsense`" in unknown
    assert "read, " in unknown, "the tools that there are"
    shown = [line.partition(" (")[0] for line in steps(crow)]
    assert {"✗ Write new.txt", "✗ Edit fruit.txt", "✗ good: add"} <= set(shown)


def test_one_that_works_cannot_send_others_or_ask(open_crow):
    tries = {"task": task("do it for me"), "ask": call("ask", question="Well?", options=["yes", "no"])}
    crow = open_crow(reply(task("delegate")) + subagent("delegate", *tries.values(), say("Alone, then.")) + DONE)
    crow.prompt("go")
    answers = [m["text"] for m in requests_of(crow, "delegate")[-1]["messages"] if m["role"] == "tool"]
    assert [name for name, text in zip(tries, answers, strict=True) if f"`{name}`" not in text] == []
    assert requests_of(crow, "do it for me") == []
    assert crow.permissions == []


def test_what_it_knows_of_files_is_its_own(open_crow):
    """What one model has read, another has not: it must not overwrite a file that it never saw."""
    script = (
        reply(call("read", path="fruit.txt"))
        + reply(task("replace the fruit"))
        + subagent("replace the fruit", call("write", path="fruit.txt", content="plum\n"), say("Refused."))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("once"))
    crow.prompt("go")
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT
    [refused] = [m for m in requests_of(crow, "replace the fruit")[-1]["messages"] if m["role"] == "tool"]
    assert not refused["ok"]


def test_in_plan_mode_only_explorers_are_sent(open_crow):
    script = (
        reply(task("change it", "work"), task("look at it", "explore"))
        + subagent("look at it", call("read", path="fruit.txt"), say("ReadTracker."))
        + DONE
    )
    crow = open_crow(script)
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
    crow.prompt("go")
    refused, seen = told(crow)
    assert "`explore`" in refused
    assert seen == "ReadTracker."
    assert requests_of(crow, "change it") == []
    assert "leave_plan" not in requests_of(crow, "look at it")[0]["system"]


# --- its permissions


def test_the_person_is_asked_in_its_name_and_shown_the_diff(open_crow):
    script = (
        reply(task("no pears", title="Pears"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"), say("Pear is plum."))
        + DONE
    )
    crow = open_crow(script, Zed, permit=lambda request: chose("once"))
    crow.prompt("go")
    [asked] = [request["toolCall"] for request in crow.permissions]
    assert asked["title"] == "Subagent “Pears”: Edit fruit.txt"
    assert asked["toolCallId"] == "t1-c1_t1-c1"
    assert diffs(asked) == [("fruit.txt", FRUIT, "apple\nplum\n")]
    calls = crow.tool_calls()
    assert diffs(calls["t1-c1_t1-c1"]) == diffs(asked)
    assert diffs(calls["t1-c1"]) == [], "the same change is not shown twice"
    assert calls["t1-c1_t1-c1"]["rawInput"]["path"] == "fruit.txt"
    assert {call["status"] for call in calls.values()} == {"completed"}
    assert told(crow)[0].endswith("[Files that it changed: fruit.txt]")
    assert any("permission" in line for line in steps(crow))


def test_a_no_is_said_to_the_subagent_which_goes_on(open_crow):
    script = (
        reply(task("no pears"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"), say("They want to keep the pear."))
        + DONE
    )
    crow = open_crow(script, Zed, permit=lambda request: chose("reject"))
    crow.prompt("go")
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT
    assert crow.thread.calls["t1-c1_t1-c1"]["status"] == "rejected"
    assert crow.thread.calls["t1-c1"]["status"] == "completed"
    assert told(crow) == ["They want to keep the pear."]


def test_a_question_that_is_answered_by_ending_the_turn_ends_everything(open_crow):
    script = (
        reply(task("no pears"), task("hang"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"))
        + subagent("hang", HANGS)
        + DONE
    )
    crow = open_crow(script, permit=lambda request: {"outcome": {"outcome": "cancelled"}})
    assert crow.prompt("go") == {"stopReason": "cancelled"}
    assert {call["status"] for call in crow.tool_calls().values()} == {"failed"}


def test_what_is_allowed_for_the_session_holds_for_every_subagent(open_crow):
    script = (
        reply(task("no pears"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"), say("Done."))
        + reply(task("no plums"))
        + subagent("no plums", edit("fruit.txt", "plum", "fig"), say("Done."))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("session"))
    crow.prompt("go")
    assert (crow.workspace / "fruit.txt").read_text() == "apple\nfig\n"
    assert len(crow.permissions) == 1
    assert "t1-c2_t1-c1" not in crow.tool_calls(), "what nobody is asked about is a step, not a call of its own"


@pytest.mark.parametrize("command", ["echo hello", "echo hello; sleep 600"], ids=["ends", "cancelled"])
def test_a_command_that_nobody_is_asked_about_runs_in_the_editors_terminal(open_crow, command):
    """Zed complains of a terminal that is shown and not there any more, and of one that is not released once."""
    script = reply(task("greet")) + subagent("greet", run(command), run("echo bye"), say("Greeted.")) + DONE
    zed = open_crow(script, Zed)
    zed.request("session/set_mode", {"sessionId": zed.session_id, "modeId": "auto"})
    turn = zed.start_prompt("go")
    zed.wait_until(lambda: any("terminalId" in json.dumps(update) for update in zed.updates), "the terminal")
    if "sleep" in command:
        zed.cancel()
    turn.answer()
    assert "terminal" not in [item["type"] for item in zed.thread.shown("t1-c1")]
    assert list(zed.tool_calls()) == ["t1-c1"]


# --- several at once, and their end


def test_two_at_once_one_asks_one_is_cancelled_and_a_load_shows_the_same(open_crow, open_editor):
    script = (
        reply(task("no pears", title="Pears"), task("wait for the server", title="Server"))
        + subagent("no pears", call("read", path="fruit.txt"), edit("fruit.txt", "pear", "plum"), say("Pear is plum."))
        + subagent("wait for the server", call("find", pattern="*.txt"), run(SERVER))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("once"), capabilities=NOTICES)
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: crow.tool_calls().get("t1-c1", {}).get("status") == "completed", "the first one's end")
    crow.wait_until(lambda: bool(processes(crow)), "the second one's command")
    crow.cancel()
    assert turn.answer() == {"stopReason": "cancelled"}
    calls = crow.tool_calls()
    assert {id: call["status"] for id, call in calls.items()} == {
        "t1-c1": "completed",
        "t1-c1_t1-c2": "completed",
        "t1-c2": "failed",
        "t1-c2_t1-c2": "failed",
    }
    assert {request["toolCall"]["title"] for request in crow.permissions} == {
        "Subagent “Pears”: Edit fruit.txt",
        f"Subagent “Server”: {SERVER}",
    }
    done = [line.partition(" (")[0] for line in steps(crow, "t1-c1") if line.startswith("✓")]
    assert done == ["✓ Read fruit.txt", "✓ Edit fruit.txt"]
    ended = json.dumps(calls["t1-c2"]["content"], ensure_ascii=False)
    assert "✓ Find *.txt" in ended
    assert f"✗ {SERVER}" in ended
    assert "Interrupted" in ended
    wait_until_gone(processes(crow)[0])
    crow.close()
    assert_looks_as_it_did(crow, open_editor(folder=crow.folder))


def test_cancelling_while_one_asks_and_another_waits_to_ask_leaves_nothing_open(open_crow):
    script = (
        reply(task("no pears"), task("no apples"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"))
        + subagent("no apples", edit("fruit.txt", "apple", "fig"))
        + DONE
    )
    crow = open_crow(script, Zed, permit=lambda request: SILENCE)
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: bool(crow.permissions), "the question")
    crow.wait_until(lambda: len(crow.model_requests()) == 3, "the second subagent")
    crow.cancel()
    assert turn.answer() == {"stopReason": "cancelled"}
    assert len(crow.permissions) == 1
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed"] * 3
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT


def test_they_run_side_by_side(open_crow):
    """The first waits for what only the second brings about."""
    wait = "until test -e ready; do sleep 0.01; done"
    script = (
        reply(task("wait"), task("bring it about"))
        + subagent("wait", run(wait), say("It is there."))
        + subagent("bring it about", run("touch ready"), say("Done."))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("once"))
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert told(crow) == ["It is there.", "Done."]


def test_two_that_change_the_same_file_do_not_lose_each_others_change(open_crow):
    """The second is carried over to what the first has made of the file, or refused if both write at once."""
    script = (
        reply(task("first"), task("second"))
        + subagent("first", edit("fruit.txt", "apple", "fig"), say("First."))
        + subagent("second", edit("fruit.txt", "pear", "plum"), say("Second."))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("once"))
    crow.prompt("go")
    calls = crow.tool_calls()
    first, second = (calls[id]["status"] == "completed" for id in ("t1-c1_t1-c1", "t1-c2_t1-c1"))
    assert first or second
    text = (crow.workspace / "fruit.txt").read_text()
    assert text == f"{'fig' if first else 'apple'}\n{'plum' if second else 'pear'}\n"
    crow.prompt("/undo")
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT


# --- failing


def test_one_whose_model_fails_tells_why_and_the_others_go_on(open_crow):
    script = (
        reply(task("break", title="Broken"), task("count"))
        + subagent("break", call("read", path="fruit.txt"), '{ fail = { status = 404, message = "no such thing" } }')
        + subagent("count", say("Two."))
        + DONE
    )
    crow = open_crow(script)
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    broken, two = told(crow)
    assert "no such thing" in broken.splitlines()[0]
    assert broken.endswith("What it did:\n✓ Read fruit.txt (2 lines)")
    assert two == "Two."
    failed = crow.tool_calls()["t1-c1"]
    assert failed["status"] == "failed"
    assert any(line.startswith("✓ Read fruit.txt") for line in steps(crow))
    assert "no such thing" in json.dumps(failed["content"])


def test_one_that_reaches_its_limit_tells_how_far_it_came(open_crow):
    again = [call("find", pattern=f"{number}*") for number in range(5)]
    script = reply(task("go on and on")) + subagent("go on and on", *again) + DONE
    crow = open_crow(script, config="[limits]\nmodel_calls = 3")
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    [result] = told(crow)
    assert "(3)" in result.splitlines()[0]
    assert result.splitlines()[1:5] == [
        *("What it did:", "✓ Find 0* (Nothing found)", "✓ Find 1* (Nothing found)", "✓ Find 2* (Nothing found)"),
    ]
    assert crow.tool_calls()["t1-c1"]["status"] == "failed"
    assert len(requests_of(crow, "go on and on")) == 3


def test_one_that_outgrows_the_window_is_summed_up_and_the_session_is_not(open_editor):
    rounds = 40

    def answer(body: Json) -> tuple[Spoken, ...]:
        if is_summary(body):
            return ("Some files were read.",)
        if "You are a subagent" not in texts(body):
            is_done = any(message["role"] == "tool" for message in body["messages"])
            return ("All is read.",) if is_done else (Call("task", {"prompt": "read it all", "kind": "explore"}),)
        number = len(spoken.rounds)
        return (Call("read", {"path": "long.txt", "limit": 90 + number}),) if number < rounds else ("I read it all.",)

    window = 16_000
    with Provider() as provider:
        provider.openai = spoken = WindowedDialect(provider.openai.url, window, answer)
        config = f"[providers.test.models.m]\ncontext_window = {window}\n"
        crow = open_editor(base_url=spoken.url, config=config, capabilities=EVERYTHING)
        (crow.workspace / "long.txt").write_text("a line of a file, which says little\n" * 200)
        crow.new_session()
        assert crow.prompt("go") == {"stopReason": "end_turn"}
        assert spoken.refused == 0
        assert spoken.summaries
        [done] = crow.tool_calls().values()
        assert done["status"] == "completed"
        assert "✓ Summed up its conversation so far" in steps(crow)
        assert done["content"][-1]["content"]["text"] == "I read it all."
        assert "compaction_update" not in {update["sessionUpdate"] for update in crow.updates}
        crow.close()


def test_one_whose_conversation_cannot_be_made_to_fit_tells_so(open_crow):
    too_long = '{ fail = { status = 400, message = "maximum context length exceeded" } }'
    script = reply(task("read")) + subagent("read", call("read", path="fruit.txt"), *[too_long] * 5) + DONE
    crow = open_crow(script)
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    [result] = told(crow)
    assert "length limit" in result.splitlines()[0]
    assert "✓ Read fruit.txt (2 lines)" in result
    assert crow.tool_calls()["t1-c1"]["status"] == "failed"


def test_one_that_says_nothing_has_failed(open_crow):
    begins = f"{say('I look.')}, {call('read', path='fruit.txt')}"
    crow = open_crow(reply(task("be quiet")) + subagent("be quiet", begins, '{ thought = "Hm." }') + DONE)
    crow.prompt("go")
    assert told(crow)[0].splitlines() == [
        "The subagent did not finish: it ended without a report.",
        *("What it did:", "· I look.", "✓ Read fruit.txt (2 lines)"),
        "! scripted/test ended its turn without a reply.",
    ]
    assert json.dumps(crow.tool_calls()["t1-c1"]["content"]).count("I look.") == 1


def test_a_long_report_is_cut(open_crow):
    report = "Beginning. " + "x" * 50_000 + " End."
    crow = open_crow(reply(task("report")) + subagent("report", say(report)) + DONE)
    crow.prompt("go")
    [result] = told(crow)
    assert len(result) < 17_000
    assert result.startswith("Beginning. ")
    assert result.endswith(" End.")
    assert "characters left out" in result


def test_wrong_arguments_are_told_in_words(open_crow):
    crow = open_crow(reply(call("task", prompt="x", kind="dream"), call("task", prompt=" ", kind="work")) + DONE)
    crow.prompt("go")
    wrong, empty = told(crow)
    assert "kind" in wrong
    assert empty == "`prompt` is empty."


# --- afterwards


def test_an_undo_takes_back_what_it_wrote_and_mentions_its_commands(open_crow):
    script = (
        reply(task("no pears"))
        + subagent("no pears", edit("fruit.txt", "pear", "plum"), call("write", path="new.txt", content="new\n"))
        + subagent("no pears", run("true"), say("Done."))
        + DONE
    )
    crow = open_crow(script, permit=lambda request: chose("once"))
    crow.prompt("go")
    assert (crow.workspace / "new.txt").exists()
    crow.prompt("/undo")
    assert (crow.workspace / "fruit.txt").read_text() == FRUIT
    assert not (crow.workspace / "new.txt").exists()
    assert "also ran commands" in crow.text()


def test_when_crow_is_killed_in_the_middle_the_call_is_settled_by_the_next_load(open_crow, open_editor):
    script = reply(task("hang")) + subagent("hang", edit("fruit.txt", "pear", "plum"), HANGS) + DONE
    crow = open_crow(script, permit=lambda request: chose("once"))
    crow.start_prompt("go")
    crow.wait_until(lambda: crow.tool_calls().get("t1-c1_t1-c1", {}).get("status") == "completed", "the edit's end")
    crow.signal(signal.SIGKILL)
    crow.exit_status()
    other = open_editor(script=DONE, folder=crow.folder)
    other.load_session(crow.session_id)
    calls = other.tool_calls()
    assert (calls["t1-c1"]["status"], calls["t1-c1_t1-c1"]["status"]) == ("failed", "completed")
    assert "Crow was stopped" in json.dumps(calls["t1-c1"]["content"])
    assert any(line.startswith("✓ Edit fruit.txt") for line in steps(other))
    assert diffs(calls["t1-c1_t1-c1"]) == [("fruit.txt", FRUIT, "apple\nplum\n")]
    other.prompt("what was done?")
    said, _, step, _, files = told(other)[0].splitlines()
    assert "interrupted" in said
    assert step.startswith("✓ Edit fruit.txt (+1 ")
    assert files == f"[Files that it changed: {other.workspace / 'fruit.txt'}]"
    other.prompt("/undo")
    other.prompt("/undo")
    assert (other.workspace / "fruit.txt").read_text() == FRUIT


def test_when_crow_is_killed_while_one_asks_nothing_was_done_and_nothing_stays_open(open_crow, open_editor):
    script = reply(task("no pears")) + subagent("no pears", edit("fruit.txt", "pear", "plum")) + DONE
    crow = open_crow(script, permit=lambda request: SILENCE)
    crow.start_prompt("go")
    crow.wait_until(lambda: bool(crow.permissions), "the question")
    crow.signal(signal.SIGKILL)
    crow.exit_status()
    other = open_editor(script=DONE, folder=crow.folder)
    other.load_session(crow.session_id)
    calls = other.tool_calls()
    assert {call["status"] for call in calls.values()} == {"failed"}
    assert "Not run" in json.dumps(calls["t1-c1_t1-c1"]["content"])
    assert "✗ Edit fruit.txt (not run)" in steps(other)
    other.prompt("what was done?")
    assert told(other)[0].endswith("What it did:\n✗ Edit fruit.txt (not run)")


def test_it_costs_money_but_takes_no_room_in_the_window(open_crow, open_editor):
    spends = "{ usage = { input_tokens = 1000, output_tokens = 0 } }"
    script = (
        reply("{ usage = { input_tokens = 100, output_tokens = 0 } }", task("spend"))
        + reply(spends, say("Spent."), when="spend")
        + DONE
    )
    config = "context_window = 50000\nprice_input = 1000.0\nprice_output = 1000.0"
    crow = open_crow(script, config=config)
    crow.prompt("go")
    usage = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"]
    assert [(update["used"], round(update["cost"]["amount"], 4)) for update in usage] == [(100, 0.1), (100, 1.1)]
    crow.close()
    other = open_editor(script=DONE, folder=crow.folder)
    other.load_session(crow.session_id)
    other.wait_until(lambda: other.updates[-1]["sessionUpdate"] == "usage_update", "the usage")
    again = other.updates[-1]
    assert (again["used"], round(again["cost"]["amount"], 4)) == (100, 1.1)


# --- in its own turn, too


def test_a_wait_in_it_is_named_once_with_whose_it_is(open_crow):
    script = reply(task("ponder", title="Thinker")) + subagent("ponder", HANGS) + DONE
    crow = open_crow(script, capabilities=NOTICES, environment={"CROW_PATIENCE": "0.1"})
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: len(crow.notices) >= 2, "two notices")
    crow.cancel()
    turn.answer()
    assert {re.sub(r"\d+ s", "N s", notice) for notice in crow.notices} == {
        "Waiting for the model's answer (subagent “Thinker”) (N s)"
    }


def test_one_that_goes_round_in_circles_is_stopped(open_crow):
    script = reply(task("circle")) + subagent("circle", *[call("read", path="fruit.txt")] * 6) + DONE
    crow = open_crow(script, Zed, answers={"elicitation/create": lambda params: {"action": "decline"}})
    crow.prompt("go")
    [result] = told(crow)
    assert "5 times" in result
    assert crow.tool_calls()["t1-c1"]["status"] == "failed"
    asked = crow.wait_for_call("elicitation/create")["params"]
    assert asked["toolCallId"] == "t1-c1"
    assert asked["message"].startswith("Subagent “circle”: ")
    assert crow.thread.calls["t1-c1"]["title"] == "Work: circle"


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_two_at_once_talk_to_a_real_provider(open_editor, tmp_path, dialect):
    """It refuses what the real ones refuse, such as ids of calls that are made of other letters than theirs."""
    with Provider() as provider:
        spoken = getattr(provider, dialect)
        tasks = [Call("task", {"prompt": f"read it, {whose}", "kind": "explore"}) for whose in ("one", "two")]
        spoken.answer(*tasks)
        for _ in tasks:
            spoken.answer("I look.", Call("read", {"path": "fruit.txt"}))
        for _ in tasks:
            spoken.answer("Apple and pear.")
        spoken.answer("Both say the same.")
        home = tmp_path / "real" / "home"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            f'model = "real/m"\n[providers.real]\ntype = "{dialect}"\nbase_url = "{spoken.url}"\napi_key = "none"\n'
        )
        crow = open_editor(folder=tmp_path / "real")
        (crow.workspace / "fruit.txt").write_text(FRUIT)
        crow.new_session()
        assert crow.prompt("go") == {"stopReason": "end_turn"}
        assert crow.text() == "Both say the same."
        assert {id: call["status"] for id, call in crow.tool_calls().items()} == {
            "t1-c1": "completed",
            "t1-c2": "completed",
        }
        assert len(spoken.requests) == 6
        crow.close()
