"""Makes the model's message of what the person sent: reads linked files, fences attachments, and names what was left
out.
"""

import base64
import contextlib
import re
from collections.abc import Callable, Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from crow.errors import WorkspaceError
from crow.events import Remark, Sent, SentLink, SentMedia, SentResource, SentText, TurnIds, UserSaid
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import Audio, Image, Text, UserPart, encoded_media_type, media_type
from crow.model.base import ModelInfo
from crow.paths import shown
from crow.policy.base import Policy
from crow.turn.context import TurnContext
from crow.visible import capitalised, fence, one_line

MOST_ATTACHED = 256 * 1024
"""Characters of one attachment that the model gets; the rest it can read itself."""
LARGEST_MEDIA = 20 * 1024 * 1024

_LINES = re.compile(r"L?(\d+)(?:C\d+)?(?:[:-]L?(\d*)(?:C\d+)?)?", re.ASCII)
_THIS_MACHINE = ("", "localhost")


def unread(sent: Sequence[Sent]) -> tuple[UserPart, ...]:
    """What is kept of a prompt that was cancelled before its attachments were read: its text, and their names."""
    return tuple(Text(item.text) if isinstance(item, SentText) else _left_aside(item) for item in sent)


def _left_aside(item: SentMedia | SentResource | SentLink) -> Text:
    return Text(f"[The user attached {one_line(item.label)}, and interrupted before it was read.]")


async def take_prompt(context: TurnContext, ids: TurnIds, prompt: Sequence[Sent], shown: tuple[Sent, ...]) -> None:
    """Records the prompt of a turn, with its attachments read. `shown` is what a replay shows of it."""
    await _take(context, ids.message(), prompt, shown, context.news)


async def take_steering(context: TurnContext) -> bool:
    """Records what the person has said into the running turn; false if they have said nothing."""
    has_spoken = False
    while (message := context.steering.take()) is not None:
        await _take(context, message.message_id, message.sent, message.sent)
        has_spoken = True
    return has_spoken


async def _take(
    context: TurnContext,
    message_id: str,
    sent: Sequence[Sent],
    shown: tuple[Sent, ...],
    news: Callable[[], list[str]] = list,
) -> None:
    journal = context.journal
    composer = Composer(context.workspace, context.model.info, context.policy)
    try:
        with context.waiting("the prompt's attachments"):
            parts = await composer.compose(sent)
    except BaseException:  # above all a cancel: what was said stays said
        journal.append(UserSaid(message_id, shown, unread(sent)))
        raise
    parts += tuple(Text(text) for text in news())
    await journal.record(UserSaid(message_id, shown, parts))
    for remark in composer.remarks:
        journal.append(Remark("warning", remark))


