"""How each known editor (Zed, JetBrains, Neovim, Emacs, Toad) is told to start Crow: the text to paste, where, and the
command in it.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping

import msgspec

AGENT_NAME = "Crow"
COMMAND_NAMES = ("crow", "crow-agent")
"""What the installed program is called: by its short name, and by the package's, which `uvx` and registries use."""


class Launch(msgspec.Struct, frozen=True):
    """How an editor starts the agent: an absolute command, so that it does not depend on the editor's PATH."""

    command: str
    args: list[str]
    env: dict[str, str]


class Editor(msgspec.Struct, frozen=True):
    title: str
    where: str
    """Where the text belongs, for a person."""
    text: Callable[[Launch], str]
    then: str
    """What to do in the editor afterwards."""
    settings_file: Callable[[Mapping[str, str]], str] | None = None
    """The JSON file that `--write` can merge into; its `agent_servers` hold the entry below."""
    entry: Callable[[Launch], dict[str, object]] | None = None
    is_graphical: bool = False
    """It may be started from the desktop, where no shell has set variables."""


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


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def _zed_settings(environ: Mapping[str, str]) -> str:
    config = environ.get("XDG_CONFIG_HOME", "") if sys.platform != "darwin" else ""
    return os.path.join(config or os.path.join(_home(environ), ".config"), "zed", "settings.json")


def _jetbrains_settings(environ: Mapping[str, str]) -> str:
    return os.path.join(_home(environ), ".jetbrains", "acp.json")


def _zed_entry(launch: Launch) -> dict[str, object]:
    return {"type": "custom", **_plain_entry(launch)}


def _plain_entry(launch: Launch) -> dict[str, object]:
    return {"command": launch.command, "args": launch.args, "env": launch.env}


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _neovim(launch: Launch) -> str:
    command = ", ".join(_lua(word) for word in (launch.command, *launch.args))
    env = "".join(f"\n          env = {{ {name} = {_lua(value)} }}," for name, value in launch.env.items())
    return f"""\
require("codecompanion").setup({{
  adapters = {{
    acp = {{
      crow = function()
        local helpers = require("codecompanion.adapters.acp.helpers")
        return {{
          name = "crow",
          formatted_name = "{AGENT_NAME}",
          type = "acp",
          roles = {{ llm = "assistant", user = "user" }},
          opts = {{ vision = true }},
          commands = {{ default = {{ {command} }} }},{env}
          defaults = {{ mcpServers = {{}}, timeout = 20000 }},
          parameters = {{
            protocolVersion = 1,
            clientCapabilities = {{ fs = {{ readTextFile = true, writeTextFile = true }} }},
            clientInfo = {{ name = "CodeCompanion.nvim", version = "1.0.0" }},
          }},
          handlers = {{
            setup = function() return true end,
            auth = function() return true end,
            form_messages = function(self, messages, capabilities)
              return helpers.form_messages(self, messages, capabilities)
            end,
            on_exit = function() end,
          }},
        }}
      end,
    }},
  }},
  interactions = {{ chat = {{ adapter = "crow" }} }},
}})"""


def _emacs(launch: Launch) -> str:
    params = " ".join(_lisp(word) for word in launch.args)
    env = "".join(f"{_lisp(name)} {_lisp(value)} " for name, value in launch.env.items())
    return f"""\
(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'crow
    :mode-line-name "{AGENT_NAME}"
    :buffer-name "{AGENT_NAME}"
    :shell-prompt "{AGENT_NAME}> "
    :shell-prompt-regexp "{AGENT_NAME}> "
    :client-maker (lambda (buffer)
                    (agent-shell--make-acp-client
                      :command {_lisp(launch.command)}
                      :command-params '({params})
                      :environment-variables (agent-shell-make-environment-variables {env}:inherit-env t)
                      :context-buffer buffer))))
  (setq agent-shell-session-restore-verbosity 'full))  ; else a session that is restored is not shown"""


def _toad(launch: Launch) -> str:
    variables = [f"{name}={value}" for name, value in launch.env.items()]
    words = ["env", *variables] if variables else []
    agent = shlex.join([*words, launch.command, *launch.args])
    return f"toad acp {shlex.quote(agent)} . --title {AGENT_NAME}"


def _lua(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _lisp(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


EDITORS: dict[str, Editor] = {
    "zed": Editor(
        title="Zed",
        where="the settings file (in Zed: zed: open settings file)",
        text=lambda launch: _as_json({"agent_servers": {AGENT_NAME: _zed_entry(launch)}}),
        then=f"Open the agent panel, press + and choose {AGENT_NAME}.",
        settings_file=_zed_settings,
        entry=_zed_entry,
        is_graphical=True,
    ),
    "jetbrains": Editor(
        title="JetBrains IDEs",
        where="acp.json (in the AI Chat tool window's menu: Add Custom Agent)",
        text=lambda launch: _as_json({"agent_servers": {AGENT_NAME: _plain_entry(launch)}}),
        then=f"Open AI Chat and choose {AGENT_NAME} in the agent selector.",
        settings_file=_jetbrains_settings,
        entry=_plain_entry,
        is_graphical=True,
    ),
    "neovim": Editor(
        title="Neovim, with CodeCompanion.nvim",
        where="your CodeCompanion set-up, for example ~/.config/nvim/lua/plugins/codecompanion.lua",
        text=_neovim,
        then="Open a chat with :CodeCompanionChat adapter=crow",
    ),
    "emacs": Editor(
        title="Emacs, with agent-shell",
        where="your init file, for example ~/.emacs.d/init.el",
        text=_emacs,
        then=f"Start it with M-x agent-shell and choose {AGENT_NAME}.",
        is_graphical=True,
    ),
    "toad": Editor(
        title="Toad",
        where="a terminal, in your project's folder",
        text=_toad,
        then="Toad needs no configuration: this starts it with Crow.",
    ),
    "vscode": Editor(
        title="VS Code, with the extension ACP Client (formulahendry.acp-client)",
        where="settings.json (in VS Code: Preferences: Open User Settings (JSON))",
        text=lambda launch: _as_json({"acp.agents": {AGENT_NAME: _plain_entry(launch)}}),
        then=f"Open the ACP Client panel and connect to {AGENT_NAME}.",
        is_graphical=True,
    ),
}
