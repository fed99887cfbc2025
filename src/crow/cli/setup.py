"""`crow setup EDITOR`: prints what connects an editor to Crow, or merges it into the editor's JSON settings with
`--write`.
"""

import argparse
import json
import os
import stat
import sys
from typing import cast

from crow.cli.editors import AGENT_NAME, COMMAND_NAMES, EDITORS, Editor, Launch, launch, shown_command
from crow.cli.jsonc import Node, NotJson, add_member, parse
from crow.config.discovery import from_environment, split_model
from crow.config.home import home, reason, write_file
from crow.config.load import load_settings
from crow.errors import ConfigError, CrowError
from crow.visible import one_line

SECTION = "agent_servers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("editor", metavar="EDITOR", nargs="?", help=", ".join(EDITORS))
    parser.add_argument("--write", action="store_true", help="merge it into the editor's settings (zed, jetbrains)")


def main(arguments: argparse.Namespace) -> int:
    name: str | None = arguments.editor
    if name is None:
        print("Editors that crow can be connected to:\n")
        print("\n".join(f"  crow setup {name:<12}{editor.title}" for name, editor in EDITORS.items()))
        return 0
    editor = EDITORS.get(name.lower())
    if editor is None:
        print(f'crow: unknown editor "{one_line(name)}"; known are {", ".join(EDITORS)}', file=sys.stderr)
        return 2
    how = launch(os.environ)
    if not arguments.write:
        _print_text(name.lower(), editor, how)
        _warn_of_unseen_key(editor)
        return 0
    if editor.settings_file is None or editor.entry is None:
        print(
            f"crow: nothing was written: crow does not edit the settings of {editor.title}; "
            "what belongs into them is printed here",
            file=sys.stderr,
        )
        _print_text(name.lower(), editor, how)
        return 1
    status = _write(editor, how, editor.settings_file(os.environ), editor.entry(how))
    _warn_of_unseen_key(editor)
    return status


def _print_text(name: str, editor: Editor, how: Launch) -> None:
    place = f"{editor.settings_file(os.environ)}, {editor.where}" if editor.settings_file else editor.where
    print(f"Paste this into {place}:\n")
    print(editor.text(how))
    print()
    if editor.settings_file:
        print(f"If there are settings already, add only what is new; or let crow do it: crow setup {name} --write")
    print(editor.then)


def _warn_of_unseen_key(editor: Editor) -> None:
    """A key in a variable of the shell works here, and then not in an editor that no shell has started."""
    try:
        found = from_environment(load_settings(home(os.environ)), os.environ)
    except ConfigError:
        return
    name, model = split_model(found.default)
    variable = found.providers[name].api_key_env if name in found.providers else ""
    if editor.is_graphical and variable and os.environ.get(variable, "").strip():
        crow = shown_command(os.environ)
        print(
            f"\nThe key is in the variable {variable} of this shell. An editor that is started from the desktop does "
            "not see it.\nTo store it where Crow finds it:\n"
            f"  printenv {variable} | {crow} login --provider {name} --model {model} --key-stdin"
        )


def _write(editor: Editor, how: Launch, path: str, entry: dict[str, object]) -> int:
    try:
        old = _read(path)
        new = merge(old or "", entry)
        if old is not None and new != old:
            _expect_writable(path)
    except (CannotMerge, NotJson) as trouble:
        print(f"crow: {path} was not changed: {trouble}", file=sys.stderr)
        print(f"Add this by hand to {editor.where}:\n\n{editor.text(how)}")
        return 1
    if new == old:
        print(f"{editor.title} is set up already: {path} has the agent {AGENT_NAME}. Nothing was changed.")
        return 0
    if old is None:
        write_file(path, new.encode(), mode=0o644)
        print(f"Wrote {path}.")
    else:
        backup = _keep_old(path)
        write_file(path, new.encode(), mode=stat.S_IMODE(os.stat(path).st_mode))
        before = _agent_in(old)
        done = f"Changed the agent {AGENT_NAME} in {path}" if before else f"Added the agent {AGENT_NAME} to {path}"
        was = f" (it started {_shown(before)})" if before else ""
        print(f"{done}{was}; the file as it was is kept in {backup}.")
    print(editor.then)
    return 0


class CannotMerge(Exception):
    pass


