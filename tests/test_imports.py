"""The walls of the house: which room may import which, and what is loaded when.

The rooms and the reasons for them are in docs/architecture.md.
"""

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.editor import clean_environment
from tests.support.patience import DEADLINE

SOURCE = Path(__file__).parent.parent / "src" / "crow"

VOCABULARY = {
    "actions",
    "clock",
    "cutting",
    "diff",
    "disk",
    "errors",
    "events",
    "file_system",
    "markdown",
    "media",
    "messages",
    "paths",
    "results",
    "timeouts",
    "tokens",
    "visible",
}
EVERY_ROOM = {
    "acp",
    "session",
    "store",
    "project",
    "turn",
    "policy",
    "model",
    "mcp",
    "tools",
    "web",
    "workspace",
    "config",
    "vocabulary",
}

MAY_IMPORT: dict[str, set[str]] = {
    "cli": EVERY_ROOM,
    "acp": {
        "session",
        "store",
        "project",
        "turn",
        "policy",
        "model",
        "mcp",
        "tools",
        "workspace",
        "config",
        "vocabulary",
    },
    "session": {"store", "project", "turn", "policy", "model", "mcp", "tools", "workspace", "config", "vocabulary"},
    "store": {"config", "vocabulary"},
    "project": {"workspace", "config", "vocabulary"},
    "turn": {"policy", "model", "mcp", "tools", "workspace", "config", "vocabulary"},
    "policy": {"config", "vocabulary"},
    "model": {"config", "vocabulary"},
    "mcp": {"tools", "workspace", "config", "vocabulary"},
    "tools": {"web", "workspace", "config", "vocabulary"},
    "web": {"config", "vocabulary"},
    "workspace": {"vocabulary"},
    "config": {"vocabulary"},
    "vocabulary": set(),
}

LATE_IMPORTS = {
    "__main__": "each command is loaded only when it is called",
    "cli": "a command loads what it needs when it needs it",
    "acp.agent": "sessions, and all that is behind them, are loaded while the client reads the first answer",
    "model.catalog": "an adapter and its HTTP library are loaded only when a model is created",
    "config.discovery": "servers on this machine are looked for only where nothing is configured",
    "config.load": "a wrong configuration is explained only where there is one",
    "config.variables": "so is a wrong variable",
    "web.pages": "the HTTP library is loaded with the first page",
    "tools.web_search": "the HTTP library is loaded with the first search",
    "web.conversion_process": "only the library for this page is loaded",
    "session.models": "file work beside the event loop is for sessions: the first answer reads its settings at once",
    "model.windows": "the same: what sessions learn of windows is stored",
    "session.open": "the tools are loaded for the first request, while the client shows the new session",
    "session.session": "so is the turn",
    "session.builtins.undo": "and what undo needs, for the first undo",
    "policy.rules": "what judges a call is loaded for the first call",
    "tools.edit": "what finds the place of an edit is loaded for the first edit",
    "tools.write": "what looks at a new text is loaded for the first write",
    "turn.subagent.subagents": "few sessions send a subagent",
    "session.servers": "the MCP library is loaded by the first session that has servers",
    "tools.base": "what was meant is worked out only for a call that is not written as it should be",
    "tools.toolbox": "so is the tool that a wrong name stands for",
    "turn.arriving": "and what is shown of such a call while it arrives",
    "store.store": "SQLite is loaded on the worker thread, when the store is first used",
}
"""Where a function may import a module of ours, and why; elsewhere something probably lives in the wrong room."""


class Import(NamedTuple):
    importer: str
    imported: str
    place: str
    late: bool
    types_only: bool


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    first = module.partition(".")[0]
    if first in ("__main__", "cli"):
        return "cli"
    return "vocabulary" if first in VOCABULARY or first in ("", "__init__") else first


@functools.cache
def imports() -> Sequence[Import]:
    return tuple(_read_imports())


