"""What the fake model answers: a scenario is picked by the user's prompt text.

An answer is a list of parts; each part is one of
  ("text", [delta, ...])   ("think", [delta, ...])   ("call", tool, [args_delta, ...])
The state is read from the messages only (which round are we in?), so the server keeps none.
"""

import difflib
import json
import os
import re

PROMPT = re.compile(r"bench:([a-z-]+)(?::([^\n<]*))?")

WRITE = (
    "writefile",
    "write",
    "createfile",
    "filewrite",
    "fswrite",
    "writetextfile",
    "strreplacebasededittool",
    "fileeditor",
    "edit",
)
SHELL = (
    "shell",
    "bash",
    "runshellcommand",
    "execcommand",
    "shellcommand",
    "execute",
    "terminal",
    "runcommand",
    "bashcommand",
)
READ = ("readfile", "read", "fsread", "readtextfile", "view", "viewfile")
PATH_KEYS = ("path", "file_path", "filePath", "absolute_path", "file", "filename")
TEXT_KEYS = ("content", "contents", "file_text", "text")
CMD_KEYS = ("command", "cmd", "script")
PAGE = 2000


class Tool:
    def __init__(self, name, schema=None, custom=False):
        self.name, self.schema, self.custom = name, schema or {}, custom

    @property
    def plain(self):
        return re.sub(r"[^a-z]", "", self.name.lower())

    def args(self, **wanted):
        """Fill the tool's own parameter names: wanted maps a kind (path/text/cmd) to a value."""
        props = self.schema.get("properties", {})
        kinds = {"path": PATH_KEYS, "text": TEXT_KEYS, "cmd": CMD_KEYS, "code": ("code",)}
        out = {}
        for kind, value in wanted.items():
            key = next((k for k in kinds[kind] if k in props), kinds[kind][0])
            if kind == "cmd" and props.get(key, {}).get("type") == "array":
                value = ["bash", "-lc", value]
            out[key] = value
        if "command" in props and "file_text" in props:  # the "create a file" command of an edit tool
            out["command"] = "create"
        if "overwrite" in props and "text" in wanted:
            out["overwrite"] = True
        for key in self.schema.get("required", []):
            out.setdefault(key, _filler(props.get(key, {})))
        return out


def _filler(prop):
    if prop.get("enum"):
        return prop["enum"][0]
    return {"integer": 30, "number": 30, "boolean": False, "array": [], "object": {}}.get(prop.get("type"), "bench")


def pick(tools, names):
    for name in names:
        for tool in tools:
            if tool.plain == name:
                return tool
    for name in names:
        for tool in tools:
            if tool.plain.endswith(name):
                return tool
    return None


def pieces(text, size):
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def lines(count):
    return "".join(f"line {i:06d} of the file\n" for i in range(count))


def patch(path, new):
    """An apply_patch body, for the agents whose only write tool is a patch."""
    if not os.path.exists(path):
        body = f"*** Add File: {path}\n" + "".join("+" + x for x in new.splitlines(True))
        return f"*** Begin Patch\n{body}*** End Patch"
    old_lines, new_lines = open(path).read().splitlines(True), new.splitlines(True)
    body = f"*** Update File: {path}\n"
    if len(old_lines) == len(new_lines):  # line by line, with one line of context before each change
        for i, (a, b) in enumerate(zip(old_lines, new_lines, strict=False)):
            if a != b:
                body += (
                    "@@\n"
                    + (f" {old_lines[i - 1]}" if i and old_lines[i - 1] == new_lines[i - 1] else "")
                    + f"-{a}+{b}"
                )
    else:
        for row in list(difflib.unified_diff(old_lines, new_lines, n=1))[2:]:
            body += "@@\n" if row.startswith("@@") else row
    return f"*** Begin Patch\n{body}*** End Patch"


def python_call(tool, code, size=40):
    """For an agent whose one tool runs Python code (crow-cli): its read/write helpers are awaited in the code."""
    return [("call", tool, pieces(json.dumps(tool.args(code=code)), size))]


