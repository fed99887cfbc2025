"""`crow web` and its clients: a conversation over WebSocket, odd frames, links, tokens, ports."""

import asyncio
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from crow.web_server.tokens import Tokens
from tests.support.editor import NOTICES, Editor, chose, clean_environment
from tests.support.patience import DEADLINE, eventually
from tests.support.ports import free_port
from tests.support.scripts import DONE, edit, reply, run, say
from tests.support.warm import CROW, warm
from tests.support.web import (
    BINARY,
    TEXT,
    Refused,
    Response,
    Web,
    WebSocket,
    ask,
    crow_with_page,
    frame,
    handshake,
    head,
    serving,
    upgrade,
)
from tests.support.window import Window

SCRIPT = reply(say("I change it."), edit("a.txt", "one", "two")) + DONE


def crow_web(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [*warm(CROW), "web", *arguments],
        env=clean_environment(home, folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


# --- a conversation


@pytest.mark.rule("R168")
def test_a_page_holds_a_conversation(tmp_path: Path):
    with serving(tmp_path, script=SCRIPT) as web, web.connect() as page:
        (web.workspace / "a.txt").write_text("one\n")
        greeting = page.initialize()["_meta"]["crow"]
        token = greeting["token"]
        assert greeting["cwd"] == str(web.workspace)
        page.new_session(web.workspace)
        turn = page.start_prompt("change it")
        question = page.wait_for_question()
        assert question["params"]["toolCall"]["content"][0]["newText"] == "two\n"
        page.reply(question, chose("once"))
        assert page.answer(turn)["stopReason"] == "end_turn"
        assert (web.workspace / "a.txt").read_text() == "two\n"
        assert page.text() == "I change it.\n\nDone."
        page.close()
        # Later, and for as long as it is used, by the token.
        lines = [f"Origin: {web.origin}", f"Sec-WebSocket-Protocol: acp.v1, crow.token.{token}"]
        with type(page)(web.port, lines) as again:
            assert again.initialize()["_meta"]["crow"] == {"cwd": greeting["cwd"], "home": greeting["home"]}
            again.load(page.session_id, web.workspace)
            assert again.text() == "I change it.\n\nDone."


@pytest.mark.rule("R135")
def test_what_another_connection_answers_is_no_answer(tmp_path: Path):
    with serving(tmp_path, script=SCRIPT) as web, web.connect() as page, web.connect(web.token()) as other:
        (web.workspace / "a.txt").write_text("one\n")
        for one in (page, other):
            one.initialize()
        page.new_session(web.workspace)
        turn = page.start_prompt("change it")
        question = page.wait_for_question()
        other.send_frame(TEXT, json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": chose("once")}).encode())
        assert other.request("session/status", {"sessionId": page.session_id})["_meta"]["crow"]["state"] == "asks"
        page.reply(question, chose("reject"))
        assert page.answer(turn)["stopReason"] == "end_turn"
        assert (web.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.rule("R168")
def test_messages_may_be_written_in_many_ways(tmp_path: Path):
    """In several frames, over several lines, with binary frames between them, which count for nothing."""
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        page.send_frame(BINARY, b"\0\1\2")
        page.initialize()
        params = {"cwd": str(web.workspace), "mcpServers": []}
        request = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "session/new", "params": params}, indent=4).encode()
        page.peer.sendall(frame(TEXT, request[:30], fin=False) + frame(9, b"ping") + frame(0, request[30:]))
        assert page.answer(77)["sessionId"]
        page.send_frame(BINARY, request)
        page.send_frame(TEXT, b"this is no message")
        wrong = page.wait_for(lambda message: message.get("id", ...) is None)
        assert wrong["error"]["code"] == -32700
        page.send_frame(TEXT, b"[]")
        assert page.wait_for(lambda message: message.get("error", {}).get("code") == -32600)["id"] is None
        assert page.request("session/list", {}) == {"sessions": []}, "nothing was said in it yet"


@pytest.mark.rule("R168")
@pytest.mark.parametrize(
    "first",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "x"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}],
        "initialize",
    ],
)
def test_initialize_comes_first(first: object, tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        page.send_frame(TEXT, json.dumps(first).encode())
        assert page.until_closed() == 1002


def test_a_frame_that_is_too_long_ends_its_connection_alone(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        page.initialize()
        with web.connect(web.token()) as other:
            header = frame(TEXT, b"")[:1] + bytes([0x80 | 127]) + (65 * 2**20).to_bytes(8, "big") + bytes(4)
            other.peer.sendall(header)
            assert other.until_closed() == 1009
        assert page.request("session/list", {}) == {"sessions": []}


def test_the_end_is_said(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        page.initialize()
        web.process.send_signal(signal.SIGTERM)
        assert page.until_closed() == 1001
        assert web.end() == 128 + signal.SIGTERM
        assert not (web.home / "web.json").exists()


WAITS = """
import asyncio, pathlib
import crow.web_server.app as app, crow.web_server.tokens as tokens
folder = pathlib.Path({folder!r})
app.MOST_CLIENTS = {most}
find, close, looking = tokens.Tokens.find, app.WebServer.close, 0
async def until(name):
    while not (folder / name).exists():
        await asyncio.sleep(0.01)
async def find_later(self, secret):
    global looking
    looking += 1
    if looking == {clients}:
        (folder / "looking").touch()
    await until("go on")
    return await find(self, secret)
async def close_and_wait(self):
    await close(self)
    (folder / "go on").touch()
    await until("answered")
tokens.Tokens.find, app.WebServer.close = find_later, close_and_wait
"""
"""A token is found once the test says so, or once clients were told of the end; which ends when the test says so."""


def begin_handshake(web: Web, token: str) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", web.port), DEADLINE)
    lines = upgrade(f"Authorization: Bearer {token}")
    peer.sendall(head(web.port, *lines, request="GET /acp HTTP/1.1"))
    return peer


def test_who_is_let_in_while_it_ends_is_refused_and_told_why(tmp_path: Path):
    program = crow_with_page(tmp_path, WAITS.format(folder=str(tmp_path), most=64, clients=1))
    with serving(tmp_path, script=DONE, program=program) as web:
        with begin_handshake(web, web.token()) as peer:
            eventually((tmp_path / "looking").exists)
            web.process.send_signal(signal.SIGTERM)
            answer = Response(b"".join(iter(lambda: peer.recv(65536), b"")))
        (tmp_path / "answered").touch()
        assert (answer.status, answer.body) == (503, b"crow web is shutting down.\n")
        assert web.end() == 128 + signal.SIGTERM


def test_who_is_let_in_at_the_same_time_is_counted(tmp_path: Path):
    program = crow_with_page(tmp_path, WAITS.format(folder=str(tmp_path), most=1, clients=2))
    with serving(tmp_path, script=DONE, program=program) as web:
        token = web.token()
        with begin_handshake(web, token) as one, begin_handshake(web, token) as other:
            eventually((tmp_path / "looking").exists)
            (tmp_path / "go on").touch()
            answers = [Response(peer.recv(65536)) for peer in (one, other)]
        (tmp_path / "answered").touch()
        assert sorted(answer.status for answer in answers) == [101, 503]


# --- links, tokens, one at a time


def test_a_second_one_prints_a_new_link_to_the_first(tmp_path: Path):
    with serving(tmp_path) as web:
        second = web.beside()
        assert (second.returncode, second.stdout.count("\n")) == (0, 1)
        assert second.stdout.startswith(f"{web.origin}/#link=")
        assert second.stdout.strip() != web.said
        assert str(web.process.pid) in second.stderr
        other = web.beside("--port", str(free_port()))
        assert (other.returncode, other.stdout) == (1, "")
        assert web.origin in other.stderr
        assert web.beside("--port", str(web.port)).returncode == 0
        assert web.beside("--behind", "https://crow.example").returncode == 1


def test_of_two_that_start_at_once_one_serves_and_both_print_a_link_to_it(tmp_path: Path):
    port, program = str(free_port()), crow_with_page(tmp_path)
    (tmp_path / "home").mkdir()
    started = [
        subprocess.Popen(
            [*program, "web", "--port", port],
            env=clean_environment(tmp_path / "home", tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        links = {one.stdout.readline().decode().strip() for one in started if one.stdout is not None}
        assert len(links) == 2
        assert {link.partition("#")[0] for link in links} == {f"http://127.0.0.1:{port}/"}
        eventually(lambda: [one.poll() for one in started].count(0) == 1)
        assert [one.poll() for one in started].count(None) == 1
    finally:
        for one in started:
            one.terminate()
            one.communicate(timeout=DEADLINE)


def test_tokens_are_listed_and_forgotten(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        own = page.initialize()["_meta"]["crow"]["token"]
        token = web.token()
        with web.connect(token) as client:
            client.initialize()
            listed = web.beside("--forget").stdout.splitlines()
            assert len(listed) == 2
            assert not [line for line in listed if token in line or own in line]
            (id,) = [line.split()[0] for line in listed if "--token" in line]
            assert web.beside("--forget", id).stdout == f"Revoked: {id}.\n"
            assert client.until_closed() == 1008
        with pytest.raises(Refused, match="401"):
            web.connect(token)
        assert page.request("session/list", {}) == {"sessions": []}
        unknown = web.beside("--forget", "0000")
        assert (unknown.returncode, "--forget" in unknown.stderr) == (1, True)
        assert web.beside("--forget", "all").returncode == 0
        assert page.until_closed() == 1008
        assert web.beside("--forget").stdout == "No tokens.\n"


def test_who_loses_the_connection_before_it_has_a_token_may_open_the_link_again(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        with web.connect(), pytest.raises(Refused, match="401"):
            web.connect()
        nobody = "No tokens.\n"
        eventually(lambda: web.beside("--forget").stdout == nobody, "the server's notice of it")
        with web.connect() as page:
            page.initialize()
            with pytest.raises(Refused, match="401"):
                web.connect()
        with pytest.raises(Refused, match="401"):
            web.connect()


def test_forgetting_all_forgets_the_links_that_nobody_opened(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        token = web.token()
        web.beside("--forget", web.beside("--forget").stdout.split()[0])
        with pytest.raises(Refused, match="401"):
            web.connect(token)
        with web.connect() as page:  # one token's end leaves the link alone
            page.initialize()
        assert web.beside().stdout.startswith(web.origin)
        again = web.beside().stdout.strip().partition("#link=")[2]
        web.beside("--forget", "all")
        offered = f"Sec-WebSocket-Protocol: acp.v1, crow.link.{again}"
        with pytest.raises(Refused, match="401"):
            WebSocket(web.port, [f"Origin: {web.origin}", offered])


def test_tokens_can_be_forgotten_without_a_server(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        token = web.token()
    listed = crow_web(tmp_path, "--forget")
    assert listed.stdout.count("\n") == 1
    assert crow_web(tmp_path, "--forget", "all").returncode == 0
    assert crow_web(tmp_path, "--token").returncode == 1
    with serving(tmp_path) as again, pytest.raises(Refused, match="401"):
        again.connect(token)


def test_a_disk_that_forgets_nothing_is_told_of(tmp_path: Path):
    """Whoever was let in is let out at once; but the next `crow web` would know the token again."""
    fails = """
import crow.web_server.tokens as tokens
from crow.errors import ConfigError
write = tokens.write_versioned
def fail(path, content):
    if not content.tokens:
        raise ConfigError(f"{path} cannot be written: no space left on device.")
    write(path, content)
tokens.write_versioned = fail
"""
    program = crow_with_page(tmp_path, fails)
    with serving(tmp_path, script=DONE, program=program) as web, web.connect() as page:
        page.initialize()
        done = web.beside("--forget", "all")
        assert (done.returncode, done.stdout) == (1, "")
        assert "web-tokens.json" in done.stderr
        assert page.until_closed() == 1008
    alone = [*program, "web", "--forget", "all"]
    done = subprocess.run(alone, env=web.environment, capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode, done.stdout) == (1, "")
    assert "web-tokens.json" in done.stderr


def test_a_restart_on_the_same_port_does_not_break_an_open_page(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        token = page.initialize()["_meta"]["crow"]["token"]
        web.end(signal.SIGKILL)
    with serving(tmp_path, "--port", str(web.port)) as again:
        lines = [f"Origin: {web.origin}", f"Sec-WebSocket-Protocol: acp.v1, crow.token.{token}"]
        with type(page)(again.port, lines) as client:
            assert client.initialize()["agentInfo"]["name"] == "crow"


# --- at rest


def test_nothing_wakes_it_up_while_nothing_happens(tmp_path: Path):
    """Nor an editor's Crow, whose session lives there or at home. Who looks for something now and then has no second
    without a switch, however busy the machine is."""
    with serving(tmp_path, script=DONE) as web:
        eventually(lambda: rests(web.process.pid), "a second without a switch", every=0)
        editor = Editor(tmp_path, capabilities=NOTICES)
        try:
            editor.new_session()
            assert editor.prompt("hello") == {"stopReason": "end_turn"}
            for process in (web.process.pid, editor.process.pid):
                eventually(lambda process=process: rests(process), "a second without a switch", every=0)
            web.end(signal.SIGKILL)
            assert editor.prompt("hello") == {"stopReason": "end_turn"}, "at home now"
            eventually(lambda: rests(editor.process.pid), "a second without a switch", every=0)
        finally:
            editor.kill()


def rests(process: int) -> bool:
    before = switches(process)
    time.sleep(1.2)  # that nothing happens is told by nothing
    return switches(process) == before


def switches(process: int) -> dict[str, str]:
    """How often each thread has slept so far."""
    tasks = Path(f"/proc/{process}/task")
    return {
        task.name: next(line for line in (task / "status").read_text().splitlines() if line.startswith("voluntary"))
        for task in tasks.iterdir()
    }


# --- ports and files


def test_a_port_that_is_taken_is_named(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = crow_web(tmp_path, "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"crow: Port {port} is not available: address already in use.")


@pytest.mark.parametrize("has_page", [False, True])
def test_whoever_took_the_usual_port_may_have_been_shown_a_token(has_page: bool, tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    if has_page:
        asyncio.run(Tokens(str(home)).make("page"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = f"import crow.cli.web\ncrow.cli.web.DEFAULT_PORT = {taken.getsockname()[1]}"
        web = subprocess.Popen(
            [*crow_with_page(tmp_path, usual), "web"],
            env=clean_environment(home, tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert web.stdout is not None
        web.stdout.readline()  # the link
        web.terminate()
        _, said = web.communicate(timeout=DEADLINE)
    assert "is in use by another program" in said
    assert ("crow web --forget all" in said) == has_page


def test_a_home_that_cannot_be_used_is_named_with_the_remedy(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "web.lock").mkdir()
    done = crow_web(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "web.lock" in done.stderr
    assert "CROW_HOME" in done.stderr


def test_it_listens_on_this_machine_only(tmp_path: Path):
    with serving(tmp_path) as web:
        with socket.socket() as other:
            other.settimeout(5)
            assert other.connect_ex(("127.0.0.2", web.port)) != 0
        sockets = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()]
        listening = {address for address in sockets if address.endswith(f":{web.port:04X}")}
        assert listening == {f"0100007F:{web.port:04X}"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "0.0.0.0"],
        ["--port", "0"],
        ["--port", "http"],
        ["--behind", "crow.example"],
        ["--behind", "https://crow.example/"],
        ["--behind", "https://crow.example:443"],
        ["--behind", "https://Crow.example"],
        ["--behind", "https://me@crow.example"],
        ["--behind", "https://crow.example?x"],
        ["--behind", "http://192.168.1.5:2769"],
        ["--behind", "http://0.0.0.0:2769"],
        ["--behind", "http://localhost.evil.example"],
        ["--behind", "file:///tmp"],
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], tmp_path: Path):
    done = crow_web(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[0] in done.stderr


def test_a_name_beyond_ascii_is_asked_for_as_browsers_send_it(tmp_path: Path):
    done = crow_web(tmp_path, "--behind", "https://bücher.example")
    assert done.returncode == 2
    assert "https://xn--bcher-kva.example" in done.stderr


def test_without_the_page_it_says_so_and_serves_other_clients(tmp_path: Path):
    (tmp_path / "built").mkdir()
    with serving(tmp_path, script=DONE) as web:
        assert "#link" not in web.said
        with web.connect(web.token()) as client:
            assert client.initialize()["protocolVersion"] == 1
        beside = web.beside()
        assert "new link" not in beside.stderr
        assert f"ws://127.0.0.1:{web.port}/acp" in beside.stdout
        web.end()
        assert "The page is missing" in web.errors()


def test_a_command_that_crow_runs_gets_no_link(tmp_path: Path):
    """Else it could answer the question whether it may run."""
    command = f"{CROW} web 2>&1; true"
    script = reply(run(command)) + DONE
    with serving(tmp_path, script=script) as web, web.connect() as page:
        page.initialize()
        page.new_session(web.workspace)
        turn = page.start_prompt("get a link")
        page.reply(page.wait_for_question(), chose("once"))
        page.answer(turn)
        said = json.dumps(page.received)
        assert "has no terminal in which" in said
        assert "#link=" not in said


def test_once_commands_have_run_links_and_tokens_are_shown_in_its_own_terminal_alone(tmp_path: Path):
    """Whoever asks for one may be such a command, however it hides."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "commands-have-run").touch()
    program = tmp_path / "crow.py"
    program.write_text(crow_with_page(tmp_path)[-1])
    home = str(tmp_path / "home")
    with Window(tmp_path, "web", program=str(program), columns=200, CROW_HOME=home, XDG_RUNTIME_DIR="") as terminal:
        terminal.wait_until("#link=")

        def beside(*arguments: str) -> str:
            done = subprocess.run(
                [*warm(CROW), "web", *arguments],
                env=clean_environment(tmp_path / "home", tmp_path),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            return done.stdout

        said = beside()
        assert f"a new link is in the terminal of that crow web (process {terminal.process.pid})" in said
        assert "#link=" not in said
        terminal.wait_until("New one-time link, valid for 10 minutes: http://")
        assert "Wait a few seconds" in beside("--token")
        assert terminal.text.count("#link=") == 2
        assert "A token" not in terminal.text


# --- behind a proxy, and in a browser

BEHIND = "https://crow.example"


def test_behind_a_proxy_its_address_is_the_pages(tmp_path: Path):
    with serving(tmp_path, "--behind", BEHIND, script=DONE) as web:
        assert web.said.startswith(f"{BEHIND}/#link=")
        for host in ("crow.example", None):  # proxies pass it on or not
            assert ask(web.port, host=host).status == 200
        assert ask(web.port, host="crow.example:443").status == 421
        token = web.token()
        lines = [f"Sec-WebSocket-Protocol: acp.v1, crow.token.{token}", f"Origin: {BEHIND}"]
        assert handshake(web.port, *lines, host="crow.example").status == 101
        assert handshake(web.port, *lines).status == 101
        for origin in ("https://crow.example.evil", "http://crow.example", "https://evil.example"):
            assert handshake(web.port, lines[0], f"Origin: {origin}", host="crow.example").status == 403
        second = web.beside("--behind", BEHIND)
        assert second.stdout.startswith(f"{BEHIND}/#link=")
        assert "▄▄▄▄▄" in second.stderr, "a code for a camera"


def test_without_a_proxy_there_is_no_code(tmp_path: Path):
    with serving(tmp_path) as web:
        web.end()
        assert "▄" not in web.errors()


def test_the_browser_is_opened_with_the_link(tmp_path: Path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    with serving(tmp_path, "--open", environment={"BROWSER": str(browser)}) as web:
        eventually(opened.exists)
        assert opened.read_text().strip() == web.said


def test_where_no_browser_is_it_says_so(tmp_path: Path):
    with serving(tmp_path, "--open", environment={"PATH": str(tmp_path)}) as web:
        assert web.process.stderr is not None
        assert "Open the link yourself" in "".join(web.process.stderr.readline() for _ in range(2))


def test_the_doctor_knows_of_the_page_and_of_the_server(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:

        def doctor(program: list[str]) -> str:
            return subprocess.run(
                [*program, "doctor", "--offline"],
                env=web.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
            ).stdout

        assert f"crow web is running at {web.origin} (process {web.process.pid})" in doctor(crow_with_page(tmp_path))
        for path in (tmp_path / "built").iterdir():
            path.unlink()
        assert "The page is missing" in doctor(crow_with_page(tmp_path))
        web.end()
        assert "crow web runs" not in doctor(crow_with_page(tmp_path))