def merge(text: str, entry: dict[str, object]) -> str:
    """The settings with the agent in them: the same text if it is there, else the text with the entry put in.

    Every other byte stays. Raises CannotMerge where that cannot be done for certain.
    """
    if not text.strip("\ufeff \t\r\n"):
        text += "{}\n"
    root = parse(text)
    if not isinstance(root.value, dict):
        raise CannotMerge("it does not hold a JSON object")
    section = root.members.get(SECTION)
    if section is None:
        changed = add_member(text, root, SECTION, {AGENT_NAME: entry})
    elif not isinstance(section.value, dict):
        raise CannotMerge(f'its "{SECTION}" is not an object')
    elif AGENT_NAME in section.members:
        return _update(text, entry)
    else:
        changed = add_member(text, section, AGENT_NAME, entry)
    # What was inserted must mean the old settings and the entry, nothing else.
    if _plain(parse(changed)) != _expected(root, section, entry):
        raise CannotMerge("its layout is one that crow does not dare to edit")
    return changed


def _update(text: str, entry: dict[str, object]) -> str:
    """The settings with the agent that is there already made to start this Crow, in this home; the rest of it stays."""
    present = _agent_in(text)
    if not _is_crow(present):
        raise CannotMerge(f'it has an agent "{AGENT_NAME}" that starts another command: {_shown(present)}')
    wanted = present | {"command": entry["command"], "args": entry["args"], "env": _environment(present, entry)}
    if wanted == {"env": {}, **present}:
        return text
    changed = text
    for key, value in wanted.items():
        if present.get(key, {} if key == "env" else None) != value:
            changed = _set(changed, key, value)
    if _agent_in(changed) != wanted:
        raise CannotMerge("its layout is one that crow does not dare to edit")
    return changed


def _set(text: str, key: str, value: object) -> str:
    agent = parse(text).members[SECTION].members[AGENT_NAME]
    if key not in agent.members:
        return add_member(text, agent, key, value)
    node = agent.members[key]
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


def _environment(present: dict[str, object], entry: dict[str, object]) -> dict[str, object]:
    """The agent's variables as the person has set them, but for Crow's home."""
    own = present.get("env")
    kept = cast("dict[str, object]", own) if isinstance(own, dict) else {}
    return {name: value for name, value in kept.items() if name != "CROW_HOME"} | cast(
        "dict[str, object]", entry["env"]
    )


def _is_crow(agent: dict[str, object]) -> bool:
    match agent:
        case {"command": str(), "args": ["-m", "crow", "acp"]}:
            return True
        case {"command": str(command), "args": ["crow-agent", "acp"]}:
            return os.path.basename(command) == "uvx"
        case {"command": str(command), "args": ["acp"]}:
            return os.path.basename(command) in COMMAND_NAMES
        case _:
            return False


def _agent_in(text: str) -> dict[str, object]:
    """The agent of our name; empty if there is none, or if it is no object."""
    section = parse(text).members.get(SECTION) if text.strip("\ufeff \t\r\n") else None
    agent = section.members.get(AGENT_NAME) if section else None
    return _plain(agent) if agent else {}


def _shown(agent: dict[str, object]) -> str:
    home = cast("dict[str, object]", agent["env"]).get("CROW_HOME") if isinstance(agent.get("env"), dict) else None
    return one_line(f"{agent.get('command')}" + (f", with CROW_HOME={home}" if home else ""), 500)


def _expected(root: Node, section: Node | None, entry: dict[str, object]) -> dict[str, object]:
    agents = _plain(section) if section else {}
    return _plain(root) | {SECTION: agents | {AGENT_NAME: entry}}


def _plain(node: Node) -> dict[str, object]:
    return {name: member.value for name, member in node.members.items()}


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CannotMerge("it is not UTF-8 text") from None
    except OSError as error:
        raise CannotMerge(f"it cannot be read ({reason(error)})") from None


def _expect_writable(path: str) -> None:
    """The file would be replaced, which its own mode does not prevent: whoever protected it meant it."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not mode & stat.S_IWUSR:
        raise CannotMerge(f"it is write-protected (mode {mode:o})")


def _keep_old(path: str) -> str:
    """Copies the file beside itself, under a name that is free, and returns that name."""
    with open(path, "rb") as file:
        content = file.read()
    mode = stat.S_IMODE(os.stat(path).st_mode)
    for number in range(1, 1000):
        backup = f"{path}.before-crow" + (f"-{number}" if number > 1 else "")
        if not os.path.lexists(backup):
            write_file(backup, content, mode=mode)
            return backup
    raise CrowError(f"{path} was not changed: there are too many backups beside it.")
