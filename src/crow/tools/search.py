"""The tools `search` (lines and files by a regular expression) and `find` (files by name)."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from crow.actions import Deed
from crow.disk import Disk
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import HiddenOutput, Location, TextBlock, ToolKind, ToolResult
from crow.search.listing import find_ripgrep
from crow.search.search import Findings, FoundPaths, Query, Searcher
from crow.search.search_matches import Cut, FileMatches, Line
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import MOST_LOCATIONS, OF_A_SESSION, Action, Tool
from crow.tools.paths_meant import path_meant, stat_or_suggest
from crow.visible import one_line

MOST_BYTES = 64 * 1024
MOST_CONTEXT = 20
LONGEST_LINE = 400
BEFORE_MATCH = 120
"""Characters kept in front of the match where a line is cut."""

DESCRIPTION = (
    "Search files for a regular expression, line by line; case matters unless it begins with `(?i)`. "
    "What git ignores, binary files and secrets are left out. Results are capped: narrow them with `path` or `glob`. "
    "To look for files by name use `find`."
)

_NARROW = "narrow it with `path`, `glob` or a longer pattern"
_CUT: dict[Cut, str] = {
    "": "",
    "matches": f"there are more matches: {_NARROW}",
    "files": f"there are more files: {_NARROW}",
    "time": f"timed out before everything was searched: {_NARROW}",
    "size": f"too much to search: some files were skipped: {_NARROW}",
}


class SearchArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=2000, description="regular expression")]
    path: Annotated[str, msgspec.Meta(min_length=1, description="folder or file; default: the working directory")] = "."
    glob: Annotated[str, msgspec.Meta(max_length=1000, description="only these files, e.g. `*.py` or `src/**`")] = ""
    context: Annotated[int, msgspec.Meta(ge=0, description=f"lines around a match, up to {MOST_CONTEXT}")] = 0
    mode: Annotated[
        Literal["content", "files", "count"],
        msgspec.Meta(description="matching lines, only the files' names, or the number of lines in each"),
    ] = "content"


_reader = ArgumentReader(SearchArguments)


class Search(Tool):
    kind = ToolKind.SEARCH

    def __init__(self, skip: Callable[[str], bool], searcher: Searcher | None = None) -> None:
        """`skip` says of an absolute path that its content is not to be shown unasked.

        Without a searcher each call looks for ripgrep, and does without it where there is none.
        """
        self.spec = ToolSpec("search", DESCRIPTION, _reader.schema())
        self._skip = skip
        self._searcher = OwnSearcher(searcher)

    def title(self, arguments: dict[str, Any]) -> str:
        return search_title("Search", arguments, quote='"')

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "SearchAction":
        arguments, unknown = _reader.read(call)
        searcher = await self._searcher.in_workspace(workspace)
        target, note = await path_meant(workspace, arguments.path)
        remarks = [*([note] if note else []), *ignored_arguments(unknown)]
        return SearchAction(workspace, searcher, self._skip, target, arguments, remarks)


class SearchAction(Action):
    def __init__(
        self,
        workspace: Workspace,
        searcher: Searcher,
        skip: Callable[[str], bool],
        target: ResolvedPath,
        arguments: SearchArguments,
        remarks: Sequence[str],
    ) -> None:
        root = target.real
        self._target = target
        self._workspace = workspace
        self._searcher = searcher
        self._skip = skip
        self._remarks = remarks
        self._most = MOST_BYTES
        self._query = Query(
            root, arguments.pattern, arguments.glob, min(arguments.context, MOST_CONTEXT), arguments.mode
        )
        self.title = f'Search "{arguments.pattern}"{where(workspace, root)}'
        # What is searched is no location worth naming: the result has the first of the places that were found.
        self.deed = Deed("search", ToolKind.SEARCH, reads=(root,), read_as=target.judged[1:])

    def fit(self, most: int) -> None:
        self._most = min(self._most, most)

    async def perform(self, journal: Journal) -> ToolResult:
        info = await stat_or_suggest(self._workspace, self._target, OF_A_SESSION)
        if info.kind == "other":
            raise WorkspaceError(f"{shown(info.path)} is neither a file nor a folder: it cannot be searched.")
        findings = await self._searcher.search(self._query, self._skip, self._workspace)
        await self._workspace.stat(self._target)  # that it was the folder which was judged
        body, more = _fitting(self._lines(findings), self._most)
        notes = [f"({note})" for note in (*self._notes(findings), more) if note]
        told = "\n".join([*body, *notes, *self._remarks])
        message = self._message(findings)
        # That there is nothing stands in the title, and needs no second line.
        shown_lines = [*body, *(notes if findings.files else notes[1:])]
        return ToolResult(
            ok=True,
            text=told,
            message=message,
            display=(TextBlock("\n".join(shown_lines)) if shown_lines else HiddenOutput(),),
            brief=message.lower(),
            locations=tuple(map(_location, findings.files[:MOST_LOCATIONS])),
        )

    def _lines(self, findings: Findings) -> Iterator[str]:
        for file in findings.files:
            name = one_line(shown(relative_to(file.path, self._workspace.roots[0])), 4096)
            match self._query.mode:
                case "content":
                    yield name
                    yield from _numbered(file.lines)
                case "files":
                    yield name
                case "count":
                    yield f"{name}: {file.count}"

    def _notes(self, findings: Findings) -> Iterator[str]:
        if not findings.files:
            yield "no matches" if findings.cut == "" else "no matches so far"
        binary, huge, secret, refused = findings.left_out
        if binary:
            yield f"{_files(binary)} with matches not shown: binary"
        if huge:
            yield f"{_files(huge)} not searched: larger than {self._searcher.limits.largest_file:,} bytes"
        if secret:
            yield f"{_files(secret)} not searched: may contain secrets, or a rule covers them"
        if refused:
            yield f"{_files(refused)} not shown: the editor refused it"
        yield _CUT[findings.cut]

    def _message(self, findings: Findings) -> str:
        if not findings.files:
            refused = findings.left_out.refused
            return f"No matches shown, {_files(refused)} refused by the editor" if refused else "No matches"
        more = "" if findings.cut == "" else ", possibly more"
        files = _files(len(findings.files))
        if self._query.mode == "files":
            return f"{files}{more}"
        count = sum(file.count for file in findings.files)
        return f"{count} match{'' if count == 1 else 'es'} in {files}{more}"


def _location(file: FileMatches) -> Location:
    return Location(file.path, next((line.number for line in file.lines if line.start is not None), None))


def _numbered(lines: list[Line]) -> Iterator[str]:
    """`12: a line that matches`, `13- one beside it`, and `--` where lines in between are left out."""
    surroundings = any(line.start is None for line in lines)
    last = lines[0].number if lines else 0
    for line in lines:
        if surroundings and line.number > last + 1:
            yield "--"
        yield f"{line.number}{'-' if line.start is None else ':'} {around_match(line)}"
        last = line.number


def around_match(line: Line) -> str:
    """A line, or of a long one the part where the match begins."""
    if len(line.text) <= LONGEST_LINE:
        return line.text
    start = max(0, min((line.start or 0) - BEFORE_MATCH, len(line.text) - LONGEST_LINE))
    end = start + LONGEST_LINE
    before, after = "…" if start else "", "…" if end < len(line.text) else ""
    return f"{before}{line.text[start:end]}{after} (line of {len(line.text)} characters, cut)"


def _fitting(lines: Iterator[str], most: int) -> tuple[list[str], str]:
    """The lines that there is room for, and a word about the others."""
    taken: list[str] = []
    size = left = 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if size <= most:
            taken.append(line)
        else:
            left += 1
    return taken, f"{left} more lines left out: {_NARROW}" if left else ""


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


# --- find

FIND_DESCRIPTION = (
    "Find files by name: a name such as `setup.py`, or a glob such as `**/*.py` or `src/*.{ts,tsx}`. "
    "Gives paths, sorted; what git ignores is left out. To look inside files use `search`."
)


class FindArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=1000, description="name or glob, relative to `path`")]
    path: Annotated[str, msgspec.Meta(min_length=1, description="folder; default: the working directory")] = "."


_find_reader = ArgumentReader(FindArguments)


class Find(Tool):
    kind = ToolKind.SEARCH

    def __init__(self, searcher: Searcher | None = None) -> None:
        """Without a searcher each call looks for ripgrep, and does without it where there is none."""
        self.spec = ToolSpec("find", FIND_DESCRIPTION, _find_reader.schema())
        self._searcher = OwnSearcher(searcher)

    def title(self, arguments: dict[str, Any]) -> str:
        return search_title("Find", arguments)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FindAction":
        arguments, unknown = _find_reader.read(call)
        folder, pattern = split_folder(arguments.pattern)
        is_absolute = folder.startswith(("/", "~"))
        written = folder if is_absolute else os.path.join(arguments.path, folder) if folder else arguments.path
        root, note = await path_meant(workspace, written)
        remarks = [*([note] if note else []), *ignored_arguments(unknown)]
        searcher = await self._searcher.in_workspace(workspace)
        return FindAction(workspace, searcher, root, pattern, remarks)


def search_title(verb: str, arguments: dict[str, Any], quote: str = "") -> str:
    """The title of a call that looks for a pattern somewhere, as far as the arguments have arrived."""
    pattern, path = arguments.get("pattern"), arguments.get("path")
    if not isinstance(pattern, str) or not pattern:
        return verb
    what = f"{verb} {quote}{pattern}{quote}"
    return f"{what} in {path}" if isinstance(path, str) and path else what


class OwnSearcher:
    """The searcher of one tool: the one that it was given, or one that looks for ripgrep in each call.

    Its disk is the tool's own: searches may take all of its threads for a while, and files are still read.
    """

    def __init__(self, given: Searcher | None) -> None:
        self._given = given
        self._disk: Disk | None = None

    async def in_workspace(self, workspace: Workspace) -> Searcher:
        if self._given is not None:
            return self._given
        roots = workspace.roots
        self._disk = disk = self._disk or Disk(roots[0])
        return Searcher(await disk.run(lambda: find_ripgrep(roots)), disk=disk)


class FindAction(Action):
    def __init__(
        self, workspace: Workspace, searcher: Searcher, target: ResolvedPath, pattern: str, remarks: Sequence[str]
    ) -> None:
        self._workspace = workspace
        self._searcher = searcher
        self._target = target
        self._root = target.real
        self._pattern = pattern
        self._remarks = remarks
        self.title = f"Find {pattern}{where(workspace, target.real)}"
        # The folder is no location worth naming: the result has the first of the files that were found.
        self.deed = Deed("find", ToolKind.SEARCH, reads=(target.real,))

    async def perform(self, journal: Journal) -> ToolResult:
        info = await stat_or_suggest(self._workspace, self._target, OF_A_SESSION)
        if info.kind != "folder":
            raise WorkspaceError(f"{shown(self._root)} is not a folder: `find` looks in folders.")
        found = await self._searcher.find(self._root, self._pattern)
        await self._workspace.stat(self._target)  # that it was the folder which was judged
        locations = tuple(Location(path.rstrip("/")) for path in found.paths[:MOST_LOCATIONS])
        notes = self._notes(found)
        text = "\n".join([*(self._name(path) for path in found.paths), *(f"({note})" for note in notes)])
        told = "\n".join([text, *self._remarks])
        message = f"{found.total} found" if found.total else "Nothing found"
        return ToolResult(
            ok=True,
            text=told,
            message=message,
            display=(TextBlock(text),),
            brief=message.lower(),
            locations=locations,
        )

    def _name(self, path: str) -> str:
        end = "/" if path.endswith("/") else ""
        return one_line(shown(relative_to(path.rstrip("/"), self._workspace.roots[0])), 4096) + end

    def _notes(self, found: FoundPaths) -> list[str]:
        notes: list[str] = []
        if not found.paths:
            hint = "" if "*" in self._pattern else f" Try *{self._pattern}*"
            notes.append(f"nothing matches {self._pattern}; files ignored by git were not searched.{hint}")
        if found.total > len(found.paths):
            notes.append(f"{found.total - len(found.paths)} more names left out: narrow the pattern or give a `path`")
        if found.cut == "time":
            notes.append("timed out: there may be more. Give a `path`")
        if found.cut == "size":
            notes.append("there are too many files to look at them all: there may be more. Give a `path`")
        return notes


def split_folder(pattern: str) -> tuple[str, str]:
    """A pattern that begins outside of the folder it is looked for in, as that place and the rest.

    So the folder that is really read is the one that is judged.
    """
    if not pattern.startswith(("/", "~/", "../")):
        return "", pattern
    names = pattern.split("/")
    fixed = 0
    while fixed < len(names) - 1 and not any(character in names[fixed] for character in "*?[{"):
        fixed += 1
    return "/".join(names[:fixed]) or "/", "/".join(names[fixed:]) or "**"


def where(workspace: Workspace, root: str) -> str:
    """` in src`, for a title; nothing for the working directory."""
    home = workspace.roots[0]
    return "" if root == home else f" in {relative_to(root, home)}"
