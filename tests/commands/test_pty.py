"""The terminal that a command of Crow's own writes to: what it finds there, and that nothing waits for a key in it."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tty
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crow.commands.base import CommandRequest, TerminalExit
from crow.commands.processes import ForkServer, marked
from crow.commands.pty import open_channel
from crow.commands.terminal import LocalCommands, LocalTerminal
from crow.commands.terminal_buffer import BEGINNING, END, MOST_SHOWN, PIECE, OutputBuffer, RawOutput, WholeOutput
from crow.errors import WorkspaceError
from crow.files.output_folder import OutputFolder
from tests.support.patience import DEADLINE, eventually


class Machine:
    """Commands on this machine, and whether somebody can type into them."""

    def __init__(self, folder: Path, environ: dict[str, str], *, typed: bool = False) -> None:
        self.folder = folder
        self.fork_server = ForkServer()
        environ = {"PATH": os.defpath, "HOME": str(folder)} | environ
        self.commands = LocalCommands(self.fork_server, str(folder / "outputs"), environ)
        self._typed = typed

    async def open(self, line: str) -> LocalTerminal:
        request = CommandRequest(line, str(self.folder), 30_000, takes_input=self._typed)
        return await self.commands.open_terminal(request)

    async def run(self, line: str) -> tuple[TerminalExit, str, str]:
        """How the command ended, the text of its output, and all that it wrote."""
        terminal = await self.open(line)
        try:
            ending = await terminal.wait()
            return ending, (await terminal.output()).text, terminal.raw_growth(last=True)
        finally:
            await terminal.release()


def on_this_machine(
    folder: Path, story: Callable[[Machine], Awaitable[None]], *, typed: bool = False, **environ: str
) -> None:
    async def tell() -> None:
        machine = Machine(folder, environ, typed=typed)
        try:
            async with asyncio.timeout(DEADLINE):
                await story(machine)
        finally:
            await machine.commands.close()
            await machine.fork_server.close()

    asyncio.run(tell())


async def says(terminal: LocalTerminal, words: str) -> None:
    while words not in (await terminal.output()).text:
        await terminal.grew()


# --- what a command finds


def test_both_outputs_are_a_terminal_of_a_known_size_and_the_input_is_at_its_end(tmp_path):
    async def story(machine: Machine) -> None:
        line = "test -t 0; test -t 1 && test -t 2 && echo $?; tty; stty size <&1; cat; read line || echo end; env"
        _, text, _ = await machine.run(line)
        assert text.startswith("0\nnot a tty\n40 120\nend\n")
        variables = dict(entry.split("=", 1) for entry in text.splitlines()[4:])
        assert variables["TERM"] == "xterm-256color"
        assert not {"COLUMNS", "LINES"} & set(variables), "the size of another terminal"
        assert (variables["GH_PAGER"], variables["SYSTEMD_PAGER"]) == ("cat", "cat")

    on_this_machine(tmp_path, story, COLUMNS="80", LINES="24", GH_PAGER="less", SYSTEMD_PAGER="less -R")


def test_line_ends_and_other_bytes_come_as_they_were_written(tmp_path):
    async def story(machine: Machine) -> None:
        _, text, raw = await machine.run(r"printf 'a\nb\r\nc\td\r\r\n\033[31mred\033[0m\ne'")
        assert raw == "a\nb\r\nc\td\r\r\n\x1b[31mred\x1b[0m\ne"
        assert text == "a\nb\nc\td\nred\ne"

    on_this_machine(tmp_path, story)


def test_nothing_that_a_short_command_writes_is_lost(tmp_path):
    async def story(machine: Machine) -> None:
        for number in range(100):
            assert (await machine.run(f"echo {number}; seq 1 {number}"))[1].endswith(f"{number}\n")

    on_this_machine(tmp_path, story)


def test_programs_see_a_terminal_and_the_model_does_not(tmp_path):
    async def story(machine: Machine) -> None:
        await machine.run("touch $(seq -f 'file-%03g' 1 40)")
        _, text, raw = await machine.run("ls --color=auto -p; mkdir sub; ls --color=auto -d sub")
        assert "\x1b[" in raw
        assert "\x1b" not in text
        assert max(map(len, text.expandtabs().splitlines())) in range(80, 121), "in columns, as wide as it is"

    on_this_machine(tmp_path, story)


def test_git_starts_no_pager(tmp_path):
    async def story(machine: Machine) -> None:
        identity = "-c user.name=n -c user.email=e@x -c core.pager=less -c pager.log=less"
        for number in range(60):
            await machine.run(
                f"git init -q . 2>/dev/null; git {identity} commit -q --allow-empty -m 'number {number}.'"
            )
        ending, text, raw = await machine.run(f"git {identity} log")
        assert ending == TerminalExit(code=0)
        assert text.count("number ") == 60
        assert "\x1b[33mcommit" in raw, "as it is coloured for a person"

    on_this_machine(tmp_path, story, GIT_PAGER="less")


def test_where_there_are_no_terminals_a_pipe_will_do(tmp_path, monkeypatch):
    def none_left() -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "openpty", none_left)

    async def story(machine: Machine) -> None:
        assert (await machine.run("test -t 1 || echo $TERM"))[1] == "dumb\n"

    on_this_machine(tmp_path, story)


@pytest.mark.parametrize("typed", [False, True])
def test_no_descriptor_is_left_open(tmp_path, typed):
    async def story(machine: Machine) -> None:
        await machine.run("true")
        before = os.listdir("/proc/self/fd")
        for _ in range(5):
            await machine.run("true")
            with pytest.raises(WorkspaceError):
                await machine.commands.open_terminal(CommandRequest("true", cwd="/nowhere", output_limit=10))
        await eventually_async(lambda: len(os.listdir("/proc/self/fd")) <= len(before))

    on_this_machine(tmp_path, story, typed=typed)


async def eventually_async(condition: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + DEADLINE
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not come true"
        await asyncio.sleep(0.005)


# --- nothing waits for a key that nobody can press

ASKS_FOR_A_KEY = {
    "the controlling terminal": ("exec 3</dev/tty", "/dev/tty"),
    "a password": (f"{sys.executable} -c 'import getpass; getpass.getpass()'", "EOFError"),
    "standard error, by its name": ("cat </dev/stderr; echo $?", ""),
    "standard output, by its name": ("read line </dev/stdout; echo $?", "1"),
    "standard error": (f"{sys.executable} -c 'import os; os.read(2, 1)'", "Bad file descriptor"),
    "a shell that wants to be interactive": ("bash --norc -ic 'echo hello'", "hello"),
    "less": ("seq 1 1000 | less", "1\n2\n"),
    "vim": ("vim -u NONE -N a.txt", ""),
    "ssh": ("ssh -o ProxyCommand='sleep 0' -o BatchMode=no nobody@nowhere.invalid true", ""),
}


@pytest.mark.parametrize("way", ASKS_FOR_A_KEY)
def test_whoever_wants_to_be_typed_into_ends_at_once(tmp_path, way):
    line, told = ASKS_FOR_A_KEY[way]
    if not shutil.which(way, path=os.defpath) and way.isalpha():
        pytest.skip(f"{way} is not installed")

    async def story(machine: Machine) -> None:
        ending, text, _ = await machine.run(line)  # within the deadline: it would wait for ever
        assert ending.signal is None
        assert told in text

    on_this_machine(tmp_path, story)


RAW_MODE = """
import termios, sys
modes = termios.tcgetattr(1)
modes[0] = modes[1] = modes[3] = 0
termios.tcsetattr(1, termios.TCSANOW, modes)
print("raw")
"""


def test_a_program_may_leave_the_terminal_in_whatever_mode(tmp_path):
    (tmp_path / "raw.py").write_text(RAW_MODE)

    async def story(machine: Machine) -> None:
        assert (await machine.run(f"{sys.executable} raw.py; echo after; cat; echo end"))[1] == "raw\nafter\nend\n"
        assert (await machine.run("stty onlcr <&1; echo one; echo two"))[1] == "one\ntwo\n"
        assert (await machine.run("echo next"))[2] == "next\n"

    on_this_machine(tmp_path, story)


def test_binary_garbage_is_text_for_everyone(tmp_path):
    async def story(machine: Machine) -> None:
        ending, text, raw = await machine.run("head -c 100000 /dev/urandom")
        assert ending == TerminalExit(code=0)
        assert "\x1b" not in text
        assert len(text.encode()) < 32_000
        raw.encode()  # no half of a character

    on_this_machine(tmp_path, story)


# --- somebody who can type


TYPED = """
tty; read -p 'name? ' name; echo hello $name
trap 'caught=yes' INT; trap 'resized=yes' WINCH; echo ready
until [ "$resized" ]; do sleep 0.02; done; stty size
until [ "$caught" ]; do sleep 0.02; done; echo caught
read more || echo end
"""


def test_whoever_can_type_has_a_terminal_with_keys_signals_and_a_size(tmp_path):
    async def story(machine: Machine) -> None:
        terminal = await machine.open(TYPED)
        await says(terminal, "name? ")
        await terminal.write_input(b"Bob\r")
        await says(terminal, "ready")
        terminal.resize(77, 11)
        await says(terminal, "11 77")
        await terminal.write_input(b"\x03")
        await says(terminal, "caught")
        await terminal.write_input(b"\x04")
        assert await terminal.wait() == TerminalExit(code=0)
        text = (await terminal.output()).text
        assert text.startswith("/dev/pts/")
        assert "name? Bob\nhello Bob\n" in text
        assert text.endswith("end\n")
        await terminal.release()
        with pytest.raises(WorkspaceError):
            await terminal.write_input(b"too late")

    on_this_machine(tmp_path, story, typed=True)


def test_more_is_typed_than_is_read(tmp_path):
    async def story(machine: Machine) -> None:
        terminal = await machine.open("stty raw -echo; echo ready; read go < go; head -c 200000 | wc -c")
        await says(terminal, "ready")
        typing = asyncio.create_task(terminal.write_input(b"x" * 200_000))
        await asyncio.sleep(0)
        assert not typing.done()
        await asyncio.to_thread((tmp_path / "go").write_text, "go\n")
        await typing
        await says(terminal, "200000")
        await terminal.release()

    os.mkfifo(tmp_path / "go")
    on_this_machine(tmp_path, story, typed=True)


def test_a_terminal_that_is_closed_while_somebody_types_is_watched_no_longer():
    """Else whoever gets its number next, a new connection perhaps, could not be watched."""

    async def story() -> None:
        channel = open_channel(takes_input=True)
        tty.setraw(channel.given[0])  # it keeps little of what is typed
        typing = asyncio.create_task(channel.write_input(b"x" * 200_000))
        await asyncio.sleep(0)
        channel.close()
        os.close(channel.reader)
        with pytest.raises(OSError, match="ioctl"):
            await typing
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        reader, writer = os.pipe()
        os.write(writer, b"x")
        for descriptor in (reader, writer):
            loop.add_reader(descriptor, came.set)
            loop.remove_reader(descriptor)
        loop.add_reader(reader, came.set)
        await came.wait()
        loop.remove_reader(reader)
        os.close(reader)
        os.close(writer)

    asyncio.run(story())


def test_a_command_that_takes_no_input_says_so(tmp_path):
    async def story(machine: Machine) -> None:
        terminal = await machine.open("exec sleep 1000")
        with pytest.raises(WorkspaceError, match="Cannot type into"):
            await terminal.write_input(b"hello\n")
        terminal.resize(100, 10)
        await terminal.release()

    on_this_machine(tmp_path, story)


AGENT = """
import asyncio, os, sys
from crow.commands.base import CommandRequest
from crow.commands.processes import ForkServer
from crow.commands.terminal import LocalCommands

