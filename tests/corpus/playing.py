"""A corpus of tool calls as models make them, played through a real `crow acp`.

A family is a file in `cases/`; each of its cases is a call and what must become of it:

    [[case]]
    name = "a block that lost its indentation"
    file = "def f():\n    x = 1\n"      # what CASE/app.py holds; for other names: files = { "CASE/a.md" = "..." }
    old = "x = 1"                      # short for a call of `edit` with one edit ...
    new = "x = 2"
    lands = "def f():\n    x = 2\n"     # what the file must hold afterwards, to the byte

Instead of `old` and `new`: `edits = [{ old = "", new = "" }]`; or `content` for `write`; or `call` with `arguments`, a
table, or `raw`, the text of the arguments exactly as the model wrote it. `CASE` stands for the folder of the case.

Instead of `lands`, which may be a table of paths: `told = ["words"]` for a call that changes nothing and must succeed
with these words in its result; or `refused = ["words", ...]` for one that must be refused, with nothing changed, in a
result that names the mistake and the remedy: at least one phrase for each. A case may have both `lands` and `told`.

`clear = false`: a careful person would ask back instead of guessing; such a call must be refused. A case that is clear
and refused all the same is one that Crow is known not to read. `read = false`: the model has not read the files before.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.support import scripts
from tests.support.editor import Editor, Json

CASES = Path(__file__).parent / "cases"
FAMILIES = tuple(sorted(path.stem for path in CASES.glob("*.toml")))
DEFAULT_PATH = "CASE/app.py"


class EditOfCase(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    old: str
    new: str
    all: bool = False


class Case(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    file: str | None = None
    files: dict[str, str] = {}
    path: str = DEFAULT_PATH
    """The path in a call that is written in short."""
    read: bool = True
    old: str | None = None
    new: str = ""
    edits: list[EditOfCase] = []
    content: str | None = None
    call: str = ""
    arguments: dict[str, Any] = {}
    raw: str | None = None
    clear: bool = True
    lands: str | dict[str, str] | None = None
    told: list[str] = []
    refused: list[str] = []

    def before(self) -> dict[str, str]:
        return {**({DEFAULT_PATH: self.file} if self.file is not None else {}), **self.files}

    def after(self) -> dict[str, str]:
        """What the case's files must hold in the end."""
        match self.lands:
            case None:
                return self.before()
            case str(text):
                return {**self.before(), (self.path if self.path in self.before() else DEFAULT_PATH): text}
            case paths:
                return {**self.before(), **paths}

    def tool(self) -> str:
        return self.call or ("write" if self.content is not None else "edit")

    def argument_text(self) -> str:
        if self.raw is not None:
            return self.raw
        return msgspec.json.encode(self.arguments or {"path": self.path, **self._in_short()}).decode()

    def _in_short(self) -> Json:
        if self.content is not None:
            return {"content": self.content}
        edits = self.edits or [EditOfCase(self.old or "", self.new)]
        return {"edits": edits}


class Outcome(msgspec.Struct):
    case: Case
    ok: bool
    told: str
    """The result of the call, as the model reads it."""
    files: dict[str, str]
    """What is in the case's folder, by path."""

    @property
    def landed(self) -> bool:
        """Something was done, and it is what was meant."""
        return self.ok and not self.case.refused and self.files == self.case.after() and self._says(self.case.told)

    @property
    def refused(self) -> bool:
        """Nothing was done, and the model learns why and what to do."""
        wanted = self.case.refused
        return not self.ok and len(wanted) > 1 and self.files == self.case.before() and self._says(wanted)

    @property
    def wrong(self) -> bool:
        """Files were changed in a way that was not meant."""
        return self.files not in (self.case.before(), self.case.after())

    def complaint(self) -> str:
        """Why this is not what the case expects; empty if it is."""
        if self.landed if not self.case.refused else self.refused:
            return ""
        changed = {path: text for path, text in self.files.items() if self.case.before().get(path) != text}
        return (
            f"{self.case.name}:\n  {self.case.tool()} {self.case.argument_text()}\n"
            f"  wanted: {self.case.refused or self.case.told or self.case.after()}\n"
            f"  changed: {changed}\n  told: {self.told}"
        )

    def _says(self, phrases: Sequence[str]) -> bool:
        return all(phrase in self.told for phrase in phrases)


def read_family(family: str) -> list[Case]:
    return msgspec.convert(tomllib.loads((CASES / f"{family}.toml").read_text())["case"], list[Case])


def play(open_editor: Callable[..., Editor], cases: Sequence[Case]) -> list[Outcome]:
    """All cases in one conversation: first every file is read that the models had read, then every call is made."""
    reads = [scripts.call("read", path=path) for path in _to_be_read(cases)]
    calls = [_scripted(case, number) for number, case in enumerate(cases)]
    replies = [scripts.reply(*events) for events in (reads, calls) if events]
    crow = open_editor(script="".join([*replies, scripts.DONE]))
    for number, case in enumerate(cases):
        _lay_out(crow.workspace, case, number)
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "auto"})
    crow.prompt("Go on.")
    results = _results(crow)[len(reads) :]
    assert len(results) == len(cases)
    return [
        Outcome(case, result["ok"], result["text"].replace(_folder(number), "CASE"), _found(crow.workspace, number))
        for number, (case, result) in enumerate(zip(cases, results, strict=True))
    ]


def _to_be_read(cases: Sequence[Case]) -> Iterator[str]:
    for number, case in enumerate(cases):
        if case.read:
            yield from (_placed(path, number) for path in case.before())


def _placed(text: str, number: int) -> str:
    return text.replace("CASE", _folder(number))


def _folder(number: int) -> str:
    return f"case{number:03}"


def _scripted(case: Case, number: int) -> str:
    return scripts.call_as_written(case.tool(), _placed(case.argument_text(), number))


def _lay_out(workspace: Path, case: Case, number: int) -> None:
    (workspace / _folder(number)).mkdir()
    for path, text in case.before().items():
        place = workspace / _placed(path, number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def _found(workspace: Path, number: int) -> dict[str, str]:
    folder = workspace / _folder(number)
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {f"CASE/{path.relative_to(folder)}": path.read_bytes().decode() for path in found}


def _results(crow: Editor) -> list[Json]:
    """What the model was told of its calls, in their order."""
    return [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
