"""What goes wrong on a person's first day, and whether what they are told leads them out of it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.config.support import CROW, ModelServer, Terminal, crow, environment, write_config
from tests.support.patience import DEADLINE

KEY = "sk-right-key-1234"


def provider(url: str, more: str = "") -> str:
    return f'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "{url}"\n{more}'


def config(user: Path) -> Path:
    return user / "crow" / "config.toml"


# --- models


def test_a_wrong_model_name_leads_to_the_right_ones(tmp_path: Path) -> None:
    with ModelServer("qwen3-coder", "mini", "m2") as server:
        write_config(tmp_path, provider(server.url).replace("p/m", "p/qwen-coder"))
        said = crow(tmp_path, "run", "hello")
        assert "`crow models` lists the models available" in said.stderr
        said = crow(tmp_path, "doctor")
        assert (
            "✗ the model p/qwen-coder (from the config file) is not in the list of p\n"
            "    It has qwen3-coder, mini, m2.\n"
            "    Choose one: crow login --provider p\n"
        ) in said.stdout
        listed = crow(tmp_path, "models").stdout.splitlines()
        assert [line.split("\t")[0] for line in listed] == ["p/qwen3-coder", "p/mini", "p/m2"]


def test_of_many_models_doctor_names_the_nearest(tmp_path: Path) -> None:
    with ModelServer(*(f"vendor/family-{number}" for number in range(40)), "gpt-5.6-mini") as server:
        write_config(tmp_path, provider(server.url).replace("p/m", "p/gpt-5.6-mni"))
        said = crow(tmp_path, "doctor")
    assert "    It has gpt-5.6-mini, " in said.stdout
    assert "and 35 more: crow models p\n" in said.stdout


def test_a_server_without_a_list_of_models_can_be_used(tmp_path: Path) -> None:
    with ModelServer(status=404) as server:
        write_config(tmp_path, provider(server.url, "[providers.p.models.m]\ncontext_window = 1000\n"))
        said = crow(tmp_path, "doctor")
        assert said.returncode == 0
        assert (
            f"! p at {server.url} has no list of models\n"
            "    Some servers have none. If this one should, check base_url.\n"
            "    To test the model: crow doctor --try\n"
        ) in said.stdout
        assert "✓ p/m answers\n" in crow(tmp_path, "doctor", "--try").stdout
        said = crow(tmp_path, "models")
    assert said.returncode == 0
    assert said.stdout == "p/m\t1,000\t\t\t\t\tconfig\n"
    assert f"p at {server.url} has no list of models. These are from your configuration." in said.stderr


def test_login_saves_no_model_that_does_not_exist(tmp_path: Path) -> None:
    with ModelServer("small", "large") as server:
        said = crow(tmp_path, "login", "--base-url", server.url, "--model", "bogus", "--key-stdin")
        assert said.returncode == 1
        assert "no model bogus here" in said.stderr
        assert "Nothing was saved. It has small, large." in said.stderr
        assert not config(tmp_path).exists()
        with Terminal(tmp_path, "login", "--base-url", server.url, "--model", "bogus") as terminal:
            terminal.expect("Key for local")
            terminal.type("")
            terminal.expect("no model bogus here")
            terminal.expect("[small]: ")
            assert terminal.ended_after("2") == 0
    assert 'model = "local/large"' in config(tmp_path).read_text()


def test_login_saves_what_may_be_well_tomorrow(tmp_path: Path) -> None:
    """An overloaded server says nothing against the model."""
    with ModelServer("m", trouble=503) as server:
        said = crow(tmp_path, "login", "--base-url", server.url, "--model", "m", "--key-stdin")
    assert said.returncode == 0
    assert 'model = "local/m"' in config(tmp_path).read_text()


def test_a_key_and_an_address_in_the_environment_still_need_a_model(tmp_path: Path) -> None:
    with ModelServer("small", "large", key=KEY) as server:
        extra = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        remedy = (
            f"OPENAI_API_KEY is set for {server.url}, but no model is chosen. "
            "Run `crow login --provider openai`, or set CROW_MODEL=openai/NAME."
        )
        assert remedy in crow(tmp_path, "run", "hello", **extra).stderr
        assert remedy in crow(tmp_path, **extra).stdout
        said = crow(tmp_path, "doctor", **extra)
        assert remedy in said.stdout
        assert "It has small, large." in said.stdout
        assert crow(tmp_path, "run", "hello", CROW_MODEL="openai/small", **extra).stdout.startswith("Hi")


def test_a_key_in_an_address_is_shown_nowhere(tmp_path: Path) -> None:
    key = "SECRET0a1b2c3d4e5f"
    extra = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:1/{key}/v1?token={key}", "NO_COLOR": "1"}
    chosen = extra | {"CROW_MODEL": "openai/m"}
    for arguments, environ in [
        (("run", "hello"), extra),
        (("run", "hello"), chosen),
        (("doctor",), chosen),
        (("doctor", "--offline"), chosen),
        (("models",), chosen),
    ]:
        said = crow(tmp_path, *arguments, **environ)
        assert "http://127.0.0.1:1/[secret]/v1" in said.stdout + said.stderr
        assert key not in said.stdout + said.stderr


# --- connections


def test_https_to_a_port_that_speaks_http(tmp_path: Path) -> None:
    with ModelServer("m") as server:
        write_config(tmp_path, provider(server.url.replace("http:", "https:")))
        for arguments in (("doctor",), ("run", "hello")):
            said = crow(tmp_path, *arguments)
            assert "does not speak TLS" in said.stdout + said.stderr
            assert f"Use http in base_url: {server.url}" in said.stdout + said.stderr
            assert "certificate" not in said.stdout + said.stderr


@pytest.mark.parametrize("key", ["sk-abc def123456", "Bearer sk-abcdef123456", "sk-abc\\tdef123456"])
def test_a_key_with_a_blank_in_it(tmp_path: Path, key: str) -> None:
    with ModelServer("m") as server:
        write_config(tmp_path, provider(server.url, f'api_key = "{key}"\n'))
        said = crow(tmp_path, "doctor")
        assert said.returncode == 1
        assert "✗ p: The key of p contains a space (see providers.p.api_key).\n" in said.stdout
        login = ("login", "--provider", "q", "--base-url", server.url, "--key-stdin")
        said = crow(tmp_path, *login, stdin=key.replace("\\t", "\t"))
        assert said.returncode == 1
        assert "contains a space" in said.stderr
    assert server.keys_seen == []
    assert "def123456" not in said.stdout + said.stderr


def test_a_broken_mcp_server_is_seen_by_doctor(tmp_path: Path) -> None:
    with ModelServer("m") as server:
        servers = (
            '[mcp_servers.gone]\ncommand = "no-such-program"\n'
            '[mcp_servers.wordy]\ncommand = "sh -c true"\n'
            f'[mcp_servers.dies]\ncommand = "{sys.executable}"\nargs = ["-c", "import sys; sys.exit(3)"]\n'
            f'[mcp_servers.says]\ncommand = "{sys.executable}"\nargs = ["-c", "import sys; sys.exit(\'oh no\')"]\n'
        )
        write_config(tmp_path, provider(server.url, servers))
        said = crow(tmp_path, "doctor")
        assert said.returncode == 1
        assert "✗ the MCP server gone: " in said.stdout
        assert (
            "✗ the MCP server gone: command `no-such-program` not found\n"
            "    Command: no-such-program\n"
            f"    Looked in PATH: {os.environ['PATH']}.\n"
            "    Fix [mcp_servers.gone] in the config, then run: crow mcp test gone\n"
        ) in said.stdout
        assert '    Put its arguments in `args`: command = "sh", args = ["-c", "true"].\n' in said.stdout
        assert "✗ the MCP server dies: " in said.stdout
        logs = tmp_path / "crow" / "mcp" / "log"
        assert [path.name for path in logs.iterdir()] == ["says.log"]
        assert f"    Its output: {logs}/says.log\n" in said.stdout
        assert said.stdout.count("Its output") == 2  # once more at the end, with what has failed
        assert "✓ the MCP server gone (not started)\n" in crow(tmp_path, "doctor", "--offline").stdout


# --- places


def in_a_deleted_folder(user: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = tempfile.mkdtemp(dir=user)
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    return subprocess.run(
        ["sh", "-c", script, "sh", folder, CROW, *arguments],
        env=environment(user),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def test_a_folder_that_was_deleted(tmp_path: Path) -> None:
    for arguments in (("run", "hello"), ("run", "--cwd", ".", "hello")):
        said = in_a_deleted_folder(tmp_path, *arguments)
        assert said.returncode == 2
        assert said.stderr == "crow run: the current folder was deleted. Change to another with cd, or use --cwd.\n"
    relative = environment(tmp_path, CROW_HOME="crow")
    folder = tempfile.mkdtemp(dir=tmp_path)
    script = f'cd "{folder}" && rmdir "{folder}" && exec "{CROW}" doctor --offline'
    said = subprocess.run(["sh", "-c", script], env=relative, capture_output=True, text=True, timeout=DEADLINE)
    assert said.returncode == 1
    assert said.stderr == "crow: The current folder was deleted. Change to another with cd.\n"


AS_NOBODY = """
import contextlib, io, os, sys
import crow.cli.process, crow.cli.render_screen
from crow.__main__ import main
place, *arguments = sys.argv[1:]
sys.argv = ["crow", *arguments]
os.environ.update(CROW_HOME=place + "-other", HOME=place + "-other", CROW_LOCAL_SERVERS="")
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main()  # imports what it needs: nobody may not read where Python is
os.environ["CROW_HOME"] = place
if os.geteuid() == 0:
    os.setuid(65534)