async def main():
    commands = LocalCommands(ForkServer(), sys.argv[1], dict(os.environ))
    line = "trap '' HUP; (trap '' HUP TERM; setsid sleep 1000) & (trap '' HUP; sleep 1000) & echo ready; sleep 1000"
    terminal = await commands.open_terminal(CommandRequest(line, sys.argv[1], 1000, takes_input=sys.argv[2] == "typed"))
    while "ready" not in (await terminal.output()).text:
        await terminal.grew()
    print(terminal.mark, flush=True)
    await terminal.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["typed", "not typed"])
def test_nothing_is_left_of_a_killed_agent_whoever_could_type(tmp_path, kind):
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path), kind],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
    )
    assert agent.stdout is not None
    with agent, agent.stdout:
        try:
            mark = agent.stdout.readline().strip()
            eventually(lambda: len(marked(mark)) >= 3, "its commands run")
        finally:
            agent.send_signal(signal.SIGKILL)
    eventually(lambda: not marked(mark), "its commands are gone")


def test_a_command_that_was_left_running_hears_nothing_of_the_end_of_its_shell(tmp_path):
    line = "(trap 'echo hung up' HUP; echo ready; while :; do read -t 0.05 < go; done) & until [ -e go ]; do :; done"

    async def story(machine: Machine) -> None:
        terminal = await machine.open("mkfifo go; exec 3<>go; " + line)
        assert await terminal.wait() == TerminalExit(code=0, left_running=1)
        await says(terminal, "ready")
        assert marked(terminal.mark)
        assert "hung up" not in (await terminal.output()).text
        await terminal.release()
        await eventually_async(lambda: not marked(terminal.mark))

    on_this_machine(tmp_path, story)


