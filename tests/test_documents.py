"""The documentation says what the code does: every key and default, every variable, every link."""

import ast
import functools
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.config.settings import (
    BudgetSettings,
    ChatSettings,
    FacesSettings,
    Limits,
    McpServerSettings,
    ModelSettings,
    PermissionRule,
    ProviderSettings,
    Settings,
    TerminalSettings,
    WebSettings,
)
from crow.policy.paths import risky_names

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY: str = PROJECT["urls"]["Homepage"]

SECTIONS: dict[str, type[msgspec.Struct]] = {
    "Top level": Settings,
    "`[providers.NAME]`": ProviderSettings,
    "`[providers.NAME.models.MODEL]`": ModelSettings,
    "`[terminal]`": TerminalSettings,
    "`[web]`": WebSettings,
    "`[mcp_servers.NAME]`": McpServerSettings,
    "`[[permission.rules]]`": PermissionRule,
    "`[limits]`": Limits,
    "`[budget]`": BudgetSettings,
    "`[chat]`": ChatSettings,
    "`[faces]`": FacesSettings,
}
NOT_WRITTEN_BY_PEOPLE = {"digest"}


def sections() -> dict[str, str]:
    text = (ROOT / "docs" / "configuration.md").read_text()
    parts = re.split(r"(?m)^## (.*)$", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def written_default(field: msgspec.structs.FieldInfo) -> str:
    default: Any = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if field.required:
        return "required"
    if (
        default in (None, "")
        or isinstance(default, msgspec.Struct)
        or (default == {} and "Settings" in str(field.type))
    ):
        return "-"
    return f"`{msgspec.json.encode(default).decode()}`"


@pytest.mark.parametrize("section", list(SECTIONS))
def test_every_key_is_documented_with_its_default(section: str) -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| ([^|]*) \| (.+) \|$", sections()[section])
    fields = [one for one in msgspec.structs.fields(SECTIONS[section]) if one.name not in NOT_WRITTEN_BY_PEOPLE]
    assert {name: default.replace(".0`", "`") for name, default, _ in rows} == {
        one.name: written_default(one).replace(".0`", "`") for one in fields
    }


def test_no_section_of_the_settings_is_missing() -> None:
    """A struct that can be reached from the settings has its table."""

    def structs(kind: Any) -> set[type]:
        found = {kind} if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else set[type]()
        inner = [field.type for one in found for field in msgspec.structs.fields(one)]
        return found.union(*(structs(part) for part in (*getattr(kind, "__args__", ()), *inner)))

    assert {kind.__name__ for kind in structs(Settings)} - {"PermissionSettings"} == {
        kind.__name__ for kind in SECTIONS.values()
    }


def test_every_variable_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"\"(CROW_(?!TERMINAL|CHECK_)[A-Z_]+)\"", sources))  # those two are set for what Crow starts
    assert named - set(re.findall(r"`(CROW_[A-Z_]+)`", sections()["Variables"])) == set()


# --- links


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")], ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"(?s)```.*?```", "", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if name.startswith(REPOSITORY):
            found = ROOT / re.sub(r"^/(blob|tree)/main/?", "", name.removeprefix(REPOSITORY))
        elif name.startswith(("http:", "https:")):
            continue
        else:
            found = path.parent / name if name else path
        assert found.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(found), f"{path.name}: {target}"


def test_the_readme_can_be_read_on_the_index() -> None:
    """There, a link that is relative to the repository leads nowhere."""
    relative = [
        target for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text()) if "//" not in target
    ]
    assert relative == []


# --- the package


def test_the_wheel_has_both_commands_and_its_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = next(name for name in names if name.endswith("/METADATA"))
        about = wheel.read(metadata).decode()
        commands = wheel.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    assert {
        "crow/py.typed",
        "crow/__main__.py",
        "crow/cli/demo.toml",
        "crow/cli/editors.toml",
        "crow/model/demo.toml",
    } <= set(names)
    assert {"crow/policy/risky_names.toml", "crow/policy/option_table.toml"} <= set(names)
    assert {"crow/config/vendors.json", "crow/model/facts.json", "crow/project/program_names.toml"} <= set(names)
    assert "crow/tools/lenient/other_agents.toml" in names
    assert not [name for name in names if name.startswith("tests")]
    assert "crow = crow.__main__:main" in commands
    assert "crow-agent = crow.__main__:main" in commands
    assert f"Project-URL: Homepage, {REPOSITORY}" in about


# --- maps


PACKAGES = sorted(path.parent for path in (ROOT / "src" / "crow").rglob("__init__.py"))


