"""`crow sessions`: lists, shows, exports, deletes and stops stored conversations, with what those that live in some
process do just now.
"""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crow.cli.parsing import a_folder
from crow.cli.render_screen import cells, clean_answer, clean_json, clean_prose, cut, short_folder
from crow.cli.terminal import ask, is_interactive
from crow.config.home import home, is_there, write_new_file
from crow.diff import common_beginning
from crow.errors import CrowError, SessionUnknown
from crow.events import Event
from crow.files.output_folder import remove_outputs
from crow.session.export import as_json, markdown, moment
from crow.store.base import FILE_NAME, SessionEntry, SessionStore
from crow.store.store import open_store
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.acp.wire import StatusFacts

MOST_LISTED = 20
"""Sessions that are listed if nothing else is said."""
PAGE = 1000
SHORTEST_ID = 8
SHORTEST_FOLDER, LONGEST_FOLDER = 8, 40
SHORTEST_TITLE = 20
ROOM_FOR_SAVED, ROOM_FOR_PLACES = 80, 100
"""Columns of the list, and how many there must be for it to say of what does not live that it is saved, and of what
does where it lives."""
LONGEST_LINE = 200
"""Where there is no terminal to say how much fits on one."""
MOST_NAMED = 5
"""Sessions that are named when an id could be any of several."""

Given = TypeVar("Given")


class ListedSession(SessionEntry, frozen=True):
    """A session as the list has it: with what it does, and where."""

    state: str = "saved"
    """running, asks, idle or saved."""
    process: int | None = None
    clients: tuple[str, ...] = ()
    """The programs in which somebody watches it."""


