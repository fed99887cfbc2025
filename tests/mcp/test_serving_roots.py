"""Where `crow mcp` may work: in the folders it was given or the host names, and nowhere else."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from mcp import Client
from tests.mcp.hosts import (
    CROW,
    ERAS,
    Era,
    RawServer,
    Roots,
    crow_with,
    done,
    edit,
    on_pipes,
    refused,
    serving_http,
    small_web,
    text_of,
    web_config,
)
from tests.support.patience import DEADLINE

ROOTS_ARE_OLD = pytest.mark.filterwarnings(
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning",
    "ignore:Pydantic serializer warnings:UserWarning",  # a root that is no file is none of the library's own
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a file in it, and beside it what is none of the server's business."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "inside.txt").write_text("inside\n")
    (tmp_path / "project-too").mkdir()
    (tmp_path / "project-too" / "outside.txt").write_text("outside\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "link").symlink_to(tmp_path)
    (folder / "dangling").symlink_to(tmp_path / "new.txt")
    return folder


OUTSIDE = [
    "../outside.txt",
    "./../outside.txt",
    "{above}/outside.txt",
    "{above}/project/../outside.txt",
    "{above}/project-too/outside.txt",
    "link.txt",
    "link/outside.txt",
    "link/project/../outside.txt",
    "dangling",
    "..",
    "/",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../outside.txt",
    "/dev/stdin",
    "~/outside.txt",
    "~",
    "//etc/passwd",
]


async def nothing_outside(client: Client, project: Path) -> None:
    above = project.parent
    for spelled in OUTSIDE:
        path = spelled.format(above=above)
        for command, arguments in (
            ("view", {}),
            ("create", {"file_text": "mine\n"}),
            ("str_replace", {"old_str": "outside", "new_str": "mine"}),
            ("insert", {"insert_line": 0, "new_str": "mine"}),
            ("undo_edit", {}),
        ):
            told = await refused(client, command, path, **arguments)
            assert "outside" in told, (command, path)
    assert (above / "outside.txt").read_text() == "outside\n"
    assert not (above / "new.txt").exists()
    assert await done(client, "view", "inside.txt") == "     1\tinside"
    assert await done(client, "view", "link/project/inside.txt") == "     1\tinside"


def test_nothing_outside_the_folder_it_was_started_in_is_read_or_written(project: Path):
    async def talk() -> None:
        async with on_pipes(project) as client:
            await nothing_outside(client, project)

    asyncio.run(talk())


def test_the_same_over_http(project: Path):
    async def talk() -> None:
        with serving_http(project) as server:
            async with server.connect() as client:
                await nothing_outside(client, project)

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
def test_the_hosts_folders_are_used_instead(era: Era, project: Path, tmp_path: Path):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()

    async def talk() -> None:
        async with on_pipes(elsewhere, era=era, roots=Roots(project)) as client:
            await nothing_outside(client, project)
            assert "outside" in await refused(client, "create", elsewhere / "new.txt", file_text="mine\n")

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
def test_folders_that_were_given_win_over_the_hosts(era: Era, project: Path, tmp_path: Path):
    roots = Roots(tmp_path)
    more = tmp_path / "more"
    more.mkdir()

    async def talk() -> None:
        arguments = ("--root", str(project), "--root", str(more))
        async with on_pipes(tmp_path, *arguments, era=era, roots=roots) as client:
            await refused(client, "view", tmp_path / "outside.txt")
            await done(client, "create", more / "new.txt", file_text="mine\n")
            assert await done(client, "view", "inside.txt") == "     1\tinside"
        assert roots.asked == 0

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
def test_a_host_whose_folders_change_is_believed(era: Era, project: Path, tmp_path: Path):
    roots = Roots(project)
    other = tmp_path / "project-too"

    async def talk() -> None:
        async with on_pipes(tmp_path, era=era, roots=roots) as client:
            await done(client, "str_replace", "inside.txt", old_str="inside", new_str="changed")
            await refused(client, "view", other / "outside.txt")
            roots.uris = [other.as_uri()]
            if era == "legacy":
                await client.send_roots_list_changed()
            assert await done(client, "view", "outside.txt") == "     1\toutside"
            # What was done in a folder cannot be taken back once it is closed to us.
            assert "outside" in await refused(client, "undo_edit", project / "inside.txt")
        assert (project / "inside.txt").read_text() == "changed\n"

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "uris", [[], ["file://elsewhere/share"], ["file:///%00"], ["vscode-vfs://github/a/b"]], ids=str
)
def test_a_host_that_names_no_folder_opens_none(uris: list[str], era: Era, project: Path):
    async def talk() -> None:
        async with on_pipes(project, era=era, roots=Roots(*uris)) as client:
            assert "--root" in await refused(client, "view", "inside.txt")

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
def test_a_root_that_is_no_folder_here_does_not_close_the_others(era: Era, project: Path, tmp_path: Path):
    missing, file = tmp_path / "missing", tmp_path / "outside.txt"
    roots = Roots("vscode-vfs://github/a/b", missing, file, project, "no address")

    async def talk() -> None:
        async with on_pipes(tmp_path, era=era, roots=roots) as client:
            assert await done(client, "view", "inside.txt") == "     1\tinside"
            for path in (missing / "new.txt", file):
                assert "outside the allowed folders" in await refused(client, "create", path, file_text="mine\n")
        assert not missing.exists()

    asyncio.run(talk())


@ROOTS_ARE_OLD
@pytest.mark.parametrize("uri", ["http://[x/", "file://[", "file://ex\u2100mple/x", "", "file:///%00"])
@pytest.mark.parametrize("era", ERAS)
def test_a_root_whose_address_cannot_be_read_does_not_close_the_others(era: Era, uri: str, project: Path):
    async def talk() -> None:
        async with on_pipes(project.parent, era=era, roots=Roots(uri, project)) as client:
            assert await done(client, "view", "inside.txt") == "     1\tinside"

    asyncio.run(talk())


@pytest.mark.parametrize("wrong", [{"uri": None}, {"uri": 5}, {}, None, "file:///", []], ids=str)
def test_a_root_of_a_wrong_form_does_not_close_the_others(wrong: Any, project: Path):
    server = RawServer(project.parent)
    server.begin(roots={})
    server.call(2, "file_editor", command="view", path="inside.txt")
    question = server.next_message()
    assert question["method"] == "roots/list"
    server.send({"id": question["id"], "result": {"roots": [wrong, {"uri": project.as_uri(), "name": 5}]}})
    assert server.answer(2)["result"]["content"][0]["text"] == "     1\tinside"
    assert server.process.communicate(timeout=DEADLINE)[1] == b""


@ROOTS_ARE_OLD
@pytest.mark.parametrize("era", ERAS)
def test_a_root_that_is_missing_is_not_made_and_a_file_is_none(era: Era, project: Path, tmp_path: Path):
    async def talk(root: Path, path: Path) -> None:
        async with on_pipes(tmp_path, era=era, roots=Roots(root)) as client:
            told = await refused(client, "create", path, file_text="mine\n")
            assert str(root) in told

    missing, file = tmp_path / "missing", tmp_path / "outside.txt"
    asyncio.run(talk(missing, missing / "new.txt"))
    asyncio.run(talk(file, file))
    assert not missing.exists()
    assert file.read_text() == "outside\n"


def test_a_folder_that_was_given_and_is_gone_is_not_made_anew(project: Path, tmp_path: Path):
    async def talk() -> None:
        async with on_pipes(tmp_path, "--root", str(project)) as client:
            await done(client, "view", "inside.txt")
            project.rename(tmp_path / "moved")
            assert "Missing, or not a folder" in await refused(client, "create", "new.txt", file_text="mine\n")
        assert not project.exists()

    asyncio.run(talk())


def test_a_server_that_was_started_in_a_folder_that_is_gone_says_so_and_has_the_web(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    with small_web() as address:
        program = ["/bin/sh", "-c", f'rmdir "$PWD" && exec "{CROW}" "$@"', "sh"]
        server = RawServer(gone, program=program, config=web_config(address))
        server.begin()
        server.call(2, "file_editor", command="create", path="new.txt", file_text="mine\n")
        result = server.answer(2)["result"]
        server.call(3, "web_fetch", url=f"{address}/page")
        page = server.answer(3)["result"]
        _, complained = server.process.communicate(timeout=DEADLINE)
    assert (result["isError"], complained) == (True, b"")
    assert "started in" in result["content"][0]["text"]
    assert "They caw." in page["content"][0]["text"]


def test_a_host_that_never_names_its_folders_opens_none_and_holds_up_nothing(project: Path):
    """Each call is answered with what is wrong. Those that wait together are, together; the web needs no folder."""
    program = crow_with("crow.mcp.server.clients", ROOTS_TIMEOUT=1.0)
    with small_web() as address:
        server = RawServer(project, program=program, config=web_config(address))
        server.begin(roots={})
        for id in (2, 3, 4):
            server.call(id, "file_editor", command="view", path="inside.txt")
        server.call(5, "web_fetch", url=f"{address}/page")
        answers: dict[int, dict[str, Any]] = {}
        asked = 0
        while len(answers) < 4:
            message = server.next_message()
            if message.get("method") == "roots/list":
                asked += 1
            elif "id" in message:
                answers[message["id"]] = message["result"]
        _, complained = server.process.communicate(timeout=DEADLINE)
    for id in (2, 3, 4):
        text = answers[id]["content"][0]["text"]
        assert (answers[id]["isError"], "1 s" in text, "--root" in text) == (True,) * 3
    assert asked == 1
    assert "They caw." in answers[5]["content"][0]["text"]
    assert complained == b""


def test_a_host_that_refuses_to_name_its_folders_opens_none(project: Path):
    server = RawServer(project)
    server.begin(roots={})
    server.call(2, "file_editor", command="view", path="inside.txt")
    while (message := server.next_message()).get("method") != "roots/list":
        pass
    server.send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    result = server.answer(2)["result"]
    assert result["isError"]
    assert "refused" in result["content"][0]["text"]
    server.process.communicate(timeout=DEADLINE)


def test_the_web_needs_no_folder(project: Path):
    with small_web() as address:

        async def talk() -> None:
            async with on_pipes(project, cwd="/", config=web_config(address)) as client:
                assert "They caw." in text_of(await client.call_tool("web_fetch", {"url": f"{address}/page"}))

        asyncio.run(talk())


def test_a_server_that_was_started_in_the_root_of_the_disk_opens_nothing(project: Path):
    async def talk() -> None:
        async with on_pipes(project, cwd="/") as client:
            assert "started in /" in await refused(client, "view", project / "inside.txt")
        async with on_pipes(project, "--root", str(project), cwd="/") as client:
            await done(client, "view", "inside.txt")

    asyncio.run(talk())


def test_a_link_that_appears_while_a_file_is_used_leads_nowhere(project: Path, tmp_path: Path):
    """A folder that is swapped for a link to another one, as fast as it can be, while the server reads and writes."""
    folder, aside, trap = project / "folder", project / "aside", tmp_path / "trap"
    folder.mkdir()
    trap.mkdir()
    (folder / "file.txt").write_text("mine\n")
    (trap / "file.txt").write_text("a secret\n")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(folder, aside)
            folder.symlink_to(trap)
            folder.unlink()
            os.rename(aside, folder)

    async def talk() -> None:
        async with on_pipes(project) as client:
            thread = threading.Thread(target=swap)
            thread.start()
            try:
                for number in range(60):
                    read = await edit(client, "view", "folder/file.txt")
                    assert "a secret" not in text_of(read)
                    await edit(client, "insert", "folder/file.txt", insert_line=0, new_str=str(number))
            finally:
                stop.set()
                thread.join()
        assert sorted(os.listdir(trap)) == ["file.txt"]
        assert (trap / "file.txt").read_text() == "a secret\n"

    asyncio.run(talk())


# --- secrets, protected paths, the user's rules

TOUCHY = [".env", "key.pem", ".git/config", ".github/workflows/x.yml", "AGENTS.md", ".mcp.json", ".ENV", ".bashrc"]


def make_touchy(project: Path) -> None:
    for name in TOUCHY:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("xyzzy\n")
    (project / "harmless.txt").symlink_to(project / ".env")


def test_secrets_are_not_read_and_protected_paths_not_written(project: Path):
    make_touchy(project)

    async def talk() -> None:
        async with on_pipes(project) as client:
            for name in (".env", "key.pem", ".ENV", "harmless.txt"):
                assert "xyzzy" not in await refused(client, "view", name)
            assert "is protected" in await refused(client, "create", ".husky/new", file_text="mine\n")
            for name in (*TOUCHY, "harmless.txt"):
                await edit(client, "view", name)  # what may be read must not be written all the same
                for command, arguments in (
                    ("create", {"file_text": "mine\n"}),
                    ("str_replace", {"old_str": "xyzzy", "new_str": "mine"}),
                    ("insert", {"insert_line": 0, "new_str": "mine"}),
                ):
                    told = await refused(client, command, name, **arguments)
                    assert told.startswith("Not done: "), (command, name, told)
            assert "--allow-protected" in await refused(client, "view", ".env")
        assert not (project / ".husky").exists()
        assert all((project / name).read_text() == "xyzzy\n" for name in TOUCHY)

    asyncio.run(talk())


def test_whether_a_text_is_in_a_secret_is_not_told(project: Path):
    make_touchy(project)

    async def talk() -> None:
        async with on_pipes(project) as client:
            right = await refused(client, "str_replace", ".env", old_str="xyzzy", new_str="x")
            wrong = await refused(client, "str_replace", ".env", old_str="another", new_str="x")
            assert right == wrong

    asyncio.run(talk())


def test_the_person_who_starts_it_can_open_them_but_not_crows_own_home(project: Path, tmp_path: Path):
    make_touchy(project)
    home = tmp_path / "project-home"

    async def talk() -> None:
        async with on_pipes(project, "--allow-protected", "--root", str(tmp_path)) as client:
            (home / "auth.toml").write_text("key\n")
            await done(client, "view", project / ".env")
            await done(client, "str_replace", project / ".env", old_str="xyzzy", new_str="mine")
            await refused(client, "view", home / "auth.toml")
            await refused(client, "create", home / "config.toml", file_text="mine\n")

    asyncio.run(talk())


def test_the_users_own_rules_hold(project: Path):
    (project / "private").mkdir()
    (project / "private" / "a.txt").write_text("xyzzy\n")
    rules = (
        '[[permission.rules]]\ntool = "read"\npath = "private/**"\ndecision = "deny"\n'
        '[[permission.rules]]\ntool = "terminal"\ncommand = "rm *"\ndecision = "deny"\n'
        '[[permission.rules]]\ntool = "edit"\ndecision = "ask"\n'
    )

    async def talk() -> None:
        async with on_pipes(project, "--terminal", config=rules) as client:
            assert "a rule forbids it" in await refused(client, "view", "private/a.txt")
            assert "Nobody can be asked here" in await refused(
                client, "str_replace", "inside.txt", old_str="inside", new_str="x"
            )
            removal = await client.call_tool("terminal", {"command": "rm inside.txt"})
            assert removal.is_error
        assert (project / "inside.txt").exists()

    asyncio.run(talk())
