"""Which session `crow run` and `crow chat` open (folder, mode, model, a new session or a stored one), and with what."""

import argparse
import base64
import os
import re
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from crow.acp.wire import ContentBlock, EmbeddedResource, ResourceContents, ResourceLink
from crow.cli.parsing import a_folder
from crow.cli.process import in_a_folder
from crow.cli.terminal import is_interactive, only_prints_lines
from crow.config.discovery import ALLOW, MODE, MODEL
from crow.config.settings import MODES
from crow.errors import CrowError, WorkspaceError
from crow.files.text import decode_text
from crow.messages import media_type
from crow.store.base import SessionEntry
from crow.visible import one_line

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""What is meant as one, also if it is none: a single word."""


class Opening(msgspec.Struct, frozen=True):
    """Which session is opened, where, and how its agent is started."""

    cwd: str
    environment: Mapping[str, str]
    session: SessionEntry | None
    """The stored one to go on with."""
    options: Mapping[str, str]
    """What is to be chosen in that session, which has a mode and a model of its own."""


def add_opening_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=MODES, help="what Crow may do without asking")
    parser.add_argument("--model", help="provider/model, or just the model if only one provider has it")
    parser.add_argument("--cwd", metavar="D", type=a_folder, help="the folder to work in (default: this one)")
    parser.add_argument("--attach", metavar="FILE", action="append", default=[], help="a file to send with the prompt")
    session = parser.add_mutually_exclusive_group()
    session.add_argument(
        "--continue", dest="go_on", action="store_true", help="continue the last session in this folder"
    )
    session.add_argument(
        "--resume", metavar="ID", nargs="?", const="", help="continue this session; without ID, pick one"
    )


def folder_of(arguments: argparse.Namespace) -> str:
    """The absolute path of the folder to work in. WrongUsage if there is none."""
    if not os.path.isabs(arguments.cwd or "") and not in_a_folder():
        raise WrongUsage("the current folder was deleted. Change to another with cd, or use --cwd.")
    cwd = os.path.abspath(arguments.cwd or os.getcwd())
    if not os.path.isdir(cwd):
        raise WrongUsage(f"{one_line(cwd)} is not a folder")
    return cwd


def named_session(arguments: argparse.Namespace) -> SessionEntry | None:
    """The session that `--resume` names. A prompt that stands behind a bare `--resume` goes where it belongs."""
    if arguments.resume and not _ID.fullmatch(arguments.resume):
        arguments.prompt.insert(0, arguments.resume)
        arguments.resume = ""
    if not arguments.resume:
        return None
    from crow.cli.sessions import find_session

    return find_session(arguments.resume)


def chosen_session(arguments: argparse.Namespace, cwd: str) -> SessionEntry | None:
    """The folder's last session for `--continue`, the one that the person picks for a bare `--resume`, else None."""
    if not arguments.go_on and arguments.resume is None:
        return None
    from crow.cli.sessions import sessions_of

    entries = sessions_of(cwd)
    if not entries:
        raise CrowError(f"No sessions in {one_line(cwd)} yet.", remedy="To list all: crow sessions")
    if arguments.go_on:
        return entries[0]
    if not is_interactive() or not sys.stdout.isatty() or only_prints_lines(os.environ):
        raise WrongUsage("--resume needs an ID here. To list sessions: crow sessions")
    return _pick(entries)


def _pick(entries: Sequence[SessionEntry]) -> SessionEntry:
    """The one that the person picks. CrowError if they pick none."""
    from crow.cli.chat.picker import pick
    from crow.cli.sessions import with_states
    from crow.session.export import moment

    states = ["" if entry.state == "saved" else f" · {entry.state}" for entry in with_states(entries)]
    titles = (f"{moment(entry.updated_at)}  {entry.shown_title}" for entry in entries)
    number = pick([title + state for title, state in zip(titles, states, strict=True)])
    if number is None:
        raise CrowError("No session was picked.")
    return entries[number]


def read_opening(
    arguments: argparse.Namespace, cwd: str, session: SessionEntry | None, allowed: Sequence[str] = ()
) -> Opening:
    """`allowed` are the rules that hold for this start alone."""
    if session is not None:
        _check_folder(session, cwd if arguments.cwd else session.cwd)
    model = _model(arguments.model)
    chosen = {"mode": arguments.mode, "model": model}
    variables = {MODEL: model, MODE: arguments.mode, ALLOW: "\n".join(allowed)}
    return Opening(
        cwd=session.cwd if session else cwd,
        environment={**os.environ, **{name: value for name, value in variables.items() if value}},
        session=session,
        options={name: value for name, value in chosen.items() if value} if session else {},
    )


def _check_folder(session: SessionEntry, wanted: str) -> None:
    """WrongUsage if a stored session is to be opened in another folder than its own; CrowError if that is gone."""
    own = one_line(session.cwd)
    if os.path.realpath(wanted) != os.path.realpath(session.cwd):
        raise WrongUsage(f"this session belongs to {own}. Leave out --cwd to continue there")
    if not os.path.isdir(session.cwd):
        raise CrowError(
            f"This session's folder is gone: {own}.",
            remedy=f"Create it again to continue. To read the session: crow sessions show {session.id}",
        )


def _model(name: str | None) -> str | None:
    if not name:
        return None
    from crow.cli.models import full_name

    return full_name(name)


# --- what goes with a prompt: what is piped in, and links to files (`--attach`, `@`)

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
        hint = "crow run: waiting for standard input to end. To run without it: < /dev/null"
        print(hint, file=sys.stderr, flush=True)
    content = bytearray()
    while piece := os.read(descriptor, 1 << 20):
        content += piece
        if len(content) > MOST_PIPED:
            raise WrongUsage(f"standard input is larger than {MOST_PIPED >> 20} MB. Attach a file instead")
    return bytes(content)


def attached(path: str) -> ResourceLink:
    if not os.path.exists(path):
        raise WrongUsage(f"--attach: no such file: {one_line(path)}")
    return link_to(path)


def link_to(path: str, lines: str = "") -> ResourceLink:
    """A link to the file, which the agent follows: it knows what the model can take. `lines` such as `L5-7`."""
    whole = os.path.abspath(path)
    address = f"file://{quote(os.fsencode(whole))}" + (f"#{lines}" if lines else "")
    return ResourceLink(uri=address, name=one_line(os.path.basename(whole)))
