"""Commands on this machine, with real processes: what is kept of their output, and that nothing of them is left."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from crow.commands import terminal_text as texts
from crow.commands.base import CommandRequest, TerminalExit
from crow.commands.processes import MARK, ForkServer, Supervised, SupervisorKilled, marked
from crow.commands.supervisor import Request, decode_request, encode_request
from crow.commands.terminal import LocalCommands, LocalTerminal, find_shell
from crow.errors import WorkspaceError
from tests.support.patience import DEADLINE
from tests.support.work import counted


class Machine:
    """This machine as a test sees it: commands, and whether something of them is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs = folder / "outputs"
        self.fork_server = ForkServer()
        self.commands = LocalCommands(self.fork_server, str(self.outputs), {"PATH": os.defpath, "HOME": str(folder)})

    async def open(self, line: str, **environ: str) -> LocalTerminal:
        return await self.commands.open_terminal(
            CommandRequest(line, cwd=str(self.folder), environ=environ, output_limit=30_000)
        )

    async def run(self, line: str) -> tuple[TerminalExit, str]:
        terminal = await self.open(line)
        try:
            async with asyncio.timeout(DEADLINE):
                ending = await terminal.wait()
            return ending, (await terminal.output()).text
        finally:
            await terminal.release()
            await nothing_left(terminal.mark)


def on_this_machine(folder: Path, story: Callable[[Machine], Awaitable[None]]) -> None:
    async def tell() -> None:
        machine = Machine(folder)
        try:
            async with asyncio.timeout(DEADLINE):
                await story(machine)
        finally:
            await machine.commands.close()
            await machine.fork_server.close()

    asyncio.run(tell())


async def nothing_left(mark: str) -> None:
    await eventually(lambda: not marked(mark))


async def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.005)


async def says(terminal: LocalTerminal, words: str) -> str:
    """Waits until the command has said something; all that it has said by then."""
    async with asyncio.timeout(DEADLINE):
        while words not in (text := (await terminal.output()).text):
            await terminal.grew()
    return text


@contextlib.asynccontextmanager
async def opened(machine: Machine, line: str, **environ: str) -> AsyncIterator[LocalTerminal]:
    terminal = await machine.open(line, **environ)
    try:
        yield terminal
    finally:
        await terminal.release()
        await nothing_left(terminal.mark)


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


# --- what it gives


def test_a_command_gives_its_output_in_order_and_its_exit_code(tmp_path):
    async def story(machine: Machine) -> None:
        ending, text = await machine.run("echo one; echo two >&2; echo three; exit 3")
        assert ending == TerminalExit(code=3)
        assert text == "one\ntwo\nthree\n"

    on_this_machine(tmp_path, story)


def test_a_signal_is_told_by_name_and_has_no_code(tmp_path):
    async def story(machine: Machine) -> None:
        assert (await machine.run("kill -KILL $$"))[0] == TerminalExit(signal="SIGKILL")
        assert (await machine.run("kill -SEGV $$"))[0] == TerminalExit(signal="SIGSEGV")

    on_this_machine(tmp_path, story)


def test_its_surroundings_are_what_it_was_given(tmp_path):
    (tmp_path / "a folder").mkdir()

    async def story(machine: Machine) -> None:
        terminal = await machine.commands.open_terminal(
            CommandRequest(
                "pwd; env; cat; ulimit -n >/dev/null; echo $((1+1))",
                cwd=str(tmp_path / "a folder"),
                environ={"EXTRA": "a\nb"},
                output_limit=30_000,
            )
        )
        assert await terminal.wait() == TerminalExit(code=0)
        lines = (await terminal.output()).text.splitlines()
        await terminal.release()
        assert lines[0] == str(tmp_path / "a folder")
        assert lines[-1] == "2"  # `cat` found its input empty
        assert {"EXTRA=a", "b", "TERM=xterm-256color", f"HOME={tmp_path}", f"{MARK}={terminal.mark}"} <= set(lines)
        assert not any(line.startswith(("CROW_HOME=", "VIRTUAL_ENV=", "PYTEST")) for line in lines)

    on_this_machine(tmp_path, story)


