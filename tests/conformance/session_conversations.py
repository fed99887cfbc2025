"""Conversations about sessions, recorded for the schema's judgement.

Every method that opens, lists, copies, changes or ends a session, and each way in which it is refused; with clients
that offer nothing and with clients that offer everything. Where an error is due, the right one must come.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance import recordings
from tests.support.editor import EVERYTHING, NOTHING, Editor, Json, chose
from tests.support.scripts import call, edit, reply, run, say

CONFIG = """
context_window = 60000
price_input = 2.0
price_output = 8.0
[providers.other]
type = "scripted"
script = "script.toml"
[providers.other.models.second]
"""
"""Goes on where the editor's own configuration ends: with the model's table."""

SCRIPT = (
    "[[reply]]\nwhen = 'go on'\nrepeat = true\nevents = [{ text = 'I go on.' }]\n"
    + reply(
        *('{ thought = "Hm." }', say("I look."), call("plan", entries=[{"content": "look"}])),
        *(call("read", path="a.txt"), edit("a.txt", "one", "1"), run("echo out; exit 3")),
        "{ usage = { input_tokens = 90, output_tokens = 9 } }",
        when="work",
    )
    + reply(call("ask", question="Which?", options=["a", "b"]), when="work")
    + "[[reply]]\nwhen = 'dawdle'\nrepeat = true\nevents = [{ text = 'Once' }, { wait = 600 }]\n"
    + reply(say("I know enough."), call("leave_plan", plan="1. Mend it."), when="mend")
    + reply(edit("a.txt", "one", "2"), when="mend")
    + "[[reply]]\nrepeat = true\nevents = [{ text = 'Done.' }, { usage = { input_tokens = 99, output_tokens = 9 } }]\n"
)

NOT_FOUND, INVALID, REFUSED, LOGIN, NO_METHOD = -32002, -32602, -32600, -32000, -32601
UNKNOWN = "no such session"


class Stage:
    """One home and one project, and the processes that work there, one after the other or at once."""

    def __init__(self, folder: Path, capabilities: Json) -> None:
        self._folder = folder
        self._capabilities = capabilities
        self.editors: list[Editor] = []

    def open(self) -> Editor:
        editor = Editor(
            self._folder,
            script=SCRIPT,
            config=CONFIG,
            capabilities=self._capabilities,
            permit=lambda request: chose("once"),
            answers={"elicitation/create": lambda params: {"action": "accept", "content": {"answer": "a"}}},
        )
        (editor.workspace / "a.txt").write_text("one\n")
        self.editors.append(editor)
        return editor


def record_all(folder: Path) -> list[Path]:
    return _record_each(folder, loading, listing, copying, ending, choosing, commanding, logging_in, steering)


def record_shared(folder: Path) -> list[Path]:
    """The conversations of clients that share a session."""
    return _record_each(folder, joining)


def _record_each(folder: Path, *scenes: "Callable[[Stage], None]") -> list[Path]:
    clients = {"nothing": NOTHING, "everything": EVERYTHING}
    return [
        _record(folder / f"{scene.__name__}-{name}", capabilities, scene)
        for scene in scenes
        for name, capabilities in clients.items()
    ]


def _record(folder: Path, capabilities: Json, scene: Callable[[Stage], None]) -> Path:
    stage = Stage(folder, capabilities)
    try:
        scene(stage)
        for editor in stage.editors:
            editor.close()
    finally:
        for editor in stage.editors:
            editor.kill()
    return recordings.write(folder.with_suffix(".jsonl"), *(editor.conversation for editor in stage.editors))


def loading(stage: Stage) -> None:
    first = stage.open()
    session = first.new_session()
    other_folder = first.folder / "elsewhere"
    other_folder.mkdir()
    first.prompt("work", {"type": "resource_link", "uri": "file:///nowhere", "name": "nowhere"})
    turn = _begin_to_dawdle(first)
    first.cancel()
    turn.answer()
    first.close()

    second = stage.open()
    for method in ("session/load", "session/resume"):
        _refused(second, NOT_FOUND, method, _folder(second, UNKNOWN))
        _refused(second, INVALID, method, _folder(second, session, cwd=str(other_folder)))
        _refused(second, INVALID, method, _folder(second, session, cwd="relative"))
        _refused(second, INVALID, method, _folder(second, session, additionalDirectories=["relative"]))
    second.load_session(session)
    second.prompt("go on")
    second.load_session(session)
    turn = _begin_to_dawdle(second)
    second.load_session(session)  # which ends the turn, as nobody else is there
    assert turn.answer() == {"stopReason": "cancelled"}
    second.close()

    third = stage.open()
    third.load_session(session, method="session/resume")
    third.prompt("go on")
    empty = third.new_session()
    third.load_session(empty)


def joining(stage: Stage) -> None:
    first = stage.open()
    session = first.new_session()
    turn = _begin_to_dawdle(first)
    second, third = stage.open(), stage.open()
    second.load_session(session)
    third.load_session(session, method="session/resume")
    assert second.request("session/status", {"sessionId": session})["status"] == "open"
    _refused(second, REFUSED, "session/prompt", second.prompt_params("meanwhile"))
    assert third.steer("faster").answer()["outcome"] == "injected"
    second.cancel()
    [left] = turn.answer()["_meta"]["steering"]["leftOver"]
    assert left["text"] == "faster"
    third.prompt("work")  # and whoever is the first answers its questions
    third.request("session/close", {"sessionId": session})
    first.close()
    second.prompt("go on")
    second.request("session/close", {"sessionId": session})
    assert second.request("session/status", {"sessionId": session})["status"] == "saved"
    _refused(second, NOT_FOUND, "session/status", {"sessionId": UNKNOWN})


def listing(stage: Stage) -> None:
    crow = stage.open()
    assert crow.request("session/list") == {"sessions": []}
    for _ in range(51):
        crow.new_session()
        crow.prompt("hello")
    page = crow.request("session/list", {"cwd": str(crow.workspace)})
    rest = crow.request("session/list", {"cwd": str(crow.workspace), "cursor": page["nextCursor"]})
    assert (len(page["sessions"]), len(rest["sessions"])) == (50, 1)
    assert crow.request("session/list", {"cwd": "/"}) == {"sessions": []}
    for cursor in ("nonsense", "MTIz", page["nextCursor"][:-2]):
        _refused(crow, INVALID, "session/list", {"cursor": cursor})
    _refused(crow, INVALID, "session/list", {"cwd": "relative"})


def copying(stage: Stage) -> None:
    crow = stage.open()
    source = crow.new_session()
    crow.prompt("work")
    _refused(crow, NOT_FOUND, "session/fork", _folder(crow, UNKNOWN))
    _refused(crow, INVALID, "session/fork", _folder(crow, source, cwd="/"))
    copy = crow.request("session/fork", _folder(crow, source))["sessionId"]
    crow.prompt("in the copy", session=copy)
    turn = _begin_to_dawdle(crow)
    second = crow.request("session/fork", _folder(crow, source))["sessionId"]
    crow.cancel(source)
    assert turn.answer() == {"stopReason": "cancelled"}
    crow.load_session(second)
    crow.prompt("in the second copy")


def ending(stage: Stage) -> None:
    crow = stage.open()
    closed = crow.new_session()
    turn = _begin_to_dawdle(crow)
    crow.request("session/close", {"sessionId": closed})
    assert turn.answer() == {"stopReason": "cancelled"}
    for method, params in (
        ("session/close", {"sessionId": closed}),
        ("session/prompt", crow.prompt_params("hello")),
        ("session/close", {"sessionId": UNKNOWN}),
        ("session/prompt", crow.prompt_params("hello", session=UNKNOWN)),
    ):
        _refused(crow, NOT_FOUND, method, params)
    crow.load_session(closed)
    crow.cancel()  # there is nothing to cancel
    for session in (closed, closed, UNKNOWN):
        crow.request("session/delete", {"sessionId": session})
    for method in ("session/load", "session/resume", "session/fork"):
        _refused(crow, NOT_FOUND, method, _folder(crow, closed))
    crow.new_session()
    turn = _begin_to_dawdle(crow)
    crow.request("session/delete", {"sessionId": crow.session_id})
    assert turn.answer() == {"stopReason": "cancelled"}


def choosing(stage: Stage) -> None:
    crow = stage.open()
    session = crow.new_session()

    def mode(value: str) -> Json:
        return {"sessionId": session, "modeId": value}

    def option(id: str, value: Any) -> Json:
        return {"sessionId": session, "configId": id, "value": value}

    crow.request("session/set_mode", mode("auto"))
    crow.request("session/set_config_option", option("mode", "ask"))
    crow.request("session/set_config_option", option("model", "other/second"))
    crow.request("session/set_config_option", option("model", "scripted/test"))
    for method, params in (
        ("session/set_mode", mode("careless")),
        ("session/set_config_option", option("mode", "careless")),
        ("session/set_config_option", option("model", "no/such")),
        ("session/set_config_option", option("colour", "red")),
        ("session/set_config_option", option("mode", True)),
    ):
        _refused(crow, INVALID, method, params)
    _refused(crow, NOT_FOUND, "session/set_mode", {"sessionId": UNKNOWN, "modeId": "ask"})
    _refused(crow, NOT_FOUND, "session/set_config_option", {"sessionId": UNKNOWN, "configId": "mode", "value": "ask"})

    crow.prompt("/plan mend a.txt")  # and the plan is agreed to
    turn = _begin_to_dawdle(crow)
    crow.request("session/set_mode", mode("edit"))
    crow.request("session/set_config_option", option("model", "other/second"))
    crow.cancel()
    turn.answer()
    crow.load_session(session)


def commanding(stage: Stage) -> None:
    crow = stage.open()
    session = crow.new_session()
    crow.prompt("work")
    for command in ("/help", "/mode", "/model", "/permissions", "/permissions explain ls", "/context", "/mcp"):
        crow.prompt(command)
    crow.prompt("A long story. " * 400)
    crow.prompt("And more.")
    crow.prompt("/compact the colours")
    crow.prompt("/undo")
    crow.prompt("/mode edit")
    crow.prompt("/model other/second")
    crow.prompt("/export conversation.md")
    crow.prompt("/unheard of")
    crow.prompt("/clear")
    own = crow.home / "commands"
    own.mkdir()
    (own / "review.md").write_text("---\ndescription: Reviews\nargument-hint: BRANCH\n---\nReview $1.\n")
    crow.prompt("/help")
    crow.prompt("/review main")
    crow.load_session(session)


def logging_in(stage: Stage) -> None:
    crow = stage.open()
    session = crow.new_session()
    crow.prompt("hello")
    _refused(crow, INVALID, "authenticate", {"methodId": "no-such-method"})
    crow.request("logout")
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        _refused(crow, LOGIN, method, _folder(crow, session))
    crow.request("authenticate", {"methodId": "crow-configured"})
    crow.load_session(session)
    _refused(crow, NO_METHOD, "_example.com/ping", {"sessionId": session})
    crow.notify("_example.com/told", {"sessionId": session})
    turn = _begin_to_dawdle(crow)
    crow.notify("$/cancel_request", {"requestId": turn.id})
    assert turn.answer() == {"stopReason": "cancelled"}


def steering(stage: Stage) -> None:
    crow = stage.open()
    crow.new_session()
    _refused(crow, INVALID, "_session/steering", {"sessionId": crow.session_id, "prompt": []})
    assert crow.steer("too early").answer()["outcome"] == "promptRequired"
    turn = _begin_to_dawdle(crow)
    assert crow.steer("faster").answer()["outcome"] == "injected"
    crow.cancel()
    [left] = turn.answer()["_meta"]["steering"]["leftOver"]
    assert left["text"] == "faster"


def _folder(crow: Editor, session: str, **more: Any) -> Json:
    return {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": [], **more}


def _refused(crow: Editor, code: int, method: str, params: Json) -> None:
    error = crow.start(method, params).error()
    assert error.code == code, f"{method} {params}: {error}"


def _begin_to_dawdle(crow: Editor) -> Any:
    """A turn that would last for minutes; it has begun to speak."""
    before = crow.text()
    turn = crow.start_prompt("dawdle")
    crow.wait_until(lambda: crow.text()[len(before) :].endswith("Once"), "the text")
    return turn
