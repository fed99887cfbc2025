"""Scripts for the scripted model, said in Python: `reply(say("Let me look."), call("read", path="a.py"))`."""

import json
import re
from typing import Any


def say(text: str) -> str:
    return f"{{ text = {_quoted(text)} }}"


def call(tool: str, *, pieces: int = 1, **arguments: Any) -> str:
    """A call whose arguments arrive in that many pieces."""
    return f"{{ call = {_quoted(tool)}, raw = {_quoted(json.dumps(arguments))}, pieces = {pieces} }}"


def call_as_written(tool: str, text: str) -> str:
    """A call with the text of its arguments exactly as a model wrote it, which may be no JSON."""
    return f"{{ call = {_quoted(tool)}, raw = {_quoted(text)} }}"


def edit(path: str, old: str, new: str) -> str:
    return call("edit", path=path, edits=[{"old": old, "new": new}])


def run(command: str, **more: Any) -> str:
    return call("terminal", command=command, **more)


def reply(*events: str, when: str = "") -> str:
    """One reply of the model; with `when`, only to a prompt that has this word in it."""
    condition = f"when = {_quoted(when)}\n" if when else ""
    return f"[[reply]]\n{condition}events = [{', '.join(events)}]\n"


def _quoted(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)  # a TOML string can be written as a JSON string


def quick_to_read(script: str) -> str:
    """The same with long strings as literal ones: a megabyte of another is read in half a second, by character."""
    return re.sub(r'(?<= = )"([^"\'\\\n]{10000,})"', r"'\1'", script)


def allowing(*tools: str) -> str:
    """Lines of a config with which these tools need no permission."""
    return "".join(f'[[permission.rules]]\ntool = "{tool}"\ndecision = "allow"\n' for tool in tools)


DONE = f"[[reply]]\nrepeat = true\nevents = [{say('Done.')}]\n"
"""The end of a script: whatever else is asked, the model has said what it had to say."""
TALK = reply(say("One."), when="first") + reply(say("Two."), when="second") + DONE
"""A short talk: the first and the second prompt have a reply each."""
