"""From what the person sent to what the model gets: links followed, attachments fenced, nothing dropped in silence."""

import base64
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from crow.errors import WorkspaceError
from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.markdown import fence
from crow.messages import Audio, Image, Text, UserPart
from crow.model.base import ModelInfo
from crow.policy.paths import is_secret
from crow.workspace.base import Workspace

MOST_ATTACHED = 256 * 1024
"""Characters of one attachment that the model gets; the rest it can read itself."""

_LINES = re.compile(r"^L(\d+)(?:[:-]L?(\d+))?$")


async def compose(
    sent: Sequence[Sent], workspace: Workspace, model: ModelInfo
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
                part = await _link(item, workspace, remarks)
        if part is not None:
            parts.append(part)
    return tuple(parts) or (Text("(an empty message)"),), remarks


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


async def _link(item: SentLink, workspace: Workspace, remarks: list[str]) -> UserPart:
    address = urlsplit(item.uri)
    about = " ".join(filter(None, (item.title, item.description)))
    if address.scheme != "file":
        return Text(f"[The user refers to {item.name}: {item.uri}{f' ({about})' if about else ''}]")
    asked = unquote(address.path)
    try:
        path = workspace.resolve(asked)
        if is_secret(path):
            return Text(f"[The user refers to the file {path}. It may hold secrets: reading it asks the user first.]")
        info = await workspace.stat(path)
        if info.kind == "folder":
            return _attached(f"Attached folder: {path}", "\n".join(await workspace.list_folder(path)))
        text = await workspace.read_text(path)
    except WorkspaceError as error:
        remarks.append(f"{item.name} could not be read: {error}")
        return Text(f"[The user attached {item.name}, but it could not be read: {error}]")
    return _file_part(path, text, address.fragment)


def _file_part(path: str, text: str, fragment: str) -> Text:
    lines = _LINES.match(fragment)
    if lines is None:
        return _attached(f"Attached file: {path}", text)
    first = max(1, int(lines[1]))
    last = max(first, int(lines[2] or first))
    chosen = text.splitlines(keepends=True)[first - 1 : last]
    return _attached(f"Attached file: {path}, lines {first}-{last}", "".join(chosen))