SOURCES = sorted(PACKAGES[0].rglob("*.py"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
LONGEST_SENTENCE = 160
RISKY = {name for group in (*risky_names().protected, *risky_names().secret) for name in group.names.split()}
EXAMPLES = {"conftest.py", "src/deep/x.py", "src/*.py", "nest.py", *RISKY}
"""Names of files that are a user's, not ours."""


def lost_files(text: str, beside: Path) -> list[str]:
    """The files of Python and of the page that a text names and that are nowhere."""
    places = (PACKAGES[0], ROOT, ROOT / "tests", beside.parent, *PACKAGES)
    named = set(re.findall(r"`([\w/*]+\.py|page/[\w/]+\.\w+)`", text)) - EXAMPLES
    return sorted(name for name in named if not any(list(place.glob(name)) for place in places))


def lost_modules(text: str) -> list[str]:
    """The modules, and the names in them, that a text calls by their whole name and that are nowhere."""
    return sorted(name for name in set(re.findall(r"`(crow(?:\.\w+)+)`", text)) if not is_there(name.split(".")))


def is_there(names: list[str]) -> bool:
    path = (ROOT / "src").joinpath(*names)
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    modules = [(ROOT / "src").joinpath(*names[:length]).with_suffix(".py") for length in range(2, len(names))]
    defined = rf"(?m)^ *(?:(?:async )?def |class )?{names[-1]}\b *[(:=]"
    return any(re.search(defined, module.read_text()) for module in modules if module.is_file())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_names_files_and_modules_that_exist(path: Path) -> None:
    text = path.read_text()
    assert lost_files(text, path) + lost_modules(text) == []


def test_the_code_names_files_and_modules_that_exist() -> None:
    lost = {path: lost_files(path.read_text(), path) + lost_modules(path.read_text()) for path in SOURCES}
    assert {str(path.relative_to(ROOT)): names for path, names in lost.items() if names} == {}


def test_a_name_that_is_lost_is_found() -> None:
    text = "`acp/gone.py`, `gone.py`, `page/src/gone.ts`, `crow.acp.gone`, `crow.events.Gone`, `crow.gone.deeper`"
    assert lost_files(text, ROOT / "README.md") == ["acp/gone.py", "gone.py", "page/src/gone.ts"]
    assert lost_modules(text) == ["crow.acp.gone", "crow.events.Gone", "crow.gone.deeper"]
    assert lost_modules("`crow.acp`, `crow.events`, `crow.events.Notice`") == []


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda package: "/".join(package.parts[-2:]))
def test_a_room_names_only_files_that_it_has(package: Path) -> None:
    text = (ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "").partition("Where is …?")[0]
    named = {*re.findall(r"`([a-z_]+)`", text), *re.findall(r"\b([a-z_]+)\.py\b", text)}
    assert named - {path.stem for path in package.iterdir()} == set()


def test_the_architecture_names_every_room_and_every_file_of_the_vocabulary() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = {*re.findall(r"`(\w+\.py)`", text), *re.findall(r"`(\w+)/`", text)}
    rooms = {path.parent.name for path in PACKAGES[0].glob("*/__init__.py")}
    assert (rooms | {path.name for path in PACKAGES[0].glob("*.py")}) - {"__init__.py", *named} == set()


def test_the_architecture_names_what_stands_in_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    code = set(re.findall(r"\w+", "".join(path.read_text() for path in SOURCES)))
    named = {name for path in re.findall(r"`(\w+(?:\.\w+)*)`", text) for name in path.removesuffix(".py").split(".")}
    modules = {path.stem for path in SOURCES} | {path.name for path in PACKAGES}
    assert named - code - modules == set()


def test_the_index_has_the_rows_of_every_room() -> None:
    assert (ROOT / "docs" / "index.md").read_text() == room_index()["page"](), "run: make format"


def test_each_file_says_in_one_short_sentence_what_it_is_for() -> None:
    sentences = {str(path.relative_to(PACKAGES[0])): room_index()["first_sentence"](path) for path in SOURCES}
    long = {name: len(said) for name, said in sentences.items() if len(said) > LONGEST_SENTENCE}
    assert (long, [name for name, said in sentences.items() if not said.endswith((".", "?"))]) == ({}, [])


@functools.cache
def room_index() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "room_index.py"))


def test_each_step_of_a_prompt_is_in_the_file_that_it_is_said_to_be_in() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"\*\*`([\w/]+\.py)`\*\*\s`(\w+)(?:\.(\w+))?`", text)
    assert len(steps) >= 8
    for file, *names in steps:
        words = set(re.findall(r"\w+", (PACKAGES[0] / file).read_text()))
        assert set(filter(None, names)) <= words, file