sys.exit(main())
"""


def as_nobody(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without the superuser's rights: root may read everything."""
    command = [sys.executable, "-c", AS_NOBODY, str(home), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, env=environment(home)
    )


def test_a_home_that_cannot_be_read_is_not_empty() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "crow"
        home.mkdir(mode=0o700)
        (home / "sessions.db").write_bytes(b"")
        home.chmod(0)
        for arguments in (("sessions", "list"), ("sessions", "show", "x")):
            said = as_nobody(home, *arguments)
            assert said.returncode == 1
            assert f"{home} cannot be read: permission denied." in said.stderr
            assert "no sessions" not in said.stdout + said.stderr
        said = as_nobody(home, "doctor", "--offline")
        assert "no sessions are stored yet" not in said.stdout
        assert "no log yet" not in said.stdout
        assert f"✗ {home} cannot be read or written\n" in said.stdout


def test_a_configuration_that_cannot_be_read_says_what_to_do() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "crow"
        home.mkdir(mode=0o700)
        home.chmod(0)
        said = as_nobody(home, "config", "check")
        assert said.returncode == 1
        assert said.stderr == f"crow: {home} cannot be read: permission denied. Make it yours: chmod 700 {home}\n"
        home.chmod(0o755)
        file = home / "config.toml"
        file.touch(mode=0)
        said = as_nobody(home, "config", "check")
        assert said.stderr == f"crow: {file} cannot be read: permission denied. Make it yours: chmod 600 {file}\n"


