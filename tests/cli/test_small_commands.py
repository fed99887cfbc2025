"""The small commands: `config`, `logout`, `models`, `mcp list|test`, `completion`, and `sessions` alone."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from crow.model.base import ModelInfo
from crow.model.facts import Windows
from tests.config.support import CROW, ModelServer, Terminal, crow, environment, write_config
from tests.support.patience import DEADLINE

KEY = "sk-right-key-1234"
STDIO_SERVER = Path(__file__).parent.parent / "mcp" / "servers"


def provider(url: str, more: str = "") -> str:
    return f'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "{url}"\n{more}'


# --- config


def test_the_path_of_the_configuration(tmp_path: Path) -> None:
    said = crow(tmp_path, "config", "path")
    assert (said.returncode, said.stdout) == (0, f"{tmp_path}/crow/config.toml\n")
    assert list(tmp_path.iterdir()) == []


def test_config_alone_checks_it_and_a_server_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    alone = crow(tmp_path, "config")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert "No configuration" in alone.stdout
    said = crow(tmp_path, "mcp", "test", "nest")
    assert (said.returncode, said.stdout) == (1, "")
    assert 'MCP server "nest"' in said.stderr


def test_checking_the_configuration(tmp_path: Path) -> None:
    assert "No configuration" in crow(tmp_path, "config", "check").stdout
    path = write_config(tmp_path, 'mode = "edit"\n')
    assert crow(tmp_path, "config", "check").stdout == f"{path} is valid.\n"
    write_config(tmp_path, '[budget]\nturn = "1.500 USD"\nday = "2M tokens"\n')  # which is no thousand and a half
    read = f"{path} is valid.\nbudget.turn: 1.50 USD\nbudget.day: 2,000,000 tokens\n"
    assert crow(tmp_path, "config", "check").stdout == read
    write_config(tmp_path, 'mode = "edt"\n')
    said = crow(tmp_path, "config", "check")
    assert (said.returncode, said.stdout) == (1, "")
    assert '"edit"?' in said.stderr
    other = tmp_path / "other.toml"
    other.write_text("limits = 1\n")
    said = crow(tmp_path, "config", "check", str(other))
    assert said.returncode == 1
    assert f"{other}: limits: " in said.stderr
    assert str(tmp_path / "none.toml") in crow(tmp_path, "config", "check", str(tmp_path / "none.toml")).stderr


def editor(user: Path, script: str) -> str:
    path = user / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_editing_makes_a_file_to_begin_with(tmp_path: Path) -> None:
    said = crow(tmp_path, "config", "edit", EDITOR=editor(tmp_path, 'cp "$1" "$1.seen"'))
    path = tmp_path / "crow" / "config.toml"
    assert (said.returncode, said.stdout) == (0, f"{path} is valid.\n")
    assert "# model = " in Path(f"{path}.seen").read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_terminal_no_editor_is_guessed(tmp_path: Path) -> None:
    guessed = tmp_path / "bin" / "nano"
    guessed.parent.mkdir()
    Path(editor(tmp_path, f"touch {tmp_path}/started")).rename(guessed)
    said = crow(tmp_path, "config", "edit", EDITOR="", VISUAL="", PATH=f"{guessed.parent}:{os.environ['PATH']}")
    path = tmp_path / "crow" / "config.toml"
    assert said.returncode == 1
    assert str(path) in said.stderr
    assert "EDITOR" in said.stderr
    assert not (tmp_path / "started").exists()
    assert not path.exists()


def test_a_mistake_is_shown_and_can_be_mended_at_once(tmp_path: Path) -> None:
    first_wrong = (
        """if [ -e "$1.second" ]; then echo 'mode = "plan"' > "$1"; else touch "$1.second"; echo mode=1 > "$1"; fi"""
    )
    with Terminal(tmp_path, "config", "edit", VISUAL=editor(tmp_path, first_wrong), EDITOR="false") as terminal:
        terminal.expect("mode: expected")
        terminal.expect("Edit it again? [Y/n]: ")
        terminal.type("")
        terminal.expect("is valid.")
        assert terminal.ended() == 0
    said = crow(tmp_path, "config", "edit", EDITOR="no-such-editor")
    assert said.returncode == 1
    assert "no-such-editor" in said.stderr
    assert "exit code 1" in crow(tmp_path, "config", "edit", EDITOR="false").stderr


# --- logout


def test_logging_out_deletes_the_key_alone(tmp_path: Path) -> None:
    text = (
        '# mine\nmodel = "p/m"\n\n[providers.p] # here\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
        f'api_key = "{KEY}" # x\n\n[providers.p.models.m]\nimages = true\n'
    )
    path = write_config(tmp_path, text)
    said = crow(tmp_path, "logout")
    assert said.returncode == 0
    assert str(path) in said.stdout
    assert path.read_text() == text.replace(f'api_key = "{KEY}" # x\n', "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert crow(tmp_path, "logout").stdout == "p has no key.\n"


def test_logging_out_of_what_is_not_stored(tmp_path: Path) -> None:
    said = crow(tmp_path, "logout")
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (1, "", 1)
    said = crow(tmp_path, "logout", ANTHROPIC_API_KEY="sk-x")
    assert "ANTHROPIC_API_KEY: unset it" in said.stdout
    assert '"nobody"' in crow(tmp_path, "logout", "nobody").stderr
    path = write_config(tmp_path, f'providers.p = {{ type = "openai", base_url = "http://h/v1", api_key = "{KEY}" }}\n')
    assert crow(tmp_path, "logout", "p").returncode == 0
    assert tomllib.loads(path.read_text()) == {"providers": {"p": {"type": "openai", "base_url": "http://h/v1"}}}
    write_config(
        tmp_path,
        "".join(f'[providers.{n}]\ntype = "openai"\nbase_url = "http://h/v1"\napi_key = "{KEY}"\n' for n in "pq"),
    )
    assert "crow logout p | q" in crow(tmp_path, "logout").stderr


# --- models


def test_the_models_of_all_providers(tmp_path: Path) -> None:
    with ModelServer("a", "text-embed", key=KEY) as one, ModelServer("b") as two:
        write_config(
            tmp_path,
            f'model = "p/a"\n[providers.p]\ntype = "openai"\nbase_url = "{one.url}"\napi_key = "{KEY}"\n'
            '[providers.off]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
            "[providers.off.models.mine]\nimages = true\n",
        )
        extra = {"CROW_LOCAL_SERVERS": f"ollama={two.port}"}
        said = crow(tmp_path, "models", **extra)
        assert said.returncode == 0
        names = ("p/a\t?\t\t\t\t\tits list", "off/mine\t?\t\tsees\t\t\tconfig", "ollama/b\t?\t\t\t\t\tits list")
        assert said.stdout.splitlines() == list(names)
        assert said.stderr.startswith("crow: off at http://127.0.0.1:1/v1: ")
        assert crow(tmp_path, "models", "ollama", **extra).stdout.split() == ["ollama/b", "?", "its", "list"]
        with Terminal(tmp_path, "models", "p", **extra) as terminal:
            terminal.expect("p/a  ?")
            terminal.expect("its list  (chosen by the config file)")
            assert terminal.ended() == 0
    anew = crow(tmp_path, "models", "refresh", "off", "--json")
    assert anew.returncode == 1  # nothing was fetched
    assert json.loads(anew.stdout) == [{"name": "off/mine", "images": True, "source": "config"}]
    windows = Windows(str(tmp_path / "crow"))
    windows.refuse(ModelInfo("off", "mine", host="127.0.0.1:1"), 8192, None)
    asyncio.run(windows.save())
    assert crow(tmp_path, "models", "off").stdout == "off/mine\t8,192\t\tsees\t\t\tits server\n"
    said = crow(tmp_path, "models", "nobody")
    assert (said.returncode, said.stdout) == (1, "")
    assert '"nobody"' in said.stderr
    assert "p, off" in said.stderr, "those there are"


# --- MCP servers


@pytest.mark.timeout(200)
def test_listing_and_testing_mcp_servers(tmp_path: Path) -> None:
    server = (
        f'[limits]\nmcp_start = 45\n[mcp_servers.crow]\ncommand = "{sys.executable}"\n'
        f'args = ["-m", "crow", "mcp", "--root", "{tmp_path}"]\n'
    )
    far = '[mcp_servers.far]\nurl = "http://127.0.0.1:1/mcp?key=secret"\nmcp_start = 5\n'
    write_config(tmp_path, server + far)
    said = crow(tmp_path, "mcp", "list")
    assert said.returncode == 0
    assert said.stdout == f"crow  {sys.executable} -m crow mcp --root {tmp_path}\nfar   http://127.0.0.1:1/mcp\n"
    said = crow(tmp_path, "mcp", "test", "crow")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.count("\n  mcp__crow__") == 3
    assert "  mcp__crow__file_editor  (" in said.stdout
    said = crow(tmp_path, "mcp", "test")
    assert said.returncode == 1
    assert said.stdout.count("\n  mcp__crow__") == 3
    assert "crow: the MCP server far: " in said.stderr
    assert "secret" not in said.stderr
    assert 'MCP server "nobody"' in crow(tmp_path, "mcp", "test", "nobody").stderr


# --- sessions


def test_sessions_alone_lists_them(tmp_path: Path) -> None:
    assert crow(tmp_path, "sessions").stdout == crow(tmp_path, "sessions", "list").stdout
    assert crow(tmp_path, "sessions", "--json").stdout == "[]\n"
    assert crow(tmp_path, "run", "hello", CROW_MODEL="scripted/demo").returncode == 0
    said = crow(tmp_path, "sessions")
    assert said.stdout == crow(tmp_path, "sessions", "list").stdout
    assert "hello" in said.stdout
    assert '"title": "hello"' in crow(tmp_path, "sessions", "--json").stdout


def test_status_is_what_crow_alone_says(tmp_path: Path) -> None:
    assert crow(tmp_path, "status").stdout == crow(tmp_path).stdout


# --- completion

COMPLETIONS = [
    (["crow", "ses"], ["sessions"]),
    (["crow", "setup", "j"], ["jetbrains"]),
    (["crow", "run", "--mode", "p"], ["plan"]),
    (["crow", "sessions", "export", "--format", "j"], ["json"]),
    (["crow", "config", ""], ["path", "edit", "check", "--help"]),
    (["crow", "run", "--mode", "ask", "--mo"], ["--mode", "--model"]),
]


@pytest.mark.parametrize(("typed", "completed"), COMPLETIONS)
def test_completion_in_bash(tmp_path: Path, typed: list[str], completed: list[str]) -> None:
    script = tmp_path / "crow.bash"
    script.write_text(crow(tmp_path, "completion", "bash").stdout)
    code = f'. "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _crow; printf "%s\\n" "${{COMPREPLY[@]}}"'
    said = subprocess.run(["bash", "-c", code, "bash", *typed], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split() == completed


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_completion_is_installed_as_documented(tmp_path: Path, shell: str) -> None:
    """In the home of somebody who has completed nothing yet."""
    text = (Path(__file__).parents[2] / "docs" / "scripting.md").read_text()
    line = next(line.strip() for line in text.splitlines() if f"crow completion {shell} >" in line)
    path = f"{Path(CROW).parent}:{os.environ['PATH']}"
    said = subprocess.run(
        ["sh", "-c", line], env=environment(tmp_path, PATH=path), capture_output=True, text=True, timeout=DEADLINE
    )
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_is_read_by_other_shells(tmp_path: Path, shell: str) -> None:
    text = crow(tmp_path, "completion", shell).stdout
    for word in ("sessions", "jetbrains", "plan", "markdown"):
        assert word in text
    if program := shutil.which(shell):
        script = tmp_path / f"crow.{shell}"
        script.write_text(text)
        said = subprocess.run([program, "-n", script], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
        assert (said.returncode, said.stderr) == (0, "")
