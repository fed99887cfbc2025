"""One tool, whole conversations: reported, judged, asked about, run, and told to the model."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import histories
from tests.support.editor import DISMISSED, FILES, NOTICES, Editor, ErrorAnswer, chose
from tests.support.heartbeat import Heartbeat
from tests.support.scripts import call_as_written, reply

DONE = '[[reply]]\nrepeat = true\nevents = [{ text = "Done." }]\n'


def reads(*paths: Path | str, before: str = "") -> str:
    calls = ", ".join(f'{{ call = "read", arguments = {{ path = "{path}" }} }}' for path in paths)
    return f"[[reply]]\nevents = [{before}{calls}]\n"


def result_for_model(crow: Editor, number: int = -1) -> dict[str, Any]:
    messages = crow.model_requests()[-1]["messages"]
    histories.assert_valid(messages)
    return [message for message in messages if message["role"] == "tool"][number]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "a.txt").write_text("outside a")
    (folder / "b.txt").write_text("outside b")
    return folder


@pytest.mark.rule("R67", "R86", "R87", "R88", "R89", "R90", "R92", "R96", "R97", "R98", "R100", "R5", "R6")
def test_a_read_is_reported_from_beginning_to_end(open_editor):
    crow = open_editor(script=reads("a.txt") + DONE)
    path = crow.workspace / "a.txt"
    path.write_text("one\ntwo\n")
    crow.new_session()
    assert crow.prompt("read it") == {"stopReason": "end_turn"}
    *reports, _ = crow.updates
    assert reports == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "t1-c1",
            "title": "Read a.txt",
            "name": "read",
            "kind": "read",
            "status": "pending",
            "locations": [{"path": str(path)}],
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1-c1", "rawInput": {"path": "a.txt"}},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1-c1",
            "title": "Read a.txt",
            "kind": "read",
            "locations": [{"path": str(path), "line": 1}],
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1-c1", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1-c1",
            "title": "Read a.txt · 2 lines",
            "status": "completed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "```txt\n     1\tone\n     2\ttwo\n```"}}
            ],
            "rawOutput": {"ok": True, "message": "2 lines"},
        },
    ]
    assert result_for_model(crow)["text"] == "     1\tone\n     2\ttwo"
    assert crow.permissions == []


@pytest.mark.rule("R86")
def test_calls_of_different_turns_have_different_ids(open_editor):
    crow = open_editor(script=reads("a.txt") + DONE.replace("repeat = true\n", "") + reads("a.txt") + DONE)
    (crow.workspace / "a.txt").write_text("x")
    crow.new_session()
    crow.prompt("one")
    crow.prompt("two")
    assert list(crow.tool_calls()) == ["t1-c1", "t2-c1"]


@pytest.mark.rule("R101", "R102", "R103", "R108", "R89", "R34", "R54")
def test_a_read_outside_asks_with_everything_that_is_needed_to_answer(open_editor, outside):
    crow = open_editor(script=reads(outside / "a.txt") + DONE, permit=lambda request: chose("once"))
    crow.new_session()
    assert crow.prompt("read it") == {"stopReason": "end_turn"}
    [asked] = crow.permissions
    reason = f"`{outside}/a.txt` is outside the workspace."
    assert asked == {
        "sessionId": crow.session_id,
        "toolCall": {
            "toolCallId": "t1-c1",
            "title": f"Read {outside}/a.txt",
            "kind": "read",
            "status": "pending",
            "locations": [{"path": f"{outside}/a.txt", "line": 1}],
            "content": [{"type": "content", "content": {"type": "text", "text": reason}}],
        },
        "options": [
            {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "session", "name": f"Allow reading in {outside} for this session", "kind": "allow_always"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
        ],
    }
    methods = [message.get("method") for message in crow.received]
    assert methods.index("session/update") < methods.index("session/request_permission")
    assert "outside a" in result_for_model(crow)["text"]


@pytest.mark.rule("R102")
def test_allowed_once_is_asked_again(open_editor, outside):
    script = reads(outside / "a.txt") + reads(outside / "a.txt") + DONE
    crow = open_editor(script=script, permit=lambda request: chose("once"))
    crow.new_session()
    crow.prompt("read it twice")
    assert len(crow.permissions) == 2


@pytest.mark.rule("R102")
def test_allowed_for_the_session_is_not_asked_again_in_that_folder(open_editor, outside, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "c.txt").write_text("c")
    script = reads(outside / "a.txt") + reads(outside / "b.txt") + reads(tmp_path / "other/c.txt") + DONE
    crow = open_editor(script=script, permit=lambda request: chose("session"))
    crow.new_session()
    crow.prompt("read them")
    titles = [request["toolCall"]["title"] for request in crow.permissions]
    assert titles == [f"Read {outside}/a.txt", f"Read {tmp_path}/other/c.txt"]
    crow.new_session()
    crow.permit = lambda request: chose("reject")
    crow.prompt("and in a session of its own?")
    assert len(crow.permissions) == 5


@pytest.mark.rule("R102", "R107")
def test_calls_side_by_side_ask_one_after_the_other_and_one_answer_may_cover_both(open_editor, outside):
    script = reads(outside / "a.txt", outside / "b.txt") + DONE
    crow = open_editor(script=script, permit=lambda request: chose("session"))
    crow.new_session()
    crow.prompt("read both")
    assert len(crow.permissions) == 1
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed", "completed"]


NO_CONSENT: dict[str, Any] = {
    "rejected": chose("reject"),
    "an option that was not offered": chose("allow_always"),
    "no option": {"outcome": {"outcome": "selected"}},
    "an option that is null": {"outcome": {"outcome": "selected", "optionId": None}},
    "an outcome of the future": {"outcome": {"outcome": "approved", "optionId": "once"}},
    "the option's name": chose("Allow once"),
    "the option without an outcome": {"optionId": "once"},
    "null": None,
    "a string": "once",
    "a list": [chose("once")],
}


@pytest.mark.rule("R105", "R106", "R99")
@pytest.mark.parametrize("answer", NO_CONSENT.values(), ids=NO_CONSENT)
def test_nothing_but_an_offered_yes_is_a_yes(open_editor, outside, answer):
    crow = open_editor(script=reads(outside / "a.txt") + DONE, permit=lambda request: answer)
    crow.new_session()
    assert crow.prompt("read it") == {"stopReason": "end_turn"}
    assert crow.the_call()["status"] == "failed"
    result = result_for_model(crow)
    assert result["text"].startswith("Not done: ")
    assert "outside a" not in str(crow.lines) + str(crow.model_requests())
    assert crow.text() == "Done."


@pytest.mark.rule("R106", "R99")
def test_an_error_instead_of_an_answer_is_a_no(open_editor, outside):
    def fail(request: Any) -> None:
        raise ErrorAnswer(-32601, "Method not found" + "!" * 100_000)

    crow = open_editor(script=reads(outside / "a.txt") + DONE, permit=fail)
    crow.new_session()
    assert crow.prompt("read it") == {"stopReason": "end_turn"}
    result = result_for_model(crow)
    assert "could not ask for permission (Method not found" in result["text"]
    assert len(result["text"]) < 1000


@pytest.mark.rule("R104")
def test_a_dismissed_question_ends_the_turn(open_editor, outside):
    crow = open_editor(script=reads(outside / "a.txt", outside / "b.txt") + DONE, permit=lambda request: DISMISSED)
    crow.new_session()
    assert crow.prompt("read it") == {"stopReason": "cancelled"}
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed", "failed"]
    assert len(crow.permissions) == 1
    assert crow.prompt("and now?") == {"stopReason": "end_turn"}
    assert "Interrupted by the user" in result_for_model(crow)["text"]


@pytest.mark.rule("R34", "R54")
@pytest.mark.parametrize("path", ["link.txt", "../../elsewhere/a.txt", "sub/../../../elsewhere/a.txt", "folder/a.txt"])
def test_no_path_leads_outside_unasked(open_editor, outside, path):
    crow = open_editor(script=reads(path) + DONE)
    (crow.workspace / "link.txt").symlink_to(outside / "a.txt")
    (crow.workspace / "folder").symlink_to(outside)
    (crow.workspace / "sub").mkdir()
    crow.new_session()
    crow.prompt("read it")
    [asked] = crow.permissions
    assert asked["toolCall"]["locations"] == [{"path": f"{outside}/a.txt", "line": 1}]
    assert "outside a" not in str(crow.model_requests())


@pytest.mark.rule("R34", "R31")
@pytest.mark.parametrize("name", [".env", "server.KEY", ".ssh/id"])
def test_a_secret_in_the_workspace_asks_each_time(open_editor, name):
    crow = open_editor(script=reads(name) + reads(name) + DONE, permit=lambda request: chose("once"))
    (crow.workspace / name).parent.mkdir(exist_ok=True)
    (crow.workspace / name).write_text("hunter2")
    crow.new_session()
    crow.prompt("read it")
    assert len(crow.permissions) == 2
    assert [option["optionId"] for option in crow.permissions[0]["options"]] == ["once", "reject"]


@pytest.mark.rule("R89")
def test_what_is_asked_about_cannot_hide(open_editor, tmp_path):
    trick = tmp_path / "gpj.\u202etxt\u200b\n# harmless"
    trick.write_text("x")
    path = str(trick).replace("\n", "\\n")
    crow = open_editor(script=reads(path) + DONE)
    crow.new_session()
    crow.prompt("read it")
    [asked] = crow.permissions
    assert asked["toolCall"]["title"].endswith("/gpj.⟨U+202E⟩txt⟨U+200B⟩⏎# harmless")
    assert "\n" not in asked["toolCall"]["title"]


FAILING = {
    "an unknown tool": (
        '{ call = "rm", arguments = { path = "a" } }',
        "Unknown tool `rm`.",
    ),
    "no arguments": ('{ call = "read" }', "- `path` is missing"),
    "a wrong type": ('{ call = "read", arguments = { path = true } }', "- `path` must be text, not true"),
    "a wrong number": (
        '{ call = "read", arguments = { path = "a", offset = -3 } }',
        "- `offset` must be at least 1, not -3",
    ),
    "no JSON": ('{ call = "read", raw = \'{"path": \' }', "are not valid JSON"),
    "no object": ("{ call = \"read\", raw = '[1]' }", "must be a JSON object"),
    "half a character": ('{ call = "read", raw = \'{"path": "\\ud800"}\' }', "are not valid JSON"),
    "a missing file": ('{ call = "read", arguments = { path = "nowhere" } }', "nowhere does not exist."),
    "a null byte": ('{ call = "read", arguments = { path = "a\\u0000b" } }', "null character"),
    "an empty path": ('{ call = "read", arguments = { path = "" } }', "- `path` is empty"),
}


@pytest.mark.rule("R99", "R67")
@pytest.mark.parametrize(("call", "said"), FAILING.values(), ids=FAILING)
def test_a_failing_call_is_a_result_not_the_end(open_editor, call, said):
    crow = open_editor(script=f"[[reply]]\nevents = [{call}]\n" + DONE)
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.the_call()["status"] == "failed"
    assert said in str(crow.the_call()["content"])
    assert said in result_for_model(crow)["text"]
    assert crow.text() == "Done."


@pytest.mark.rule("R99", "R67")
@pytest.mark.parametrize(
    ("tool", "arguments", "said", "advice"),
    [
        ("read", {"path": "no"}, "no does not exist.", "Search for it by name with `find`."),
        ("read", {}, "`path` is missing", "A correct call"),
        ("edit", {"path": "a", "edits": [{"old": "zzz", "new": "y"}]}, "does not apply", "Read it first."),
        ("edit", {"path": "a", "edits": [{"old": "", "new": "y"}]}, "has an empty `old`", "use `write`"),
        ("read", '{"path": "a', "the call was cut off", "Make the call again"),
        ("read", '{"path": }', "are not valid JSON", "Make the call again"),
        ("gargle", {}, "Unknown tool `gargle`.", "Available:"),
        ("str_replace_editor", {"command": "insert"}, "Unknown tool `str_replace_editor`.", "To insert lines use"),
        ("write", {"path": "path/to/x", "content": ""}, "it is a placeholder.", "Give the path that is meant."),
        ("leave_plan", {"plan": "x"}, "The mode is `ask`, not `plan`.", "Go on with the work."),
    ],
)
def test_advice_goes_to_the_model_and_not_onto_the_persons_card(open_editor, tool, arguments, said, advice):
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    crow = open_editor(script=reply(call_as_written(tool, written)) + DONE)
    (crow.workspace / "a").write_text("text\n")
    crow.new_session()
    crow.prompt("go")
    card = json.dumps(crow.the_call())
    assert (said in card, advice in card) == (True, False)
    told = result_for_model(crow)["text"]
    assert (said in told, advice in told) == (True, True)


@pytest.mark.rule("R97", "R99")
@pytest.mark.parametrize("depth", [40, 200, 900, 940, 960, 980, 5000])
def test_deeply_nested_arguments_cost_only_their_own_call(open_editor, depth):
    """They are shown as text: the parsers of many clients refuse a message that is nested a hundred deep."""
    raw = '{"path": ' + "[" * depth + "]" * depth + "}"
    crow = open_editor(script=f"[[reply]]\nevents = [{{ call = 'read', raw = '{raw}' }}]\n" + DONE)
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.the_call()["status"] == "failed"
    assert crow.the_call()["rawInput"]["text"].replace(" ", "") == raw.replace(" ", "")


@pytest.mark.rule("R97")
def test_long_arguments_are_not_shown_in_full(open_editor):
    crow = open_editor(
        script=f"[[reply]]\nevents = [{{ call = 'read', arguments = {{ path = '{'x' * 100_000}' }} }}]\n" + DONE
    )
    crow.new_session()
    crow.prompt("go")
    shown = crow.the_call()["rawInput"]["path"]
    assert shown.startswith("xxx")
    assert shown.endswith("… (100,000 characters)")
    assert len(shown) < 3000
    assert len(crow.the_call()["title"]) < 400


@pytest.mark.rule("R100", "R67")
def test_reads_run_side_by_side_and_keep_their_results_apart(open_editor):
    crow = open_editor(script=reads("a.txt", "b.txt", "missing.txt", "c.txt", before='{ text = "Looking." }, ') + DONE)
    for name in "abc":
        (crow.workspace / f"{name}.txt").write_text(f"content of {name}")
    crow.new_session()
    assert crow.prompt("read all") == {"stopReason": "end_turn"}
    statuses = [call["status"] for call in crow.tool_calls().values()]
    assert statuses == ["completed", "completed", "failed", "completed"]
    results = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    assert [result["call_id"] for result in results] == ["t1-c1", "t1-c2", "t1-c3", "t1-c4"]
    assert ["content of" in result["text"] for result in results] == [True, True, False, True]


@pytest.mark.rule("R88", "R61", "R70")
@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_call_that_was_cut_off_is_never_run(open_editor, reason):
    script = f'[[reply]]\nevents = [{{ call = "read", arguments = {{ path = "a.txt" }} }}, {{ finish = "{reason}" }}]\n'
    crow = open_editor(script=script + DONE)
    (crow.workspace / "a.txt").write_text("content")
    crow.new_session()
    assert crow.prompt("read") == {"stopReason": reason}
    assert crow.the_call()["status"] == "failed"
    assert "content" not in str(crow.the_call()["content"][0]["content"]["text"]).replace("cut off", "")
    crow.prompt("next")
    assert not any(message["role"] == "tool" for message in crow.model_requests()[-1]["messages"])
    histories.assert_valid(crow.model_requests()[-1]["messages"])


@pytest.mark.rule("R67")
def test_arguments_that_are_almost_right_are_taken_and_unknown_ones_named(open_editor):
    call = '{ call = "read", arguments = { path = "a.txt", offset = "2", limit = "1", colour = "red" }, pieces = 7 }'
    crow = open_editor(script=f"[[reply]]\nevents = [{call}]\n" + DONE, capabilities=NOTICES)
    (crow.workspace / "a.txt").write_text("one\r\ntwo\r\nthree\r\n")
    crow.new_session()
    crow.prompt("read")
    assert crow.the_call()["title"] == "Read a.txt:2-2"
    assert result_for_model(crow)["text"] == (
        "     2\ttwo\n(1 more lines: go on with offset 3)\n(ignored unknown arguments: colour)"
    )


@pytest.mark.rule("R87", "R92")
def test_an_image_is_shown_as_an_image(open_editor):
    crow = open_editor(script=reads("dot.png") + DONE, images=True)
    (crow.workspace / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 8)
    crow.new_session()
    crow.prompt("look")
    [shown] = crow.the_call()["content"]
    assert (shown["type"], shown["content"]["type"], shown["content"]["mimeType"]) == ("content", "image", "image/png")
    assert result_for_model(crow)["images"][0]["data"] == shown["content"]["data"]


def test_five_lines_of_a_large_file_cost_no_more_than_five_lines(open_editor, tmp_path):
    wanted = '{ call = "read", arguments = { path = "large", offset = 500000, limit = 5 } }'
    script = f"{reads('small')}[[reply]]\nevents = []\n[[reply]]\nevents = [{wanted}]\n"
    heart = Heartbeat(tmp_path)
    crow = open_editor(capabilities=FILES, script=script + DONE, environment=heart.environment)
    line = "x" * 59 + "\n"
    (crow.workspace / "large").write_text(line * 1_000_000)
    (crow.workspace / "small").write_text(line)
    asked: list[tuple[int | None, int | None]] = []

    def read(params: dict[str, Any]) -> dict[str, Any]:
        asked.append((params.get("line"), params.get("limit")))
        return {"content": line * (params.get("limit") or 1)}

    crow.answers["fs/read_text_file"] = read
    crow.new_session()
    crow.prompt("read the small one")  # so that what every read needs has been loaded
    heart.begin(crow)
    crow.prompt("read the large one")
    assert asked == [(None, None), (500000, 5)]
    assert result_for_model(crow)["text"].startswith(f"500000\t{line}500001\t{line}")
    assert heart.memory_used(crow) < 16 * 2**20
