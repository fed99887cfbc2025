"""Searches below one folder: files by name and lines by pattern, with ripgrep or its stand-in, in batches and within
limits.

Ripgrep does the work if it is installed; else a walk of our own and `ripgrep_stand_in.py`. They differ in speed only:
files are chosen here, handed over in sorted order, a batch at a time, and both answer in the same words.
"""

import contextlib
import fcntl
import os
import re
import stat
import sys
import warnings
from asyncio import get_running_loop
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from crow.disk import Disk
from crow.errors import StaleFile, WorkspaceError
from crow.files.base import Workspace
from crow.files.resolved_path import pinned_only, refuse_link
from crow.search.child import Output, output_of
from crow.search.globs import Glob
from crow.search.listing import in_thread, list_files
from crow.search.search_matches import Cut, FileMatches, Gathered, UnsavedTexts, open_pinned, read_output

_STAND_IN = os.path.join(os.path.dirname(__file__), "ripgrep_stand_in.py")
_FIRST_BATCH = 64
_BATCH_GROWTH = 8
_BATCH_BYTES = 256 * 1024
"""Of paths, in the arguments of one process: well below what any system takes."""


MOST_OPEN = 64
"""Files that are handed to a matcher as open ones at a time."""
_GRACE = 2
"""Seconds for sorting out what was found before the time was up."""
_ALL = 2**31
"""More matching lines than a file of the largest size can have."""


class Limits(msgspec.Struct, frozen=True):
    seconds: float = 20
    matches: int = 200
    files: int = 1000
    largest_file: int = 10 * 1024 * 1024
    output: int = 32 * 1024 * 1024
    """Bytes that one process may answer."""


class Query(msgspec.Struct, frozen=True):
    root: str
    """Absolute: a folder, or one file."""
    pattern: str
    glob: str = ""
    context: int = 0
    mode: Literal["content", "files", "count"] = "content"


class LeftOut(NamedTuple):
    """Files that were not searched, or (if binary) match but are not shown."""

    binary: int = 0
    huge: int = 0
    secret: int = 0
    refused: int = 0
    """Files that the editor, which holds their text, does not show."""


class Findings(NamedTuple):
    files: list[FileMatches]
    left_out: LeftOut
    cut: Cut


class FoundPaths(NamedTuple):
    paths: list[str]
    """Absolute, sorted; those of folders end in `/`."""
    total: int
    cut: Cut