@pytest.mark.parametrize("arguments", [("sessions",), ("sessions", "show", "x"), ("config", "check")])
def test_a_home_that_is_a_file(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = tmp_path / "file"
    file.touch()
    said = crow(tmp_path, *arguments, CROW_HOME=str(file))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"crow: {file} is not a folder. Move it away, or set CROW_HOME to another folder.\n"
    said = crow(tmp_path, "config", "check", str(file / "config.toml"))
    assert said.stderr == f"crow: {file} is not a folder.\n"


@pytest.mark.parametrize("arguments", [("sessions",), ("sessions", "show", "x"), ("config", "check"), ("run", "hi")])
def test_a_home_that_is_a_link_to_nowhere(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    link, nowhere = tmp_path / "link", tmp_path / "nowhere"
    link.symlink_to(nowhere)
    said = crow(tmp_path, *arguments, CROW_HOME=str(link))
    assert (said.returncode, said.stdout) == (1, "")
    assert f"{link} is a link to {nowhere}, which does not exist." in said.stderr


# --- what was typed


def test_an_option_that_does_not_exist(tmp_path: Path) -> None:
    said = crow(tmp_path, "run", "--bogus", "hello")
    assert said.returncode == 2
    assert said.stderr.startswith("usage: crow run ")
    assert "crow run: error: unknown option --bogus" in said.stderr
    assert "did you mean --mode?" in crow(tmp_path, "run", "--moed", "hello").stderr
    assert "crow: error: unknown option --bogus\n" in crow(tmp_path, "--bogus").stderr
    assert "(did you mean --version?)" in crow(tmp_path, "--versoin").stderr
    assert "usage: crow doctor" in crow(tmp_path, "doctor", "--bogus").stderr
    assert "usage: crow sessions list" in crow(tmp_path, "sessions", "list", "--bogus").stderr


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    said = crow(tmp_path, "sesions")
    assert said.returncode == 2
    assert 'unknown command "sesions" (did you mean sessions?)' in said.stderr
    said = crow(tmp_path, "explain", "this", "repository")
    assert 'To ask the model: crow run "explain this repository"' in said.stderr


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("model = p/m", "model"),
        ("  mode=ask # mine", "mode"),
        ("[providers.p]\napi_key = sk-secret-1234", "api_key"),
    ],
)
def test_a_string_without_quotes(tmp_path: Path, line: str, key: str) -> None:
    path = write_config(tmp_path, f"{line}\n")
    said = crow(tmp_path, "doctor", "--offline")
    assert said.returncode == 1
    number = line.count("\n") + 1
    assert f'✗ {path}, line {number}: {key}: put text in quotes, as in {key} = "…".\n' in said.stdout
    assert "sk-secret" not in said.stdout


