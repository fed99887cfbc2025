"""A variable with a value that cannot be used is named, with what was expected: nothing is passed over."""

from pathlib import Path

import pytest

from crow.config.discovery import mistakes, patience_in
from tests.config.support import crow, write_config

SCRIPTED = 'model = "s/x"\n[providers.s]\ntype = "scripted"\nscript = "script.toml"\n'

MISTAKES = [
    ("CROW_MODE", "wild", 'CROW_MODE: expected "ask", "edit", "plan" or "auto", found "wild".'),
    ("CROW_MODE", "Plan", 'CROW_MODE: expected "ask", "edit", "plan" or "auto", found "Plan" (did you mean "plan"?).'),
    ("CROW_PATIENCE", "abc", 'CROW_PATIENCE: expected seconds, a number above 0, found "abc".'),
    ("CROW_PATIENCE", "0", 'CROW_PATIENCE: expected seconds, a number above 0, found "0".'),
    ("CROW_PATIENCE", "nan", 'CROW_PATIENCE: expected seconds, a number above 0, found "nan".'),
    (
        "CROW_MODEL",
        "gpt",
        'CROW_MODEL: expected provider/model, found "gpt". `crow models` lists the models available.',
    ),
    ("CROW_LOCAL_SERVERS", "x", 'CROW_LOCAL_SERVERS: expected "name=port,name=port", found "x".'),
    ("CROW_ALLOW", "Bash(ls)", "CROW_ALLOW: 'Bash(ls)': unknown tool \"Bash(ls)\""),
]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    write_config(tmp_path, SCRIPTED)
    (tmp_path / "crow" / "script.toml").write_text('[[reply]]\nevents = [{ text = "Hi." }]\n')
    return tmp_path


@pytest.mark.parametrize(("name", "value", "message"), MISTAKES)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str, message: str) -> None:
    (mistake,) = mistakes({name: value})
    assert str(mistake).startswith(message)


def test_a_session_is_not_opened_with_something_else_than_what_was_asked_for(user: Path) -> None:
    said = crow(user, "run", "hello", CROW_MODE="wild")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == 'crow: CROW_MODE: expected "ask", "edit", "plan" or "auto", found "wild".\n'


def test_every_mistake_is_seen_by_the_commands_that_check(user: Path) -> None:
    wrong = {"CROW_MODE": "wild", "CROW_PATIENCE": "abc", "CROW_LOCAL_SERVERS": "x"}
    said = crow(user, "doctor", "--offline", **wrong)
    assert said.returncode == 1
    found = [line for line in said.stdout.partition("failures")[0].splitlines() if line.startswith("✗")]
    assert [line.partition(":")[0] for line in found] == ["✗ CROW_MODE", "✗ CROW_PATIENCE", "✗ CROW_LOCAL_SERVERS"]
    for command in (["status"], ["config", "check"]):
        said = crow(user, *command, CROW_MODE="wild")
        assert said.returncode == 1
        assert 'CROW_MODE: expected "ask"' in said.stdout + said.stderr


def test_an_empty_value_is_none(user: Path) -> None:
    said = crow(user, "run", "hello", CROW_MODE="", CROW_PATIENCE="", CROW_MODEL="", CROW_ALLOW="")
    assert (said.returncode, said.stdout) == (0, "Hi.\n")


@pytest.mark.parametrize(("text", "seconds"), [("0.2", 0.2), ("0.0001", 0.05), ("", 5.0)])
def test_patience_is_taken_from_the_environment(text: str, seconds: float) -> None:
    assert patience_in({"CROW_PATIENCE": text}, 5.0) == seconds


def test_a_model_that_cannot_be_used_is_told_with_the_variable_that_names_it(user: Path) -> None:
    said = crow(user, "run", "hello", CROW_MODEL="nobody/x")
    assert said.stderr.startswith("crow: CROW_MODEL: ")
    assert 'provider "nobody"' in said.stderr


def test_the_address_of_a_variable_is_not_looked_for_in_the_config(user: Path) -> None:
    wrong = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "htp:/x", "CROW_MODEL": "openai/gpt"}
    said = crow(user, "run", "hello", **wrong)
    assert "OPENAI_BASE_URL" in said.stderr
    said = crow(user, "doctor", "--offline", **wrong)
    assert said.returncode == 1
    assert "✗ openai: " in said.stdout


def test_doctor_doubts_a_variable_that_is_nearly_one_of_ours(user: Path) -> None:
    said = crow(user, "doctor", "--offline", CROW_MODLE="s/y", CROWD="1", CROW_TEST_PROCESSES="2")
    assert "! unknown variable CROW_MODLE " in said.stdout
    assert "Did you mean CROW_MODEL?" in said.stdout
    assert "CROWD" not in said.stdout
    assert "CROW_TEST" not in said.stdout
