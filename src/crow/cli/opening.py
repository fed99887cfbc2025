"""Which session `crow run` and `crow chat` open: the folder, a new session or a stored one (`--continue`, `--resume`),
its mode and its model.
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence

import msgspec

from crow.cli.parsing import a_folder
from crow.cli.process import in_a_folder
from crow.cli.run_prompt import WrongUsage
from crow.cli.terminal import is_interactive, only_prints_lines
from crow.config.discovery import ALLOW, MODE, MODEL
from crow.config.settings import MODES
from crow.errors import CrowError
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
    parser.add_argument("--mode", choices=MODES, help="what may be done without asking")
    parser.add_argument("--model", help="provider/model, or the model alone where only one provider has it")
    parser.add_argument("--cwd", metavar="D", type=a_folder, help="the folder to work in, instead of this one")
    parser.add_argument(
        "--attach", metavar="FILE", action="append", default=[], help="a file that goes with the prompt"
    )
    session = parser.add_mutually_exclusive_group()
    session.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on with the last conversation of this folder"
    )
    session.add_argument("--resume", metavar="ID", nargs="?", const="", help="go on with this one; or choose it")


def folder_of(arguments: argparse.Namespace) -> str:
    """The absolute path of the folder to work in. WrongUsage if there is none."""
    if not os.path.isabs(arguments.cwd or "") and not in_a_folder():
        raise WrongUsage("the folder that you are in was deleted. Go to another with cd, or give --cwd.")
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
        raise CrowError(
            f"There is no conversation of {one_line(cwd)} yet.", remedy="crow sessions lists all there are."
        )
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
        raise CrowError("No conversation was chosen.")
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
        raise WrongUsage(f"the conversation belongs to {own}: leave out --cwd to go on there")
    if not os.path.isdir(session.cwd):
        raise CrowError(
            f"The folder of this conversation is gone: {own}.",
            remedy=f"Make it anew to go on there; what was said is shown by: crow sessions show {session.id}",
        )


def _model(name: str | None) -> str | None:
    if not name:
        return None
    from crow.cli.models import full_name

    return full_name(name)
