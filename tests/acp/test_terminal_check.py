"""A client's terminal is given no command before it has shown that it runs them as they are sent."""

import json
from pathlib import Path

import pytest

from tests.support.editor import FILES, NOTICES, SILENCE, TERMINAL, Editor, ErrorAnswer, chose
from tests.support.scripts import DONE, reply, run
from tests.support.terminals import CarelessTerminal, JoiningTerminal, Terminal

VS_CODE = {"name": "vscode-acp", "title": "ACP Client", "version": "0.2.0"}
TOAD = {"name": "toad", "title": "Toad", "version": "0.6.20"}
TROUBLE = "The editor's terminal does not run commands as they are sent."


class ForgetfulTerminal(Terminal):
    """A client that ignores the folder, or the environment, or always reports success."""

    forgets = ""

    def __init__(self, id, request, environment):
        given = {key: value for key, value in request.items() if key != self.forgets}
        super().__init__(id, given, environment)


class WithoutFolder(ForgetfulTerminal):
    forgets = "cwd"


class WithoutEnvironment(ForgetfulTerminal):
    forgets = "env"


class AlwaysContent(Terminal):
    @property
    def exit_status(self):
        return None if self.process.poll() is None else {"exitCode": 0, "signal": None}


def opened(open_editor, *commands: str, terminal=Terminal, client_info=VS_CODE, **options) -> Editor:
    crow = open_editor(
        script="".join(reply(run(command)) for command in commands or ["echo hello"]) + DONE,
        capabilities=options.pop("capabilities", TERMINAL | NOTICES),
        permit=lambda request: chose("once"),
        terminal=terminal,
        client_info=client_info,
        **options,
    )
    crow.new_session()
    return crow


def told(crow: Editor) -> list[str]:
    """What the model was told of its calls."""
    return [message["text"] for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]


def stored(crow: Editor) -> dict[str, bool]:
    path = crow.home / "terminals.json"
    return json.loads(path.read_text())["clients"] if path.exists() else {}


def times_tested(crow: Editor) -> int:
    return sum("CROW_CHECK_CODE" in json.dumps(request) for request in crow.terminals.requests)


def test_what_a_shell_would_take_apart_never_reaches_it(open_editor):
    """The line that once deleted a file in the project's root: `cd src` was all that bash had got of it."""
    crow = opened(open_editor, "cd src && rm -f *.txt; ls", terminal=JoiningTerminal)
    (crow.workspace / "src").mkdir()
    for name in ("keep.txt", "src/old.txt", "src/main.py"):
        (crow.workspace / name).write_text("x\n")
    assert crow.prompt("tidy up") == {"stopReason": "end_turn"}
    assert (crow.workspace / "keep.txt").exists()
    assert not (crow.workspace / "src" / "old.txt").exists()
    assert told(crow) == ["main.py\n[exit code 0]"]
    assert len(crow.terminals.created) == times_tested(crow) == 1


def test_the_person_is_told_once_and_the_answer_is_stored_for_client_and_version(open_editor):
    crow = opened(open_editor, "echo one", "echo two", terminal=JoiningTerminal)
    crow.prompt("go")
    assert [notice for notice in crow.notices if TROUBLE in notice] == crow.notices != []
    assert crow.notices[0].endswith("Crow runs them itself instead.")
    assert stored(crow) == {"vscode-acp 0.2.0": False}
    crow.close()
    again = open_editor(
        folder=crow.folder, script=reply(run("echo three")) + DONE, capabilities=TERMINAL | NOTICES, client_info=VS_CODE
    )
    again.permit = lambda request: chose("once")
    again.new_session()
    again.prompt("go")
    assert again.terminals.created == []
    assert again.notices == []
    again.close()
    newer = open_editor(folder=crow.folder, capabilities=TERMINAL | NOTICES, client_info=VS_CODE | {"version": "0.3.0"})
    (newer.home / "script.toml").write_text(reply(run("echo four")) + DONE)
    newer.permit = lambda request: chose("once")
    newer.new_session()
    newer.prompt("go")
    assert stored(newer) == {"vscode-acp 0.2.0": False, "vscode-acp 0.3.0": True}
    assert len(newer.terminals.created) == 2


@pytest.mark.parametrize("terminal", [WithoutFolder, WithoutEnvironment, AlwaysContent])
def test_folder_environment_and_exit_code_count_too(open_editor, terminal):
    crow = opened(open_editor, "echo hello; exit 3", terminal=terminal)
    crow.prompt("go")
    assert told(crow) == ["hello\n[exit code 3]"]
    assert TROUBLE in crow.notices[0]
    assert stored(crow) == {"vscode-acp 0.2.0": False}