# --- editors


def zed_settings(user: Path) -> Path:
    return user / ".config" / "zed" / "settings.json"


def test_another_home_is_written_over_the_former(tmp_path: Path) -> None:
    assert crow(tmp_path, "setup", "zed", "--write").returncode == 0
    other = str(tmp_path / "other")
    said = crow(tmp_path, "setup", "zed", "--write", CROW_HOME=other)
    assert said.returncode == 0
    assert f"Changed the agent Crow in {zed_settings(tmp_path)}" in said.stdout
    entry = json.loads(zed_settings(tmp_path).read_text())["agent_servers"]["Crow"]
    assert entry["env"] == {"CROW_HOME": other}
    env = {name: value for name, value in environment(tmp_path).items() if name != "CROW_HOME"}
    said = subprocess.run([CROW, "setup", "zed", "--write"], env=env, capture_output=True, text=True)
    assert said.returncode == 0
    entry = json.loads(zed_settings(tmp_path).read_text())["agent_servers"]["Crow"]
    assert entry["env"] == {}


def test_a_crow_that_was_moved_is_written_over_the_former(tmp_path: Path) -> None:
    path = zed_settings(tmp_path)
    path.parent.mkdir(parents=True)
    before = """\
{
  // mine
  "agent_servers": {
    "Crow": { "type": "custom", "command": "/old/bin/crow", "args": ["acp"], "env": { "A": "b" }, "favorite": true },
    "Other": { "command": "other" }
  }
}
"""
    path.write_text(before)
    said = crow(tmp_path, "setup", "zed", "--write")
    assert said.returncode == 0
    assert "/old/bin/crow" in said.stdout
    after = path.read_text()
    assert after.startswith("{\n  // mine\n")
    assert '    "Other": { "command": "other" }\n' in after
    rest = after.partition('"Crow": ')[2]
    entry, _ = json.JSONDecoder().raw_decode(rest)
    assert entry == {
        "type": "custom",
        "command": CROW,
        "args": ["acp"],
        "env": {"A": "b", "CROW_HOME": str(tmp_path / "crow")},
        "favorite": True,
    }
    assert path.with_name("settings.json.before-crow").read_text() == before


