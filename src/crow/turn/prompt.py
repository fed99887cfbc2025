"""From what the person sent to what the model gets: links followed, attachments fenced, nothing dropped in silence."""

import base64
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from crow.errors import WorkspaceError
from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.markdown import fence
from crow.messages import Audio, Image, Text, UserPart
from crow.model.base import ModelInfo
from crow.paths import shown
from crow.policy.base import Policy
from crow.workspace.base import Workspace

MOST_ATTACHED = 256 * 1024
"""Characters of one attachment that the model gets; the rest it can read itself."""

_LINES = re.compile(r"^L(\d{1,9})(?:[:-]L?(\d{1,9}))?$", re.ASCII)


async def compose(
    sent: Sequence[Sent], workspace: Workspace, model: ModelInfo, policy: Policy
) -> tuple[tuple[UserPart, ...], list[str]]:
    """The parts for the model, and remarks for the person about what the model could not be given."""
    parts: list[UserPart] = []
    remarks: list[str] = []
    for item in sent:
        match item:
            case SentText():
                part = Text(item.text) if item.text else None
            case SentMedia():
                part = _media(item, model, remarks)
            case SentResource():
                part = _resource(item, model, remarks)
            case SentLink():
                part = await _link(item, workspace, policy, remarks)
        if part is not None:
            parts.append(part)
    return tuple(parts) or (Text("(an empty message)"),), remarks


def unread(sent: Sequence[Sent]) -> tuple[UserPart, ...]:
    """What is kept of a prompt that was cancelled before its attachments were read: its text, and their names."""
    return tuple(Text(item.text) if isinstance(item, SentText) else _left_aside(item) for item in sent)


def _left_aside(item: SentMedia | SentResource | SentLink) -> Text:
    name = item.name if isinstance(item, SentLink) else item.uri or item.mime_type
    return Text(f"[The user attached {name}, and interrupted before it was read.]")


def _attached(label: str, text: str) -> Text:
    note = ""
    if len(text) > MOST_ATTACHED:
        note = f"\n(cut: {MOST_ATTACHED:,} of {len(text):,} characters are shown)"
        text = text[:MOST_ATTACHED]
    return Text(f"{label}\n{fence(text)}{note}")


def _media(item: SentMedia, model: ModelInfo, remarks: list[str]) -> UserPart:
    name = f"{item.kind} ({item.mime_type})"
    if item.kind == "image" and model.images and item.mime_type.startswith("image/"):
        return Image(item.data, item.mime_type)
    if item.kind == "audio" and model.audio and item.mime_type.startswith("audio/"):
        return Audio(item.data, item.mime_type)
    remarks.append(f"{model.name} cannot take the attached {name}: it was left out, and the model was told so.")
    return Text(f"[The user attached an {name}, which this model cannot take. It was left out.]")


def _resource(item: SentResource, model: ModelInfo, remarks: list[str]) -> UserPart:
    label = f"Attached: {item.uri}"
    if item.text is not None:
        return _attached(label, item.text)
    kind = item.mime_type.partition("/")[0]
    if item.blob is not None and kind in ("image", "audio"):
        return _media(SentMedia(kind, item.blob, item.mime_type, item.uri), model, remarks)  # pyright: ignore[reportArgumentType] -- narrowed above
    if (text := _text_in_blob(item)) is not None:
        return _attached(label, text)
    what = item.mime_type or "binary content"
    remarks.append(f"{item.uri} ({what}) is no text: it was left out, and the model was told so.")
    return Text(f"[The user attached {item.uri} ({what}), which is no text. It was left out.]")


def _text_in_blob(item: SentResource) -> str | None:
    try:
        text = base64.b64decode(item.blob or "", validate=True).decode()
    except ValueError:
        return None
    return None if "\0" in text else text


async def _link(item: SentLink, workspace: Workspace, policy: Policy, remarks: list[str]) -> UserPart:
    address = _file_address(item.uri)
    if address is None:
        about = " ".join(filter(None, (item.title, item.description)))
        return Text(f"[The user refers to {item.name}: {item.uri}{f' ({about})' if about else ''}]")
    try:
        path = workspace.resolve(unquote(address.path, errors="surrogateescape"))
        if policy.is_secret(path):
            return Text(f"[The user refers to {shown(path)}. It may hold secrets: reading it asks the user first.]")
        info = await workspace.stat(path)
        if info.kind == "folder":
            return _attached(f"Attached folder: {shown(path)}", "\n".join(await workspace.list_folder(path)))
        text = await workspace.read_text(path)
        return _file_part(shown(path), text, address.fragment)
    except WorkspaceError as error:
        remarks.append(f"{item.name} could not be read: {error}")
        return Text(f"[The user attached {item.name}, but it could not be read: {error}]")


def _file_address(uri: str) -> SplitResult | None:
    try:
        address = urlsplit(uri)
    except ValueError:  # such as a host with half of its brackets
        return None
    return address if address.scheme == "file" else None


def _file_part(path: str, text: str, fragment: str) -> Text:
    asked = _LINES.match(fragment)
    if asked is None:
        return _attached(f"Attached file: {path}", text)
    first = max(1, int(asked[1]))
    last = max(first, int(asked[2] or first))
    lines = text.removesuffix("\n").split("\n")  # as editors count: a form feed ends no line
    if first > len(lines):
        raise WorkspaceError(f"{path} has {len(lines)} lines: there is no line {first}.")
    return _attached(f"Attached file: {path}, lines {first}-{last}", "\n".join(lines[first - 1 : last]))
