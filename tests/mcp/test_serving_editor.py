"""`file_editor`: the bytes of a file after each command, what is taken back, and what makes no sense."""

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crow.mcp.server.clients import ServerOptions
from crow.mcp.server.server import CrowServer
from mcp import Client
from tests.mcp.hosts import done, edit, refused, text_of


def with_server(folder: Path, talk: Callable[[Client], Awaitable[None]]) -> None:
    """A conversation with the server in this process: the same code but for the pipes."""

    async def run() -> None:
        server = CrowServer(ServerOptions(folder=str(folder), judge_in=lambda roots, outputs: lambda deed: ""))
        async with Client(server.protocol) as client:
            await talk(client)
        await server.close()

    asyncio.run(run())


BYTES = {
    "line feeds": b"one\ntwo\nthree\n",
    "carriage returns": b"one\r\ntwo\r\nthree\r\n",
    "mixed line ends": b"one\r\ntwo\nthree\r\n",
    "no last line end": b"one\ntwo\nthree",
    "a byte order mark": b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n",
    "Latin-1": b"one \xe9\ntwo\nthree \xff\n",
    "UTF-16": "\ufeffone\r\ntwo\r\nthree\r\n".encode("utf-16-le"),
    "a form feed": b"one\n\x0ctwo\nthree\n",
}


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES.keys())
def test_each_edit_is_taken_back_to_the_byte(content: bytes, tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    path.chmod(0o751)

    async def talk(client: Client) -> None:
        states = [content]
        changes: list[tuple[str, dict[str, Any]]] = [
            ("str_replace", {"old_str": "two", "new_str": "2\n2.5"}),
            ("insert", {"insert_line": 3, "new_str": "more"}),
        ]
        for command, arguments in changes:
            await done(client, command, path, **arguments)
            states.append(path.read_bytes())
        await done(client, "view", path)
        await done(client, "create", path, file_text="anew\n")
        while states:
            await done(client, "undo_edit", path)
            assert path.read_bytes() == states.pop()
        assert "no edit" in await refused(client, "undo_edit", path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o751

    with_server(tmp_path, talk)


def test_a_file_that_was_made_is_removed_again(tmp_path: Path):
    path = tmp_path / "deep" / "er" / "new.txt"

    async def talk(client: Client) -> None:
        await done(client, "create", path, file_text="new\n")
        await done(client, "str_replace", path, old_str="new", new_str="newer")
        await done(client, "undo_edit", path)
        assert path.read_bytes() == b"new\n"
        told = await done(client, "undo_edit", path)
        assert told.startswith("Removed deep/er/new.txt ")
        assert not path.exists()
        assert not (tmp_path / "deep").exists(), "the folders were made for it"

    with_server(tmp_path, talk)


def test_of_the_folders_that_were_made_for_a_file_those_in_use_stay(tmp_path: Path):
    (tmp_path / "old").mkdir()

    async def talk(client: Client) -> None:
        await done(client, "create", "old/new.txt", file_text="new\n")
        await done(client, "undo_edit", "old/new.txt")
        assert (tmp_path / "old").is_dir(), "it was there before"
        await done(client, "create", "deep/er/new.txt", file_text="new\n")
        (tmp_path / "deep" / "theirs.txt").touch()
        await done(client, "undo_edit", "deep/er/new.txt")
        assert os.listdir(tmp_path / "deep") == ["theirs.txt"]

    with_server(tmp_path, talk)


@pytest.mark.parametrize(
    "meddle",
    [
        lambda path: path.write_bytes(b"somebody else's\n"),
        lambda path: path.write_bytes("1 é\n".encode()),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"\0\1\2"),
    ],
    ids=["another text", "the same text in another encoding", "gone", "binary"],
)
def test_what_somebody_else_did_since_is_not_taken_back(meddle: Callable[[Path], None], tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"one \xe9\n")

    async def talk(client: Client) -> None:
        await done(client, "str_replace", path, old_str="one", new_str="1")
        meddle(path)
        after = path.read_bytes() if path.exists() else None
        await refused(client, "undo_edit", path)
        assert (path.read_bytes() if path.exists() else None) == after

    with_server(tmp_path, talk)


INSERTED = [
    (b"one\ntwo\n", 0, "zero", b"zero\none\ntwo\n"),
    (b"one\ntwo\n", 1, "1.5\n", b"one\n1.5\ntwo\n"),
    (b"one\ntwo\n", 2, "three", b"one\ntwo\nthree\n"),
    (b"one\ntwo", 2, "three", b"one\ntwo\nthree"),
    (b"one\ntwo", 1, "1.5", b"one\n1.5\ntwo"),
    (b"one\r\ntwo\r\n", 1, "a\nb", b"one\r\na\r\nb\r\ntwo\r\n"),
    (b"one\ntwo\n", 1, "a\r\nb\r\n", b"one\na\nb\ntwo\n"),
    (b"one\r\ntwo\n", 1, "a\r\nb\n", b"one\r\na\r\nb\ntwo\n"),
    (b"", 0, "first", b"first\n"),
    (b"one\n", 1, "", b"one\n\n"),
]


@pytest.mark.parametrize(("before", "line", "text", "after"), INSERTED)
def test_an_insert_adds_whole_lines(before: bytes, line: int, text: str, after: bytes, tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_bytes(before)

    async def talk(client: Client) -> None:
        await done(client, "insert", path, insert_line=line, new_str=text)
        assert path.read_bytes() == after

    with_server(tmp_path, talk)


def test_an_insert_by_number_needs_the_numbers_that_were_seen(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("one\ntwo\n")

    async def talk(client: Client) -> None:
        await done(client, "view", path)
        path.write_text("zero\none\ntwo\n")
        assert (await refused(client, "insert", path, insert_line=1, new_str="x")).endswith("View it again.")
        assert path.read_text() == "zero\none\ntwo\n"

    with_server(tmp_path, talk)


def test_an_existing_file_is_written_anew_only_by_who_knows_it(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("one\ntwo\n")

    async def talk(client: Client) -> None:
        told = await refused(client, "create", path, file_text="mine\n")
        assert told.endswith("View the whole of it first, or change a part of it with `str_replace`.")
        await done(client, "view", path)
        await done(client, "create", path, file_text="mine\n")
        assert path.read_text() == "mine\n"

    with_server(tmp_path, talk)


def test_a_range_of_lines_is_viewed_and_the_way_on_is_told(tmp_path: Path):
    path = tmp_path / "long.txt"
    path.write_text("".join(f"line {number}\n" for number in range(1, 2101)))

    async def talk(client: Client) -> None:
        assert await done(client, "view", path, view_range=[2, 3]) == (
            "     2\tline 2\n     3\tline 3\n(2097 more lines: go on with view_range [4, -1])"
        )
        assert (await done(client, "view", path, view_range=[2099, -1])).count("\n") == 1
        assert (await done(client, "view", path)).endswith("view_range [2001, -1])")
        assert "no line 3000" in await refused(client, "view", path, view_range=[3000, 3001])

    with_server(tmp_path, talk)


def test_the_names_in_a_folder_are_viewed_piece_by_piece(tmp_path: Path):
    for number in range(1003):
        (tmp_path / f"{number:04}").touch()

    async def talk(client: Client) -> None:
        assert (await done(client, "view", ".")).endswith("0999\n(3 more entries: go on with view_range [1001, -1])")
        assert await done(client, "view", ".", view_range=[1001, -1]) == "1000\n1001\n1002"
        assert (await done(client, "view", ".", view_range=[2, 3])).startswith("0001\n0002\n(1000 more entries")

    with_server(tmp_path, talk)


@pytest.mark.parametrize("view_first", [True, False])
def test_what_was_put_into_an_empty_file_is_known(view_first: bool, tmp_path: Path):
    (tmp_path / "empty.txt").touch()

    async def talk(client: Client) -> None:
        if view_first:
            await done(client, "view", "empty.txt")
        await done(client, "insert", "empty.txt", insert_line=0, new_str="one")
        await done(client, "create", "empty.txt", file_text="two\n")
        assert (tmp_path / "empty.txt").read_text() == "two\n"

    with_server(tmp_path, talk)


WRONG = [
    {},
    {"command": "view"},
    {"command": "delete", "path": "a"},
    {"command": "view", "path": ""},
    {"command": "view", "path": "a\0b"},
    {"command": "view", "path": 5},
    {"command": "view", "path": ["a"]},
    {"command": "view", "path": "file.txt", "view_range": [3]},
    {"command": "view", "path": "file.txt", "view_range": [0, 1]},
    {"command": "view", "path": "file.txt", "view_range": [2, 1]},
    {"command": "view", "path": "file.txt", "view_range": [1, -2]},
    {"command": "view", "path": "file.txt", "view_range": ["a", "b"]},
    {"command": "view", "path": "file.txt", "view_range": [10**30, -1]},
    {"command": "create", "path": "new.txt"},
    {"command": "create", "path": "new.txt", "file_text": None},
    {"command": "create", "path": "new.txt", "file_text": "a\0b"},
    {"command": "create", "path": ".", "file_text": "a"},
    {"command": "create", "path": "file.txt/below", "file_text": "a"},
    {"command": "create", "path": "x" * 300, "file_text": "a"},
    {"command": "str_replace", "path": "file.txt"},
    {"command": "str_replace", "path": "file.txt", "old_str": ""},
    {"command": "str_replace", "path": "file.txt", "old_str": "one", "new_str": "one"},
    {"command": "str_replace", "path": "file.txt", "old_str": "one", "new_str": "\0"},
    {"command": "insert", "path": "file.txt", "new_str": "x"},
    {"command": "insert", "path": "file.txt", "insert_line": -1, "new_str": "x"},
    {"command": "insert", "path": "file.txt", "insert_line": 2, "new_str": "x"},
    {"command": "insert", "path": "file.txt", "insert_line": 10**18, "new_str": "x"},
    {"command": "insert", "path": "file.txt", "insert_line": 1},
    {"command": "insert", "path": ".", "insert_line": 0, "new_str": "x"},
    {"command": "undo_edit", "path": "file.txt"},
    {"command": "undo_edit", "path": "fifo"},
    {"command": "view", "path": "fifo"},
    {"command": "str_replace", "path": "fifo", "old_str": "a", "new_str": "b"},
]


@pytest.mark.parametrize("arguments", WRONG, ids=lambda arguments: json.dumps(arguments)[:60])
def test_what_makes_no_sense_is_a_failed_result_and_changes_nothing(arguments: dict[str, Any], tmp_path: Path):
    (tmp_path / "file.txt").write_text("one\n")
    os.mkfifo(tmp_path / "fifo")

    async def talk(client: Client) -> None:
        result = await client.call_tool("file_editor", arguments)
        assert result.is_error
        assert "unexpectedly" not in text_of(result)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "file.txt"]
        assert (tmp_path / "file.txt").read_text() == "one\n"
        assert await done(client, "view", "file.txt") == "     1\tone"

    with_server(tmp_path, talk)


def test_edits_to_and_fro_are_taken_back_one_by_one(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("here\n")

    async def talk(client: Client) -> None:
        await done(client, "str_replace", path, old_str="here", new_str="there")
        await done(client, "str_replace", path, old_str="there", new_str="here")
        await done(client, "str_replace", path, old_str="here", new_str="there")
        for text in ("here\n", "there\n", "here\n"):
            await done(client, "undo_edit", path)
            assert path.read_text() == text

    with_server(tmp_path, talk)


def test_edits_that_come_at_once_are_all_made_and_all_taken_back(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("".join(f"line {number};\n" for number in range(20)))
    before = path.read_bytes()

    async def talk(client: Client) -> None:
        work = (
            edit(client, "str_replace", path, old_str=f"line {number};", new_str=f"Line {number}!")
            for number in range(20)
        )
        results = await asyncio.gather(*work)
        assert [text_of(result) for result in results if result.is_error] == []
        assert path.read_text() == "".join(f"Line {number}!\n" for number in range(20))
        for _ in range(20):
            await done(client, "undo_edit", path)
        assert path.read_bytes() == before

    with_server(tmp_path, talk)


def test_undos_that_come_at_once_are_made_one_after_the_other(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("0\n")

    async def talk(client: Client) -> None:
        for number in range(10):
            await done(client, "str_replace", path, old_str=f"{number}", new_str=f"{number + 1}")
        results = await asyncio.gather(*(edit(client, "undo_edit", path) for _ in range(11)))
        assert [text_of(result) for result in results if result.is_error] == [f"There is no edit of {path} to undo."]
        assert path.read_text() == "0\n"

    with_server(tmp_path, talk)


def test_edits_are_taken_back_one_after_the_other(tmp_path: Path):
    path = tmp_path / "file.txt"

    async def talk(client: Client) -> None:
        await done(client, "create", path, file_text="one\n")
        path.unlink()
        await done(client, "create", path, file_text="two\n")
        await done(client, "str_replace", path, old_str="two", new_str="2")
        told = await done(client, "undo_edit", path)
        assert told.endswith("The file is what it was before.")
        told = await done(client, "undo_edit", path)
        assert told.startswith("Removed file.txt ")

    with_server(tmp_path, talk)


def test_an_edit_before_somebody_elses_change_is_not_taken_back(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("one\n")

    async def talk(client: Client) -> None:
        await done(client, "str_replace", path, old_str="one", new_str="1")
        path.write_text("1, formatted\n")
        await done(client, "str_replace", path, old_str="1", new_str="2")
        assert (await done(client, "undo_edit", path)).endswith("The file is what it was before.")
        assert "by someone else" in await refused(client, "undo_edit", path)

    with_server(tmp_path, talk)


def test_names_in_a_folder_cannot_hide_anything(tmp_path: Path):
    for name in ("plain.txt", "two\nlines", "\x1b[31mred", "exe\u202etxt.", "folder"):
        (tmp_path / name).touch() if name != "folder" else (tmp_path / name).mkdir()

    async def talk(client: Client) -> None:
        names = (await done(client, "view", ".")).split("\n")
        assert sorted(names) == sorted(["plain.txt", "two⏎lines", "⟨U+001B⟩[31mred", "exe⟨U+202E⟩txt.", "folder/"])

    with_server(tmp_path, talk)