class Composer:
    """Makes one message of one prompt. `remarks` tell the person what the model was not given, or not whole."""

    def __init__(self, workspace: Workspace, model: ModelInfo, policy: Policy) -> None:
        self.remarks: list[str] = []
        self._workspace = workspace
        self._model = model
        self._policy = policy

    async def compose(self, sent: Sequence[Sent]) -> tuple[UserPart, ...]:
        parts = [await self._part(item) for item in sent]
        return tuple(part for part in parts if part != Text("")) or (Text("(an empty message)"),)

    async def _part(self, item: Sent) -> UserPart:
        match item:
            case SentText():
                return Text(item.text)
            case SentMedia():
                return self._media(item.kind, item.data, item.mime_type)
            case SentResource():
                return await self._resource(item)
            case SentLink():
                return await self._link(item)

    # --- what came with the prompt

    def _media(self, kind: str, data: str, claimed: str) -> UserPart:
        found = encoded_media_type(data) or ""
        if kind == "image" and self._model.images and found.startswith("image/"):
            return Image(data, found)
        if kind == "audio" and self._model.audio and found.startswith("audio/"):
            return Audio(data, found)
        takes = self._model.images if kind == "image" else self._model.audio
        reason = f"it is no {kind} that models take" if takes else f"{self._model.name} takes no {kind}"
        return self._left_out(one_line(f"the attached {kind} ({claimed})"), reason)

    async def _resource(self, item: SentResource) -> UserPart:
        name = one_line(item.uri)
        kind = item.mime_type.partition("/")[0]
        address = _address(item.uri)
        if address is not None and address.scheme == "file" and address.netloc in _THIS_MACHINE:
            with contextlib.suppress(WorkspaceError):
                await self._named(address)  # the text may be that of an editor's buffer that was never saved
        if item.text is not None:
            return self._attached(f"Attached: {name}", name, item.text)
        if item.blob is not None and kind in ("image", "audio"):
            return self._media(kind, item.blob, item.mime_type)
        if (text := _text_in_blob(item)) is not None:
            return self._attached(f"Attached: {name}", name, text)
        return self._left_out(one_line(f"{item.uri} ({item.mime_type or 'binary'})"), "it is no text")

    async def _named(self, address: SplitResult) -> ResolvedPath:
        """The file that the person has named."""
        path = await self._workspace.resolve(unquote(address.path, errors="surrogateescape"))
        self._workspace.note_buffer(path)
        return path

    def _attached(self, label: str, name: str, text: str) -> Text:
        note = ""
        if len(text) > MOST_ATTACHED:
            note = f"\n(cut: {MOST_ATTACHED:,} of {len(text):,} characters are shown)"
            self.remarks.append(f"{name} is long: the model got the first {MOST_ATTACHED // 1024} kB of it.")
            text = text[:MOST_ATTACHED]
        return Text(f"{label}\n{fence(text)}{note}")

    def _left_out(self, name: str, reason: str) -> Text:
        begins = capitalised(name) if name.startswith("the ") else name  # else it is a path
        self.remarks.append(f"{begins} was left out: {reason}. The model was told so.")
        return Text(f"[The user attached something that was left out: {name}: {reason}.]")

    # --- what has to be fetched

    async def _link(self, item: SentLink) -> UserPart:
        name, address = one_line(item.name), _address(item.uri)
        if address is None or address.scheme != "file":
            about = one_line(" ".join(filter(None, (item.title, item.description))))
            return Text(f"[The user refers to {name}: {one_line(item.uri)}{f' ({about})' if about else ''}]")
        if address.netloc not in _THIS_MACHINE:
            return self._left_out(name, f"it lies on another machine ({one_line(address.netloc)})")
        try:
            path = await self._named(address)
            if any(map(self._policy.is_secret, path.judged)):
                return self._secret(path.real)
            return await self._file(path, address.fragment)
        except WorkspaceError as error:
            return self._left_out(name, one_line(str(error), 1000).rstrip("."))

    def _secret(self, path: str) -> Text:
        name = one_line(shown(path))
        self.remarks.append(f"{name} may hold secrets and was not read: if the model wants to read it, you are asked.")
        return Text(f"[The user refers to {name}. It may hold secrets: reading it asks the user first.]")

    async def _file(self, path: ResolvedPath, fragment: str) -> UserPart:
        name = one_line(shown(path.real))
        info = await self._workspace.stat(path)
        if info.kind == "folder":
            listing = "\n".join(await self._workspace.list_folder(path))
            return self._attached(f"Attached folder: {name}", name, listing)
        kind = media_type(await self._workspace.read_bytes(path, 16)) if info.kind == "file" else None
        if kind is not None and info.size <= LARGEST_MEDIA:
            data = base64.b64encode(await self._workspace.read_bytes(path, LARGEST_MEDIA)).decode()
            return self._media(kind.partition("/")[0], data, kind)
        label, part = _chosen_lines(name, await self._workspace.read_text(path), fragment)
        return self._attached(label, name, part)


def _text_in_blob(item: SentResource) -> str | None:
    try:
        text = base64.b64decode(item.blob or "", validate=True).decode()
    except ValueError:
        return None
    return None if "\0" in text else text


def _address(uri: str) -> SplitResult | None:
    try:
        return urlsplit(uri)
    except ValueError:  # such as a host with half of its brackets
        return None


def _chosen_lines(name: str, text: str, fragment: str) -> tuple[str, str]:
    """A label and the lines that a fragment such as `L5-7` asks for; everything if it asks for something else."""
    asked = _LINES.fullmatch(fragment)
    if asked is None:
        unclear = f" (all of it: {one_line(fragment)!r} names no lines)" if fragment else ""
        return f"Attached file: {name}{unclear}", text
    lines = text.removesuffix("\n").split("\n")  # as editors count: a form feed ends no line
    first = max(1, _number(asked[1]))
    last = len(lines) if asked[2] == "" else max(first, _number(asked[2] or asked[1]))
    if first > len(lines):
        raise WorkspaceError(f"{name} ends at line {len(lines)}: there is no line {asked[1][:12]}.")
    return f"Attached file: {name}, lines {first}-{min(last, len(lines))}", "\n".join(lines[first - 1 : last])


def _number(digits: str) -> int:
    """Ten digits are more lines than any file has; thousands of them would take long to read."""
    return int(digits) if len(digits) <= 10 else 10**10
