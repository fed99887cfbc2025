"""A tool call from its first piece to its end: what the person sees of it, how often, and what that costs."""

import os
from typing import Any

import pytest

from crow.model.scripted import Call
from tests.support.editor import FILES, Editor, Json, chose
from tests.support.provider import Provider, Stall
from tests.support.scripts import DONE, call, edit, reply, run
from tests.support.zed import Zed

A_FEW = 8
"""Updates that every call has, however long it takes: its report, arguments, description, start and end."""


def calls_updates(crow: Editor, id: str = "t1-c1") -> list[tuple[float, Json]]:
    """What the person was told of a call, and when."""
    found = []
    for entry in crow.conversation:
        update = (entry.message.get("params") or {}).get("update") or {}
        if entry.sender == "crow" and update.get("toolCallId") == id:
            found.append((entry.time, update))
    return found


def shows_diff(message: Json) -> bool:
    params = message.get("params") or {}
    call = params.get("update") or params.get("toolCall") or {}
    content = call.get("content")
    return isinstance(content, list) and any(item["type"] == "diff" for item in content)


# --- the arguments


@pytest.mark.rule("R89", "R90", "R91", "R95", "R97")
@pytest.mark.parametrize("capabilities", [{}, FILES], ids=["none", "fs"])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "rewritten"])
def test_a_large_write_in_small_pieces_costs_little_more_than_showing_it_twice(open_editor, exists, capabilities):
    """Once to be approved, once when it is done. A client that writes it is sent the file itself, once, on top."""
    content = "".join(f"line {number:06d} of the file\n" for number in range(8400))
    arguments = Call("write", {"path": "src/large.txt", "content": content})
    arguments = Call("write", arguments.arguments, pieces=len(arguments.text) // 40)
    with Provider() as provider:
        if exists:
            for offset in range(1, 8400, 2000):
                provider.openai.answer(Call("read", {"path": "src/large.txt", "offset": offset}))
        provider.openai.answer(arguments)
        provider.openai.answer("Done.")
        crow = open_editor(
            Zed, base_url=provider.openai.url, capabilities=capabilities, permit=lambda request: chose("once")
        )
        path = crow.workspace / "src/large.txt"
        if exists:
            path.parent.mkdir()
            path.write_text("".join(f"line {number:06d} of the old file\n" for number in range(8400)))
        crow.new_session()
        assert crow.prompt("write it") == {"stopReason": "end_turn"}
    assert path.read_text() == content
    [id] = [id for id, shown in crow.tool_calls().items() if shown["name"] == "write"]
    first = next(place for place, line in enumerate(crow.lines) if f'"{id}"'.encode() in line)
    shown = [line for line in crow.lines[first:] if b'"fs/write_text_file"' not in line]
    old = 8400 * len("line 000000 of the old file\n") if exists else 0
    assert sum(len(line) for line in shown) <= 2.5 * (len(content) + old)
    assert sum(b'"fs/write_text_file"' in line for line in crow.lines) == bool(capabilities)

    updates = calls_updates(crow, id)
    seconds = updates[-1][0] - updates[0][0]
    assert len(updates) <= 20 * seconds + A_FEW
    titles = [update["title"] for _, update in updates if "title" in update]
    complete = next(place for place, (_, update) in enumerate(updates) if "rawInput" in update)
    assert "Write src/large.txt" in [update.get("title") for _, update in updates[:complete]]
    assert titles[-1] == f"Write src/large.txt +8400 −{8400 if exists else 0}"  # noqa: RUF001 -- a minus sign
    assert set(titles[:-1]) <= {"Write", "Write src/large.txt"}
    assert sum(shows_diff(message) for message in crow.received) <= 2


@pytest.mark.rule("R67", "R88")
def test_a_call_is_reported_when_the_model_names_it(open_editor):
    """Long before its arguments are complete, and although they never will be."""
    half = Call("terminal", raw='{"command": "make te')
    with Provider() as provider:
        provider.openai.answer(half, then=Stall())
        crow = open_editor(Zed, base_url=provider.openai.url, capabilities={})
        crow.new_session()
        prompt = crow.start_prompt("test it")
        crow.wait_until(lambda: bool(crow.tool_calls()), "the call")
        shown = crow.the_call()
        assert (shown["name"], shown["kind"], shown["status"]) == ("terminal", "execute", "pending")
        crow.cancel()
        assert prompt.answer() == {"stopReason": "cancelled"}
        assert crow.the_call()["status"] == "failed"


# --- the life


@pytest.mark.rule("R88", "R103")
@pytest.mark.parametrize(
    ("event", "statuses"),
    [
        (call("read", path="a.py"), ["pending", "in_progress", "completed"]),
        (edit("a.py", "one", "1"), ["pending", "in_progress", "completed"]),
        (edit("a.py", "nowhere", "1"), ["pending", "failed"]),
        (run("exit 1"), ["pending", "in_progress", "failed"]),
        (call("plan", entries=[]), []),  # it shows itself
        (call("terminal", command=""), ["pending", "failed"]),
    ],
)
def test_the_states_of_a_call(open_editor, event, statuses):
    crow = open_editor(Zed, script=reply(event) + DONE, capabilities={}, permit=lambda request: chose("once"))
    (crow.workspace / "a.py").write_text("one\n")
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert [update["status"] for _, update in calls_updates(crow) if "status" in update] == statuses


@pytest.mark.rule("R92")
def test_a_hidden_result_shows_nothing_anywhere(open_editor):
    """The plan is shown as a plan. Zed shows the raw output of a call that has no content, so there is none either."""
    crow = open_editor(Zed, script=reply(call("plan", entries=[{"content": "look"}])) + DONE, capabilities={})
    crow.new_session()
    crow.prompt("go")
    assert crow.thread.calls == {}
    assert [entry["content"] for entry in crow.thread.plan] == ["look"]


# --- the output of a command that we run ourselves


@pytest.mark.rule("R91")
def test_output_is_shown_while_the_command_runs(open_editor):
    crow = open_editor(
        Zed,
        script=reply(run("echo ready; read word < go; echo got $word")) + DONE,
        capabilities={},
        permit=lambda request: chose("once"),
    )
    os.mkfifo(crow.workspace / "go")
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_until(
        lambda: any("text\nready" in text_of(call) for call in crow.tool_calls().values()), "the first line"
    )
    assert crow.the_call()["status"] == "in_progress"
    (crow.workspace / "go").write_text("it\n")
    assert prompt.answer() == {"stopReason": "end_turn"}
    assert text_of(crow.the_call()).startswith("```text\nready\ngot it\nexit 0")


@pytest.mark.rule("R91")
def test_a_flood_of_output_is_not_a_flood_of_messages(open_editor):
    crow = open_editor(
        Zed, script=reply(run("seq 1 400000")) + DONE, capabilities={}, permit=lambda request: chose("once")
    )
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    updates = calls_updates(crow)
    seconds = updates[-1][0] - updates[0][0]
    assert len(updates) <= 20 * seconds + A_FEW
    assert max(len(line) for line in crow.lines) < 96 * 1024  # what was printed is in the content and the raw output
    assert "400000" in text_of(crow.the_call())


def text_of(call: Json) -> str:
    content: list[Any] = call.get("content") or []
    return "".join(item["content"]["text"] for item in content if item["type"] == "content")