# --- raw output in pieces


def recorded(folder: Path) -> tuple[OutputBuffer, RawOutput]:
    buffer = OutputBuffer(WholeOutput(OutputFolder(str(folder)), "a.txt", 30_000))
    return buffer, RawOutput(buffer)


def test_each_byte_is_shown_once_and_no_character_is_cut(tmp_path):
    buffer, raw = recorded(tmp_path)
    written = ("zwölf ✓ \x1b[31mrot\x1b[0m\n" * 20).encode()
    pieces: list[str] = []
    for start in range(0, len(written), 7):
        buffer.add(written[start : start + 7])
        pieces.append(raw.growth())
    assert raw.growth(last=True) == ""
    assert "".join(pieces).encode() == written
    buffer.add(b"\xc3")
    assert raw.growth() == ""
    assert raw.growth(last=True) == "\ufffd", "the first half of a character that never came"


def test_a_large_piece_is_shown_in_several(tmp_path):
    buffer, raw = recorded(tmp_path)
    written = b"".join(b"%d\n" % number for number in range(40_000))
    buffer.add(written)
    assert BEGINNING < len(written) < BEGINNING + END
    pieces = [raw.growth() for _ in range(10)]
    assert max(map(len, pieces)) <= PIECE
    assert "".join(pieces).encode() == written


