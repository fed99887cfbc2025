"""`crow login`: in a real terminal and without one, against a real server on this machine."""

import sys
import tomllib
from pathlib import Path

import pytest

from crow.config.settings import VENDORS
from tests.config import support
from tests.config.support import ModelServer, Terminal, crow, write_config

KEY = "sk-right-key-1234"
OTHER = str(len(VENDORS) + 1)  # the last line of the list when no server runs here


def config(user: Path) -> Path:
    return user / "crow" / "config.toml"


# --- in a terminal


def test_another_server_with_a_key(tmp_path: Path) -> None:
    with ModelServer("embed-1", "small", "large", key=KEY) as server, Terminal(tmp_path, "login") as terminal:
        terminal.expect("Which provider?")
        terminal.expect("Another OpenAI-compatible server")
        terminal.type(OTHER)
        terminal.expect("Its address [http://127.0.0.1:8080/v1]: ")
        terminal.type(server.url)
        terminal.expect("A short name for it [local]: ")
        terminal.type("mine")
        terminal.expect(f"Key for mine at {server.url} (leave empty if it needs none): ")
        terminal.type(KEY)
        terminal.expect("Model (a number, a name, or a part of one) [small]: ")
        terminal.type("2")
        terminal.expect(f"Crow will use mine/large. Saved in {config(tmp_path)}; the key is stored there")
        assert terminal.ended() == 0
    assert KEY not in terminal.output
    assert server.keys_seen == [KEY]
    assert config(tmp_path).read_text() == (
        f'model = "mine/large"\n\n[providers.mine]\ntype = "openai"\nbase_url = "{server.url}"\napi_key = "{KEY}"\n'
    )
    assert config(tmp_path).stat().st_mode & 0o777 == 0o600
    assert config(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_a_wrong_key_is_asked_for_again(tmp_path: Path) -> None:
    with (
        ModelServer("m", key=KEY) as server,
        Terminal(tmp_path, "login", "--provider", "mine", "--base-url", server.url) as terminal,
    ):
        terminal.expect("Key for mine")
        terminal.type("sk-wrong-key-5678")
        terminal.expect("Incorrect API key provided")
        terminal.expect("Key for mine")
        terminal.type(KEY)
        terminal.expect("[m]: ")
        terminal.type("")
        assert terminal.ended() == 0
    assert "sk-wrong-key-5678" not in terminal.output
    assert tomllib.loads(config(tmp_path).read_text())["providers"]["mine"]["api_key"] == KEY


def test_three_wrong_keys_are_enough(tmp_path: Path) -> None:
    with (
        ModelServer("m", key=KEY) as server,
        Terminal(tmp_path, "login", "--provider", "mine", "--base-url", server.url) as terminal,
    ):
        for _ in range(3):
            terminal.expect("Key for mine")
            terminal.type("sk-wrong-key-5678")
        terminal.expect("crow: ")
        assert terminal.ended() == 1
    assert len(server.keys_seen) == 3
    assert not config(tmp_path).exists()


def test_a_key_that_only_the_list_of_models_takes(tmp_path: Path) -> None:
    with (
        ModelServer("m", key=KEY, public=True) as server,
        Terminal(tmp_path, "login", "--provider", "mine", "--base-url", server.url) as terminal,
    ):
        terminal.expect("Key for mine")
        terminal.type("sk-wrong-key-5678")
        terminal.expect("[m]: ")
        terminal.type("")
        terminal.expect("Incorrect API key provided")
        terminal.expect("Key for mine")
        terminal.type(KEY)
        terminal.expect("mine/m answers.")
        terminal.expect("Crow will use mine/m.")
        assert terminal.ended() == 0
    assert "sk-wrong-key-5678" not in terminal.output
    assert terminal.output.count("Model (a number") == 1
    assert tomllib.loads(config(tmp_path).read_text())["providers"]["mine"]["api_key"] == KEY
    assert all(0 < body["max_tokens"] < 100 for body in server.asked)


def test_a_variable_with_a_wrong_key_leads_to_the_question(tmp_path: Path) -> None:
    with ModelServer("a", key=KEY, public=True) as server:
        write_config(
            tmp_path, f'[providers.gate]\ntype = "openai"\nbase_url = "{server.url}"\napi_key_env = "GATE_KEY"\n'
        )
        with Terminal(tmp_path, "login", "--provider", "gate", GATE_KEY="sk-wrong-key-5678") as terminal:
            terminal.expect("store only its name? [Y/n]: ")
            terminal.type("")
            terminal.expect("[a]: ")
            terminal.type("")
            terminal.expect("Incorrect API key provided")
            terminal.expect("Key for gate")
            assert terminal.ended_after(KEY) == 0
    assert tomllib.loads(config(tmp_path).read_text())["providers"]["gate"]["api_key"] == KEY


def test_a_found_server_needs_no_key(tmp_path: Path) -> None:
    with ModelServer("qwen3") as server:
        extra = {"CROW_LOCAL_SERVERS": f"ollama={server.port}"}
        with Terminal(tmp_path, "login", **extra) as terminal:
            terminal.expect(f"   1  ollama on this machine, port {server.port} (1 model)")
            terminal.expect("Provider [1]: ")
            terminal.type("")
            terminal.expect("[qwen3]: ")
            terminal.type("")
            terminal.expect("no key is stored there")
            assert terminal.ended() == 0
    assert tomllib.loads(config(tmp_path).read_text()) == {
        "model": "ollama/qwen3",
        "providers": {"ollama": {"type": "openai", "base_url": server.url}},
    }


def test_a_variable_that_is_set_can_be_used_by_name(tmp_path: Path) -> None:
    with ModelServer("a", key=KEY) as server:
        before = f'[providers.gate]\ntype = "openai"\nbase_url = "{server.url}"\napi_key_env = "GATE_KEY" # mine\n'
        write_config(tmp_path, before)
        with Terminal(tmp_path, "login", "--provider", "gate", GATE_KEY=KEY) as terminal:
            terminal.expect("The variable GATE_KEY is set. Use it and store only its name? [Y/n]: ")
            terminal.type("")
            terminal.expect("[a]: ")
            terminal.type("")
            terminal.expect("the key stays in the variable GATE_KEY, which your editor must see as well")
            assert terminal.ended() == 0
    assert config(tmp_path).read_text() == f'model = "gate/a"\n{before}'


def test_a_model_is_found_by_a_part_of_its_name(tmp_path: Path) -> None:
    models = [f"family-{number}" for number in range(30)] + ["other-one"]
    with (
        ModelServer(*models) as server,
        Terminal(tmp_path, "login", "--provider", "p", "--base-url", server.url) as terminal,
    ):
        terminal.expect("Key for p")
        terminal.type("")
        terminal.expect("and 11 more")
        terminal.type("nothing")
        terminal.expect('No model has "nothing" in its name.')
        terminal.type("amily-2")
        terminal.expect("[family-0]: ")
        assert terminal.ended_after("other") == 0
    assert tomllib.loads(config(tmp_path).read_text())["model"] == "p/other-one"


def test_an_exact_name_wins_over_a_part(tmp_path: Path) -> None:
    with (
        ModelServer("m", "m-large") as server,
        Terminal(tmp_path, "login", "--provider", "p", "--base-url", server.url) as terminal,
    ):
        terminal.expect("Key for p")
        terminal.type("")
        terminal.expect("[m]: ")
        assert terminal.ended_after("m") == 0
    assert tomllib.loads(config(tmp_path).read_text())["model"] == "p/m"


def test_a_server_without_a_list_of_models(tmp_path: Path) -> None:
    with (
        ModelServer(status=404) as server,
        Terminal(tmp_path, "login", "--provider", "p", "--base-url", server.url) as terminal,
    ):
        terminal.expect("Key for p")
        terminal.type("")
        terminal.expect("The provider does not list its models. Type a name.")
        terminal.expect("Model: ")
        assert terminal.ended_after("mine") == 0
    assert tomllib.loads(config(tmp_path).read_text())["model"] == "p/mine"


def test_wrong_answers_are_asked_again(tmp_path: Path) -> None:
    with ModelServer("m") as server, Terminal(tmp_path, "login") as terminal:
        terminal.expect("Provider [1]: ")
        terminal.type("99")
        terminal.expect(f"Enter a number from 1 to {OTHER}.")
        terminal.expect("Provider [1]: ")
        terminal.type(OTHER)
        terminal.expect("Its address")
        terminal.type("not an address")
        terminal.expect("A short name for it")
        terminal.type("p")
        terminal.expect("The address must begin with http:// or https://, followed by a host.")
        terminal.expect("Its address")
        terminal.type(server.url)
        terminal.expect("A short name for it")
        terminal.type("openai")
        terminal.expect("Use only letters, digits, - or _ in the name, and not a vendor's name.")
        terminal.press(b"\x04")
        assert terminal.ended() == 1
    assert not config(tmp_path).exists()


@pytest.mark.parametrize(("control", "code"), [(b"\x03", 130), (b"\x04", 1)])
def test_leaving_at_any_question_writes_nothing(tmp_path: Path, control: bytes, code: int) -> None:
    with ModelServer("m") as server:
        arguments = ("login", "--provider", "p", "--base-url", server.url)
        with Terminal(tmp_path, "login") as terminal:
            terminal.expect("Provider [1]: ")
            assert terminal.ended_by(control) == code
        with Terminal(tmp_path, *arguments) as terminal:
            terminal.expect("Key for p")
            assert terminal.ended_by(control) == code
        with Terminal(tmp_path, *arguments) as terminal:
            terminal.expect("Key for p")
            terminal.type("")
            terminal.expect("[m]: ")
            assert terminal.ended_by(control) == code
            assert "Traceback" not in terminal.output
            assert terminal.output.endswith("\r\ncrow: nothing changed\r\n")
    assert list(tmp_path.iterdir()) == []


def test_a_vendors_key_is_never_shown(tmp_path: Path) -> None:
    with Terminal(tmp_path, "login", "--provider", "anthropic") as terminal:
        terminal.expect("To create a key: https://console.anthropic.com/settings/keys")
        terminal.expect("Key for Anthropic: ")
        terminal.type("")
        terminal.expect("Anthropic needs a key.")
        terminal.expect("Key for Anthropic: ")
        terminal.press(b"\x04")
        assert terminal.ended() == 1


def test_the_key_of_a_gateway_stays_with_the_gateway(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY) as server:
        extra = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        with Terminal(tmp_path, "login", **extra) as terminal:
            terminal.expect(f"   2  OpenAI at {server.url} (OPENAI_API_KEY is set)")
            terminal.expect("Provider [2]: ")
            terminal.type("")
            terminal.expect("Use it and store only its name? [Y/n]: ")
            terminal.type("y")
            terminal.expect("[m]: ")
            assert terminal.ended_after("") == 0
    assert tomllib.loads(config(tmp_path).read_text()) == {
        "model": "openai/m",
        "providers": {"openai": {"type": "openai", "base_url": server.url, "api_key_env": "OPENAI_API_KEY"}},
    }


# --- without a terminal


def test_without_a_terminal_it_says_how(tmp_path: Path) -> None:
    said = crow(tmp_path, "login")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith("crow: login needs a terminal.")
    assert "--key-stdin" in said.stderr


def test_a_key_from_standard_input(tmp_path: Path) -> None:
    with ModelServer("one", "two", key=KEY) as server:
        arguments = ("login", "--provider", "mine", "--base-url", server.url, "--key-stdin")
        said = crow(tmp_path, *arguments, stdin=f"{KEY}\n")
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.startswith("mine/one answers.\nCrow will use mine/one. Saved in ")
        said = crow(tmp_path, *arguments, "--model", "two", stdin=KEY)
        assert (said.returncode, said.stderr) == (0, "")
    assert KEY not in said.stdout
    assert tomllib.loads(config(tmp_path).read_text()) == {
        "model": "mine/two",
        "providers": {"mine": {"type": "openai", "base_url": server.url, "api_key": KEY}},
    }


def test_a_wrong_key_from_standard_input(tmp_path: Path) -> None:
    with ModelServer("one", key=KEY) as server:
        arguments = ("login", "--provider", "mine", "--base-url", server.url, "--key-stdin")
        said = crow(tmp_path, *arguments, stdin="sk-wrong-key-5678")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("crow: ")
    assert len(said.stderr.splitlines()) == 1
    assert "Incorrect API key" in said.stderr
    assert "sk-wrong-key-5678" not in said.stderr
    assert not config(tmp_path).exists()


def test_a_wrong_key_that_only_a_completion_finds(tmp_path: Path) -> None:
    with ModelServer("one", key=KEY, public=True) as server:
        arguments = ("login", "--provider", "mine", "--base-url", server.url, "--key-stdin")
        said = crow(tmp_path, *arguments, stdin="sk-wrong-key-5678")
    assert (said.returncode, said.stdout) == (1, "")
    assert "Incorrect API key" in said.stderr
    assert "sk-wrong-key-5678" not in said.stderr
    assert len(server.asked) == 1
    assert not config(tmp_path).exists()


def test_a_model_that_is_neither_listed_nor_answers_is_not_stored(tmp_path: Path) -> None:
    with ModelServer("one", "two-20260101") as server:
        arguments = ("login", "--provider", "mine", "--base-url", server.url, "--key-stdin", "--model")
        said = crow(tmp_path, *arguments, "nosuchmodel")
        assert (said.returncode, said.stdout) == (1, "")
        assert "crow: mine does not list a model nosuchmodel." in said.stderr
        assert not config(tmp_path).exists()
        assert "does not list" not in crow(tmp_path, *arguments, "two-20260101").stderr
    assert tomllib.loads(config(tmp_path).read_text())["model"] == "mine/two-20260101"


@pytest.mark.parametrize("trouble", [400, 429, 503])
def test_other_trouble_is_told_once_and_keeps_nobody_from_storing(tmp_path: Path, trouble: int) -> None:
    with ModelServer("one", trouble=trouble) as server:
        said = crow(tmp_path, "login", "--provider", "mine", "--base-url", server.url, "--key-stdin")
    assert said.returncode == 0
    assert said.stderr.startswith(f"crow: mine/one was tried: mine answered {trouble} ")
    assert "trouble with it" in said.stderr
    assert said.stdout.startswith("Crow will use mine/one. Saved in ")
    assert len(server.asked) == 1


def test_two_credentials_are_refused(tmp_path: Path) -> None:
    with ModelServer("one") as server:
        url = server.url.replace("//", "//me:hunter22@")
        said = crow(tmp_path, "login", "--provider", "mine", "--base-url", url, "--key-stdin", stdin=KEY)
    assert said.returncode == 1
    assert "two credentials" in said.stderr
    assert "hunter22" not in said.stderr
    assert not config(tmp_path).exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "crow: --key-stdin needs --provider or --base-url\n"),
        (("--provider", "groq"), 1, "crow: Groq needs a key.\n"),
        (("--base-url", "h:1"), 1, "crow: The address must begin with http:// or https://, followed by a host.\n"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    said = crow(tmp_path, "login", "--key-stdin", *arguments)
    assert (said.returncode, said.stdout, said.stderr) == (code, "", message)


def test_an_unknown_provider(tmp_path: Path) -> None:
    said = crow(tmp_path, "login", "--key-stdin", "--provider", "nobody")
    assert said.returncode == 1
    assert said.stderr.startswith('crow: Unknown provider "nobody". Give its --base-url. Available: ')


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    said = crow(tmp_path, "login", "--key-stdin", "--base-url", "http://127.0.0.1:1/v1", "--model", "m")
    assert (said.returncode, said.stdout) == (1, "")
    assert len(said.stderr.splitlines()) == 1
    assert not config(tmp_path).exists()


# --- the file


def test_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    before = '# mine\n\nmode = "edit" # careful\n[terminal]\ntimeout = 9\n'
    write_config(tmp_path, before, mode=0o644)
    with ModelServer("m") as server:
        said = crow(tmp_path, "login", "--provider", "p", "--base-url", server.url, "--key-stdin")
    assert (said.returncode, said.stderr) == (0, "")
    assert config(tmp_path).read_text() == (
        '# mine\n\nmodel = "p/m"\nmode = "edit" # careful\n[terminal]\ntimeout = 9\n'
        f'\n[providers.p]\ntype = "openai"\nbase_url = "{server.url}"\n'
    )
    assert config(tmp_path).stat().st_mode & 0o777 == 0o600


def test_a_file_of_another_layout(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY) as server:
        write_config(tmp_path, f'providers = {{ p = {{ type = "openai", base_url = "{server.url}" }} }} # mine\n')
        said = crow(tmp_path, "login", "--provider", "p", "--key-stdin", stdin=KEY)
        assert (said.returncode, said.stderr) == (0, "")
        after = config(tmp_path).read_text()
        assert after.endswith(" # mine\n")
        table = {"type": "openai", "base_url": server.url, "api_key": KEY}
        assert tomllib.loads(after) == {"model": "p/m", "providers": {"p": table}}


def test_a_file_that_cannot_be_edited_safely_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "crow-changed"
    changed.write_text(
        f"#!{sys.executable}\nimport sys, tomlkit\nfrom crow.__main__ import main\nparse = tomlkit.parse\n"
        "tomlkit.parse = lambda text: parse(text.replace('timeout = 9', ''))\nsys.exit(main())\n"
    )
    changed.chmod(0o755)
    monkeypatch.setattr(support, "CROW", str(changed))
    with ModelServer("m", key=KEY) as server:
        before = f'[providers.p]\ntype = "openai"\nbase_url = "{server.url}"\n[terminal]\ntimeout = 9\n'
        write_config(tmp_path, before)
        said = crow(tmp_path, "login", "--provider", "p", "--key-stdin", stdin=KEY)
    assert said.returncode == 1
    assert said.stderr.startswith(f"crow: {config(tmp_path)} was not changed")
    assert said.stdout == (
        'p/m answers.\nAdd this by hand:\n\nmodel = "p/m"\n\n[providers.p]\ntype = "openai"\n'
        f'base_url = "{server.url}"\napi_key = "YOUR KEY"\n'
    )
    assert config(tmp_path).read_text() == before


# --- what is known beforehand is said before a key is asked for


@pytest.mark.parametrize("arguments", [[], ["--provider", "anthropic"]])
def test_a_place_that_cannot_be_written_is_said_first(tmp_path: Path, arguments: list[str]) -> None:
    with Terminal(tmp_path, "login", *arguments, CROW_HOME="/proc/crow") as terminal:
        terminal.expect("crow: The folder /proc/crow cannot be made")
        assert terminal.ended() == 1
    assert "Key for" not in terminal.output
    assert "Which provider" not in terminal.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--provider", "nope"], 'Unknown provider "nope".'),
        (["--provider", "a/b", "--base-url", "http://h/v1"], "Use only letters, digits, - or _ in the name."),
        (["--provider", "x", "--base-url", "http://h:99999/v1"], "The address must begin with http:// or https://"),
    ],
)
def test_a_provider_that_cannot_be_used_is_said_first(tmp_path: Path, arguments: list[str], said: str) -> None:
    with Terminal(tmp_path, "login", *arguments) as terminal:
        terminal.expect(said)
        assert terminal.ended() == 1
    assert "Key for" not in terminal.output
    assert not (tmp_path / "crow").exists()


def test_a_key_is_never_shown_also_where_it_was_to_be_piped(tmp_path: Path) -> None:
    with ModelServer("m", key=KEY) as server:
        arguments = ("login", "--provider", "mine", "--base-url", server.url, "--key-stdin")
        with Terminal(tmp_path, *arguments) as terminal:
            terminal.expect("Key for mine")
            terminal.type(KEY)
            terminal.expect("Crow will use mine/m.")
            assert terminal.ended() == 0
    assert KEY not in terminal.output
