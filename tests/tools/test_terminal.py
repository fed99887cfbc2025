"""The terminal tools on this machine's own back end: what the model and the person get, and when."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.actions import Deed
from crow.commands.base import CommandRequest
from crow.commands.processes import ForkServer, marked
from crow.commands.terminal import LocalCommands, LocalTerminal
from crow.commands.terminals import Terminals
from crow.errors import WorkspaceError
from crow.events import BackgroundEnded, CallProgressed, Event, OutputGrew
from crow.files.local import LocalWorkspace
from crow.messages import ToolCall
from crow.results import TextBlock, ToolKind, ToolResult
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import BadArguments
from crow.tools.terminal import CommandAction, RunCommand, command_title
from tests.support.patience import DEADLINE
from tests.support.recording import RecordingJournal


class Session(RecordingJournal):
    """What a session has of terminals. It remembers every command's mark, and is its own journal."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.workspace = LocalWorkspace([str(folder)])
        self.fork_server = ForkServer()
        self.commands = LocalCommands(
            self.fork_server, str(folder / "outputs"), {"PATH": os.defpath, "SECRETLESS": "1"}
        )
        self.terminals = Terminals(self)
        self.marks: list[str] = []
        self.shown: list[tuple[float, str]] = []
        self.written: list[OutputGrew] = []
        self.changed = asyncio.Event()

    async def open_terminal(self, request: CommandRequest) -> LocalTerminal:
        terminal = await self.commands.open_terminal(request)
        self.marks.append(terminal.mark)
        return terminal

    async def close(self) -> None:
        await self.commands.close()

    def append(self, event: Event) -> None:
        if isinstance(event, BackgroundEnded):
            return
        if isinstance(event, OutputGrew):
            self.written.append(event)
            return
        assert isinstance(event, CallProgressed)
        assert event.call_id == "c1"
        [block] = event.display
        assert isinstance(block, TextBlock)
        super().append(event)
        self.shown.append((time.monotonic(), block.text))
        self.changed.set()

    async def prepare(self, tool: Any, **arguments: Any) -> Any:
        call = ToolCall("c1", tool.spec.name, msgspec.json.encode(arguments).decode())
        return await tool.prepare(call, self.workspace)

    async def run(self, command: str, default_timeout: float = DEADLINE, **arguments: Any) -> ToolResult:
        tool = RunCommand(self.terminals, default_timeout)
        return await (await self.prepare(tool, command=command, **arguments)).perform(self)

    async def read(self, id: str, **arguments: Any) -> ToolResult:
        return await (await self.prepare(ReadCommand(self.terminals), id=id, **arguments)).perform(self)

    async def stop(self, id: str) -> ToolResult:
        return await (await self.prepare(StopCommand(self.terminals), id=id)).perform(self)

    def processes(self) -> list[int]:
        return [process.id for mark in self.marks for process in marked(mark)]


def in_a_session(folder: Path, story: Callable[[Session], Awaitable[None]]) -> None:
    async def tell() -> None:
        session = Session(folder)
        try:
            async with asyncio.timeout(DEADLINE):
                await story(session)
                await session.terminals.close()
                await eventually(lambda: not session.processes())
        finally:
            await session.fork_server.close()

    asyncio.run(tell())


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.005)


# --- before it runs


def test_what_will_run_is_shown_to_policy_and_person(tmp_path):
    (tmp_path / "sub").mkdir()

    async def story(session: Session) -> None:
        tool = RunCommand(session.terminals, 120)
        action: CommandAction = await session.prepare(tool, command="npm test\necho \u202edone", cwd="sub")
        sub = str(tmp_path / "sub")
        assert action.deed == Deed("terminal", ToolKind.EXECUTE, command="npm test\necho \u202edone", cwd=sub)
        assert action.title == "npm test⏎echo ⟨U+202E⟩done"
        assert action.display == (TextBlock("npm test\necho ⟨U+202E⟩done", language="bash"), TextBlock("in sub"))
        assert not session.marks

    in_a_session(tmp_path, story)


