"""The event loop is never held: whatever a file, a server, a page, a model or a client sends, everyone else goes on.

For each hostile input the longest gap of a heartbeat on the loop of a real process is measured, in seconds of the
processor, and the memory that it took.
"""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.editor import NOTHING, RAW_OUTPUT, TERMINAL, Editor, chose
from tests.support.heartbeat import Heartbeat, slowness
from tests.support.provider import Provider
from tests.support.scripts import DONE, call, edit, reply, run, say
from tests.support.website import Website, answer

MB = 1_000_000
LONGEST = 0.05
"""Seconds of the processor that the loop may be held."""
PER_MESSAGE = 0.015
"""The same, for each megabyte of a single JSON message: it cannot be decoded in pieces."""
SLACK = 12 * MB
"""Bytes that do not depend on the input: what is loaded with the first use of a tool, what the system keeps back."""
CHANGE = 7
"""How many times its size a changed file may take: before and after, each as a text and as bytes, and what is replaced
once or twice more, in the pieces in which it is stored. Measured: 6 to 7."""
DEADLINE = 600.0

SERVER = """
import json, sys
warm = False
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "huge", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}]}
        case "tools/call" if not warm:
            warm = True
            result = {"content": [{"type": "text", "text": "warm"}]}
        case "tools/call":
            kind, size = sys.argv[1], int(sys.argv[2])
            if kind == "text":
                result = {"content": [{"type": "text", "text": "line of text\\n" * (size // 14)}]}
            elif kind == "pieces":
                result = {"content": [{"type": "text", "text": "x"}] * (size // 31)}
            elif kind == "empty pieces":
                result = {"content": [{}] * (size // 4)}
            elif kind == "empty rows":
                result = {"content": [], "structuredContent": {"rows": [[]] * (size // 4)}}
            else:
                result = {"content": [], "structuredContent": {"rows": [[n, str(n)] for n in range(size // 21)]}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""


CALL_SERVER_TWICE = (reply(call("mcp__huge__go")) + reply(say("Called."))) * 2 + DONE
"""The library that talks to servers is loaded with the first call."""


class Hostile(NamedTuple):
    """One input: what prepares it, what is measured, how large it is, and what came of it."""

    size: int
    outcome: Callable[[Editor], None]
    """Fails unless the input was gone through: what is refused at once holds up nobody, and shows nothing."""
    script: str = DONE
    prepare: Callable[[Editor], None] = lambda crow: None
    act: Callable[[Editor], Any] = lambda crow: crow.start_prompt("go").answer(DEADLINE)
    message: int = 0
    """Bytes of a single JSON message in it."""
    servers: Callable[[Editor], list[Any]] = lambda crow: []
    warm_up: Callable[[Editor], Any] = lambda crow: crow.start_prompt("/help").answer(DEADLINE)
    """What loads the libraries that this needs: that takes long once, and is not what is measured here."""
    config: str = ""
    """Settings of the model."""
    capabilities: dict[str, Any] = NOTHING
    times: float = 4
    """How many times its own size an input may take in memory."""


def go(crow: Editor) -> Any:
    return crow.start_prompt("go").answer(DEADLINE)


def called(status: str, *told: str) -> Callable[[Editor], None]:
    """The last call of the script ended so, and the model was told this of it."""

    def outcome(crow: Editor) -> None:
        *_, last = crow.tool_calls().values()
        assert last["status"] == status, last
        *_, result = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
        for words in told:
            assert words in result["text"], result["text"][:1000]

    return outcome


def changed(name: str, old: bytes, new: bytes, places: int = 1) -> Callable[[Editor], None]:
    """A file has the new text in as many places, and the old one nowhere."""

    def outcome(crow: Editor) -> None:
        called("completed")(crow)
        content = (crow.workspace / name).read_bytes()
        assert (content.count(new), content.count(old)) == (places, 0)

    return outcome


def prompted(size: int) -> Callable[[Editor], None]:
    """The model was sent a prompt of at least so many characters."""

    def outcome(crow: Editor) -> None:
        assert sum(len(part.get("text", "")) for part in crow.last_prompt()) >= size
        assert crow.text().endswith("Done.")

    return outcome


def too_long(crow: Editor) -> None:
    assert "What takes most is a message of yours" in crow.text()
    assert not crow.model_requests()


def instructed(crow: Editor) -> None:
    assert "short line\nshort line\n" in crow.model_requests()[-1]["system"]


def refused_line(crow: Editor) -> None:
    [error] = [message["error"] for message in crow.received if message.get("id") == 4711]
    assert error["code"] == -32601


def loaded(crow: Editor) -> None:
    said = [update for update in crow.updates if update["sessionUpdate"] == "user_message_chunk"]
    assert sum(len(update["content"]["text"]) for update in said) >= 20 * 200_000


def fetched(crow: Editor) -> None:
    small, large = crow.tool_calls().values()
    assert (small["status"], large["status"]) == ("completed", "completed")


def numbered_words(size: int) -> str:
    """No passage comes twice: a reply that repeats itself would be stopped."""
    return "".join(f"{number:09} " for number in range(size // 10))


def replied(size: int) -> Callable[[Editor], None]:
    def outcome(crow: Editor) -> None:
        assert crow.text() == "Hello." + numbered_words(size)

    return outcome


def file(name: str, content: bytes) -> Callable[[Editor], None]:
    def write(crow: Editor) -> None:
        (crow.workspace / name).write_bytes(content)

    return write


def short_lines(size: int) -> bytes:
    return b"short line\n" * (size // 11)


@functools.cache
def numbered_lines(size: int) -> bytes:
    return b"".join(b"line %d of a text\n" % number for number in range(size // 22))


def prompt_of(size: int) -> Callable[[Editor], Any]:
    return lambda crow: crow.start_prompt("word " * (size // 5)).answer(DEADLINE)


def prompt_of_blocks(number: int) -> Callable[[Editor], Any]:
    return lambda crow: crow.start_prompt(*["word "] * number).answer(DEADLINE)


def attachment(size: int) -> Callable[[Editor], Any]:
    block = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "short\n" * (size // 6)}}
    return lambda crow: crow.start_prompt("look", block).answer(DEADLINE)


def printed(unit: str, size: int = 10 * MB) -> str:
    """A command that prints so many bytes of lines."""
    return f"yes \"$(printf '{unit}')\" | head -c {size}"


def no_request(size: int) -> Callable[[Editor], Any]:
    """A line of JSON that is none of the protocol's."""

    def act(crow: Editor) -> None:
        pending = crow.expect("unheard/of", 4711)
        rows = ",".join(["[1,2,3]"] * (size // 8))
        crow.send_bytes(b'{"jsonrpc":"2.0","id":4711,"method":"unheard/of","params":{"a":[' + rows.encode() + b"]}}\n")
        pending.error()

    return act


def server(kind: str, size: int) -> Callable[[Editor], list[Any]]:
    def servers(crow: Editor) -> list[Any]:
        path = crow.folder / "server.py"
        path.write_text(SERVER)
        return [{"name": "huge", "command": sys.executable, "args": [str(path), kind, str(size)], "env": []}]

    return servers


def load_again(crow: Editor) -> None:
    session = crow.session_id
    crow.request("session/close", {"sessionId": session})
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    crow.start("session/load", params).answer(DEADLINE)


def many_rounds(crow: Editor) -> None:
    for _ in range(20):
        crow.start_prompt("word " * 40_000).answer(DEADLINE)


MANY_MEMBERS = {"path": "a.txt"} | {f"name {number}": number for number in range(150_000)}

TABLE: dict[str, Hostile] = {
    "a file of 60 MB of short lines": Hostile(
        60 * MB,
        called("completed", "1\tshort line\n", "2000\tshort line\n"),
        reply(call("read", path="a.txt")) + DONE,
        file("a.txt", short_lines(60 * MB)),
    ),
    "the end of a file of 60 MB": Hostile(
        60 * MB,
        called("completed", "5000000\tshort line\n"),
        reply(call("read", path="a.txt", offset=5_000_000)) + DONE,
        file("a.txt", short_lines(60 * MB)),
    ),
    "a file of 60 MB in one line": Hostile(
        60 * MB,
        called("completed", "1\txxxx", "line of 60000000 characters, cut"),
        reply(call("read", path="a.txt")) + DONE,
        file("a.txt", b"x" * (60 * MB)),
    ),
    "an edit of a file of 14 MB": Hostile(
        14 * MB,
        changed("a.txt", b"line 300000 of a text", b"changed"),
        reply(edit("a.txt", "line 300000 of a text", "changed")) + DONE,
        file("a.txt", numbered_lines(14 * MB)),
        times=CHANGE,
    ),
    "an edit of 14 MB that matches nowhere": Hostile(
        14 * MB,
        called("failed", "its old text is not in the file"),
        reply(edit("a.txt", "line of\nanother text\n", "changed")) + DONE,
        file("a.txt", numbered_lines(14 * MB)),
    ),
    "an edit of 6,000 places": Hostile(
        14 * MB,
        changed("a.txt", b"99 of a", b"changed", places=6363),
        reply(call("edit", path="a.txt", edits=[{"old": "99 of a", "new": "changed", "all": True}])) + DONE,
        file("a.txt", numbered_lines(14 * MB)),
        times=CHANGE,
        message=3 * MB,  # the question shows every place: 6,363 hunks of 430 bytes
    ),
    "a new text for a file of 8 MB": Hostile(
        8 * MB,
        changed("a.txt", b"x\nx", b"of a text\nx\n"),
        reply(call("write", path="a.txt", content="x\n", append=True)) + DONE,
        file("a.txt", numbered_lines(8 * MB)),
        times=CHANGE,
    ),
    "a server's message of 30 MB": Hostile(
        30 * MB,
        called("completed", "line of text\nline of text\n"),
        CALL_SERVER_TWICE,
        message=30 * MB,
        servers=server("text", 30 * MB),
        warm_up=go,
    ),
    "a server's message of a million pieces": Hostile(
        30 * MB,
        called("completed", "(there are more than 1,000 pieces of content: the others are left out)"),
        CALL_SERVER_TWICE,
        message=30 * MB,
        servers=server("pieces", 30 * MB),
        warm_up=go,
    ),
    "a server's message of a million empty pieces": Hostile(
        4 * MB,
        called("failed", "its answer holds too many values"),
        CALL_SERVER_TWICE,
        message=4 * MB,
        servers=server("empty pieces", 4 * MB),
        warm_up=go,
    ),
    "a server's table of 30 MB": Hostile(
        30 * MB,
        called("failed", "its answer holds too many values"),
        CALL_SERVER_TWICE,
        message=30 * MB,
        servers=server("table", 30 * MB),
        warm_up=go,
    ),
    "a server's table of a million empty rows": Hostile(
        4 * MB,
        called("failed", "its answer holds too many values"),
        CALL_SERVER_TWICE,
        message=4 * MB,
        servers=server("empty rows", 4 * MB),
        warm_up=go,
    ),
    "10 MB of a command's escapes": Hostile(
        10 * MB, called("completed", "red", "left out here"), reply(run(printed(r"\033[31mred\r\b"))) + DONE
    ),
    "10 MB of a command's characters taken back": Hostile(
        10 * MB, called("completed", "left out here"), reply(run(printed(r"ab\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b"))) + DONE
    ),
    "10 MB of a command's controls": Hostile(
        10 * MB, called("completed", "left out here"), reply(run(printed(r"\001\002\r"))) + DONE
    ),
    "60 MB of a command's lines": Hostile(
        60 * MB,
        called("completed", "short line\n", "left out here"),
        reply(run(printed("short line", 60 * MB))) + DONE,
    ),
    "60 MB of a command's lines, shown in a terminal": Hostile(
        60 * MB,
        called("completed", "short line\n", "left out here"),
        reply(run(printed("short line", 60 * MB))) + DONE,
        capabilities=RAW_OUTPUT,
    ),
    "10 MB of a command's cursor movements, shown in a terminal": Hostile(
        10 * MB,
        called("completed", "left out here"),
        reply(run(printed(r"\033[2Jx\033[40;100Hy\033[1K\033[A"))) + DONE,
        capabilities=RAW_OUTPUT,
    ),
    "10 MB of escapes in the client's terminal": Hostile(
        10 * MB,
        called("completed", "red", "left out by the terminal"),
        reply(run(printed(r"\033[31mred\r\b"))) + DONE,
        capabilities=TERMINAL,
        message=4 * MB,  # what a client is asked to keep
    ),
    "10 MB of controls in the client's terminal": Hostile(
        10 * MB,
        called("completed", "left out by the terminal"),
        reply(run(printed(r"x\001\b\r"))) + DONE,
        capabilities=TERMINAL,
        message=4 * MB,
    ),
    "a search with a million matches": Hostile(
        10 * MB,
        called("completed", "a.txt", "short line"),
        reply(call("search", pattern="short")) + DONE,
        file("a.txt", short_lines(10 * MB)),
    ),
    "a search that counts a million matches": Hostile(
        10 * MB,
        called("completed", "909090"),
        reply(call("search", pattern="short", mode="count")) + DONE,
        file("a.txt", short_lines(10 * MB)),
    ),
    "instructions of 30 MB": Hostile(30 * MB, instructed, DONE, file("AGENTS.md", short_lines(30 * MB))),
    "a prompt of 20 MB": Hostile(
        20 * MB,
        prompted(20 * MB),
        act=prompt_of(20 * MB),
        message=20 * MB,
        config="context_window = 20_000_000",
    ),
    "a prompt of 20 MB that is too long for the model": Hostile(
        20 * MB, too_long, act=prompt_of(20 * MB), message=20 * MB
    ),
    "a prompt of 300,000 blocks": Hostile(
        10 * MB,
        prompted(1_500_000),
        act=prompt_of_blocks(300_000),
        message=10 * MB,
        config="context_window = 20_000_000",
        times=6,  # each is an object for a moment, which is three times as large as what was sent
    ),
    "a prompt of 60 MB beyond ASCII": Hostile(
        60 * MB,
        prompted(50 * MB),
        act=lambda crow: crow.start_prompt("wörd " * (10 * MB)).answer(DEADLINE),
        message=60 * MB,
        config="context_window = 200_000_000",
    ),
    **{
        f"arguments of very many {what} in {pieces} pieces": Hostile(
            len(written) + 1,
            called("failed", "more than 20,000 values are in it"),
            reply(say("Hello.")) + reply(call(tool, pieces=pieces, **arguments)) + DONE,
            message=len(written),
            warm_up=go,
            times=20,
        )
        for pieces, what, tool, arguments in (
            (20_000, "members", "read", MANY_MEMBERS),
            (1, "members", "read", MANY_MEMBERS),
            (1, "lists", "read", {"path": "a.txt", "more": [[[]]] * 150_000}),
            (1, "edits", "edit", {"path": "a.txt", "edits": [{"old": f"a{n}", "new": "b"} for n in range(50_000)]}),
        )
        if (written := json.dumps(arguments))
    },
    "an attachment of 20 MB": Hostile(20 * MB, prompted(250_000), act=attachment(20 * MB), message=20 * MB),
    "a client's line of 30 MB": Hostile(30 * MB, refused_line, act=no_request(30 * MB), message=30 * MB),
    "a large session that is loaded": Hostile(8 * MB, loaded, act=load_again),
}


@contextmanager
def hostile(open_editor: Callable[..., Editor], folder: Path, case: Hostile, **more: Any) -> Iterator[Heartbeat]:
    folder.mkdir(exist_ok=True)
    heart = Heartbeat(folder)
    more = {"script": case.script, "config": case.config, "capabilities": case.capabilities} | more
    crow = open_editor(environment=heart.environment, permit=lambda request: chose("once"), **more)
    case.prepare(crow)
    crow.new_session(mcpServers=case.servers(crow))
    if case.act is load_again:
        many_rounds(crow)
    case.warm_up(crow)
    heart.begin(crow)
    case.act(crow)
    yield heart
    gap, memory = heart.longest_gap(), heart.memory_used(crow)
    case.outcome(crow)
    print(f"{gap * 1000:.0f} ms, {memory / case.size:.1f} x the input ({memory / MB:.0f} MB)")
    most = (LONGEST + PER_MESSAGE * case.message / MB) * slowness()
    assert gap <= most, f"the loop was held for {gap * 1000:.0f} ms, and {most * 1000:.0f} ms are the most"
    assert memory <= case.times * case.size + SLACK, f"{memory / MB:.0f} MB for {case.size / MB:.0f} MB"


SLOW = (
    "a server's table of 30 MB",
    "a server's message of a million pieces",
    "an edit of 6,000 places",
    "a prompt of 60 MB beyond ASCII",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in TABLE]
)
def test_the_loop_is_not_held(open_editor, tmp_path, name):
    with hostile(open_editor, tmp_path / "heart", TABLE[name]):
        pass


def test_a_page_of_control_characters(open_editor, tmp_path):
    with Website() as site:
        site.pages["/small"] = answer("hello", "text/plain")
        site.pages["/page"] = answer("\x01" * (8 * MB), "text/plain")
        fetches = [reply(call("web_fetch", url=f"{site.url}/{page}")) for page in ("small", "page")]
        case = Hostile(8 * MB, fetched, fetches[0] + reply(say("Done.")) + fetches[1] + DONE, warm_up=go)
        with hostile(open_editor, tmp_path / "heart", case, config='[web]\nallow_private = ["127.0.0.1"]'):
            pass


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


@pytest.mark.parametrize("pieces", [1, 10_000])
def test_a_large_reply(open_editor, tmp_path, pieces):
    size = 3 * MB
    with Provider() as provider:
        end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        provider.openai.send(event("Hello.") + end)
        words, piece = numbered_words(size), size // pieces
        provider.openai.send(b"".join(event(words[start : start + piece]) for start in range(0, size, piece)) + end)
        case = Hostile(size, replied(size), message=size if pieces == 1 else 0, warm_up=go)
        with hostile(open_editor, tmp_path / "heart", case, script=None, base_url=provider.openai.settings().base_url):
            pass