def test_signals_and_descriptors_are_as_a_shell_expects_them(tmp_path):
    async def story(machine: Machine) -> None:
        _, text = await machine.run(
            "trap | grep -E 'PIPE|XFSZ'; yes | head -1; grep SigIgn /proc/self/status; ls /proc/self/fd | tr '\\n' ' '"
        )
        first, ignored, descriptors = text.split("\n")
        assert (first, descriptors) == ("y", "0 1 2 3 ")  # 3 is ls's own
        # Python ignores these two for itself; what else is ignored comes from whoever started the tests.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            assert not int(ignored.split()[1], 16) >> (number - 1) & 1

    on_this_machine(tmp_path, story)


def test_a_command_that_cannot_be_started_is_told_in_words(tmp_path):
    async def story(machine: Machine) -> None:
        with pytest.raises(WorkspaceError, match=r"missing: no such file"):
            await machine.commands.open_terminal(
                CommandRequest("true", cwd=str(tmp_path / "missing"), output_limit=1000)
            )
        with pytest.raises(WorkspaceError, match="argument list too long"):
            await machine.open("#" * 200_000)

    on_this_machine(tmp_path, story)


def test_an_environment_larger_than_a_socket_holds_arrives(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "echo ${#V1} ${#V9}", **{f"V{n}": "x" * 100_000 for n in range(10)}) as terminal:
            await terminal.wait()
            assert (await terminal.output()).text == "100000 100000\n"

    on_this_machine(tmp_path, story)


def test_output_can_be_followed_while_it_grows(tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)

    async def story(machine: Machine) -> None:
        async with opened(machine, f"echo first; read line < {fifo}; echo $line") as terminal:
            await says(terminal, "first")
            assert terminal.glimpse() == "first\n"
            so_far = await terminal.output()
            assert (so_far.text, so_far.exit) == ("first\n", None)
            await asyncio.to_thread(fifo.write_text, "second\n")
            await terminal.wait()
            assert (await terminal.output(so_far.end)).text == "second\n"
            await terminal.grew()  # at once, now that it has ended

    on_this_machine(tmp_path, story)


def test_a_long_output_keeps_its_beginning_and_end_and_the_whole_in_a_private_file(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "seq 1 200000") as terminal:
            await terminal.wait()
            output = await terminal.output()
            assert output.truncated
            assert len(output.text) < 30_200
            assert output.text.startswith("1\n2\n3\n")
            assert output.text.endswith("\n199999\n200000\n")
            [file] = machine.outputs.glob("*.txt")
            assert f"\n[… 1.3 MB left out here; all of it is in {file} …]\n" in output.text
            assert file.read_text() == "".join(f"{n}\n" for n in range(1, 200_001))
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(machine.outputs.stat().st_mode) == 0o700
            assert terminal.glimpse().startswith("[… 200,000 lines so far; the last of them:]\n")
            assert len(terminal.glimpse()) < 2100
        await machine.commands.close()
        assert not machine.outputs.exists()

    on_this_machine(tmp_path, story)


def test_a_short_output_leaves_no_file(tmp_path):
    async def story(machine: Machine) -> None:
        await machine.run("seq 1 1000")
        assert not machine.outputs.exists()

    on_this_machine(tmp_path, story)


def test_where_the_file_cannot_be_written_the_output_says_so(tmp_path):
    (tmp_path / "outputs").write_text("in the way")

    async def story(machine: Machine) -> None:
        _, text = await machine.run("seq 1 100000")
        assert str(tmp_path / "outputs") not in text, "no file is named that is not there"
        assert "left out here" in text
        assert text.endswith("\n100000\n")

    on_this_machine(tmp_path, story)


def test_the_outputs_of_a_session_are_bounded_in_sum_and_the_oldest_that_ended_go(tmp_path, monkeypatch):
    monkeypatch.setattr("crow.files.output_folder.MOST_OF_A_SESSION", 1_000_000)

    async def story(machine: Machine) -> None:
        async with opened(machine, "head -c 150000 /dev/zero | tr '\\0' r; sleep 600") as running:
            await eventually(lambda: sum(file.stat().st_size for file in files()) == 300_000)
            first = set(files())
            async with opened(machine, "head -c 150000 /dev/zero | tr '\\0' x") as oldest:
                await oldest.wait()
            texts = [(await machine.run("head -c 150000 /dev/zero | tr '\\0' x"))[1] for _ in range(6)]
            assert sum(file.stat().st_size for file in files()) <= 1_000_000
            assert first <= set(files()), "that of a command that runs stays"
            kept = [text for text in texts if any(str(file) in text for file in files())]
            assert kept == texts[-2:], "the newest are there"
            assert "all of it is in" in texts[-1]
            assert "no longer kept" in (await oldest.output()).text
            with pytest.raises(WorkspaceError, match="no longer kept"):
                oldest.kept.read(0, 1000)
            _, text = await machine.run("head -c 3000000 /dev/zero | tr '\\0' y")
            assert sum(file.stat().st_size for file in files()) <= 1_000_000
            assert "its first" in text
            assert (await running.output()).exit is None

    def files() -> list[Path]:
        return list((tmp_path / "outputs").iterdir()) if (tmp_path / "outputs").exists() else []

    on_this_machine(tmp_path, story)


