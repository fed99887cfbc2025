"""The walls of the house: which room may import which, and what is loaded when.

The rooms and the reasons for them are in docs/architecture.md.
"""

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.editor import clean_environment
from tests.support.patience import DEADLINE

SOURCE = Path(__file__).parent.parent / "src" / "crow"

VOCABULARY = {
    "actions",
    "diff",
    "disk",
    "errors",
    "events",
    "descriptors",
    "visible",
    "messages",
    "paths",
    "results",
    "threads",
    "timeouts",
}
MAY_IMPORT: dict[str, set[str]] = {
    "cli": {
        "web_server",
        "acp",
        "session",
        "store",
        "policy",
        "model",
        "mcp",
        "mcp.server",
        "tools",
        "web",
        "commands",
        "search",
        "files",
        "rpc",
        "config",
        "vocabulary",
    },
    "web_server": {
        "acp",
        "rpc",
        "config",
        "vocabulary",
    },
    "acp": {
        "live",
        "session",
        "store",
        "turn",
        "commands",
        "search",
        "files",
        "rpc",
        "config",
        "vocabulary",
    },
    "live": {
        "session",
        "store",
        "commands",
        "files",
        "rpc",
        "config",
        "vocabulary",
    },
    "session": {
        "store",
        "project",
        "turn",
        "policy",
        "model",
        "mcp",
        "tools",
        "commands",
        "files",
        "config",
        "vocabulary",
    },
    "store": {
        "config",
        "vocabulary",
    },
    "project": {
        "config",
        "vocabulary",
    },
    "turn": {
        "policy",
        "model",
        "tools",
        "files",
        "config",
        "vocabulary",
    },
    "policy": {
        "config",
        "vocabulary",
    },
    "model": {
        "config",
        "vocabulary",
    },
    "mcp": {
        "tools",
        "commands",
        "files",
        "rpc",
        "config",
        "vocabulary",
    },
    "mcp.server": {
        "turn",
        "policy",
        "mcp",
        "tools",
        "commands",
        "files",
        "rpc",
        "vocabulary",
    },
    "tools": {
        "web",
        "commands",
        "search",
        "files",
        "config",
        "vocabulary",
    },
    "web": {
        "config",
        "vocabulary",
    },
    "commands": {
        "files",
        "vocabulary",
    },
    "search": {
        "files",
        "vocabulary",
    },
    "files": {
        "vocabulary",
    },
    "rpc": {
        "vocabulary",
    },
    "config": {
        "vocabulary",
    },
    "vocabulary": set(),
}
"""Only what is used: a grant that nobody needs is a wall that is missing."""

INNER = {
    "acp.wire": ("acp", "web_server", "cli"),
    "model.wires": ("model",),
    "model.http": ("model",),
    "store.database": ("store", "cli"),
    "turn.context": (
        *("turn.loop", "turn.call_batch", "turn.prompt", "turn.subagents"),
        *("session.open", "session.session"),
    ),
}
"""What only these rooms or modules may know, whatever else they may import of its room."""

LIBRARIES = {
    "anyio": ("mcp",),
    "bs4": ("web.main_content", "web.markdown", "web.normalise"),
    "ddgs": ("web.search", "cli.doctor"),
    "httpx2": ("model.http", "model.connections", "config.hosts", "web", "mcp.client"),
    "idna": ("web.addresses",),
    "jiter": ("turn.partial_call", "tools.arguments"),
    "markdownify": ("web.markdown",),
    "mcp": ("mcp",),
    "mcp_types": ("mcp",),
    "pydantic": ("mcp",),
    "pydantic_core": ("mcp",),
    "prompt_toolkit": ("cli.chat",),
    "pypdf": ("web.conversion_process",),
    "rapidfuzz": ("diff", "tools", "mcp.client"),
    "segno": ("cli.web",),
    "tomlkit": ("config.edit",),
    "tree_sitter": ("policy.grammar",),
    "tree_sitter_bash": ("policy.grammar",),
    "uvicorn": ("mcp.server.http", "rpc.uvicorn_server", "web_server"),
    "websockets": ("web_server.connections",),
}
"""Who may know which library; `msgspec` is everybody's."""

