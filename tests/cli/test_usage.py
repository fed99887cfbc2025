"""The command itself: help, exit codes, how failures are told, and what is not imported."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crow import __version__
from crow.__main__ import build_parser
from tests.config.support import CROW, crow, environment, write_config
from tests.support.patience import DEADLINE

FAKE_COMMAND = """
import sys, types
import crow.__main__ as program
module = types.ModuleType("crow.cli.fake")
module.add_arguments = lambda parser: None
def main(arguments):
    {body}
module.main = main
sys.modules["crow.cli.fake"] = module
program.COMMANDS["fake"] = "fail"
sys.argv = ["crow", "fake"]
sys.exit(program.main())
"""


def run_fake(user: Path, body: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FAKE_COMMAND.format(body=body)],
        env=environment(user, **extra),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def test_version(tmp_path: Path) -> None:
    said = crow(tmp_path, "--version")
    assert (said.returncode, said.stdout, said.stderr) == (0, f"crow {__version__}\n", "")


def test_help_lists_every_command_and_examples(tmp_path: Path) -> None:
    said = crow(tmp_path, "--help")
    assert (said.returncode, said.stderr) == (0, "")
    for word in ("acp", "run", "demo", "setup", "login", "doctor", "examples:", "crow setup zed --write"):
        assert word in said.stdout
    assert len(said.stdout.splitlines()) < 34


def test_help_of_a_command(tmp_path: Path) -> None:
    said = crow(tmp_path, "login", "--help")
    assert (said.returncode, said.stderr) == (0, "")
    for word in ("--provider", "--base-url", "--model", "--key-stdin"):
        assert word in said.stdout


def test_wrong_usage(tmp_path: Path) -> None:
    for arguments in (("--nonsense",), ("doctor", "--nonsense"), ("setup", "zed", "extra")):
        said = crow(tmp_path, *arguments)
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.startswith("usage: crow")


def test_an_error_of_ours_is_one_line(tmp_path: Path) -> None:
    write_config(tmp_path, "mode = 1\n")
    said = crow(tmp_path, "login", "--provider", "groq", "--key-stdin")
    assert (said.returncode, said.stdout) == (1, "")
    path = tmp_path / "crow" / "config.toml"
    assert said.stderr == f'crow: {path}: mode: expected "ask", "edit", "plan" or "auto", found 1.\n'


def test_an_unforeseen_error_is_one_line_and_its_traceback_is_in_the_log(tmp_path: Path) -> None:
    said = run_fake(tmp_path, "raise ValueError('two\\nlines')")
    log = tmp_path / "crow" / "log" / "crow.log"
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"crow: unexpected ValueError: two lines (details in {log})\n"
    assert "Traceback (most recent call last)" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_a_log_that_cannot_be_written_is_said_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    said = run_fake(tmp_path, "raise KeyError", CROW_HOME=str(tmp_path / "file"))
    assert said.returncode == 1
    assert said.stderr == (
        "crow: unexpected KeyError (and the log cannot be written: "
        f"The folder {tmp_path}/file/log cannot be made: not a directory.)\n"
    )


def test_an_interrupt(tmp_path: Path) -> None:
    said = run_fake(tmp_path, "raise KeyboardInterrupt")
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")


def test_a_reader_that_left_is_no_news(tmp_path: Path) -> None:
    for arguments in (["--help"], ["setup"], ["setup", "zed"], []):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as closed:
            said = subprocess.run(
                [CROW, *arguments], stdout=closed, stderr=subprocess.PIPE, env=environment(tmp_path), timeout=DEADLINE
            )
        assert said.stderr == b""
        assert said.returncode in (0, 1)


def test_text_that_the_terminal_cannot_show_does_not_fail(tmp_path: Path) -> None:
    said = crow(tmp_path, CROW_HOME=str(tmp_path / "kräh"), PYTHONIOENCODING="ascii")
    assert (said.returncode, said.stderr) == (0, "")
    assert "/kr\\xe4h/config.toml" in said.stdout


@pytest.mark.parametrize("arguments", ["", "sessions list", "sessions list --json", "doctor --offline", "--help"])
@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (">&-", "Standard output is closed."),
        (">/dev/full", "Standard output cannot be written: no space left on device."),
    ],
)
def test_an_output_that_takes_nothing_is_one_sentence(
    tmp_path: Path, arguments: str, output: str, complaint: str
) -> None:
    said = subprocess.run(
        ["/bin/sh", "-c", f"exec {CROW} {arguments} {output}"],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        timeout=DEADLINE,
    )
    assert (said.returncode, said.stderr) == (1, f"crow: {complaint}\n")


INITIALIZE = {
    "acp": '{"protocolVersion":1}',
    "mcp": '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}',
}


@pytest.mark.parametrize(
    ("command", "output", "code", "complaint"),
    [
        ("acp", ">/dev/full", 1, "crow: Standard output cannot be written: no space left on device.\n"),
        ("mcp", ">/dev/full", 1, "crow: Standard output cannot be written: no space left on device.\n"),
        ("acp", ">&-", 1, "crow: crow acp needs an open standard input and output.\n"),
        ("mcp", ">&-", 1, "crow: Standard output is closed.\n"),
        ("acp", "| :", 0, ""),  # a client that left is no news
        ("mcp", "| :", 0, ""),
    ],
)
def test_a_server_whose_output_takes_nothing_ends(
    tmp_path: Path, command: str, output: str, code: int, complaint: str
) -> None:
    # The pipe's own code is that of `:`; the server's is printed behind it on standard error, by a shell of its own.
    with subprocess.Popen(
        ["/bin/sh", "-c", f'{{ {CROW} {command}; echo "$?" >&2; }} {output}'],
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        line = f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{INITIALIZE[command]}}}\n'
        with contextlib.suppress(BrokenPipeError):  # it may have ended by then
            os.write(process.stdin.fileno(), line.encode())
        process.wait(DEADLINE)  # although more could come
        assert process.stderr.read().decode() == f"{complaint}{code}\n"


def imported(user: Path, *arguments: str) -> set[str]:
    """The modules that a run of the command loads, up to its end."""
    code = (
        "import atexit, json, os, sys\n"
        "def tell(*_): os.write(2, json.dumps(sorted(sys.modules)).encode())\n"
        "atexit.register(tell)\n"
        "leave = os._exit\n"
        "os._exit = lambda status: (tell(), leave(status))\n"
        "sys.argv = ['crow', *sys.argv[1:]]\n"
        "from crow.__main__ import main\n"
        "sys.exit(main())\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(user),
        input=b"",
        capture_output=True,
        timeout=DEADLINE,
    )
    return set(json.loads(said.stderr))


def test_the_agents_path_imports_no_argument_parser(tmp_path: Path) -> None:
    modules = imported(tmp_path, "acp")
    assert "crow.cli.acp" in modules
    assert not modules & {"argparse", "tomllib", "httpx2", "getpass", "crow.cli.status"}


def test_a_command_imports_only_itself(tmp_path: Path) -> None:
    modules = imported(tmp_path, "setup")
    commands = {"crow.cli." + name for name in ("acp", "run", "demo", "setup", "login", "doctor", "status")}
    assert modules & commands == {"crow.cli.setup"}
    assert "httpx2" not in modules


def test_a_client_that_appends_login_to_its_agent_command_gets_the_login(tmp_path: Path) -> None:
    said = crow(tmp_path, "acp", "login")
    assert said.returncode == 2
    assert said.stderr.startswith("crow: login needs a terminal")


def test_with_standard_error_closed_the_result_alone_is_printed(tmp_path: Path) -> None:
    write_config(tmp_path, 'model = "s/x"\n[providers.s]\ntype = "scripted"\nscript = "s.toml"\n')
    (tmp_path / "crow" / "s.toml").write_text('[[reply]]\nevents = [{ text = "Hi." }]\n')
    for command, code, printed in ((["run", "hello"], 0, "Hi.\n"), (["nonsense"], 2, "")):
        said = subprocess.run(
            ["sh", "-c", 'exec "$@" 2>&-', "sh", CROW, *command],
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert (said.returncode, said.stdout) == (code, printed)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mcp", "list", "docs"], "list: unexpected argument 'docs'"),
        (["mcp", "test", "--terminal"], "test does not take --terminal"),
        (["mcp", "login", "docs", "--http", "8000"], "login does not take --http"),
        (["doctor", "--offline", "--try"], "not allowed with argument --offline"),
        (["run", "--cwd", "", "hello"], "--cwd: expected a folder"),
        (["sessions", "--cwd", ""], "--cwd: expected a folder"),
        (["config", "check", ""], "FILE: expected a file"),
        (["run", "--allow", "bsh", "hello"], '--allow: unknown tool "bsh"'),
    ],
)
def test_what_would_be_passed_over_is_wrong_usage(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, as no more than the arguments are looked at."""
    try:
        parsed = build_parser(arguments[:1]).parse_args(arguments)
        code = parsed.run(parsed)
    except SystemExit as leaving:
        code = leaving.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert said in captured.err