def test_so_are_those_of_all_sessions_of_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr("crow.files.output_folder.MOST_IN_ALL", 1_000_000)
    monkeypatch.setattr("crow.files.output_folder._all_files", {})

    async def story(machine: Machine) -> None:
        async def in_another_session(other: Machine) -> None:
            await other.run("head -c 300000 /dev/zero | tr '\\0' x")
            assert [file.stat().st_size for file in other.outputs.iterdir()] == [300_000, 300_000]
            assert [file.stat().st_size for file in machine.outputs.iterdir()] == [200_000, 200_000]

        for _ in range(2):
            await machine.run("head -c 200000 /dev/zero | tr '\\0' x")
        (tmp_path / "folder").mkdir()
        other = Machine(tmp_path / "folder")
        await in_another_session(other)
        await other.commands.close()
        await other.fork_server.close()

    on_this_machine(tmp_path, story)


@pytest.mark.parametrize("theirs", ["another user's", "open to others", "a link"])
def test_a_folder_that_somebody_made_beforehand_is_not_used(tmp_path, theirs):
    if theirs == "another user's" and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    planted = tmp_path / "outputs"
    if theirs == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to("elsewhere")
    else:
        tmp_path.chmod(0o1777)
        becomes_other = theirs == "another user's"
        # From a folder's descriptor, as the folders above are closed to them.
        make = "import os, sys; os.fchdir(int(sys.argv[1])); os.umask(0); "
        make += "os.setgid(65534); os.setuid(65534); " if becomes_other else ""
        make += "os.mkdir('outputs'); os.chmod('outputs', 0o777)"
        folder = os.open(tmp_path, os.O_RDONLY)
        subprocess.run([sys.executable, "-c", make, str(folder)], check=True, pass_fds=[folder])
        os.close(folder)
        assert planted.stat().st_uid == (65534 if becomes_other else os.geteuid())

    async def story(machine: Machine) -> None:
        _, text = await machine.run("seq 1 100000")
        assert "could not be kept" in text
        assert str(planted) not in text, "nobody is led to what lies there"
        assert not list(planted.iterdir())

    on_this_machine(tmp_path, story)


def test_a_flood_costs_little_and_holds_nobody_up(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "yes") as terminal:
            with counted() as work:
                while (await terminal.output()).end < 2_000_000:  # the command is not held up either
                    await asyncio.sleep(0.01)
                    terminal.glimpse()
            await terminal.kill()
            output = await terminal.output()
            assert output.text.startswith("y\ny\n")
            assert work.lines < output.end / 20
            assert max(file.stat().st_size for file in machine.outputs.iterdir()) <= 100_000_000

    on_this_machine(tmp_path, story)


def test_the_file_is_bounded_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("crow.files.output_folder.LARGEST_FILE", 1_000_000)

    async def story(machine: Machine) -> None:
        _, text = await machine.run("head -c 3000000 /dev/zero | tr '\\0' x")
        [file] = machine.outputs.glob("*.txt")
        assert f"1.0 MB are in {file}" in text
        assert file.stat().st_size == 1_000_000

    on_this_machine(tmp_path, story)


# --- text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("plain\n", "plain\n"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("pty\r\r\n", "pty\n"),
        ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
        ("10%\r50%\r", "50%"),
        ("\x1b[1;31mred\x1b[0m \x1b[38:2:1:2:3mx\x1b[K", "red x"),
        ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b7\x1b=a\x1b[?25l", "a"),
        ("\x1bPsixel\x1b\\b", "b"),
        ("\x1b]never ends\nnext line", "\nnext line"),
        ("cut off \x1b[3", "cut off "),
        ("b\bbo\bol\bld\bd", "bold"),
        ("12%\b\b\b13%\b\b\b99%", "99%"),
        ("bell\x07 null\x00 tab\tc1\x9b", "bell null tab\tc1"),
        ("ünï\u200dcode ✓\n", "ünï\u200dcode ✓\n"),
    ],
)
def test_what_terminals_were_sent_becomes_readable(written, read):
    assert texts.without_escapes(written) == read