LATE_IMPORTS = {
    "__main__": "each command is loaded only when it is called",
    "cli": "a command loads what it needs when it needs it",
    "acp.agent": "sessions, and all that is behind them, are loaded while the client reads the first answer",
    "live.ownership": "so is the socket, once the first session is there",
    "acp.translate": "diffs are compared only for a client that asks which lines are changed",
    "acp.sessions": "a relay is loaded for the first session that lives in another process",
    "model.catalog": "an adapter and its HTTP library are loaded only when a model is created",
    "web.page_cache": "the HTTP library is loaded with the first page",
    "tools.web": "the HTTP library is loaded with the first search",
    "web.page_content": "what converts pages is another process, started by its name",
    "web.conversion_process": "only the library for this page is loaded",
    "session.models": "file work beside the event loop is for sessions: the first answer reads its settings at once",
    "model.facts": "the same: what sessions learn of windows is stored",
    "session.session_model": "what reads calls that are written as text is loaded with the first request",
    "session.open": "the tools are loaded for the first request, and the MCP library for a session with servers",
    "session.session": "so is the turn",
    "session.builtin_commands": "and what undo needs, for the first undo",
    "policy.rule_policy": "what judges a call is loaded for the first call",
    "tools.edit": "what finds the place of an edit is loaded for the first edit",
    "tools.write": "what looks at a new text is loaded for the first write",
    "turn.subagents": "few sessions send a subagent",
    "session.servers": "the MCP library is loaded by the first session that has servers",
    "tools.arguments": "what was meant is worked out only for a call that is not written as it should be",
    "tools.base": "so is the tool that a wrong name stands for",
    "turn.partial_call": "and what is shown of such a call while it arrives",
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
    if _belongs(module, "mcp.server"):  # a face of Crow's like `acp`: it makes calls, where the rest brings tools
        return "mcp.server"
    return "vocabulary" if first in VOCABULARY or first in ("", "__init__") else first


@functools.cache
def imports() -> Sequence[Import]:
    return tuple(
        entry for path in sorted(SOURCE.rglob("*.py")) for entry in imports_of(module_name(path), path.read_text())
    )


def imports_of(importer: str, text: str) -> Iterator[Import]:
    """Every import of a file's text, our own without `crow.`, and those by a name in a string too."""
    nodes = tuple(ast.walk(ast.parse(text)))
    scopes = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = {id(node) for scope in scopes for node in ast.walk(scope)}
    for_types = {id(node) for test in nodes if _is_type_checking(test) for node in ast.walk(test)}
    for node in nodes:
        for name in _imported(node):
            place = f"{importer}:{getattr(node, 'lineno', 0)}"
            yield Import(importer, name, place, id(node) in late, id(node) in for_types)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(level=level) if level:
            return ["." * level + (node.module or "")]
        case ast.ImportFrom(module=str(module), names=names):
            # What is imported from a package may be a module of it.
            return [f"{module}.{alias.name}" for alias in names]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(imported)), *_]):
            return [imported] if name in ("import_module", "__import__") and not _is_ours(imported) else []
        case ast.Constant(value=str(text)) if _is_ours(text):
            return [text.rstrip(".")]  # whatever is done with the name: lists of them are loaded in the background
        case _:
            return []