def test_titles_are_the_command(tmp_path):
    async def story(session: Session) -> None:
        tool = RunCommand(session.terminals, 120)
        assert tool.title({}) == "Run a command"
        assert tool.title({"command": "npm te"}) == "npm te"
        assert command_title(" echo `date`\nls") == "echo `date`⏎ls"
        assert tool.partial_display({"command": "npm te"}) == TextBlock("npm te", language="bash")
        assert tool.partial_display({"command": " "}) is None
        assert tool.partial_display({"command": "two\nlines"}) == TextBlock("two\nlines", language="bash")
        assert ReadCommand(session.terminals).title({"id": "b7"}) == "Output of a background command"

    in_a_session(tmp_path, story)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"command": " \n"}, "empty"),
        ({"command": ""}, "`command` is empty"),
        ({"command": "a\0b"}, "null character"),
        ({"command": "x" * 100_001}, "Write it to a file"),
        ({"command": "true", "timeout": 3_600_001}, "at most 3600000"),
        ({"command": "true", "timeout": 0}, "more than 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(tmp_path, arguments, complaint):
    async def story(session: Session) -> None:
        with pytest.raises(BadArguments, match=complaint):
            await session.prepare(RunCommand(session.terminals, 120), **arguments)

    in_a_session(tmp_path, story)


def test_a_folder_that_is_none_is_refused(tmp_path):
    (tmp_path / "file").touch()

    async def story(session: Session) -> None:
        for cwd, complaint in (("missing", "does not exist"), ("file", "is not a folder")):
            with pytest.raises(WorkspaceError, match=complaint):
                await session.prepare(RunCommand(session.terminals, 120), command="true", cwd=cwd)

    in_a_session(tmp_path, story)


def test_the_tools_are_described_in_few_words(tmp_path):
    async def story(session: Session) -> None:
        tools = (RunCommand(session.terminals, 120), ReadCommand(session.terminals), StopCommand(session.terminals))
        assert [tool.spec.name for tool in tools] == ["terminal", "terminal_read", "terminal_stop"]
        assert len(msgspec.json.encode([tool.spec for tool in tools])) < 1800

    in_a_session(tmp_path, story)


# --- how it ends


@pytest.mark.parametrize(
    ("command", "ok", "text", "message"),
    [
        ("echo hello", True, "hello\n[exit code 0]", "exit 0 · "),
        ("printf no-newline", True, "no-newline\n[exit code 0]", "exit 0 · "),
        ("true", True, "(no output)\n[exit code 0]", "exit 0 · "),
        ("echo oh >&2; exit 3", False, "oh\n[exit code 3]", "exit 3 · "),
        ("kill -9 $$", False, "(no output)\n[killed by SIGKILL]", "killed by SIGKILL · "),
        ("no-such-program 2>/dev/null", False, "(no output)\n[exit code 127]", "exit 127 · "),
        ("cat", True, "(no output)\n[exit code 0]", "exit 0 · "),
        (
            "sleep 1000 & sleep 1000 & echo served",
            True,
            "served\n[exit code 0; the 2 processes that it left running were ended]",
            "exit 0 · ",
        ),
    ],
)
def test_the_model_and_the_person_are_told_how_it_ended(tmp_path, command, ok, text, message):
    async def story(session: Session) -> None:
        result = await session.run(command)
        assert (result.ok, result.text) == (ok, text)
        assert result.message.startswith(message)
        [block] = result.display
        assert isinstance(block, TextBlock)
        assert block.text.endswith(result.message)
        await eventually(lambda: not session.processes())

    in_a_session(tmp_path, story)


def test_a_time_out_ends_it_and_says_so(tmp_path):
    async def story(session: Session) -> None:
        result = await session.run("echo begun; sleep 1000", timeout=0.3)
        assert not result.ok
        assert result.text == "begun\n[timed out after 0.3 s]"
        assert result.message == "timed out after 0.3 s"
        await eventually(lambda: not session.processes())
        assert (await session.run("sleep 1000", default_timeout=0.1)).message == "timed out after 0.1 s"

    in_a_session(tmp_path, story)


def test_a_time_out_that_only_makes_sense_in_milliseconds_is_read_so_and_that_is_said(tmp_path):
    async def story(session: Session) -> None:
        result = await session.run("echo done", timeout=120_000)
        assert result.text.splitlines()[-1] == "(the timeout 120000 was read as milliseconds: 120 s)"
        assert (await session.run("echo done", timeout=3600)).text == "done\n[exit code 0]"

    in_a_session(tmp_path, story)


def test_prompts_and_pagers_are_off_and_unknown_arguments_are_named(tmp_path):
    async def story(session: Session) -> None:
        result = await session.run("echo $PAGER $GIT_PAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT $TERM", shell="zsh")
        assert result.text == "cat cat true 0 xterm-256color\n[exit code 0]\n(ignored unknown arguments: shell)"

    in_a_session(tmp_path, story)


def test_a_cancelled_call_leaves_no_process(tmp_path):
    async def story(session: Session) -> None:
        line = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.1; done"
        running = asyncio.create_task(session.run(line))
        await session.changed.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        await eventually(lambda: not session.processes())

    in_a_session(tmp_path, story)


# --- while it runs


def test_output_is_shown_while_it_grows(tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)

    async def story(session: Session) -> None:
        running = asyncio.create_task(session.run(f"echo first; cat {fifo}"))
        await session.changed.wait()
        assert session.shown[-1][1] == "first\n"
        await asyncio.to_thread(fifo.write_text, "second\n")
        assert (await running).text == "first\nsecond\n[exit code 0]"
        assert all(text in ("first\n", "first\nsecond\n") for _, text in session.shown)

    in_a_session(tmp_path, story)


def test_growing_output_is_shown_at_most_twenty_times_a_second_and_only_its_end(tmp_path):
    async def story(session: Session) -> None:
        begun = time.monotonic()
        await session.run("for n in {1..60}; do seq 1 1000; sleep 0.01; done")
        lasted = time.monotonic() - begun
        assert 2 < len(session.shown) <= lasted * 20 + 2
        assert all(len(text) < 2100 for _, text in session.shown)
        assert session.shown[-1][1].startswith("[… ")
        assert "lines so far; the last of them:]\n" in session.shown[-1][1]

    in_a_session(tmp_path, story)


def test_a_client_that_does_not_keep_up_is_not_sent_more(tmp_path):
    async def story(session: Session) -> None:
        session.has_room = False
        assert (await session.run("seq 1 10; sleep 0.1; seq 1 10")).ok
        assert session.shown == []

    in_a_session(tmp_path, story)


def test_raw_output_begins_with_the_folder_and_comes_once(tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)

    async def story(session: Session) -> None:
        running = asyncio.create_task(session.run(rf"printf '\033[1mfirst\033[0m\n'; cat {fifo}"))
        await session.changed.wait()
        assert session.written[0] == OutputGrew("c1", "", str(tmp_path))
        await asyncio.to_thread(fifo.write_text, "second\n")
        assert (await running).text == "first\nsecond\n[exit code 0]"
        assert "".join(grown.data for grown in session.written) == "\x1b[1mfirst\x1b[0m\nsecond\n"

    in_a_session(tmp_path, story)


def test_raw_output_that_had_to_wait_for_a_client_is_not_lost(tmp_path):
    async def story(session: Session) -> None:
        session.has_room = False
        await session.run("seq 1 10; sleep 0.1; seq 11 20")
        assert [grown.data for grown in session.written] == ["", "".join(f"{number}\n" for number in range(1, 21))]

    in_a_session(tmp_path, story)


# --- in the background


def test_a_background_command_is_read_and_stopped(tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)

    async def story(session: Session) -> None:
        result = await session.run(f"echo up; cat {fifo}; exec sleep 1000", background=True)
        assert result.ok
        assert result.message == "running in the background as b1"
        assert result.text.startswith("up\n[still running, in the background as b1")
        assert [command.id for command in session.terminals.background()] == ["b1"]
        assert RunCommand(session.terminals, 1).title({"command": "x"}) == "x"
        assert StopCommand(session.terminals).title({"id": "b1"}).startswith("Stop b1: echo up; cat ")

        await asyncio.to_thread(fifo.write_text, "request\n")
        await says(session, "b1", "request")
        assert (await session.read("b1", offset=3)).text == "request\n[still running; offset 11]"
        assert (await session.read("b1", offset=11)).text == "(nothing new)\n[still running; offset 11]"

        stopped = await session.stop("b1")
        assert stopped.text == "up\nrequest\n[b1 has ended: killed by SIGTERM]"
        assert session.terminals.background() == []
        await eventually(lambda: not session.processes())
        with pytest.raises(WorkspaceError, match="Available: none"):
            await session.stop("b1")

    in_a_session(tmp_path, story)


async def says(session: Session, id: str, words: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while words not in (await session.read(id)).text:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def test_output_can_be_waited_for_and_so_can_the_end(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)
    os.mkfifo(second)

    async def story(session: Session) -> None:
        started = await session.run(f"cat {first}; cat {second}; exit 3", background=True)
        offset = int(started.text.rpartition(" ")[2].rstrip("]"))
        steps = (
            (first, "up\n", "up\n[still running; offset 3]"),
            (second, "", "(nothing new)\n[exit code 3; offset 3]"),
        )
        for fifo, said, expected in steps:
            reading = asyncio.ensure_future(session.read("b1", offset=offset, wait=50))
            await asyncio.sleep(0)
            assert not reading.done()
            await asyncio.to_thread(fifo.write_text, said)
            result = await reading
            assert result.text == expected
            offset = 3
        again = await session.read("b1", offset=3, wait=50)
        assert again.text == expected, "what has ended is not waited for"

    in_a_session(tmp_path, story)


def test_a_wait_for_output_that_does_not_come_has_an_end(tmp_path):
    async def story(session: Session) -> None:
        await session.run("exec sleep 1000", background=True)
        result = await session.read("b1", wait=0.05)
        assert result.text == "(nothing new)\n[still running; offset 0]"
        assert result.still_running

    in_a_session(tmp_path, story)


def test_a_background_command_that_fails_at_once_says_so_at_once(tmp_path):
    async def story(session: Session) -> None:
        result = await session.run("echo no; exit 4", background=True)
        assert result.text == "no\n[exit code 4]"
        assert session.terminals.background() == []

    in_a_session(tmp_path, story)


def test_a_background_command_that_ended_can_still_be_read(tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)

    async def story(session: Session) -> None:
        await session.run(f"sleep 1000 & cat {fifo}; exit 5", background=True)
        [command] = session.terminals.background()
        await asyncio.to_thread(fifo.write_text, "bye\n")
        await eventually(lambda: command.exit is not None)
        read = await session.read("b1")
        assert read.text == "bye\n[exit code 5; 1 of its processes still running; offset 4]"
        assert session.processes()

    in_a_session(tmp_path, story)


def test_background_commands_end_with_the_session(tmp_path):
    async def story(session: Session) -> None:
        for _ in range(3):
            await session.run("trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done", background=True)
        assert len(session.processes()) >= 3
        await session.terminals.close()
        await eventually(lambda: not session.processes())

    in_a_session(tmp_path, story)


def test_there_is_an_end_to_background_commands(tmp_path, monkeypatch):
    monkeypatch.setattr("crow.commands.terminals.MOST_IN_BACKGROUND", 1)

    async def story(session: Session) -> None:
        await session.run("exec sleep 1000", background=True)
        with pytest.raises(WorkspaceError, match="1 are running"):
            await session.run("exec sleep 1000", background=True)
        assert (await session.run("echo foreground")).ok

    in_a_session(tmp_path, story)
