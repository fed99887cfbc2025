"""`crow setup EDITOR`: prints what connects an editor to Crow, or merges it into the editor's JSON settings with
`--write`.
"""

import argparse
import json
import os
import re
import stat
import sys
from typing import cast

from crow.cli.editors import AGENT_NAME, COMMAND_NAMES, EDITORS, Editor, Launch, launch, shown_command
from crow.config.discovery import from_environment, split_model
from crow.config.home import home, reason, write_file
from crow.config.load import load_settings
from crow.errors import ConfigError, CrowError
from crow.visible import one_line

SECTION = "agent_servers"
_COMMENT = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|//[^\r\n]*|/\*.*?\*/|\ufeff', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|,(?=\s*[}\]])')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("editor", metavar="EDITOR", nargs="?", help=", ".join(EDITORS))
    parser.add_argument("--write", action="store_true", help="add it to the editor's settings (zed, jetbrains)")


def main(arguments: argparse.Namespace) -> int:
    name: str | None = arguments.editor
    if name is None:
        print("Editors you can connect:\n")
        print("\n".join(f"  crow setup {name:<12}{editor.title}" for name, editor in EDITORS.items()))
        return 0
    editor = EDITORS.get(name.lower())
    if editor is None:
        print(f'crow: unknown editor "{one_line(name)}". Available: {", ".join(EDITORS)}', file=sys.stderr)
        return 2
    how = launch(os.environ)
    if not arguments.write:
        _print_text(name.lower(), editor, how)
        _warn_of_unseen_key(editor)
        return 0
    if not editor.settings:
        print(
            f"crow: nothing was written: --write does not support {editor.title}. Add this by hand:",
            file=sys.stderr,
        )
        _print_text(name.lower(), editor, how)
        return 1
    status = _write(editor, how, editor.settings_file(os.environ), editor.entry(how))
    _warn_of_unseen_key(editor)
    return status


def _print_text(name: str, editor: Editor, how: Launch) -> None:
    place = f"{editor.settings_file(os.environ)}, {editor.where}" if editor.settings else editor.where
    print(f"Paste this into {place}:\n")
    print(editor.to_paste(how))
    print()
    if editor.settings:
        print(f"If the file has settings already, add only what is missing, or run: crow setup {name} --write")
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
            f"\nYour key is in this shell's variable {variable}, which an editor started from the desktop does not "
            "see.\nTo store the key for Crow:\n"
            f"  printenv {variable} | {crow} login --provider {name} --model {model} --key-stdin"
        )


def _write(editor: Editor, how: Launch, path: str, entry: dict[str, object]) -> int:
    try:
        old = _read(path)
        new = merge(old or "", entry)
        if old is not None and new != old:
            _expect_writable(path)
    except CannotMerge as trouble:
        print(f"crow: {path} was not changed: {trouble}", file=sys.stderr)
        print(f"Add this by hand to {editor.where}:\n\n{editor.to_paste(how)}")
        return 1
    if new == old:
        print(f"{editor.title} is already set up: {path} has the agent {AGENT_NAME}. Nothing changed.")
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
        print(f"{done}{was}. Backup: {backup}")
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
    settings = read_settings(text)
    agents = settings.get(SECTION, {})
    if not isinstance(agents, dict):
        raise CannotMerge(f'its "{SECTION}" is not an object')
    agents = cast("dict[str, object]", agents)
    if AGENT_NAME in agents:
        entry = _updated(_agent_in(text), entry)
        changed = text if entry == agents[AGENT_NAME] else _replaced(text, entry)
    elif SECTION in settings:
        changed = _inserted(text, rf'"{SECTION}"\s*:\s*\{{', AGENT_NAME, entry)
    else:
        changed = _inserted(text, r"\{", SECTION, {AGENT_NAME: entry})
    # What was changed must mean the old settings and the entry, nothing else.
    if read_settings(changed) != settings | {SECTION: agents | {AGENT_NAME: entry}}:
        raise CannotMerge("its layout is too unusual to edit safely")
    return changed