def _is_ours(text: str) -> bool:
    """Whether a text is the name of a module of ours, or the beginning of one."""
    if not re.fullmatch(r"crow(\.[a-z_]+)+\.?", text):
        return False
    path = SOURCE.parent.joinpath(*text.rstrip(".").split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


# --- the walls


def violations(entries: Iterable[Import]) -> list[str]:
    """What is wrong with imports, in words."""
    return [f"{entry.place} imports {entry.imported}: {fault}" for entry in entries if (fault := _fault(entry))]


def _fault(entry: Import) -> str:
    first = entry.imported.partition(".")[0]
    own = room(entry.importer)
    if entry.imported.startswith("."):
        return "say the whole name of a module"
    if first == "acp":
        return "the SDK is only for tests"
    if first != "crow":
        return _library_fault(entry.importer, first)
    if entry.imported in ("crow", "crow.__version__"):
        return ""
    imported = entry.imported.removeprefix("crow.")
    if own != room(imported) and room(imported) not in MAY_IMPORT[own]:
        return f"{own} may not import {room(imported)}"
    for inner, rooms in INNER.items():
        if _belongs(imported, inner) and own not in rooms and not any(_belongs(entry.importer, one) for one in rooms):
            return f"only {' and '.join(rooms)} may know {inner}"
    if entry.late and not any(_belongs(entry.importer, place) for place in LATE_IMPORTS):
        return "inside a function, without a reason in LATE_IMPORTS"
    return ""


def _library_fault(importer: str, library: str) -> str:
    if library == "msgspec" or library in sys.stdlib_module_names:
        return ""
    places = LIBRARIES.get(library, ())
    if any(_belongs(importer, place) for place in places):
        return ""
    return f"only {' and '.join(places)} may know {library}" if places else f"{library} is not in LIBRARIES"


def _belongs(module: str, place: str) -> bool:
    return module == place or module.startswith(place + ".")


def test_nobody_imports_through_a_wall():
    assert violations(imports()) == []


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("acp.planted", "from crow.model.wires.openai import create"),
        ("acp.planted", "from crow.tools.edit import Edit"),
        ("turn.planted", "from crow.session.session import Session"),
        ("model.planted", "if TYPE_CHECKING:\n    from crow.turn.loop import run_turn"),
        ("tools.planted", "from crow.policy.rule_policy import RulePolicy"),
        ("files.planted", "import crow.config.home"),
        ("messages", "from crow import model"),
        ("session.planted", "from crow.model.http import Http"),
        ("turn.planted", "def turn():\n    from crow.tools.base import Tool"),
        ("session.planted", "from crow.acp.wire import TextContent"),
        ("session.planted", "from crow.turn.context import TurnContext"),
        ("mcp.client.planted", "from crow.turn.call import Call"),
        ("tools.planted", "from ..acp import wire"),
        ("tools.planted", "import pydantic"),
        ("acp.planted", "from acp.schema import TextContentBlock"),
        ("turn.planted", 'def turn(name):\n    importlib.import_module(f"crow.model.wires.{name}")'),
        ("store.planted", 'importlib.import_module("crow.session.session")'),
        ("session.open", "from crow.model import http"),
        ("session.open", "from crow.model import wires"),
        ("session.trust", "from crow.turn import context"),
        ("policy.planted", "from crow.turn import subagents as more"),
        ("search.planted", "import mcp"),
        ("turn.planted", "import mcp.types"),
        ("policy.planted", "import httpx2"),
        ("model.planted", "from httpx2 import AsyncClient"),
        ("web.planted", 'importlib.import_module("ddgs")'),
        ("cli.planted", "import requests"),
        ("store.planted", 'from importlib import import_module\nimport_module("crow.session.session")'),
        ("store.planted", '__import__("crow.session.session")'),
        ("store.planted", 'MODULES = ("crow.turn.loop",)'),
    ],
)
def test_an_import_through_a_wall_is_seen(importer, text):
    assert len(violations(imports_of(importer, text))) == 1


def test_every_room_is_known_and_every_grant_is_used():
    rooms = {room(module_name(path)) for path in SOURCE.rglob("*.py")}
    assert rooms == set(MAY_IMPORT)
    used = {(room(e.importer), room(e.imported.removeprefix("crow."))) for e in imports() if "crow." in e.imported}
    granted = {(importer, imported) for importer, rooms in MAY_IMPORT.items() for imported in rooms}
    assert granted - used == set()


def test_the_vocabulary_is_the_files_that_there_are():
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"} == VOCABULARY


def test_every_inner_module_and_every_library_is_used_where_it_may_be():
    modules = {module_name(path) for path in SOURCE.rglob("*.py")}
    assert set(INNER) <= modules
    allowed = {(inner, place) for inner, places in INNER.items() for place in places}
    allowed |= {(library, place) for library, places in LIBRARIES.items() for place in places}
    used = {
        (known, place)
        for known, place in allowed
        if any(_belongs(entry.importer, place) and _belongs(entry.imported, _whole_name(known)) for entry in imports())
    }
    assert allowed - used == set()


def _whole_name(known: str) -> str:
    return known if known in LIBRARIES else f"crow.{known}"


def test_every_reason_for_a_late_import_is_still_one():
    late = [entry.importer for entry in imports() if entry.late and entry.imported.startswith("crow.")]
    assert [place for place in LATE_IMPORTS if not any(_belongs(importer, place) for importer in late)] == []


# --- what is loaded when

HEAVY = {
    *("uvicorn", "websockets", "crow.web_server"),
    *("httpx2", "httpcore", "httpcore2", "httpx", "anyio", "h11", "h2", "truststore", "certifi", "idna"),
    *("pydantic", "acp", "mcp", "starlette", "sqlite3", "email", "http.client", "urllib.request", "xml"),
    *("argparse", "logging.handlers", "multiprocessing", "unittest", "ctypes", "importlib.metadata", "zipfile"),
    *("prompt_toolkit", "wcwidth"),
    *("crow.model.wires", "crow.model.http", "crow.cli.run", "crow.cli.chat", "crow.acp.client"),
}
"""What would make the first answer late. A module of such a package counts too."""

FIRST_ROOMS = {
    "__main__",
    "acp",
    "cli",
    "config",
    "errors",
    "descriptors",
    "messages",
    "model",
    "paths",
    "rpc",
    "session",
    "threads",
    "timeouts",
    "visible",
}
"""What the first answer may need. The tools, the policy, the turn and the store are loaded after it."""

STAGES = """
import sys
from crow.rpc import connection, jsonrpc

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
