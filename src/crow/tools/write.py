"""The tool `write`: a new file, a file's whole text anew, or more at its end."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from crow.errors import StaleFile, WorkspaceError
from crow.events import Journal
from crow.files.base import Document, Workspace
from crow.files.text import encoding_name, usual_line_end
from crow.messages import ToolCall, ToolSpec
from crow.results import TextBlock, ToolResult
from crow.tools.arguments import ArgumentReader
from crow.tools.base import OF_A_SESSION, Advice, ReadNeeded
from crow.tools.file_changes import (
    ChangeAction,
    ChangeTool,
    PreparedChange,
    check_writable,
    off_loop_if_large,
    read_judged,
    read_needed_of,
    show_change,
)
from crow.tools.paths_meant import path_to_write
from crow.tools.read import ReadTracker
from crow.visible import language_of

DESCRIPTION = (
    "Write a file: all of it, or with `append` more at its end. Makes missing folders. "
    "An existing file must have been read in full before it is replaced; to change a part of it use `edit`."
)


class WriteArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(min_length=1, description="absolute, or relative to the working directory")]
    content: Annotated[str, msgspec.Meta(description="the text")]
    append: Annotated[bool, msgspec.Meta(description="add it to the end of the file, exactly as it is")] = False


_reader = ArgumentReader(WriteArguments)


class Write(ChangeTool):
    def __init__(self, seen: ReadTracker, advice: Advice = OF_A_SESSION) -> None:
        super().__init__(ToolSpec("write", DESCRIPTION, _reader.schema()), "Write", seen, advice)

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | None:
        content, path = arguments.get("content"), arguments.get("path")
        language = language_of(path) if isinstance(path, str) else ""
        return TextBlock(content, language=language) if isinstance(content, str) else None

    async def look(self, call: ToolCall, workspace: Workspace) -> ReadNeeded:
        return await read_needed_of(workspace, await path_to_write(workspace, _reader.read(call)[0].path))

    async def prepare_once_read(self, call: ToolCall, workspace: Workspace, look: ReadNeeded) -> "WriteAction":
        # for the first write
        from crow.tools.editing.interpretations import with_line_ends_meant

        arguments, unknown = _reader.read(call)
        path = look.path
        before = await read_judged(workspace, path)
        if before is not None and not arguments.append and (gap := self._seen.gap(path.real, before.text)):
            raise WorkspaceError(f"{gap} Nothing was written.", advice=_remedy(gap, self._advice))
        notes: list[str] = []
        meant = with_line_ends_meant(path.real, arguments.content, ("", ""))
        if meant is not None:
            arguments = msgspec.structs.replace(arguments, content=meant)
            notes.append("`\\n` in the content was read as line ends.")
        known = before.text if before is not None else ""
        await off_loop_if_large(len(arguments.content), lambda: self._check(path.real, known, arguments))
        size = len(arguments.content) + (len(before.text) if before is not None else 0)
        text = await off_loop_if_large(size, lambda: text_after(before, arguments))
        await off_loop_if_large(size, lambda: check_writable(path.real, before, text))
        change = await show_change(path.real, before.text if before else None, text)
        prepared = PreparedChange(call.id, workspace, self._seen, path, before, change, unknown, self._advice)
        return WriteAction(prepared, arguments, [*notes, look.note] if look.note else notes)

    def _check(self, path: str, known: str, arguments: WriteArguments) -> None:
        """A content that would put something into the file that nobody means to be there."""
        from crow.tools.editing.omissions import check_no_wrapper, check_nothing_left_out
        from crow.tools.editing.refusals import check_no_leftovers

        content, replaced = arguments.content, "" if arguments.append else known
        instead = f"To keep the rest as it is: {self._advice.change_a_part}" if known else ""
        check_nothing_left_out(path, known, content, "The call", "content", instead, replaced=replaced)
        check_no_wrapper(path, known, content, "The call", "content")
        check_no_leftovers(path, known, content, "The call", "content")


class WriteAction(ChangeAction):
    tool, verb = "write", "Write"

    def __init__(self, change: PreparedChange, arguments: WriteArguments, notes: Sequence[str]) -> None:
        """`notes` say how the content was read."""
        super().__init__(change)
        self._arguments = arguments
        self._notes = notes

    async def perform(self, journal: Journal) -> ToolResult:
        before = self._change.before
        if before is not None and self._change.shown.new == before.text:
            return ToolResult(
                ok=True, text="Nothing to do: the file already has this text.", message="unchanged", brief="unchanged"
            )
        return await super().perform(journal)

    async def _rebased(self, changed: StaleFile, before: Document | None) -> tuple[Document | None, str]:
        """Only what is appended can be added to a newer text; who writes all of a file must know all of it."""
        if not self._arguments.append:
            remedy = self._change.advice.read_first
            raise WorkspaceError(f"{changed.message} Nothing was written.", advice=remedy) from None
        now = await self._change.workspace.read_document(self._change.path)
        return now, text_after(now, self._arguments)

    async def _result(self, before: Document | None, text: str, after: Document) -> ToolResult:
        await off_loop_if_large(len(after.text), lambda: self._remember(before, text, after))
        done = "Created" if before is None else "Appended to" if self._arguments.append else "Wrote"
        notes = list(self._notes) if self._refused else [*self._notes, *_kept(before, text, self._arguments.content)]
        if before is not self._change.before:
            notes.append("The file changed in the meantime; the text was added at its new end.")
        return await self._told(done, before, text, after, notes)

    def _remember(self, before: Document | None, text: str, after: Document) -> None:
        seen = self._change.seen
        if before is not None and self._arguments.append:
            seen.note_changed(self._path, before.text, after.text)
        elif after.text == text:
            seen.note_written(self._path, text)
        else:
            seen.note_replaced(self._path, after.text)


def text_after(before: Document | None, arguments: WriteArguments) -> str:
    """What the file will hold: the content, with the line ends that the file has."""
    if before is None:
        return arguments.content
    from crow.tools.editing.replacements import with_ends_of, without_foreign_ends

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
