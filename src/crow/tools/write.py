"""`write`: a new file, a file's whole text anew, or more at its end."""

from typing import Annotated, Any

import msgspec

from crow.actions import Deed
from crow.errors import FileChanged, WorkspaceError
from crow.events import Journal
from crow.markdown import language_of
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import TextBlock, ToolKind, ToolResult
from crow.tools.advice import OF_A_SESSION, Advice
from crow.tools.base import ArgumentReader, Look, ignored_arguments, verb_and_path
from crow.tools.changing import (
    ShownChange,
    change_file,
    check_writable,
    look_at,
    read_judged,
    show_change,
    told_result,
    worked_out,
)
from crow.tools.editing.places import with_ends_of, without_foreign_ends
from crow.tools.paths_meant import path_to_write
from crow.tools.seen import Seen
from crow.workspace.base import Document, Workspace
from crow.workspace.place import ResolvedPath
from crow.workspace.text import encoding_name, usual_line_end

TRIES = 3
"""How often a text is appended anew to a file that changes all the time."""

DESCRIPTION = (
    "Write a file: all of it, or with `append` more at its end. Makes missing folders. "
    "An existing file must have been read in full before it is replaced; to change a part of it use `edit`."
)


class WriteArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(min_length=1, description="absolute, or relative to the working directory")]
    content: Annotated[str, msgspec.Meta(description="the text")]
    append: Annotated[bool, msgspec.Meta(description="add it to the end of the file, exactly as it is")] = False


_reader = ArgumentReader(WriteArguments)


class Write:
    kind = ToolKind.EDIT

    def __init__(self, seen: Seen, advice: Advice = OF_A_SESSION) -> None:
        self.spec = ToolSpec("write", DESCRIPTION, _reader.schema())
        self._seen = seen
        self._advice = advice

    def title(self, arguments: dict[str, Any]) -> str:
        return verb_and_path("Write", arguments)

    def growing(self, arguments: dict[str, Any]) -> TextBlock | None:
        content, path = arguments.get("content"), arguments.get("path")
        language = language_of(path) if isinstance(path, str) else ""
        return TextBlock(content, language=language) if isinstance(content, str) else None

    async def look(self, call: ToolCall, workspace: Workspace) -> Look:
        return await look_at(workspace, await path_to_write(workspace, _reader.read(call)[0].path))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "WriteAction":
        return await self.prepare_after(call, workspace, await self.look(call, workspace))

    async def prepare_after(self, call: ToolCall, workspace: Workspace, look: Look) -> "WriteAction":
        # for the first write
        from crow.tools.editing.leftovers import inside_cdata
        from crow.tools.editing.readings import with_line_ends_meant

        arguments, unknown = _reader.read(call)
        path = look.path
        before = await read_judged(workspace, path)
        if before is not None and not arguments.append and (gap := self._seen.gap(path.real, before.text)):
            raise WorkspaceError(f"{gap} Nothing was written.", remedy=_remedy(gap, self._advice))
        notes: list[str] = []
        if (inside := inside_cdata(path.real, arguments.content)) is not None:
            arguments = msgspec.structs.replace(arguments, content=inside)
            notes.append("`<![CDATA[` and `]]>` around the content were left out.")
        meant = with_line_ends_meant(path.real, arguments.content, ("", ""))
        if meant is not None:
            arguments = msgspec.structs.replace(arguments, content=meant)
            notes.append("`\\n` in the content was read as line ends.")
        known = before.text if before is not None else ""
        await worked_out(len(arguments.content), lambda: self._check(path.real, known, arguments))
        size = len(arguments.content) + (len(before.text) if before is not None else 0)
        text = await worked_out(size, lambda: text_after(before, arguments))
        await worked_out(size, lambda: check_writable(path.real, before, text))
        change = await show_change(path.real, before.text if before else None, text)
        action = WriteAction(call.id, workspace, self._seen, path, arguments, before, change, unknown, self._advice)
        action.notes += [*notes, look.note] if look.note else notes
        return action

    def _check(self, path: str, known: str, arguments: WriteArguments) -> None:
        """A content that would put something into the file that nobody means to be there."""
        from crow.tools.editing.leftovers import check_no_leftovers
        from crow.tools.editing.omissions import check_no_wrapper, check_nothing_left_out

        content, replaced = arguments.content, "" if arguments.append else known
        instead = f"To keep the rest as it is: {self._advice.change_a_part}" if known else ""
        check_nothing_left_out(path, known, content, "The call", "content", instead, replaced=replaced)
        check_no_wrapper(path, known, content, "The call", "content")
        check_no_leftovers(path, known, content, "The call", "content")


