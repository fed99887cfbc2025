"""Accepting some changes of a diff and refusing others, before anything is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import database
from tests.support.editor import FILES, Editor, Json, Later, chose
from tests.support.scripts import DONE, call, edit, reply

ASKS = {"changes": True}
TEXT = "".join(f"line {number}\n" for number in range(1, 13))
THREE = [{"old": f"line {number}\n", "new": f"changed {number}\n"} for number in (2, 6, 11)]
EDIT = reply(call("edit", path="a.txt", edits=THREE))


def accepting(*numbers: Any, option: str = "once") -> Json:
    return chose(option) | {"_meta": {"crow": {"accepted": list(numbers)}}}


def opened(open_editor: Callable[..., Editor], script: str = EDIT, answer: Any = None, **options: Any) -> Editor:
    options = {"crow": ASKS, "permit": lambda _: answer, **options}
    crow = open_editor(script=script + DONE, **options)
    (crow.workspace / "a.txt").write_text(TEXT)
    crow.new_session()
    return crow


def expected(*numbers: int) -> str:
    text = TEXT
    for number in numbers:
        text = text.replace(f"line {number}\n", f"changed {number}\n")
    return text


def told_to_model(crow: Editor) -> str:
    *_, result = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return result["text"]


def stored_answers(crow: Editor) -> list[Json]:
    with database(crow.home / "sessions.db") as connection:
        rows = connection.execute("SELECT tag, body FROM records ORDER BY seq").fetchall()
    return [json.loads(body) for tag, body in rows if tag == "permission_answered"]


def test_just_what_was_accepted_is_written_and_the_model_learns_what_was_not(open_editor):
    crow = opened(open_editor, answer=accepting(2, 0))
    crow.prompt("change it")
    assert crow.permissions[0]["_meta"] == {"crow": {"partial": True}}
    assert (crow.workspace / "a.txt").read_text() == expected(2, 11)
    told = told_to_model(crow)
    assert "accepted 2 of 3 changes" in told
    assert "-line 6\n+changed 6\n" in told
    assert "changed 2" not in told
    [diff] = [item for item in crow.the_call()["content"] if item["type"] == "diff"]
    assert (diff["oldText"], diff["newText"]) == (TEXT, expected(2, 11))
    assert [answer["accepted"] for answer in stored_answers(crow)] == [[0, 2]]
    crow.prompt("/undo")
    assert (crow.workspace / "a.txt").read_text() == TEXT


def test_the_answer_is_stored_before_anything_is_written(open_editor):
    crow = opened(open_editor, answer=accepting(1))
    crow.prompt("change it")
    with database(crow.home / "sessions.db") as connection:
        rows = connection.execute("SELECT tag, seq FROM records UNION SELECT tag, seq FROM former_texts").fetchall()
    order = dict(rows)
    assert order["permission_answered"] < order["call_started"] < order["file_changing"] < order["file_written"]


@pytest.mark.parametrize(
    "answer",
    [chose("once"), accepting(0, 1, 2), accepting(2, 1, 0, 0), accepting(0, 1, 2, option="session")],
)
def test_all_of_them_are_a_plain_yes(open_editor, answer):
    crow = opened(open_editor, answer=answer)
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_text() == expected(2, 6, 11)
    assert "refused" not in told_to_model(crow)
    assert [answer["accepted"] for answer in stored_answers(crow)] == [None]


@pytest.mark.parametrize(
    "answer",
    [
        *(accepting(), accepting(3), accepting(-1), accepting("0"), accepting(0.5), accepting(True), accepting(None)),
        *(chose("once") | {"_meta": {"crow": {"accepted": value}}} for value in ("0", 0, {}, {"0": True}, [[0]])),
        accepting(0, option="session"),
    ],
)
def test_what_is_no_choice_of_changes_writes_nothing(open_editor, answer):
    crow = opened(open_editor, answer=answer)
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_text() == TEXT
    assert crow.the_call()["status"] == "failed"
    assert [(each["allowed"], each["accepted"]) for each in stored_answers(crow)] == [(False, None)]


def test_a_client_that_was_not_told_of_changes_cannot_accept_some(open_editor):
    crow = opened(open_editor, answer=accepting(0), crow=None)
    crow.prompt("change it")
    assert "_meta" not in crow.permissions[0]
    assert (crow.workspace / "a.txt").read_text() == TEXT


@pytest.mark.parametrize(
    "one",
    [edit("a.txt", "line 2", "changed"), call("write", path="new.txt", content="a\nb\n")],
    ids=["one change", "a new file"],
)
def test_what_is_one_change_cannot_be_divided(open_editor, one):
    crow = opened(open_editor, reply(one), accepting(0))
    crow.prompt("change it")
    assert "_meta" not in crow.permissions[0]
    assert crow.the_call()["status"] == "completed"


def test_a_file_that_is_written_anew_can_be_accepted_in_part(open_editor):
    script = reply(call("read", path="a.txt")) + reply(call("write", path="a.txt", content=expected(2, 6) + "more\n"))
    crow = opened(open_editor, script, accepting(1, 2))
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_text() == expected(6) + "more\n"
    assert "+changed 2" in told_to_model(crow)


def test_changes_of_a_large_file_are_counted_over_all_its_parts(open_editor):
    crow = opened(open_editor, answer=accepting(1))
    large = "".join(f"line {number}\n{'x' * 100}\n" for number in range(1, 3001))
    edits = [{"old": f"line {number}\n", "new": f"changed {number}\n"} for number in (20, 1500, 2900)]
    (crow.home / "script.toml").write_text(reply(call("edit", path="a.txt", edits=edits)) + DONE)
    (crow.workspace / "a.txt").write_text(large)
    crow.new_session()
    crow.prompt("change it")
    assert len([item for item in crow.permissions[-1]["toolCall"]["content"] if item["type"] == "diff"]) == 3
    assert (crow.workspace / "a.txt").read_text() == large.replace("line 1500\n", "changed 1500\n")


def test_text_without_a_last_line_feed_and_with_other_line_ends_stays_so(open_editor):
    edits = [{"old": "a", "new": "A"}, {"old": "z", "new": "Z"}]
    crow = opened(open_editor, reply(call("edit", path="a.txt", edits=edits)))
    (crow.workspace / "a.txt").write_bytes(b"a\r\n1\r\n2\r\nz")
    crow.permit = lambda _: accepting(1)
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_bytes() == b"a\r\n1\r\n2\r\nZ"


def test_what_the_person_wrote_meanwhile_is_never_overwritten(open_editor):
    crow = opened(open_editor)

    def change_and_accept(_: Json) -> Json:
        (crow.workspace / "a.txt").write_text(TEXT + "the person's own\n")
        return accepting(0)

    crow.permit = change_and_accept
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_text() == TEXT + "the person's own\n"
    assert crow.the_call()["status"] == "failed"
    assert "Nothing was written" in told_to_model(crow)


def test_unsaved_text_in_an_editor_is_never_overwritten(open_editor):
    crow = opened(open_editor, capabilities=FILES)
    path = str(crow.workspace / "a.txt")
    crow.files[path] = TEXT

    def type_and_accept(_: Json) -> Json:
        crow.files[path] = TEXT + "unsaved\n"
        return accepting(0)

    crow.permit = type_and_accept
    crow.prompt("change it")
    assert crow.files[path] == TEXT + "unsaved\n"
    assert (crow.workspace / "a.txt").read_text() == TEXT


def test_a_change_that_is_forbidden_meanwhile_is_not_made_in_part_either(open_editor):
    crow = opened(open_editor)

    def forbid_and_accept(_: Json) -> Later:
        def wait() -> Json:
            crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
            return accepting(0)

        return Later(wait)

    crow.permit = forbid_and_accept
    crow.prompt("change it")
    assert (crow.workspace / "a.txt").read_text() == TEXT


def test_a_client_of_another_process_can_accept_some(tmp_path: Path):
    owner = Editor(tmp_path, script=EDIT + DONE, client_info={"name": "owner"})
    owner.permit = lambda _: {"outcome": {"outcome": "cancelled"}}
    (owner.workspace / "a.txt").write_text(TEXT)
    other = Editor(tmp_path, client_info={"name": "other"}, crow=ASKS, permit=lambda _: accepting(1))
    try:
        other.load_session(owner.new_session())
        other.prompt("change it")
        assert (owner.workspace / "a.txt").read_text() == expected(6)
        assert stored_answers(owner)[0] | {"call_id": ""} == stored_answers(owner)[0] | {"call_id": "", "by": "other"}
        other.close()
        owner.close()
    finally:
        other.kill()
        owner.kill()