def answer(history, tools):
    """history: [(role, text, has_calls)] oldest first; returns (label, round, parts, pace_ms)."""
    start, kind, arg = None, None, ""
    for i, (role, text, _calls) in enumerate(history):
        if role == "user" and (m := list(PROMPT.finditer(text or ""))):
            start, kind, arg = i, m[-1].group(1), (m[-1].group(2) or "").strip()
    if kind is None or not tools:
        return "aux", 0, [("text", ["ok"])], 0  # titles, summaries and the like
    rnd = sum(1 for role, _t, calls in history[start:] if role == "assistant" and calls)
    label, done = f"{kind}:{arg}"[:80], [("text", ["done"])]
    f = arg.split(":")
    if kind == "tokens":
        return label, rnd, [("text", [f"w{i} " for i in range(int(f[0]))])], 0
    if kind == "think":
        return label, rnd, [("think", [f"t{i} " for i in range(int(f[0]))]), ("text", ["done"])], 0
    if kind == "slow":  # slow:COUNT:MS, numbered so that the client can time each one
        return label, rnd, [("text", [f"<{i}>" for i in range(int(f[0]))])], float(f[1])
    if kind in ("tool-write", "write-from"):  # tool-write:DST:LINES[:CHUNK[:MS]]   write-from:DST:SRC[:CHUNK]
        if rnd:
            return label, rnd, done, 0
        new = lines(int(f[1])) if kind == "tool-write" else open(f[1]).read()
        size = int(f[2]) if len(f) > 2 else 40
        pace = float(f[3]) if len(f) > 3 else 0
        tool = pick(tools, WRITE)
        coder = next((t for t in tools if "code" in t.schema.get("properties", {})), None)
        if tool is None and coder:
            return label, rnd, python_call(coder, f"r = await write({f[0]!r}, {new!r})\nprint(r)", size), 0
        patcher = pick(tools, ("applypatch",))
        if tool is None and patcher is not None:
            body = patch(f[0], new)
            raw = body if patcher.custom else json.dumps(patcher.args(text=body) | {"input": body})
            return label, rnd, [("call", patcher, pieces(raw, size))], 0
        if tool is None:  # nothing but a shell: write with a here-document
            tool = pick(tools, SHELL)
            return (
                label,
                rnd,
                [("call", tool, pieces(json.dumps(tool.args(cmd=f"cat > {f[0]} <<'EOF'\n{new}EOF")), size))],
                0,
            )
        return label, rnd, [("call", tool, pieces(json.dumps(tool.args(path=f[0], text=new)), size))], pace
    if kind == "read-all":  # read-all:FILE, in pages where the tool has an offset: some give no more than so many lines
        tool = pick(tools, READ)
        paged = tool is not None and "offset" in tool.schema.get("properties", {})
        if rnd >= (-(-open(f[0]).read().count("\n") // PAGE) if paged else 1):
            return label, rnd, done, 0
        page = {"offset": rnd * PAGE + 1, "limit": PAGE} if paged else {}
        args = tool.args(path=f[0]) | page if tool else pick(tools, SHELL).args(cmd=f"cat {f[0]}")
        return label, rnd, [("call", tool or pick(tools, SHELL), [json.dumps(args)])], 0
    if kind == "shell":
        if rnd:
            return label, rnd, done, 0
        tool = pick(tools, SHELL)
        return label, rnd, [("call", tool, [json.dumps(tool.args(cmd=arg))])], 0
    if (
        kind == "turns"
    ):  # turns:COUNT:FILE or turns:COUNT:DIR, a file of its own each round: agents stop a loop of equal calls
        if rnd >= int(f[0]):
            return label, rnd, done, 0
        if os.path.isdir(f[1]):
            f[1] = os.path.join(f[1], f"small_{rnd}.txt")
        tool = pick(tools, READ)
        coder = next((t for t in tools if "code" in t.schema.get("properties", {})), None)
        if tool is None and coder:
            return label, rnd, python_call(coder, f"r = await fs('read', {f[1]!r})\nprint(r.text)", 4000), 0
        args = tool.args(path=f[1]) if tool else pick(tools, SHELL).args(cmd=f"cat {f[1]}")
        return label, rnd, [("call", tool or pick(tools, SHELL), [json.dumps(args)])], 0
    return label, rnd, [("text", [f"unknown scenario {kind}"])], 0