def test_cuts_are_at_lines_and_characters():
    text = "erste\nzwölf\ndritte\n"
    assert texts.first_part(text, 14) == "erste\nzwölf\n"
    assert texts.first_part("zwölf", 3) == "zw"
    assert texts.last_part(text, 15) == "zwölf\ndritte\n"
    assert texts.last_part("zwölf", 3) == "lf"
    assert texts.split_to_fit(text, 100) is None
    assert texts.joined(("a", "b"), "3 bytes left out here") == "a\n[… 3 bytes left out here …]\nb"


def test_hostile_text_is_read_in_linear_time():
    """A pattern that goes back would not come to an end."""
    for hostile in ("\x1b[", "\x1b[0", "\x1b]", "\b", "\r", "a\b"):
        assert texts.without_escapes(hostile * 150_000 + "\nread") == "\nread"
    assert set(texts.without_escapes("\x1b[" + "0" * 300_000)) == {"0"}, "no sequence is so long"


def test_characters_that_arrive_in_halves_are_whole(tmp_path):
    async def story(machine: Machine) -> None:
        _, text = await machine.run("printf '\\303'; sleep 0.05; printf '\\274\\n\\377\\n'")
        assert text == "ü\n\ufffd\n"

    on_this_machine(tmp_path, story)


def test_a_request_survives_its_encoding():
    request = Request(b"/tmp/\xff", [b"/bin/sh", b"-c", b"a\nb"], [b"A=", b"B=c=d"])
    assert decode_request(encode_request(request)[4:]) == request


def test_without_bash_there_is_sh(tmp_path, monkeypatch):
    bash = tmp_path / "bash"
    bash.touch(0o755)
    assert find_shell(f"/nowhere:{tmp_path}") == str(bash)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert find_shell("/nowhere") == "/bin/sh"


# --- nothing is left

LEAVES_SOMETHING = {
    "in the background": "sleep 1000 & echo $! >> pids",
    "with nohup": "nohup sleep 1000 >/dev/null 2>&1 & echo $! >> pids",
    "disowned": "sleep 1000 & disown; echo $! >> pids",
    "in a session of its own": "setsid sh -c 'echo $$ >> pids; exec sleep 1000' & while ! [ -s pids ]; do :; done",
    "forked twice": "(setsid sh -c '(sleep 1000 & echo $! >> pids) &') ; while ! [ -s pids ]; do :; done",
    "deaf to requests": "(trap '' TERM HUP INT; sleep 1000) & echo $! >> pids",
    "without a mark": "(env -i setsid sh -c '(sleep 1000 & echo $! >> pids) &'); while ! [ -s pids ]; do :; done",
    "stopped": "sleep 1000 & echo $! >> pids; kill -STOP $!",
}


@pytest.mark.parametrize("ending", ["exit", "kill", "release"])
@pytest.mark.parametrize("line", LEAVES_SOMETHING.values(), ids=LEAVES_SOMETHING)
def test_nothing_that_a_command_started_is_left(tmp_path, line, ending):
    async def story(machine: Machine) -> None:
        terminal = await machine.open(line if ending == "exit" else f"{line}; echo ready; exec sleep 1000")
        try:
            if ending == "exit":
                assert await terminal.wait() == TerminalExit(code=0, left_running=1)
            else:
                await says(terminal, "ready")
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            assert pids
            assert all(is_alive(pid) for pid in pids)
            if ending == "kill":
                await terminal.kill()
                assert (await terminal.wait()).code is None
                assert not any(is_alive(pid) for pid in pids)
        finally:
            await terminal.release()
        await eventually(lambda: not any(is_alive(pid) for pid in pids))
        assert not marked(terminal.mark)

    on_this_machine(tmp_path, story)