class Searcher:
    def __init__(self, ripgrep: str | None, limits: Limits | None = None, disk: Disk | None = None) -> None:
        self._ripgrep = ripgrep
        self._disk = disk or Disk("/")
        self.limits = limits or Limits()

    async def find(self, root: str, pattern: str) -> FoundPaths:
        until = get_running_loop().time() + self.limits.seconds
        glob = Glob(pattern)
        is_plain_name = not any(character in pattern for character in "*?[{!")
        listed = await list_files(self._disk, root, self._ripgrep, until)

        def choose(_: Callable[[], bool]) -> list[str]:
            # Someone who names a thing plainly may well mean a folder.
            paths = sorted([*listed.paths, *_folders_of(listed.paths, root)]) if is_plain_name else listed.paths
            return [path for path in paths if glob.fits(_below(root, path).rstrip("/"))]

        chosen = await in_thread(self._disk, choose, until)
        most = self.limits.files
        # A listing goes by names, and may have been led elsewhere by a link that has gone again.
        pinned = await in_thread(self._disk, lambda _: pinned_only(chosen[:most]), until + _GRACE)
        chosen = [*pinned, *chosen[most:]]
        return FoundPaths(chosen[:most], len(chosen), listed.cut or ("files" if len(chosen) > most else ""))

    async def search(self, query: Query, skip: Callable[[str], bool], editor: Workspace | None = None) -> Findings:
        """Files for which `skip` is true are not opened, unless the root is that very file. Where an editor is known to
        hold unsaved text of a file, that is searched instead of what is on disk.
        """
        until = get_running_loop().time() + self.limits.seconds
        matcher = await self._matcher(query, until)
        listed = await list_files(self._disk, query.root, self._ripgrep, until)
        candidates = await in_thread(self._disk, partial(_choose, listed.paths, query, skip, self.limits), until)
        unsaved = UnsavedTexts(editor)
        await unsaved.ask_about_known(candidates.paths)
        is_content = query.mode == "content"
        room = self.limits.matches if is_content else self.limits.files
        gathered = Gathered(room, unsaved, is_content=is_content)
        cut: Cut = ""
        for batch in _batches(candidates.paths):
            matches, cut = await self._matches_in(batch, matcher, query, unsaved, until)
            await in_thread(self._disk, partial(gathered.add, matches), until + _GRACE)
            cut = gathered.cut or cut
            if cut:
                break
        await self._disk.run(lambda: refuse_link(query.root))
        left_out = candidates.left_out._replace(binary=gathered.binary, refused=len(unsaved.refused))
        return Findings(gathered.files, left_out, cut or candidates.cut or listed.cut)

    async def _matches_in(
        self, batch: Sequence[str], matcher: "_Matcher", query: Query, unsaved: UnsavedTexts, until: float
    ) -> tuple[list[FileMatches], Cut]:
        """What a matcher finds in files, in their order: on disk, and then in what the editor has of them instead."""
        names = [path for path in batch if unsaved.is_saved(path)]
        output = await self._run(matcher, names, until)
        order = {path: place for place, path in enumerate(batch)}  # ripgrep works on many files at a time
        matches = await in_thread(self._disk, lambda _: read_output(output.text, query.mode, order), until + _GRACE)
        await unsaved.ask_about_matched([match.path for match in matches])
        matches = [match for match in matches if unsaved.is_saved(match.path)]
        again = [path for path in batch if path in unsaved.texts]
        cut: Cut = output.cut
        if matcher.trusts_names and query.mode != "content":  # there is no line that would tell which file was read
            again = sorted([*again, *(match.path for match in matches)], key=order.__getitem__)
            matches = []
            if len(again) > self.limits.files:
                again, cut = again[: self.limits.files + 1], "files"
        for chunk in _chunks(again, MOST_OPEN):
            found, output_cut = await self._matches_in_open(chunk, matcher, query, unsaved, until)
            matches += found
            cut = cut or output_cut
        return sorted(matches, key=lambda match: order[match.path]), cut

    async def _matches_in_open(
        self, paths: Sequence[str], matcher: "_Matcher", query: Query, unsaved: UnsavedTexts, until: float
    ) -> tuple[list[FileMatches], Cut]:
        """What a matcher finds in files that are opened here: whatever becomes of their names, these are searched."""
        with ExitStack() as closing:
            opened = await in_thread(self._disk, partial(_open_all, paths, unsaved.texts, closing), until + _GRACE)
            passed = [int(os.path.basename(name)) for name in opened]
            output = await self._run(matcher, opened, until + _GRACE, passed)
        order = {name: place for place, name in enumerate(opened)}
        found = await in_thread(self._disk, lambda _: read_output(output.text, query.mode, order), until + _GRACE)
        return [msgspec.structs.replace(match, path=opened[match.path]) for match in found], output.cut

    async def _run(
        self, matcher: "_Matcher", names: Collection[str], until: float, passed: Sequence[int] = ()
    ) -> Output:
        if not names:  # ripgrep would search the folder that it runs in
            return Output(b"", "", 1)
        command = [*matcher.command, *names]
        return await output_of(command, cwd="/", until=until, most=self.limits.output, passed=passed)

    async def _matcher(self, query: Query, until: float) -> "_Matcher":
        """The command that files are appended to: ripgrep if it is there and knows this kind of pattern."""
        _refuse_unsearchable(query.pattern)
        most = {"content": self.limits.matches + 1, "files": 1, "count": _ALL}[query.mode]
        if self._ripgrep is not None:
            command = _ripgrep_command(self._ripgrep, query, most)
            tried = await _try(command, until)
            if tried is not None and tried.status in (0, 1):
                return _Matcher(command, trusts_names=True)
        if complaint := _python_complaint(query.pattern):
            plain = re.escape(query.pattern)
            raise WorkspaceError(
                f"The pattern {query.pattern} is not a valid regular expression: {complaint}.",
                advice=f"To search for this exact text, write {plain}" if plain != query.pattern else "",
            )
        mode = "lines" if query.mode == "content" else "count"
        options = [mode, str(most), str(query.context)]
        command = [sys.executable, "-I", "-S", _STAND_IN, *options, query.pattern]
        return _Matcher(command, trusts_names=False)


class _Matcher(NamedTuple):
    command: list[str]
    """Files are appended to it."""
    trusts_names: bool
    """It follows symbolic links on the way to a file, and so may read another one than was chosen."""