def test_what_comes_faster_than_it_is_shown_is_left_out_and_that_is_said(tmp_path):
    buffer, raw = recorded(tmp_path)
    buffer.add(b"first\n")
    assert raw.growth() == "first\n"
    for number in range(20):
        buffer.add(b"%05d\n" % number * 20_000)
    raw.growth()  # the rest of the beginning
    skipped = raw.growth()
    assert "left out here; all of it is in" in skipped
    assert skipped.endswith("00019\n")
    assert len(skipped) <= PIECE + 300
    buffer.add(b"last\n")
    assert raw.growth() == "last\n"


def test_there_is_an_end_to_what_is_shown_of_one_command_but_its_end_is_shown(tmp_path):
    buffer, raw = recorded(tmp_path)
    shown = 0
    for _ in range(3 * MOST_SHOWN // PIECE):
        buffer.add(b"flood\n" * (PIECE // 6))
        shown += len(raw.growth())
    assert shown <= MOST_SHOWN + PIECE + 300
    assert raw.growth() == ""
    buffer.add(b"the end\n")
    end = raw.growth(last=True)
    assert "left out here" in end
    assert end.endswith("flood\nthe end\n")
    assert len(end) <= PIECE + 300


def test_a_terminal_that_is_not_used_is_closed():
    before = len(os.listdir("/proc/self/fd"))
    channel = open_channel()
    channel.close()
    os.close(channel.reader)
    assert len(os.listdir("/proc/self/fd")) == before