def test_a_client_that_passes_is_tested_once_and_never_before_it_is_needed(open_editor):
    crow = opened(open_editor, "echo one", "echo two", client_info=TOAD, terminal=CarelessTerminal)
    assert crow.terminals.created == []
    crow.prompt("go")
    assert [text.splitlines()[0] for text in told(crow)] == ["one", "two"]
    assert times_tested(crow) == 1
    assert len(crow.terminals.created) == 3
    assert stored(crow) == {"toad 0.6.20": True}
    assert crow.notices == []
    shown = [item for call in crow.tool_calls().values() for item in call["content"]]
    assert [item["terminalId"] for item in shown] == ["terminal-2", "terminal-3"]
    crow.wait_until(lambda: len(crow.terminals.released) == 3, "the releases")
    [test] = [request for request in crow.terminals.requests if "CROW_CHECK_CODE" in json.dumps(request)]
    assert not Path(test["cwd"]).exists()
    assert "Crow_tests_this_terminal" in test["args"][-1]
    assert crow.terminals.created[0].output()["output"] == ""  # Toad shows a terminal once something is printed in it


@pytest.mark.parametrize("client_info", [None, {"name": "nameless"}, {"name": "", "version": "1"}, {"name": 5}])
def test_a_client_that_does_not_say_who_it_is_is_tested_on_every_connection(open_editor, client_info):
    crow = opened(open_editor, "echo one", "echo two", client_info=client_info)
    crow.prompt("go")
    assert times_tested(crow) == 1
    assert stored(crow) == {}


def test_a_turn_can_be_cancelled_while_the_client_is_silent(open_editor):
    crow = opened(open_editor, answers={"terminal/create": lambda params: SILENCE})
    prompt = crow.start_prompt("go")
    crow.wait_for_call("terminal/create")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}


def test_without_a_terminal_after_all_commands_run_on_this_machine_and_the_person_is_told(open_editor):
    crow = opened(
        open_editor,
        "echo one",
        "echo two",
        answers={"terminal/create": lambda _: ErrorAnswer(-32601, "Method not found")},
    )
    crow.prompt("go")
    assert told(crow) == ["one\n[exit code 0]", "two\n[exit code 0]"]
    assert len(crow.notices) == 1
    assert "The editor has no terminal" in crow.notices[0]
    assert stored(crow) == {}


def test_terminals_that_are_gone_later_are_given_up_too(open_editor):
    crow = opened(open_editor, "echo one", "echo two", "echo three", client_info=TOAD)

    def create(params):
        if len(crow.terminals.created) == 2:
            raise ErrorAnswer(-32601, "Method not found")
        return crow.terminals.create(params)

    crow.answers["terminal/create"] = create
    crow.prompt("go")
    assert [text.splitlines()[0] for text in told(crow)] == ["one", "two", "three"]
    assert len(crow.notices) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        ErrorAnswer(-32603, "Permission denied: terminal/create"),
        ErrorAnswer(-32603, "the user rejected it"),
        ErrorAnswer(-32603, "cancelled"),
        ErrorAnswer(-32000, "Terminals are disabled by the user"),
        ErrorAnswer(-32000, "The user clicked away"),
        ErrorAnswer(-32603, "no pty"),
        ErrorAnswer(-32602, "Not for agents"),
        # as acpx does: what was raised in it comes as data, beside a message that is always the same
        ErrorAnswer(-32603, "Internal error", {"details": "Permission denied for terminal/create"}),
    ],
)
def test_a_refusal_stands(open_editor, refusal):
    """Nobody ran it there, so nobody runs it here."""
    crow = opened(open_editor, "echo one > ran", answers={"terminal/create": lambda _: refusal})
    crow.prompt("go")
    assert not (crow.workspace / "ran").exists()
    assert "was not run" in told(crow)[0]
    assert "was not run" in crow.text() or any(
        "was not run" in json.dumps(call["content"]) for call in crow.tool_calls().values()
    ), "the person is told"
    assert stored(crow) == {}


@pytest.mark.parametrize("refusal", [ErrorAnswer(-32000, "Terminals are disabled by the user"), {"id": 7}])
def test_a_later_no_stands_too_and_so_does_an_answer_that_cannot_be_read(open_editor, refusal):
    """The terminal that the unreadable answer is about may run the command: it must not run twice."""
    crow = opened(open_editor, "echo one", "echo two > ran", client_info=TOAD)

    def create(params):
        return refusal if len(crow.terminals.created) == 2 else crow.terminals.create(params)

    crow.answers["terminal/create"] = create
    crow.prompt("go")
    assert not (crow.workspace / "ran").exists()
    assert told(crow)[1].startswith("The editor")


def test_a_client_without_notices_is_told_in_a_message(open_editor):
    crow = opened(open_editor, "echo one", terminal=JoiningTerminal, capabilities=TERMINAL | FILES)
    crow.prompt("go")
    assert TROUBLE in crow.text()


def test_a_damaged_file_only_means_another_test(open_editor):
    crow = opened(open_editor, "echo one", client_info=TOAD)
    (crow.home / "terminals.json").write_text("{")
    crow.prompt("go")
    assert told(crow) == ["one\n[exit code 0]"]
    assert times_tested(crow) == 1
