"""`crow status`, and bare `crow` without a terminal, in every state: the whole text."""

import os
import subprocess
from pathlib import Path

from crow import __version__
from tests.config import support
from tests.config.support import CROW, ModelServer, write_config

ON_PATH = f"{os.path.dirname(CROW)}:{os.environ['PATH']}"


def crow(user: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return support.crow(user, **{"PATH": ON_PATH, **extra})


HEAD = f"Crow {__version__}, a coding agent for every editor\n\n"
READY = """
Next:
  crow setup EDITOR   connect zed, jetbrains, neovim, emacs, toad or vscode
  crow chat           chat with it here
"""
MEND = """
Next:
  crow login          choose a provider and a model
  crow doctor         check everything
"""


def test_nothing_is_set_up(tmp_path: Path) -> None:
    said = crow(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert (
        said.stdout
        == HEAD
        + f"""\
  model    none yet
  keys     none in the environment
  servers  none found on this machine
  config   none yet ({tmp_path}/crow/config.toml)

Next:
  crow login          choose a provider and a model
  crow demo           see it work first, without a key
"""
    )
    assert list(tmp_path.iterdir()) == []


def test_a_key_in_the_environment(tmp_path: Path) -> None:
    said = crow(tmp_path, ANTHROPIC_API_KEY="sk-secret", GROQ_API_KEY="sk-other")
    assert (said.returncode, said.stderr) == (0, "")
    assert (
        said.stdout
        == HEAD
        + f"""\
  model    anthropic/claude-sonnet-5 (from ANTHROPIC_API_KEY)
  keys     ANTHROPIC_API_KEY, GROQ_API_KEY
  servers  none found on this machine
  config   none yet ({tmp_path}/crow/config.toml)
"""
        + READY
    )


def test_servers_on_this_machine(tmp_path: Path) -> None:
    with ModelServer("a", "b", "c", "d") as full, ModelServer() as empty:
        said = crow(tmp_path, CROW_LOCAL_SERVERS=f"ollama={full.port},vllm={empty.port}")
    assert (said.returncode, said.stderr) == (0, "")
    assert (
        said.stdout
        == HEAD
        + f"""\
  model    ollama/a (from the server at 127.0.0.1:{full.port})
  keys     none in the environment
  servers  ollama with a, b, c and more; vllm(no models yet)
  config   none yet ({tmp_path}/crow/config.toml)
"""
        + READY
    )


def test_a_config_with_a_model(tmp_path: Path) -> None:
    path = write_config(tmp_path, 'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n')
    said = crow(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert (
        said.stdout
        == HEAD
        + f"""\
  model    p/m (from the config file)
  keys     none in the environment
  servers  none found on this machine
  config   {path}
"""
        + READY
    )


def test_a_model_whose_key_is_missing(tmp_path: Path) -> None:
    path = write_config(tmp_path, 'model = "anthropic/m"\n[providers.anthropic]\ntype = "anthropic"\n')
    said = crow(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    problem = "The key of anthropic is missing: the variable ANTHROPIC_API_KEY is not set."
    assert (
        said.stdout
        == HEAD
        + f"""\
  model    anthropic/m (from the config file), but it does not work: {problem}
  keys     none in the environment
  servers  none found on this machine
  config   {path}
"""
        + MEND
    )


def test_a_model_of_an_unknown_provider(tmp_path: Path) -> None:
    said = crow(tmp_path, CROW_MODEL="nobody/m")
    assert (said.returncode, said.stderr) == (0, "")
    assert 'model    nobody/m (from CROW_MODEL), but it does not work: Unknown provider "nobody"' in said.stdout
    assert said.stdout.endswith(MEND)


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    path = write_config(tmp_path, 'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "none.toml"\n')
    said = crow(tmp_path)
    problem = f"but it does not work: The script {path.parent}/none.toml does not exist."
    assert f"model    play/it (from the config file), {problem}\n" in said.stdout
    assert said.stdout.endswith(MEND)


def test_two_credentials(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "http://me:hunter22@127.0.0.1:1"\napi_key = "k"\n',
    )
    said = crow(tmp_path)
    assert "but it does not work: p has two credentials" in said.stdout
    assert "hunter22" not in said.stdout


def test_commands_are_named_as_they_can_be_called(tmp_path: Path) -> None:
    said = crow(tmp_path, PATH="/usr/bin:/bin", CROW_MODEL="scripted/demo")
    chat = f"{CROW} chat".ljust(len(f"{CROW} setup EDITOR"))
    assert said.stdout.endswith(
        f"\nNext:\n  {CROW} setup EDITOR   connect zed, jetbrains, neovim, emacs, toad or vscode\n"
        f"  {chat}   chat with it here\n"
    )


def test_the_demo_model_needs_nothing(tmp_path: Path) -> None:
    said = crow(tmp_path, CROW_MODEL="scripted/demo")
    assert "model    scripted/demo (from CROW_MODEL)\n" in said.stdout
    assert said.stdout.endswith(READY)


def test_a_broken_config(tmp_path: Path) -> None:
    path = write_config(tmp_path, "mode = 1\n")
    said = crow(tmp_path)
    assert (said.returncode, said.stderr) == (1, "")
    assert (
        said.stdout
        == HEAD
        + f"""\
  config   broken. {path}: mode: expected "ask", "edit", "plan" or "auto", found 1.

Next:
  fix it              then run crow again
  crow doctor         check everything
"""
    )