def _ripgrep_command(ripgrep: str, query: Query, most: int) -> list[str]:
    # --no-mmap: a file that is cut short while it is read would end the process. --crlf: `$` is before the return too.
    options = ["--no-config", "--no-messages", "--no-mmap", "--crlf", "--color=never", f"--max-count={most}"]
    if query.mode == "content":
        options += ["--json", f"--context={query.context}"]
    else:
        options += ["--count", "--null", "--with-filename"]
    return [ripgrep, *options, "--", query.pattern]


async def _try(command: list[str], until: float) -> Output | None:
    """Whether ripgrep takes the pattern, and is a ripgrep: it searches nothing."""
    try:
        return await output_of([*command, os.devnull], cwd="/", until=until, most=64 * 1024)
    except OSError:
        return None


_NEGATED_SET = re.compile(r"\[\^(?:\\[\s\S]|[^\]\\])*(?:\]|\\?\Z)")
_LINE_FEED = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")


def _refuse_unsearchable(pattern: str) -> None:
    """What neither matcher can look for, whatever it says about it."""
    if _LINE_FEED.search(_NEGATED_SET.sub("", pattern)):
        raise WorkspaceError("Search works line by line: a pattern with a line break matches nothing.")
    try:
        unprintable = b"\0" in pattern.encode()
    except UnicodeEncodeError:
        unprintable = True
    if unprintable:
        raise WorkspaceError("A pattern cannot contain null or incomplete characters.")


def _python_complaint(pattern: str) -> str:
    """Why Python's `re` does not take a pattern; empty if it does."""
    try:
        with warnings.catch_warnings():
            # `[[:alpha:]]` and the like would be understood as something else.
            warnings.simplefilter("error", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        return str(error)
    return ""


# --- which files


class Candidates(NamedTuple):
    paths: list[str]
    left_out: LeftOut
    cut: Cut


def _choose(
    paths: Sequence[str], query: Query, skip: Callable[[str], bool], limits: Limits, stopped: Callable[[], bool]
) -> Candidates:
    """The files that fit the glob, are no secrets and not too large. A file that was named is always searched."""
    glob = Glob(query.glob) if query.glob else None
    chosen: list[str] = []
    huge = secret = 0
    cut: Cut = ""
    for path in paths:
        if stopped():
            cut = "time"
            break
        is_named = path == query.root
        if glob and not is_named and not glob.fits(_below(query.root, path)):
            continue
        if not is_named and skip(path):
            secret += 1
            continue
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            continue  # it was a file when it was listed; opening a pipe would wait
        if status.st_size > limits.largest_file:
            huge += 1
        else:
            chosen.append(path)
    return Candidates(chosen, LeftOut(huge=huge, secret=secret), cut)


def _below(root: str, path: str) -> str:
    return path[len(root.rstrip("/")) + 1 :]


def _folders_of(paths: Sequence[str], root: str) -> set[str]:
    """The folders below the root that the files lie in."""
    folders: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while len(folder) > len(root) and folder + "/" not in folders:
            folders.add(folder + "/")
            folder = os.path.dirname(folder)
    return folders


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """First a few files, so that a pattern that is everywhere is answered at once; then more and more."""
    most = _FIRST_BATCH
    batch: list[str] = []
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if batch and (len(batch) == most or size > _BATCH_BYTES):
            yield batch
            most *= _BATCH_GROWTH
            batch, size = [], len(os.fsencode(path)) + 1
        batch.append(path)
    if batch:
        yield batch


def _chunks(paths: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (paths[start : start + size] for start in range(0, len(paths), size))


def _open_all(
    paths: Sequence[str], texts: Mapping[str, str], closing: ExitStack, stopped: Callable[[], bool]
) -> dict[str, str]:
    """The names under which a child finds the open files, with their paths. What leads elsewhere by now is left out."""
    opened: dict[str, str] = {}
    for path in paths:
        with contextlib.suppress(StaleFile, OSError):
            descriptor = _open_with(texts[path]) if path in texts else _above_a_shells(open_pinned(path))
            closing.callback(os.close, descriptor)
            opened[f"/dev/fd/{descriptor}"] = path
    if stopped():  # nobody is left who would close them
        closing.close()
    return opened


def _open_with(text: str) -> int:
    """An open file that has no name, with this text."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "replace"))
        file.seek(0)
        return _above_a_shells(os.dup(file.fileno()))


def _above_a_shells(descriptor: int) -> int:
    """The same open file under a number for which the shell in between has no use of its own."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(descriptor)