class WriteAction:
    def __init__(
        self,
        call_id: str,
        workspace: Workspace,
        seen: Seen,
        target: ResolvedPath,
        arguments: WriteArguments,
        before: Document | None,
        change: ShownChange,
        unknown: tuple[str, ...],
        advice: Advice,
    ) -> None:
        self.notes: list[str] = []
        """What the model must be told of how its content was read."""
        self._call_id = call_id
        self._workspace = workspace
        self._seen = seen
        self._target = target
        self._path = target.real
        self._arguments = arguments
        self._before = before
        self._unknown = unknown
        self._advice = advice
        self.deed = Deed("write", ToolKind.EDIT, writes=target.judged)
        self._change = change
        self.display = change.display
        self.locations = change.locations

    @property
    def title(self) -> str:
        return f"Write {relative_to(self._path, self._workspace.roots[0])}"

    async def perform(self, journal: Journal) -> ToolResult:
        before, text = self._before, self._change.new
        if before is not None and text == before.text:
            return ToolResult(
                ok=True, text="Nothing to do: the file holds exactly this text.", message="unchanged", brief="unchanged"
            )
        for _ in range(TRIES):
            if before is not self._before:
                text = text_after(before, self._arguments)
            try:
                after = await change_file(self._workspace, journal, self._call_id, self._target, text, before)
            except FileChanged as changed:
                if not self._arguments.append:
                    remedy = self._advice.read_first
                    raise WorkspaceError(f"{changed.message} Nothing was written.", remedy=remedy) from None
                before = await self._workspace.read_document(self._target)
            else:
                return await self._told(before, text, after)
        raise WorkspaceError(f"{shown(self._path)} changes all the time. Nothing was written.")

    async def _told(self, before: Document | None, text: str, after: Document) -> ToolResult:
        await worked_out(len(after.text), lambda: self._remember(before, text, after))
        done = "Created" if before is None else "Appended to" if self._arguments.append else "Wrote"
        notes = [*self.notes, *_kept(before, text, self._arguments.content)]
        if before is not self._before:
            notes.append("The file changed meanwhile; the text was added to its new end.")
        old = before.text if before is not None else None
        notes += ignored_arguments(self._unknown)
        return await told_result(self._workspace, done, self._change, old, text, after, notes)

    def _remember(self, before: Document | None, text: str, after: Document) -> None:
        if before is not None and self._arguments.append:
            self._seen.note_changed(self._path, before.text, after.text)
        elif after.text == text:
            self._seen.note_written(self._path, text)
        else:
            self._seen.note_replaced(self._path, after.text)


def text_after(before: Document | None, arguments: WriteArguments) -> str:
    """What the file will hold: the content, with the line ends that the file has."""
    if before is None:
        return arguments.content
    usual = usual_line_end(before.text)
    if arguments.append:
        return before.text + with_ends_of("", without_foreign_ends(before.text, arguments.content), usual)
    return with_ends_of(before.text, arguments.content, usual)


def _kept(before: Document | None, text: str, content: str) -> list[str]:
    """What was kept of the file's own ways and that the model may not know of."""
    if before is None:
        return []
    kept: list[str] = []
    if not text.endswith(content):
        kept.append("line ends")
    if before.encoding != "utf-8":
        kept.append(f"encoding ({encoding_name(before.encoding)})")
    if before.mark:
        kept.append("byte order mark")
    return [f"Kept the file's {', '.join(kept)}."] if kept else []


def _remedy(gap: str, advice: Advice) -> str:
    return advice.change_a_part if gap.endswith("is too long.") else advice.read_all