def test_an_agent_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = zed_settings(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('{"agent_servers": {"Crow": {"command": "/opt/wrapper", "args": ["--crow"]}}}')
    said = crow(tmp_path, "setup", "zed", "--write")
    assert said.returncode == 1
    assert "/opt/wrapper" in said.stderr
    assert "/opt/wrapper" in path.read_text()


def test_an_editor_is_given_uvx_where_uvx_started_us(tmp_path: Path) -> None:
    """Its cache may be emptied at any time."""
    inside = tmp_path / "uv" / "archive-v0" / "x" / "bin" / "crow-agent"
    inside.parent.mkdir(parents=True)
    inside.write_bytes(Path(CROW).read_bytes())
    inside.chmod(0o755)
    (tmp_path / "bin").mkdir()
    uvx = tmp_path / "bin" / "uvx"
    uvx.write_text("#!/bin/sh\n")
    uvx.chmod(0o755)
    env = environment(tmp_path, PATH=f"{uvx.parent}:{os.environ['PATH']}")
    for _ in range(2):
        said = subprocess.run([inside, "setup", "zed", "--write"], env=env, capture_output=True, text=True)
        assert said.returncode == 0
    assert "already set up" in said.stdout
    entry = json.loads(zed_settings(tmp_path).read_text())["agent_servers"]["Crow"]
    assert (entry["command"], entry["args"]) == (str(uvx), ["crow-agent", "acp"])


@pytest.mark.parametrize("arguments", [("zed",), ("zed", "--write"), ("vscode",)])
def test_a_key_that_a_graphical_editor_will_not_see(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    note = (
        "Your key is in this shell's variable ANTHROPIC_API_KEY, which an editor started from the desktop does not see."
    )
    said = crow(tmp_path, "setup", *arguments, ANTHROPIC_API_KEY="sk-ant-12345678")
    assert said.returncode == 0
    assert note in " ".join(said.stdout.split())
    assert "crow login --provider anthropic" in said.stdout
    assert note not in crow(tmp_path, "setup", "toad", ANTHROPIC_API_KEY="sk-ant-12345678").stdout
    write_config(tmp_path, 'model = "anthropic/x"\n[providers.anthropic]\ntype = "anthropic"\napi_key = "sk-1234567"\n')
    assert note not in crow(tmp_path, "setup", *arguments, ANTHROPIC_API_KEY="sk-ant-12345678").stdout


def test_doctor_says_where_the_key_comes_from(tmp_path: Path) -> None:
    said = crow(tmp_path, "doctor", "--offline", ANTHROPIC_API_KEY="sk-ant-12345678")
    assert (
        "✓ anthropic at https://api.anthropic.com (not asked); key in the variable ANTHROPIC_API_KEY, which an "
        "editor started from the desktop may not see\n"
    ) in said.stdout


def test_everything_else_stays_possible_with_a_broken_config(tmp_path: Path) -> None:
    """What helps to mend it must not need it."""
    write_config(tmp_path, "mode = 1\n")
    for arguments in (("config", "path"), ("completion", "bash"), ("setup", "zed"), ("sessions",)):
        assert crow(tmp_path, *arguments).returncode == 0, arguments
    assert os.listdir(tmp_path / "crow") == ["config.toml"]
