"""How each known editor is told to start Crow (editors.toml has them), and the command that starts it."""

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files

import msgspec

AGENT_NAME = "Crow"
COMMAND_NAMES = ("crow", "crow-agent")
"""What the installed program is called: by its short name, and by the package's, which `uvx` and registries use."""


class Launch(msgspec.Struct, frozen=True):
    """How an editor starts the agent: an absolute command, so that it does not depend on the editor's PATH."""

    command: str
    args: list[str]
    env: dict[str, str]


class Editor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of editors.toml, which says what each field is."""

    title: str
    where: str
    then: str
    text: str = ""
    quoting: str = ""
    section: str = ""
    type: str = ""
    settings: str = ""
    is_graphical: bool = False

    def entry(self, launch: Launch) -> dict[str, object]:
        """What the settings of this editor hold about Crow."""
        kind: dict[str, object] = {"type": self.type} if self.type else {}
        return {**kind, "command": launch.command, "args": launch.args, "env": launch.env}

    def to_paste(self, launch: Launch) -> str:
        if not self.text:
            return json.dumps({self.section: {AGENT_NAME: self.entry(launch)}}, indent=2, ensure_ascii=False)
        command, arguments, variables = _WRITTEN[self.quoting](launch)
        text = self.text.replace("@COMMAND@", command).replace("@ARGUMENTS@", arguments)
        return text.replace("@ENV@", variables)

    def settings_file(self, environ: Mapping[str, str]) -> str:
        """The JSON file that `--write` can merge into; empty if there is none."""
        own = environ.get("HOME") or os.path.expanduser("~")
        config = environ.get("XDG_CONFIG_HOME", "") if sys.platform != "darwin" else ""
        path = self.settings.replace("$XDG_CONFIG_HOME", config or os.path.join(own, ".config"))
        return path.replace("$HOME", own)


def _in_lua(launch: Launch) -> tuple[str, str, str]:
    command = ", ".join(json.dumps(word, ensure_ascii=False) for word in (launch.command, *launch.args))
    env = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in launch.env.items())
    return command, "", "".join(f"\n          env = {{ {one} }}," for one in env)


def _in_lisp(launch: Launch) -> tuple[str, str, str]:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    env = "".join(f"{quoted(name)} {quoted(value)} " for name, value in launch.env.items())
    return quoted(launch.command), " ".join(map(quoted, launch.args)), env


def _in_a_shell(launch: Launch) -> tuple[str, str, str]:
    variables = [f"{name}={value}" for name, value in launch.env.items()]
    words = [*(["env", *variables] if variables else []), launch.command, *launch.args]
    return shlex.quote(shlex.join(words)), "", ""


_WRITTEN = {"lua": _in_lua, "lisp": _in_lisp, "shell": _in_a_shell}
"""The command, its arguments and its variables, as each language writes them."""


def launch(environ: Mapping[str, str]) -> Launch:
    """The Crow that is running now. An editor started from a desktop does not know the shell's CROW_HOME: tell it."""
    command, *args = _own_command()
    home = environ.get("CROW_HOME", "")
    return Launch(command, [*args, "acp"], {"CROW_HOME": os.path.abspath(home)} if home else {})


def shown_command(environ: Mapping[str, str]) -> str:
    """How a person calls Crow: in full if their shell would not find it."""
    import shutil

    return "crow" if shutil.which("crow", path=environ.get("PATH")) else shlex.join(_own_command())


def _own_command() -> list[str]:
    called = os.path.abspath(sys.argv[0])
    beside_python = os.path.join(os.path.dirname(sys.executable), "crow")
    for path in (called, beside_python):
        if os.path.basename(path) in COMMAND_NAMES and os.path.isfile(path) and os.access(path, os.X_OK):
            return _lasting(path)
    return [sys.executable, "-m", "crow"]


def _lasting(path: str) -> list[str]:
    """What `uvx` has made in uv's cache may be gone tomorrow: then it is `uvx` that is to be started."""
    import shutil

    uvx = shutil.which("uvx") if re.search(r"/archive-v\d+/", path) else None
    return [uvx, "crow-agent"] if uvx else [path]


EDITORS = msgspec.convert(
    tomllib.loads(files("crow.cli").joinpath("editors.toml").read_text("utf-8")), dict[str, Editor]
)