class NoSession(CrowError):
    """No session is meant, or more than one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _add_list(actions.add_parser("list", help="list sessions, newest first"))
    show = actions.add_parser("show", help="print a session")
    show.add_argument("id", metavar="ID", help="the session's ID, or the beginning of it")
    show.set_defaults(act=_show)
    _add_export(actions.add_parser("export", help="write a session as Markdown or JSON"))
    delete = actions.add_parser("delete", help="delete sessions permanently")
    delete.add_argument("ids", metavar="ID", nargs="+", help="a session's ID, or the beginning of it")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    delete.set_defaults(act=_delete)
    stop = actions.add_parser("stop", help="stop a turn running elsewhere, such as one whose editor is gone")
    stop.add_argument("ids", metavar="ID", nargs="+", help="a session's ID, or the beginning of it")
    stop.set_defaults(act=_stop)
    _add_list(parser)  # without an action, they are listed


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="D", type=a_folder, help="only sessions of this folder")
    number = parser.add_mutually_exclusive_group()
    number.add_argument("--limit", metavar="N", type=_positive, default=MOST_LISTED, help=f"how many ({MOST_LISTED})")
    number.add_argument("--all", action="store_true", help="all there are")
    parser.add_argument("--json", action="store_true", help="for programs: full IDs, times in milliseconds")
    parser.set_defaults(act=_list)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the session's ID, or the beginning of it")
    parser.add_argument(
        "--format", choices=("markdown", "json"), default="markdown", help="json has everything that is stored"
    )
    parser.add_argument("--output", metavar="FILE", help="a new file, instead of standard output")
    parser.set_defaults(act=_export)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def main(arguments: argparse.Namespace) -> int:
    return arguments.act(arguments)


# --- the actions


def _list(arguments: argparse.Namespace) -> int:
    entries = _with_store(_all_entries, [])
    ids = short_ids([entry.id for entry in entries])
    if arguments.cwd is not None:
        folder = os.path.realpath(arguments.cwd)
        entries = [entry for entry in entries if os.path.realpath(entry.cwd) == folder]
    listed = with_states(entries if arguments.all else entries[: arguments.limit])
    if arguments.json:
        _write(clean_json(msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n").encode())
    elif not entries:
        print("No sessions yet." if arguments.cwd is None else "No sessions in this folder.")
    else:
        _print_table(listed, ids)
    if len(listed) < len(entries):
        print(f"{len(entries) - len(listed)} more: crow sessions list --all", file=sys.stderr)
    return 0


def with_states(entries: Sequence[SessionEntry]) -> list[ListedSession]:
    """What each of them does, as the processes say in which they live, or else the store."""

    async def ask(store: SessionStore) -> Mapping[str, "StatusFacts"]:
        wanted = {entry.id for entry in entries}
        living = {id: there for id, there in (await store.living()).items() if id in wanted}
        if not living:
            return {}
        from crow.acp.owner_link import statuses_of

        return await statuses_of(living)

    found = _with_store(ask, {})
    listed: list[ListedSession] = []
    for entry in entries:
        fields = msgspec.structs.asdict(entry)
        if (facts := found.get(entry.id)) is not None:
            fields |= {"state": facts.state, "process": facts.process, "clients": tuple(facts.clients or ())}
        listed.append(ListedSession(**fields))
    return listed


def _show(arguments: argparse.Namespace) -> int:
    entry, events = _with_store(lambda store: _read(store, arguments.id))
    print(clean_prose(markdown(entry, events)), end="")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    entry, events = _with_store(lambda store: _read(store, arguments.id))
    is_json = arguments.format == "json"
    text = clean_json(as_json(entry, events)) if is_json else clean_answer(markdown(entry, events))
    content = text.encode("utf-8", "backslashreplace")
    if arguments.output is None:
        _write(content)
    else:
        write_new_file(arguments.output, content)
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    if not arguments.yes and not is_interactive():
        _with_store(lambda store: _find_all(store, arguments.ids))  # with a wrong id, --yes would not help
        print("crow sessions: no terminal to ask in. To delete without asking, use --yes.", file=sys.stderr)
        return 2
    return _with_store(lambda store: _delete_all(store, arguments.ids, yes=arguments.yes))


async def _delete_all(store: SessionStore, ids: Sequence[str], *, yes: bool) -> int:
    """All are found before the first one is deleted: a mistyped id deletes nothing."""
    failed = 0
    entries = await _find_all(store, ids)
    living = await store.living()
    for entry in entries:
        name = f"{entry.id} ({entry.shown_title})"
        there = living.get(entry.id)
        is_open = f" It is open in process {there.process}; new messages there will not be stored." if there else ""
        if not yes and not _confirmed(f"Delete {name} permanently?{is_open}"):
            print(f"Not deleted: {name}.")
            continue
        try:
            await store.delete(entry.id)
            remove_outputs(entry.id)
        except CrowError as error:
            print(f"crow: {name} was not deleted. {error}", file=sys.stderr)
            failed = 1
        else:
            print(f"Deleted {name}.{is_open}")
    return failed


def _stop(arguments: argparse.Namespace) -> int:
    return _with_store(lambda store: _stop_all(store, arguments.ids))


async def _stop_all(store: SessionStore, ids: Sequence[str]) -> int:
    failed = 0
    for entry in await _find_all(store, ids):
        name = f"{entry.id} ({entry.shown_title})"
        try:
            stopped = await store.stop(entry.id)
        except CrowError as error:
            print(f"crow: {name} was not stopped. {error}", file=sys.stderr)
            failed = 1
        else:
            print(f"Stopped {name}." if stopped else f"{name} is not running.")
    return failed


def _confirmed(question: str) -> bool:
    """Only a clear yes is one: what is deleted does not come back."""
    try:
        return ask(f"{question} [y/N]").lower() in ("y", "yes")
    except EOFError:
        print()
        return False


# --- finding


def find_session(id: str) -> SessionEntry:
    """The stored session with this id, or the only one whose id begins with it. NoSession."""
    return _with_store(lambda store: _find(store, id))


def sessions_of(folder: str) -> list[SessionEntry]:
    """The stored sessions of a folder, the newest first."""
    entries = _with_store(_all_entries, [])
    return [entry for entry in entries if os.path.realpath(entry.cwd) == os.path.realpath(folder)]


def _with_store(work: Callable[[SessionStore], Awaitable[Given]], without: Given | None = None) -> Given:
    """Does the work with the store; without one, which is not made for this, gives `without` or says so."""
    place = home(os.environ)
    if not is_there(os.path.join(place, FILE_NAME)):
        if without is None:
            raise NoSession("No sessions yet.", remedy=f"They will be stored in {place}.")
        return without

    async def run() -> Given:
        store = open_store(place)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def _read(store: SessionStore, id: str) -> tuple[SessionEntry, list[Event]]:
    entry = await _find(store, id)
    return entry, await store.events(entry.id)


async def _find_all(store: SessionStore, ids: Sequence[str]) -> list[SessionEntry]:
    """Each of them once."""
    return list({entry.id: entry for entry in [await _find(store, id) for id in ids]}.values())


async def _find(store: SessionStore, id: str) -> SessionEntry:
    """The session with this id, or the only one whose id begins with it."""
    entries = await store.beginning_with(id) if id else ()
    if len(entries) == 1:
        return entries[0]
    try:
        return await store.find(id)
    except SessionUnknown:
        pass
    if not entries:
        raise NoSession(f"No session {one_line(id)!r}.", remedy="To list sessions: crow sessions list")
    names = short_ids([entry.id for entry in entries])
    some = ", ".join(list(names.values())[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    raise NoSession(f"{len(entries)} sessions begin with {one_line(id)!r}: {some}.", remedy="Use more of the ID.")


async def _all_entries(store: SessionStore) -> list[SessionEntry]:
    page = await store.page(None, "", PAGE)
    entries = list(page.entries)
    while page.next_cursor:
        page = await store.page(None, page.next_cursor, PAGE)
        entries += page.entries
    return entries


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """For each id the beginning that none of the others has."""
    needed = dict.fromkeys(ids, SHORTEST_ID)
    for one, next_one in pairwise(sorted(needed)):
        length = common_beginning(one, next_one) + 1
        needed[one] = max(needed[one], length)
        needed[next_one] = max(needed[next_one], length)
    return {id: id[: needed[id]] for id in ids}


# --- writing


def _print_table(entries: Sequence[ListedSession], ids: Mapping[str, str]) -> None:
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else LONGEST_LINE
    for line in table(entries, ids, room):
        print(line)


def table(entries: Sequence[ListedSession], ids: Mapping[str, str], room: int) -> Iterator[str]:
    """A line for each, of so many columns. Where they are few, the folders give way: a title says more."""
    begun = _columns(
        [ids[entry.id] for entry in entries],
        [moment(entry.updated_at) for entry in entries],
        [_state(entry, room) for entry in entries],
    )
    for_folder = min(LONGEST_FOLDER, room - cells(begun[0]) - SHORTEST_TITLE - 4)
    folders = [cut(short_folder(entry.cwd), for_folder) if for_folder >= SHORTEST_FOLDER else "" for entry in entries]
    for start, entry in zip(_columns(begun, folders), entries, strict=True):
        yield cut(f"{start}  {one_line(entry.title)}", room).rstrip()


def _columns(*columns: Sequence[str]) -> list[str]:
    """The rows of a table, each cell as wide as the widest of its column; a column with nothing in it is left out."""
    shown = [(column, width) for column in columns if (width := max(map(cells, column)))]
    padded = [[cell + " " * (width - cells(cell)) for cell in column] for column, width in shown]
    return ["  ".join(row) for row in zip(*padded, strict=True)]


def _state(entry: ListedSession, room: int) -> str:
    """What a session does, and where there is room for it, in which process and for whom."""
    if entry.state == "saved":
        return entry.state if room >= ROOM_FOR_SAVED else ""
    if entry.process is None or room < ROOM_FOR_PLACES:
        return entry.state
    clients = f"{', '.join(map(one_line, entry.clients))}, " if entry.clients else ""
    return f"{entry.state} ({clients}process {entry.process})"


def _write(content: bytes) -> None:
    """As it is: UTF-8, whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