def test_what_forks_faster_than_it_can_be_counted_is_ended_too(tmp_path):
    # One process at a time, each a child of the one before, and none lives as long as it takes to look at it.
    # It ends by itself after some seconds, so that a failure of this test costs the machine nothing.
    line = "hop() { [ $1 -gt 0 ] && { (hop $(($1 - 1))) & } }; trap '' TERM; echo ready; hop 3000; sleep 1000"

    async def story(machine: Machine) -> None:
        async with opened(machine, line) as terminal:
            await says(terminal, "ready")
            await terminal.kill()
            assert not marked(terminal.mark)

    on_this_machine(tmp_path, story)


def test_a_command_that_is_ended_does_no_more_of_its_line(tmp_path):
    """A shell whose child is asked to end before it would go on with what stands behind that."""

    async def story(machine: Machine) -> None:
        for number in range(25):
            async with opened(machine, f"echo ready; sleep 600; touch {tmp_path}/never{number}") as terminal:
                await says(terminal, "ready")
                await terminal.kill()

    on_this_machine(tmp_path, story)
    assert list(tmp_path.rglob("never*")) == []


def test_ending_a_command_is_told_from_its_own_end(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(
            machine, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
        ) as terminal:
            await says(terminal, "ready")
            await terminal.kill()
            assert await terminal.wait() == TerminalExit(code=7)
            assert (await terminal.output()).text.endswith("bye\n")
        async with opened(machine, "trap '' TERM; echo ready; while :; do sleep 0.01; done") as terminal:
            await says(terminal, "ready")
            await terminal.kill()
            assert await terminal.wait() == TerminalExit(signal="SIGKILL")

    on_this_machine(tmp_path, story)


def test_a_cancelled_start_leaves_nothing(tmp_path):
    async def story(machine: Machine) -> None:
        await machine.run("true")  # the fork server is there
        for _ in range(5):
            task = asyncio.create_task(machine.open("sleep 1000"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        await eventually(lambda: children_of(machine) == [])

    on_this_machine(tmp_path, story)


def test_a_cancelled_release_still_ends_everything(tmp_path):
    async def story(machine: Machine) -> None:
        terminal = await machine.open("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        await says(terminal, "ready")
        release = asyncio.create_task(terminal.release())
        await asyncio.sleep(0)
        release.cancel()
        await asyncio.wait([release])
        await nothing_left(terminal.mark)
        await terminal.release()  # twice is as good as once

    on_this_machine(tmp_path, story)


def test_a_killed_supervisor_takes_its_command_with_it(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "setsid sleep 1000 & echo $PPID ready; sleep 1000") as terminal:
            supervisor = (await says(terminal, "ready")).split()[0]
            os.kill(int(supervisor), signal.SIGKILL)
            async with asyncio.timeout(DEADLINE):
                assert await terminal.wait() == TerminalExit()
            await nothing_left(terminal.mark)
        assert await machine.run("echo still here") == (TerminalExit(code=0), "still here\n")

    on_this_machine(tmp_path, story)


def test_a_killed_fork_server_is_replaced(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "echo ready; exec sleep 1000") as terminal:
            await says(terminal, "ready")
            fork_server = machine.fork_server._process
            assert fork_server is not None
            fork_server.kill()
            await asyncio.to_thread(fork_server.wait)
            assert await machine.run("echo again") == (TerminalExit(code=0), "again\n")
            assert marked(terminal.mark)  # its supervisor goes on

    on_this_machine(tmp_path, story)


def children_of(machine: Machine) -> list[int]:
    """The fork server's supervisors."""
    fork_server = machine.fork_server._process
    assert fork_server is not None
    return [int(pid) for pid in Path(f"/proc/{fork_server.pid}/task/{fork_server.pid}/children").read_text().split()]


def test_supervisors_and_fork_server_go_when_they_have_nothing_to_do(tmp_path):
    async def story(machine: Machine) -> None:
        await machine.run("true")
        await eventually(lambda: children_of(machine) == [])
        fork_server = machine.fork_server._process
        assert fork_server is not None
        await machine.fork_server.close()
        assert fork_server.returncode == 0

    on_this_machine(tmp_path, story)


def test_the_agents_own_children_are_none_of_the_fork_servers_business(tmp_path):
    async def story(machine: Machine) -> None:
        child = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
        async with opened(machine, "sleep 1000 &") as terminal:
            await terminal.wait()
        assert child.returncode is None
        child.kill()
        assert await child.wait() == -signal.SIGKILL

    on_this_machine(tmp_path, story)


AGENT = """
import asyncio, os, sys
from crow.commands.base import CommandRequest
from crow.commands.processes import ForkServer
from crow.commands.terminal import LocalCommands

async def main():
    commands = LocalCommands(ForkServer(), sys.argv[1], dict(os.environ))
    terminal = await commands.open_terminal(CommandRequest(sys.argv[2], cwd=sys.argv[1], output_limit=1000))
    while "ready" not in (await terminal.output()).text:
        await terminal.grew()
    print(terminal.mark, flush=True)
    if sys.argv[3] == "exit":
        os._exit(0)
    await terminal.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["SIGKILL", "SIGTERM", "exit"])
def test_nothing_is_left_when_the_agent_itself_is_killed(tmp_path, way):
    all_there = f"while [ $(wc -l < pids) -lt {len(LEAVES_SOMETHING)} ]; do sleep 0.01; done"
    line = "; ".join([*LEAVES_SOMETHING.values(), all_there, "trap '' TERM; echo ready; while :; do sleep 1; done"])
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path), line, way],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
    )
    assert agent.stdout is not None
    with agent, agent.stdout:
        mark = agent.stdout.readline().strip()
        fork_servers = programs_below(agent.pid)
        if way != "exit":
            agent.send_signal(signal.Signals[way])
        agent.wait(DEADLINE)
        assert agent.stdout.read() == ""  # nobody else holds the agent's output
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == len(LEAVES_SOMETHING)
    asyncio.run(eventually(lambda: not any(is_alive(pid) for pid in [*pids, *fork_servers]) and not marked(mark)))


def programs_below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(OSError):
        own = [int(child) for child in children.read_text().split()]
        return own + [grandchild for child in own for grandchild in programs_below(child)]
    return []


def test_a_command_that_kills_its_supervisor_at_once_is_not_said_to_have_failed_to_start(tmp_path):
    async def story(machine: Machine) -> None:
        for _ in range(3):  # the supervisor may have been quicker, and said that the command runs
            try:
                async with opened(machine, "kill -9 $PPID; sleep 1000") as terminal:
                    assert await terminal.wait() == TerminalExit()
            except WorkspaceError as error:
                assert isinstance(error, SupervisorKilled)  # noqa: PT017 -- one of two outcomes

    on_this_machine(tmp_path, story)


def test_a_supervisor_that_ends_without_a_word_was_killed(tmp_path):
    async def run() -> None:
        ours, theirs = socket.socketpair()
        supervised = Supervised(ours)
        theirs.close()
        with pytest.raises(SupervisorKilled):
            await supervised.started()

    asyncio.run(run())


# --- what killed agents have left


def leave_behind(folder: Path, name: str, *, age: float = 3600) -> Path:
    left = folder / name
    left.mkdir()
    (left / "0123456789abcdef.txt").write_text("output")
    then = time.time() - age
    os.utime(left, (then, then))
    return left


def test_outputs_that_a_killed_agent_left_are_removed_by_the_next_one(tmp_path):
    left = leave_behind(tmp_path, "crow-0123456789ab-0123456789abcdef")
    living = leave_behind(tmp_path, "crow-0123456789ab-0000000000000000")
    kept = [
        living,
        leave_behind(tmp_path, "crow-0123456789ab-1111111111111111", age=1),
        leave_behind(tmp_path, "crow-mine"),
        leave_behind(tmp_path, "other"),
    ]
    with_other_things = leave_behind(tmp_path, "crow-0123456789ab-2222222222222222")
    (with_other_things / "mine").touch()
    os.utime(with_other_things, (1, 1))
    (tmp_path / "crow-0123456789ab-3333333333333333").symlink_to("other")

    async def story(machine: Machine) -> None:
        await machine.run("true")

    with locked(living):
        on_this_machine(tmp_path, story)
    assert not left.exists()
    assert all((folder / "0123456789abcdef.txt").exists() for folder in kept)
    assert (with_other_things / "mine").exists()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """By another process, as a living agent does it."""
    script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_SH); print(flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate("\n")


def test_the_folder_of_a_living_session_is_locked(tmp_path):
    async def story(machine: Machine) -> None:
        async with opened(machine, "seq 1 200000") as terminal:
            await terminal.wait()
            descriptor = os.open(machine.outputs, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(descriptor)

    on_this_machine(tmp_path, story)
