"""What goes with a prompt of `crow run` or `crow chat`: what is piped in, and links to files (`--attach`, `@`)."""

import base64
import os
import select
import stat
import sys
from urllib.parse import quote

from crow.acp.wire import ContentBlock, EmbeddedResource, ResourceContents, ResourceLink
from crow.errors import CrowError, WorkspaceError
from crow.files.text import decode_text
from crow.messages import media_type
from crow.visible import one_line

MOST_PIPED = 16 * 1024 * 1024
PIPED = "standard input"
SILENCE = 3.0
"""Seconds without a byte on standard input after which we say what we are waiting for."""


class WrongUsage(CrowError):
    """The command line cannot be meant as it stands."""


def piped() -> list[ContentBlock]:
    """What comes through a pipe, or from a file that standard input was redirected to; nothing from a device."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] -- so it is when it was closed at the start
        return []
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return []
    content = _all_input()
    try:
        text = decode_text(PIPED, content)
    except WorkspaceError:
        pass
    else:
        return [EmbeddedResource(resource=ResourceContents(uri=PIPED, text=text))] if text.strip() else []
    # The agent knows what the model can take, and says so if it leaves it out.
    blob = base64.b64encode(content).decode()
    return [EmbeddedResource(resource=ResourceContents(uri=PIPED, blob=blob, mime_type=media_type(content)))]


def standard_input() -> str:
    """All of standard input as a text; empty if it was closed at the start."""
    return _all_input().decode("utf-8", "replace")


def _all_input() -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] -- as above
        return b""
    descriptor = sys.stdin.fileno()
    if not sys.stdin.isatty() and not select.select([descriptor], [], [], SILENCE)[0]:
        hint = "crow run: waiting for the end of standard input, which goes with the prompt (< /dev/null: none)"
        print(hint, file=sys.stderr, flush=True)
    content = bytearray()
    while piece := os.read(descriptor, 1 << 20):
        content += piece
        if len(content) > MOST_PIPED:
            raise WrongUsage(f"more than {MOST_PIPED >> 20} MB came from standard input; attach a file instead")
    return bytes(content)


def attached(path: str) -> ResourceLink:
    if not os.path.exists(path):
        raise WrongUsage(f"--attach: there is no file {one_line(path)}")
    return link_to(path)


def link_to(path: str, lines: str = "") -> ResourceLink:
    """A link to the file, which the agent follows: it knows what the model can take. `lines` such as `L5-7`."""
    whole = os.path.abspath(path)
    address = f"file://{quote(os.fsencode(whole))}" + (f"#{lines}" if lines else "")
    return ResourceLink(uri=address, name=one_line(os.path.basename(whole)))