def read_settings(text: str) -> dict[str, object]:
    """The settings: JSON as editors keep it, with comments and trailing commas."""
    try:
        settings = json.loads(_as_json(text))
    except json.JSONDecodeError as error:
        raise CannotMerge(f"line {error.lineno} is not valid JSON ({error.msg})") from None
    except RecursionError:
        raise CannotMerge("it is nested too deeply") from None
    if not isinstance(settings, dict):
        raise CannotMerge("it does not hold a JSON object")
    return cast("dict[str, object]", settings)


def _as_json(text: str) -> str:
    """The text with blanks in the place of comments and trailing commas: each value stays where it was."""
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"\S|\ufeff", " ", found[0]), text)
    return text


def _inserted(text: str, opening: str, key: str, value: object) -> str:
    """The text with a first member in the object that begins behind the pattern `opening`."""
    plain = _as_json(text)
    found = re.search(opening, plain)
    if found is None:
        raise CannotMerge("its layout is too unusual to edit safely")
    start = found.end()
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(plain, start)
    first = re.compile(r'[^\S\n]*\n([ \t]+)"').match(plain, start)
    inner = first[1] if first else outer + ("\t" if outer.startswith("\t") else "  ")
    rest = text[start:]
    if not re.compile(r"\s*\}").match(plain, start):
        rest = "," + rest
    elif "\n" not in plain[start : plain.index("}", start)]:
        rest = newline + outer + rest.lstrip()
    return f"{text[:start]}{newline}{inner}{json.dumps(key)}: {_rendered(value, inner, outer, newline)}{rest}"


def _replaced(text: str, entry: dict[str, object]) -> str:
    """The text with another entry in the place of the agent that is there."""
    plain = _as_json(text)
    found = re.search(rf'"{SECTION}"\s*:\s*\{{.*?("{AGENT_NAME}"\s*:\s*)(?=\{{)', plain, re.DOTALL)
    if found is None:
        raise CannotMerge("its layout is too unusual to edit safely")
    _, end = json.JSONDecoder().raw_decode(plain, found.end())
    if any(piece[0] == "/" for piece in _COMMENT.findall(text, found.end(), end)):
        raise CannotMerge("there are comments in its entry for Crow")
    inner = _indent_at(plain, found.start(1))
    newline = "\r\n" if "\r\n" in text else "\n"
    return text[: found.end()] + _rendered(entry, inner, _indent_at(plain, found.start()), newline) + text[end:]


def _indent_at(text: str, position: int) -> str:
    """How the line at this position is indented."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _rendered(value: object, indent: str, outer: str, newline: str) -> str:
    """JSON whose further lines have this indent, and go on as the settings do."""
    step = indent.removeprefix(outer) or "  "
    return json.dumps(value, indent="\t" if "\t" in step else step, ensure_ascii=False).replace("\n", newline + indent)


def _updated(present: dict[str, object], entry: dict[str, object]) -> dict[str, object]:
    """The agent that is there, made to start this Crow, in this home; the rest of it stays."""
    if not _is_crow(present):
        raise CannotMerge(f'it has an agent "{AGENT_NAME}" that starts another command: {_shown(present)}')
    wanted = present | {"command": entry["command"], "args": entry["args"], "env": _environment(present, entry)}
    return present if wanted == {"env": {}, **present} else wanted


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
    section = read_settings(text).get(SECTION) if text.strip("\ufeff \t\r\n") else None
    agent = cast("dict[str, object]", section).get(AGENT_NAME) if isinstance(section, dict) else None
    return cast("dict[str, object]", agent) if isinstance(agent, dict) else {}


def _shown(agent: dict[str, object]) -> str:
    home = cast("dict[str, object]", agent["env"]).get("CROW_HOME") if isinstance(agent.get("env"), dict) else None
    return one_line(f"{agent.get('command')}" + (f", with CROW_HOME={home}" if home else ""), 500)


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
    raise CrowError(f"{path} was not changed: there are too many backups next to it.")
