"""The tool `find`: files by name."""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from crow.actions import Deed
from crow.disk import Disk
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import Location, TextBlock, ToolKind, ToolResult
from crow.search.listing import find_ripgrep
from crow.search.search import FoundPaths, Searcher
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import MOST_LOCATIONS, OF_A_SESSION, Action, Tool
from crow.tools.paths_meant import path_meant, stat_or_suggest
from crow.visible import one_line

DESCRIPTION = (
    "Find files by name: a name such as `setup.py`, or a glob such as `**/*.py` or `src/*.{ts,tsx}`. "
    "Gives paths, sorted; what git ignores is left out. To look inside files use `search`."
)


class FindArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=1000, description="name or glob, relative to `path`")]
    path: Annotated[str, msgspec.Meta(min_length=1, description="folder; default: the working directory")] = "."


_reader = ArgumentReader(FindArguments)


class Find(Tool):
    kind = ToolKind.SEARCH

    def __init__(self, searcher: Searcher | None = None) -> None:
        """Without a searcher each call looks for ripgrep, and does without it where there is none."""
        self.spec = ToolSpec("find", DESCRIPTION, _reader.schema())
        self._searcher = OwnSearcher(searcher)

    def title(self, arguments: dict[str, Any]) -> str:
        return search_title("Find", arguments)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FindAction":
        arguments, unknown = _reader.read(call)
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
            notes.append(f"nothing fits {self._pattern}; what git ignores was not looked at.{hint}")
        if found.total > len(found.paths):
            notes.append(f"{found.total - len(found.paths)} more names left out: narrow the pattern or give a `path`")
        if found.cut == "time":
            notes.append("stopped because it took too long: there may be more. Give a `path`")
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
