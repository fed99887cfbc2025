"""What models, servers and files say reaches a terminal without what a terminal obeys, whichever command prints it."""

import json
import re
from pathlib import Path

import pytest

from tests.config.support import ModelServer, crow, write_config
from tests.support.scripts import DONE, call, reply, run, say

HOSTILE = "a\x1b]0;owned\x07b\x1b[2J\x9b31mc\u202ed\U000e0041e\x08f"
OBEYED = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def raw(said) -> list[str]:
    """What a terminal would obey, or draw otherwise, in all that was printed. Each place with what stands around it."""
    printed = said.stdout + said.stderr
    return [printed[max(0, found.start() - 30) : found.end() + 10] for found in OBEYED.finditer(printed)]


def texts(value) -> list[str]:
    match value:
        case dict():
            return [text for item in value.values() for text in texts(item)]
        case list():
            return [text for item in value for text in texts(item)]
        case _:
            return [str(value)]


def config(url: str, model: str = "m") -> str:
    return f'model = "p/{model}"\n[providers.p]\ntype = "openai"\nbase_url = "{url}"\n'


COMMANDS = [
    ["models"],
    ["models", "--json"],
    ["models", "--refresh"],
    ["doctor"],
    ["doctor", "--ask"],
    ["run", "hello"],
    ["run", "--json", "hello"],
    ["run", "--model", f"p/{HOSTILE}", "hello"],
    ["models", HOSTILE],
    ["sessions", "show", HOSTILE],
    ["mcp", "test", HOSTILE],
    ["mcp", "login", HOSTILE],
    ["setup", HOSTILE],
    [HOSTILE],
    ["run", "--mode", HOSTILE, "hello"],
    ["config", "check", f"/nowhere/{HOSTILE}"],
]


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_what_a_provider_says(tmp_path: Path, status: int) -> None:
    with ModelServer(HOSTILE, "m", status=status, trouble=status if status != 200 else 0, words=HOSTILE) as server:
        write_config(tmp_path, config(server.url) + "[limits]\nretry_wait = 0\n")
        some = COMMANDS[:7] if status != 200 else COMMANDS
        found = {" ".join(words): raw(crow(tmp_path, *words, CROW_PATIENCE="0.2")) for words in some}
        login = ("login", "--base-url", server.url, "--name", "q", "--key-stdin", "--model", HOSTILE)
        found["login"] = raw(crow(tmp_path, *login, stdin="key\n"))
        assert server.asked
    assert {name: where for name, where in found.items() if where} == {}


def test_what_is_kept_of_a_session(tmp_path: Path) -> None:
    """Whatever was said, printed, read and changed in it, in a terminal and for a program alike."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/x.txt").write_text(f"{HOSTILE}\n")
    script = reply(
        say(f"# {HOSTILE}\n\n- {HOSTILE}"),
        call("read", path="x.txt"),
        run(r"printf '\033]0;owned\007\033[2J\302\233'; cat x.txt"),
        call("write", path=f"new{HOSTILE}.txt", content=HOSTILE),
        call("plan", entries=[{"content": HOSTILE}]),
        call(f"mcp__{HOSTILE}", x=HOSTILE),
    )
    (tmp_path / "script.toml").write_text(script + DONE)
    write_config(
        tmp_path,
        f'model = "s/m"\n[providers.s]\ntype = "scripted"\nscript = "{tmp_path}/script.toml"\n[providers.s.models.m]\n',
    )
    prompt = ("run", "--mode", "auto", "--cwd", str(tmp_path / "work"), f"Say {HOSTILE}")
    found = {"run": raw(ran := crow(tmp_path, *prompt))}
    assert ran.returncode == 0, ran.stderr
    found["run --json"] = raw(crow(tmp_path, *prompt[:1], "--json", *prompt[1:]))
    (id, *_) = [entry["id"] for entry in json.loads(crow(tmp_path, "sessions", "list", "--json").stdout)]
    for words in (
        ["sessions"],
        ["sessions", "list", "--json"],
        ["sessions", "show", id],
        ["sessions", "export", id],
        ["sessions", "export", id, "--format", "json"],
        ["sessions", "stop", id],
        ["doctor"],
    ):
        said = crow(tmp_path, *words)
        assert said.stdout, said.stderr
        found[" ".join(words)] = raw(said)
        if "json" in words[-1]:
            json.loads(said.stdout)
    exported = crow(tmp_path, "sessions", "export", id, "--format", "json").stdout
    assert HOSTILE in "".join(texts(json.loads(exported))), "it still says what was said"
    assert {name: where for name, where in found.items() if where} == {}
