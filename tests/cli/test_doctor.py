"""`crow doctor`: what it finds right and wrong, and how it says so."""

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from crow.web_server.built_files import find_built_files
from tests.config.support import ModelServer, Terminal, crow, write_config
from tests.support.scripts import allowing

KEY = "sk-right-key-1234"
PAGE = "✓ the page for crow web is installed"
REMEDY = "    In a checkout, run `make page`; otherwise reinstall Crow."


def lines_with(mark: str, output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(mark)]


def marked(mark: str, output: str, *names: str) -> bool:
    """Whether one line has this mark and names all of these."""
    return any(all(name in line for name in names) for line in lines_with(f"{mark} ", output))


def provider(url: str, more: str = "") -> str:
    return f'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "{url}"\n{more}'


def test_nothing_set_up_is_a_failure_with_a_remedy(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor")
    assert (said.returncode, said.stderr) == (1, "")
    assert (
        "✗ no model is set up\n"
        "    Run `crow login` in a terminal, set a key such as ANTHROPIC_API_KEY, or start a local model server.\n"
    ) in said.stdout
    assert marked("✓", said.stdout, f"{tmp_path}/crow ")
    assert list(tmp_path.iterdir()) == []


def test_all_is_well(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "rg", "bash"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    with ModelServer("m", "n", key=KEY) as server:
        path = write_config(
            tmp_path, provider(server.url, f'api_key = "{KEY}"\n[providers.p.models.m]\ncontext_window = 1000\n')
        )
        said = crow(tmp_path, "doctor", PATH=str(programs))
    assert (said.returncode, said.stderr) == (0, "")
    python, versions, *rest = said.stdout.splitlines()
    assert python.startswith("✓ Python 3.")
    assert versions.startswith("✓ crow ")
    is_built = find_built_files().is_complete  # which takes a network
    assert rest == [
        f"✓ {tmp_path}/crow exists and is private",
        f"✓ the configuration {path} is valid",
        f"✓ p at {server.url} lists 2 models",
        "✓ the model is p/m (from the config file); p lists it",
        "✓ web search: DuckDuckGo, no key needed (not tried)",
        "✓ no sessions are stored yet",
        *([PAGE] if is_built else ["! The page is missing: its files have not been built.", REMEDY]),
        "✓ programs: git, rg, bash",
        f"✓ no log yet ({tmp_path}/crow/log/crow.log)",
        "",
        "No problems found." if is_built else "1 warning.",
    ]


def test_without_utf8_the_marks_are_plain(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", PYTHONIOENCODING="latin-1")
    assert said.stdout.isascii()
    assert marked("FAIL", said.stdout, "no model is set up")
    assert lines_with("ok   Python", said.stdout)


def test_a_broken_config(tmp_path: Path) -> None:
    path = write_config(tmp_path, "mode = 1\n")
    said = crow(tmp_path, "doctor")
    assert (said.returncode, said.stderr) == (1, "")
    assert (
        f'✗ {path}: mode: expected "ask", "edit", "plan" or "auto", found 1.\n'
        "    Fix it there, then run crow doctor again.\n"
    ) in said.stdout


def test_modes_and_rules_that_are_too_wide(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY) as server:
        rule = allowing("terminal")
        path = write_config(tmp_path, provider(server.url, f'api_key = "{KEY}"\n{rule}'), mode=0o644)
        path.parent.chmod(0o755)
        said = crow(tmp_path, "doctor")
    assert (said.returncode, said.stderr) == (0, "")
    assert marked("!", said.stdout, f"{path.parent} ", "755")
    assert marked("!", said.stdout, f"{path} ", "644")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert marked("!", said.stdout, "permission.rules[0]", "allow")
    assert (
        "! the context window of p/m is unknown\n"
        "    Set it in the config:\n    [providers.p.models.m]\n    context_window = 65536\n"
    ) in said.stdout
    assert KEY not in said.stdout


def test_a_refused_key_is_a_failure_and_not_shown(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY) as server:
        write_config(tmp_path, provider(server.url, 'api_key = "sk-wrong-key-5678"\n'))
        said = crow(tmp_path, "doctor")
    assert (said.returncode, said.stderr) == (1, "")
    assert lines_with("✗ p: ", said.stdout)
    assert "sk-wrong-key-5678" not in said.stdout


def test_a_missing_variable(tmp_path: Path) -> None:
    write_config(tmp_path, provider("http://127.0.0.1:1/v1", 'api_key_env = "P_KEY"\n'))
    said = crow(tmp_path, "doctor")
    assert said.returncode == 1
    assert (
        "✗ p has no key: the variable P_KEY is not set\n"
        "    Set it where crow is started, or store a key: crow login --provider p\n"
    ) in said.stdout


def test_a_model_that_the_provider_does_not_have(tmp_path: Path) -> None:
    with ModelServer("other") as server:
        write_config(tmp_path, provider(server.url))
        said = crow(tmp_path, "doctor")
    assert said.returncode == 1
    assert (
        "✗ the model p/m (from the config file) is not in the list of p\n"
        "    It has other.\n"
        "    Choose one: crow login --provider p\n"
    ) in said.stdout


def test_a_dated_name_counts_as_the_model(tmp_path: Path) -> None:
    with ModelServer("m-20260101") as server:
        write_config(tmp_path, provider(server.url))
        said = crow(tmp_path, "doctor")
    assert said.returncode == 0
    assert marked("✓", said.stdout, "model is p/m", "config file", "p lists it")


def test_a_provider_that_is_not_needed_only_warns(tmp_path: Path) -> None:
    with ModelServer("m") as server:
        spare = '[providers.spare]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
        write_config(tmp_path, provider(server.url, spare))
        said = crow(tmp_path, "doctor")
    assert said.returncode == 0
    assert lines_with("! spare: ", said.stdout)


def test_only_when_told_to_it_spends_tokens(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY, public=True) as server:
        write_config(tmp_path, provider(server.url, f'api_key = "{KEY}"\n'))
        said = crow(tmp_path, "doctor")
        assert (said.returncode, server.asked) == (0, [])
        assert "answers" not in said.stdout
        said = crow(tmp_path, "doctor", "--try")
        assert (said.returncode, len(server.asked)) == (0, 1)
        assert "✓ p/m answers\n" in said.stdout
        write_config(tmp_path, provider(server.url, 'api_key = "sk-wrong-key-5678"\n'))
        assert crow(tmp_path, "doctor").returncode == 0
        said = crow(tmp_path, "doctor", "--try")
    assert said.returncode == 1
    assert marked("✗", said.stdout, "p/m", "401 (Unauthorized)")
    assert "sk-wrong-key-5678" not in said.stdout


def test_a_password_with_signs_in_it_is_not_shown(tmp_path: Path) -> None:
    write_config(tmp_path, provider("http://me:pa@ss@127.0.0.1:1/v1?key=sk-0123456789"))
    for arguments in (("doctor",), ("doctor", "--offline")):
        said = crow(tmp_path, *arguments)
        assert "ss@" not in said.stdout
        assert "sk-0123456789" not in said.stdout
        assert "http://127.0.0.1:1/v1" in said.stdout


def test_offline_asks_nobody(tmp_path: Path) -> None:
    with ModelServer("m") as server:
        write_config(tmp_path, provider(server.url))
        said = crow(tmp_path, "doctor", "--offline", CROW_LOCAL_SERVERS=f"ollama={server.port}")
    assert said.returncode == 0
    assert f"✓ p at {server.url} (not asked)\n" in said.stdout
    assert server.keys_seen == []


def test_a_local_server_is_checked_too(tmp_path: Path) -> None:
    with ModelServer("qwen3") as server:
        said = crow(tmp_path, "doctor", CROW_LOCAL_SERVERS=f"ollama={server.port}")
    assert said.returncode == 0
    assert f"✓ ollama at {server.url} lists 1 model\n" in said.stdout
    assert marked("✓", said.stdout, "model is ollama/qwen3 ", f"127.0.0.1:{server.port}", "ollama lists it")


def test_an_unknown_provider_of_the_model(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", "--offline", CROW_MODEL="nobody/m")
    assert said.returncode == 1
    assert marked("✗", said.stdout, "nobody/m", "CROW_MODEL", 'provider "nobody"')


def test_a_script(tmp_path: Path) -> None:
    text = 'model = "play/x"\n[providers.play]\ntype = "scripted"\nscript = "play.toml"\n'
    path = write_config(tmp_path, text)
    said = crow(tmp_path, "doctor")
    assert said.returncode == 1
    assert marked("✗", said.stdout, "play: ", f"{path.parent}/play.toml")
    (path.parent / "play.toml").write_text("")
    assert crow(tmp_path, "doctor").returncode == 0


def test_missing_programs_are_warnings(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", "--offline", PATH=str(tmp_path), CROW_MODEL="scripted/demo")
    assert said.returncode == 0
    assert [line.split()[1] for line in lines_with("!", said.stdout) if "page" not in line] == ["git", "rg", "bash"]


def test_a_wrong_table_of_servers(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", CROW_LOCAL_SERVERS="nonsense")
    assert (said.returncode, said.stderr) == (1, "")
    assert marked("✗", said.stdout, "CROW_LOCAL_SERVERS", '"name=port,name=port"', '"nonsense"')


def test_a_home_that_is_a_file_or_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "crow").write_bytes(b"")
    said = crow(tmp_path, "doctor", "--offline")
    assert (said.returncode, said.stderr) == (1, "")
    assert marked("✗", said.stdout, f"{tmp_path}/crow ")


def test_a_home_that_may_not_be_written() -> None:
    # The superuser may write anywhere, so a child without its rights looks.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "crow"
        home.mkdir(mode=0o555)
        code = (
            "import os, sys\n"
            "from crow.cli.doctor import check_home\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            "for place in sys.argv[1:]: print(*[(check.outcome, check.text) for check in check_home(place)])\n"
        )
        said = subprocess.run(
            [sys.executable, "-c", code, str(home), str(home / "new")], capture_output=True, text=True
        )
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout == (
            f"('failed', '{home} cannot be read or written')\n('failed', '{home}/new cannot be created in {home}')\n"
        )


def test_the_log_is_named(tmp_path: Path) -> None:
    log = tmp_path / "crow" / "log" / "crow.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 5000)
    os.chmod(tmp_path / "crow", 0o700)
    said = crow(tmp_path, "doctor", "--offline")
    assert f"✓ the log is {log} (4 kB)\n" in said.stdout


def test_failures_are_repeated_where_the_reader_looks_last(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", "--offline")
    failure = (
        "✗ no model is set up\n"
        "    Run `crow login` in a terminal, set a key such as ANTHROPIC_API_KEY, or start a local model server.\n"
    )
    assert said.stdout.count(failure) == 2
    assert said.stdout.endswith(f".\n{failure}")


def test_only_a_terminal_gets_colours(tmp_path: Path) -> None:
    assert "\x1b" not in crow(tmp_path, "doctor", "--offline").stdout
    with Terminal(tmp_path, "doctor", "--offline", TERM="xterm") as terminal:
        assert terminal.ended() == 1
    assert "\x1b[0;32m✓ \x1b[0mPython" in terminal.output
    assert "\x1b[0;31m✗ " in terminal.output
    with Terminal(tmp_path, "doctor", "--offline", TERM="xterm", NO_COLOR="1") as terminal:
        assert terminal.ended() == 1
    assert "\x1b" not in terminal.output


def test_what_it_says_of_a_local_server_can_be_pasted_into_the_config(tmp_path: Path) -> None:
    """A name with a dot and a colon in it, as Ollama's are; the server itself is in no config yet."""
    with ModelServer("qwen3.5:4b") as server:
        local = {"CROW_LOCAL_SERVERS": f"ollama={server.port}"}
        said = crow(tmp_path, "doctor", **local).stdout
        assert marked("!", said, "context window", "ollama/qwen3.5:4b")
        lines = said.partition("Set it in the config:\n")[2].splitlines()
        pasted = "\n".join(itertools.takewhile(lambda line: line.startswith("    "), lines))
        write_config(tmp_path, pasted)
        checked = crow(tmp_path, "doctor", **local)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "is unknown" not in checked.stdout
    assert marked("✓", checked.stdout, "model is ollama/qwen3.5:4b ", "config file")