@functools.cache
def parsed(path: Path) -> Sequence[ast.AST]:
    """Everything in a file's tree, which must stay as a whole: nodes are told apart by their ids."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def _read_imports() -> Iterator[Import]:
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = parsed(path)
        scopes = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        late = {id(node) for scope in scopes for node in ast.walk(scope)}
        for_types = {id(node) for test in nodes if _is_type_checking(test) for node in ast.walk(test)}
        for node in nodes:
            for name in _imported(node):
                if name == "crow" or name.startswith("crow."):
                    place = f"{path.relative_to(SOURCE.parent.parent)}:{getattr(node, 'lineno', 0)}"
                    target = name.removeprefix("crow").removeprefix(".")
                    yield Import(module_name(path), target, place, id(node) in late, id(node) in for_types)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            # `from crow import events` names a module, `from crow.events import Notice` does not.
            return [
                f"{module}.{alias.name}" if module == "crow" and alias.name != "__version__" else module
                for alias in names
            ]
        case _:
            return []


def test_imports_point_downwards():
    upwards = [
        f"{entry.place} ({room(entry.importer)}) imports crow.{entry.imported} ({room(entry.imported)})"
        for entry in imports()
        if room(entry.importer) != room(entry.imported)
        and room(entry.imported) not in MAY_IMPORT[room(entry.importer)]
        and not (room(entry.importer) == "cli" or entry.imported == "")
    ]
    assert not upwards, "\n".join(upwards)


def test_every_room_is_known():
    rooms = {room(module_name(path)) for path in SOURCE.rglob("*.py")}
    assert rooms <= set(MAY_IMPORT)


def test_imports_inside_functions_are_the_few_that_have_a_reason():
    strangers = [
        f"{entry.place} imports crow.{entry.imported} inside a function"
        for entry in imports()
        if entry.late and not any(_belongs(entry.importer, place) for place in LATE_IMPORTS)
    ]
    assert not strangers, "\n".join(strangers)


def _belongs(module: str, place: str) -> bool:
    return module == place or module.startswith(place + ".")


def test_only_the_protocol_room_knows_wire_types_and_nobody_the_sdk():
    strangers = [
        e.place for e in imports() if e.imported.startswith("acp.wire") and room(e.importer) not in ("acp", "cli")
    ]
    assert not strangers
    for path in SOURCE.rglob("*.py"):
        names = {name.partition(".")[0] for node in parsed(path) for name in _imported(node)}
        assert "acp" not in names, f"{path} imports the SDK, which is only for tests"
        assert "pydantic" not in names or room(module_name(path)) == "mcp", "the MCP library is made with it"


# --- what is loaded when

HEAVY = {
    *("httpx2", "httpcore", "httpcore2", "httpx", "anyio", "h11", "h2", "truststore", "certifi", "idna"),
    *("pydantic", "acp", "mcp", "starlette", "sqlite3", "email", "http.client", "urllib.request", "xml"),
    *("argparse", "logging.handlers", "multiprocessing", "unittest", "ctypes", "importlib.metadata", "zipfile"),
    *("crow.model.wires", "crow.model.http", "crow.cli.run", "crow.acp.client"),
}
"""What would make the first answer late. A module of such a package counts too."""

FIRST_ROOMS = {
    "__main__",
    "acp",
    "cli",
    "config",
    "errors",
    "messages",
    "model",
    "paths",
    "session",
    "timeouts",
    "tokens",
    "visible",
}
"""What the first answer may need. The tools, the policy, the turn and the store are loaded after it."""

STAGES = """
import sys
from crow.acp import connection, jsonrpc

at, seen = sys.argv[1], {}
write = jsonrpc.write_result

def spy(id, result):
    # The moment an answer is made: the background has not had a chance yet to load anything after it.
    seen.setdefault(id.decode(), sorted(sys.modules))
    with open(at, "w") as file:
        file.write(repr(seen))
    return write(id, result)

jsonrpc.write_result = spy
sys.argv = ["crow", "acp"]
from crow.__main__ import main
sys.exit(main())
"""

OPENAI = '[providers.mine]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n[providers.mine.models.m]\n'


def modules_when_answered(folder: Path, config: str | None) -> dict[str, set[str]]:
    """The loaded modules at the moment `initialize` and `session/new` are answered, in a fresh process."""
    if config is not None:
        (folder / "config.toml").write_text(config)
    at = folder / "modules.txt"
    crow = subprocess.Popen(
        [sys.executable, "-c", STAGES, str(at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(folder, folder),
    )
    assert crow.stdin is not None
    assert crow.stdout is not None
    with crow.stdin, crow.stdout:
        for number, method, params in [
            (1, "initialize", {"protocolVersion": 1}),
            (2, "session/new", {"cwd": str(folder), "mcpServers": []}),
        ]:
            crow.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
            )
            crow.stdin.flush()
            crow.stdout.readline()
    crow.wait(DEADLINE)
    return {id: set(names) for id, names in ast.literal_eval(at.read_text()).items()}


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if any(_belongs(name, package) for package in HEAVY)}


@pytest.mark.rule("R23")
def test_until_initialize_is_answered_only_light_modules_are_loaded(tmp_path):
    loaded = modules_when_answered(tmp_path, None)["1"]
    assert heavy(loaded) == set()
    assert loaded.isdisjoint({"tomllib", "json"})
    assert {name.split(".")[1] for name in loaded if name.startswith("crow.")} <= FIRST_ROOMS


@pytest.mark.rule("R23", "R156")
def test_until_a_session_is_opened_no_http_library_is_loaded(tmp_path):
    loaded = modules_when_answered(tmp_path, OPENAI)
    assert heavy(loaded["1"]) == set()
    assert heavy(loaded["2"]) == {"sqlite3", "sqlite3.dbapi2"}, "the store is there by now, and nothing else"


def test_importing_crow_prints_nothing_and_creates_nothing(tmp_path):
    names = [f"crow.{module_name(path)}" for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py"]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", code, *(name.removesuffix(".") for name in names)],
        cwd=tmp_path,
        env=clean_environment(tmp_path / "home", tmp_path),
        capture_output=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []
