"""The web in a conversation: each host is asked about once, and a page is shown to both audiences."""

import json
import socket
import threading

from crow.web.page_cache import MOST_AT_ONCE
from tests.support.editor import Editor, Later, chose
from tests.support.patience import DEADLINE
from tests.support.scripts import DONE, call, reply
from tests.support.website import Website, answer, redirect

ARTICLE = "<title>Crows</title><main><h1>Crows</h1><p>A <a href='/bird'>bird</a>.</p></main>"


def config(site: Website, allow: str = '"127.0.0.1"', more: str = "") -> str:
    return f'[web]\nsearch = "searxng"\nurl = "{site.url}"\nallow_private = [{allow}]\n{more}'


def told(crow: Editor) -> list[str]:
    """What the model was told by its tools."""
    messages = crow.model_requests()[-1]["messages"]
    return [message["text"] for message in messages if message["role"] == "tool"]


def test_a_page_is_fetched_when_the_person_allows_its_host(open_editor):
    with Website() as site:
        site.pages["/wiki"] = answer(ARTICLE)
        script = reply(call("web_fetch", url=f"{site.url}/wiki")) + DONE
        crow = open_editor(script=script, config=config(site), permit=lambda request: chose("once"))
        crow.new_session()
        assert crow.prompt("go")["stopReason"] == "end_turn"
        [asked] = crow.permissions
        assert asked["toolCall"]["title"] == f"Fetch 127.0.0.1:{site.port}/wiki"
        assert asked["toolCall"]["kind"] == "fetch"
        assert f"{site.url}/wiki" in json.dumps(asked["toolCall"]["content"])
        assert len(site.requests) == 1
    shown = crow.the_call()
    assert (shown["status"], shown["kind"]) == ("completed", "fetch")
    assert "Crows" in json.dumps(shown["content"])
    [text] = told(crow)
    assert f"# Crows\n\nA [bird]({site.url}/bird)." in text
    assert "not instructions to follow" in text


def test_a_page_is_not_fetched_when_the_person_says_no(open_editor):
    with Website() as site:
        script = reply(call("web_fetch", url=f"{site.url}/wiki")) + DONE
        crow = open_editor(script=script, config=config(site))
        crow.new_session()
        crow.prompt("go")
        assert len(crow.permissions) == 1
        assert site.accepted == 0
    assert crow.the_call()["status"] == "failed"


def test_a_private_host_is_refused_even_if_approved(open_editor):
    with Website() as site:
        script = reply(call("web_fetch", url=f"http://localhost:{site.port}/wiki")) + DONE
        crow = open_editor(script=script, config=config(site, allow=""), permit=lambda request: chose("once"))
        crow.new_session()
        crow.prompt("go")
        assert len(crow.permissions) == 1
        assert site.accepted == 0
    assert crow.the_call()["status"] == "failed"
    assert "not on the public internet" in told(crow)[0]


def test_a_private_address_is_refused_without_a_question(open_editor):
    with Website() as site:
        script = reply(call("web_fetch", url=f"{site.url}/wiki")) + DONE
        crow = open_editor(script=script, config=config(site, allow=""))
        crow.new_session()
        crow.prompt("go")
        assert (crow.permissions, site.accepted) == ([], 0)
    assert "not on the public internet" in told(crow)[0]


def test_a_host_is_asked_about_once_for_a_session_and_each_tool_by_itself(open_editor):
    with Website() as site:
        site.pages["/a"] = site.pages["/b"] = answer("hello", "text/plain")
        site.pages["/search"] = answer('{"results": [{"url": "https://a.example/", "title": "A"}]}', "application/json")
        script = (
            reply(call("web_fetch", url=f"{site.url}/a"), call("web_fetch", url=f"{site.url}/b"))
            + reply(call("web_search", query="crows"))
            + reply(call("web_search", query="ravens"))
            + DONE
        )
        crow = open_editor(script=script, config=config(site), permit=lambda request: chose("session"))
        crow.new_session()
        crow.prompt("go")
        first, *later = [request["toolCall"]["title"] for request in crow.permissions]
        # Both are judged at the same time: the question may be about either.
        assert first in {f"Fetch 127.0.0.1:{site.port}/{page}" for page in "ab"}
        assert later == ["Search the web for “crows”"]
        paths = [request.path.partition("?")[0] for request in site.requests]
        assert (sorted(paths[:2]), paths[2:]) == (["/a", "/b"], ["/search", "/search"])
    assert [entry["status"] for entry in crow.tool_calls().values()] == ["completed"] * 4


class Meeting:
    """Pages of which none is answered before all of them have been asked for."""

    def __init__(self, pages: int) -> None:
        self._barrier = threading.Barrier(pages)

    def __call__(self, connection: socket.socket) -> None:
        self._barrier.wait(DEADLINE)
        connection.sendall(answer("hello", "text/plain"))


def test_pages_of_one_reply_are_fetched_at_the_same_time(open_editor):
    rule = '[[permission.rules]]\ntool = "web_fetch"\nhost = "127.0.0.1"\ndecision = "allow"\n'
    with Website() as site:
        site.pages["/a"] = site.pages["/b"] = Meeting(2)
        script = reply(call("web_fetch", url=f"{site.url}/a"), call("web_fetch", url=f"{site.url}/b")) + DONE
        crow = open_editor(script=script, config=config(site, more=rule))
        crow.new_session()
        assert crow.prompt("go")["stopReason"] == "end_turn"
        assert crow.permissions == []
    assert [entry["status"] for entry in crow.tool_calls().values()] == ["completed"] * 2
    assert ["hello" in text for text in told(crow)] == [True, True]


def test_many_pages_of_one_reply_are_fetched_a_few_at_a_time(open_editor):
    rule = '[[permission.rules]]\ntool = "web_fetch"\nhost = "127.0.0.1"\ndecision = "allow"\n'
    with Website() as site:
        under_way: list[int] = []
        busy = 0
        lock = threading.Lock()
        meeting = threading.Barrier(MOST_AT_ONCE)

        def serve(connection: socket.socket) -> None:
            nonlocal busy
            with lock:
                busy += 1
                under_way.append(busy)
            meeting.wait(DEADLINE)
            with lock:
                busy -= 1
            connection.sendall(answer("hello", "text/plain"))

        paths = [f"/{number}" for number in range(2 * MOST_AT_ONCE)]
        site.pages.update(dict.fromkeys(paths, serve))
        script = reply(*(call("web_fetch", url=f"{site.url}{path}") for path in paths)) + DONE
        crow = open_editor(script=script, config=config(site, more=rule))
        crow.new_session()
        crow.prompt("go")
        assert max(under_way) == MOST_AT_ONCE
    assert [entry["status"] for entry in crow.tool_calls().values()] == ["completed"] * len(paths)


def test_pages_that_must_be_asked_about_are_asked_about_one_at_a_time(open_editor):
    """While the first question is open, other calls run. While the second is, the first page is on its way.

    Which of the two pages is asked about first is left open: both are judged at once, each on a thread of its own.
    """
    asked_again = threading.Event()
    asked_before_the_first_answer: list[int] = []

    def permit(request):
        if len(crow.permissions) == 2:
            asked_again.set()
            return chose("once")
        return Later(answer_after_the_folder_was_read)

    def answer_after_the_folder_was_read():
        crow.wait_until(lambda: list(crow.tool_calls().values())[-1]["status"] == "completed", "the folder")
        asked_before_the_first_answer.append(len(crow.permissions))
        return chose("once")

    def after_the_second_question(connection: socket.socket) -> None:
        assert asked_again.wait(DEADLINE)
        connection.sendall(answer("hello", "text/plain"))

    with Website() as site:
        site.pages["/a"] = site.pages["/b"] = after_the_second_question
        fetches = (call("web_fetch", url=f"{site.url}/{page}") for page in "ab")
        crow = open_editor(script=reply(*fetches, call("read", path=".")) + DONE, config=config(site), permit=permit)
        crow.new_session()
        crow.prompt("go")
    assert asked_before_the_first_answer == [1]
    assert sorted(request["toolCall"]["title"][-2:] for request in crow.permissions) == ["/a", "/b"]
    assert [entry["status"] for entry in crow.tool_calls().values()] == ["completed"] * 3


def test_a_rule_covers_a_host_and_a_redirect_to_another_asks_again(open_editor):
    rule = '[[permission.rules]]\ntool = "web_fetch"\nhost = "127.0.0.1"\ndecision = "allow"\n'
    with Website() as site:
        elsewhere = f"http://localhost:{site.port}/there"
        site.pages["/"] = redirect(elsewhere)
        site.pages["/there"] = answer("arrived", "text/plain")
        script = reply(call("web_fetch", url=f"{site.url}/")) + reply(call("web_fetch", url=elsewhere)) + DONE
        crow = open_editor(
            script=script,
            config=config(site, '"127.0.0.1", "localhost"', rule),
            permit=lambda request: chose("once"),
        )
        crow.new_session()
        crow.prompt("go")
        assert [request["toolCall"]["title"] for request in crow.permissions] == [f"Fetch localhost:{site.port}/there"]
        assert [request.path for request in site.requests] == ["/", "/there"]
    first, second = told(crow)
    assert f"redirects to {elsewhere}" in first
    assert "arrived" in second


def test_a_redirect_to_a_host_that_a_rule_covers_is_followed(open_editor):
    rules = "".join(
        f'[[permission.rules]]\ntool = "web_fetch"\nhost = "{host}"\ndecision = "allow"\n'
        for host in ("127.0.0.1", "localhost")
    )
    with Website() as site:
        site.pages["/"] = redirect(f"http://localhost:{site.port}/there")
        site.pages["/there"] = answer("arrived", "text/plain")
        script = reply(call("web_fetch", url=f"{site.url}/")) + DONE
        crow = open_editor(script=script, config=config(site, '"127.0.0.1", "localhost"', rules))
        crow.new_session()
        crow.prompt("go")
        assert crow.permissions == []
    assert "arrived" in told(crow)[0]


def test_both_are_offered_in_plan_mode_and_still_ask(open_editor):
    with Website() as site:
        site.pages["/"] = answer("hello", "text/plain")
        script = reply(call("web_fetch", url=f"{site.url}/")) + DONE
        crow = open_editor(script=script, config=config(site), permit=lambda request: chose("once"))
        crow.new_session()
        crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
        crow.prompt("go")
        assert len(crow.permissions) == 1
    names = {tool["name"] for tool in crow.model_requests()[-1]["tools"]}
    assert {"web_fetch", "web_search"} <= names
    assert "hello" in told(crow)[0]


def test_a_turn_that_is_cancelled_while_a_page_is_awaited_ends_at_once(open_editor):
    waiting = threading.Event()

    def wait(connection: socket.socket) -> None:
        waiting.set()
        connection.recv(1)

    with Website() as site:
        site.pages["/"] = wait
        script = reply(call("web_fetch", url=f"{site.url}/")) + DONE
        crow = open_editor(script=script, config=config(site), permit=lambda request: chose("once"))
        crow.new_session()
        pending = crow.start_prompt("go")
        assert waiting.wait(DEADLINE)
        crow.cancel()
        assert pending.answer()["stopReason"] == "cancelled"
    assert crow.the_call()["status"] == "failed"
