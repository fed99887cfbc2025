"""What a person wrote is sent once or comes back, with what goes along with it, however the sending goes wrong."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.async_api import FilePayload, Locator, WebSocketRoute

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, reply, run, say

Json = dict[str, Any]
NOTES: FilePayload = {"name": "my notes.txt", "mimeType": "text/plain", "buffer": b"some notes"}
WAITS = reply(say("I wait."), "{ wait = 600 }", when="wait")


class Wire:
    """What goes between the page and Crow: each message can be dropped, or the connection cut at it."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.sent: list[Json] = []
        self.loads = asyncio.Semaphore(0)
        """Released by each load that the page asks for."""
        self.drops: Callable[[Json], bool] = lambda message: False
        """Which of Crow's messages do not arrive, until the connection is cut."""
        self.cuts_at: list[str] = []
        """Methods at whose next request the connection is cut, before Crow gets it, in this order."""
        self.cuts_behind = ""
        """The method at whose next answer the connection is cut: Crow has done what it was asked for."""
        self.refuses: dict[str, Json] = {}
        """Methods that are answered with an error, in Crow's place."""

    async def tap(self) -> None:
        await self.visit.page.route_web_socket("**/acp", self._opened)
        await self.visit.page.reload()
        await self.visit.connected()

    async def reconnect(self) -> None:
        """Cut the connection, and wait until the page has asked for the session again."""
        while not self.loads.locked():
            await self.loads.acquire()
        self.cuts_at = ["_crow/ping"]
        await self.loads.acquire()

    def methods(self) -> list[str]:
        return [message.get("method", "") for message in self.sent]

    async def _opened(self, page: WebSocketRoute) -> None:
        crow = page.connect_to_server()
        is_cut = False

        async def from_page(text: str | bytes) -> None:
            nonlocal is_cut
            if is_cut:
                return
            message = json.loads(text)
            self.sent.append(message)
            method = message.get("method")
            if self.cuts_at and self.cuts_at[0] == method:
                self.cuts_at.pop(0)
                self.drops = lambda message: False
                is_cut = True
                await page.close()
                await crow.close()
            elif method in self.refuses:
                page.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": self.refuses[method]}))
            else:
                crow.send(text)
            if method == "session/load":
                self.loads.release()

        def from_crow(text: str | bytes) -> None:
            nonlocal is_cut
            message = json.loads(text)
            asked = [one.get("id") for one in self.sent if one.get("method") == self.cuts_behind]
            if self.cuts_behind and "method" not in message and message.get("id") in asked:
                self.cuts_behind = ""
                is_cut = True
                closing.append(asyncio.ensure_future(page.close()))
            elif not is_cut and not self.drops(message):
                page.send(text)

        closing: list[asyncio.Future[None]] = []

        page.on_message(from_page)
        crow.on_message(from_crow)


async def waiting(visit: Visit) -> None:
    """The model has its request: what is said into the turn from now on is not part of it."""
    await expect(visit.transcript).to_contain_text("I wait.")


async def stop(visit: Visit) -> None:
    await visit.page.locator(".turn-line").get_by_role("button", name="Stop").click()
    await visit.idle()


async def attach(visit: Visit) -> None:
    await visit.page.get_by_label("Files", exact=True).set_input_files([NOTES])
    await expect(attached(visit)).to_have_count(1)


def attached(visit: Visit) -> Locator:
    return visit.page.get_by_role("list", name="Attachments").get_by_role("listitem")


def test_a_message_outlives_a_load_that_is_cut_off_too(tmp_path: Path) -> None:
    """The connection goes while a message is sent, and once more while the session is loaded again."""
    script = reply(say("One."), when="first") + reply(say("Two."), when="second") + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            wire.cuts_at = ["session/prompt", "session/load"]
            await visit.say("second")
            await expect(visit.transcript.get_by_text("Two.")).to_have_count(1)
            assert wire.cuts_at == []
            await visit.idle()
            await expect(visit.messages).to_have_text(["You:first", "You:second"])

        in_browser(web, story)


def test_what_a_turn_did_not_take_in_comes_back_with_its_attachments(tmp_path: Path) -> None:
    """The same words were said before, and stay."""
    script = reply(say("One."), when="wait") + WAITS + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("wait")
            await visit.idle()
            await visit.say("wait for me")
            await waiting(visit)
            await attach(visit)
            await visit.say("wait")
            await visit.say("and then")
            await expect(visit.messages).to_have_count(4)
            await visit.composer.fill("more")
            await stop(visit)
            await expect(visit.composer).to_have_value("wait\n\nand then\n\nmore")
            await expect(attached(visit)).to_have_text([" my notes.txt"])
            await expect(visit.messages).to_have_text(["You:wait", "You:wait for me"])

        in_browser(web, story)


def test_a_message_into_a_turn_outlives_the_connection(tmp_path: Path) -> None:
    """It is shown while it waits, and comes back if the turn ends without it: on this connection or before it."""
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("wait")
            await waiting(visit)
            await attach(visit)
            await visit.say("use tabs")
            await wire.reconnect()
            await expect(visit.messages).to_have_text(["You:wait", "You:use tabs my notes.txtsome notes"])
            await stop(visit)
            await expect(visit.composer).to_have_value("use tabs")
            await expect(attached(visit)).to_have_text([" my notes.txt"])
            await expect(visit.messages).to_have_text(["You:wait"])

        in_browser(web, story)


def test_a_message_into_a_turn_that_ends_without_a_connection_comes_back(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("wait")
            await waiting(visit)
            await attach(visit)
            await visit.say("use tabs")
            # The turn is stopped, and the connection goes before anything of that has come.
            prompt = next(message["id"] for message in wire.sent if message.get("method") == "session/prompt")
            wire.drops = lambda message: message.get("method") is not None or message.get("id") == prompt
            await visit.page.locator(".turn-line").get_by_role("button", name="Stop").click()
            await wire.reconnect()
            await visit.idle()
            await expect(visit.composer).to_have_value("use tabs")
            await expect(attached(visit)).to_have_text([" my notes.txt"])
            await expect(visit.messages).to_have_text(["You:wait"])

        in_browser(web, story)


def test_a_message_into_a_turn_is_not_said_twice_if_the_connection_goes_before_the_answer(tmp_path: Path) -> None:
    """Crow shows it only once the model gets it: nobody can know before whether it arrived."""
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("wait")
            await waiting(visit)
            wire.cuts_behind = "_session/steering"
            await visit.say("use tabs")
            await expect(visit.transcript).to_contain_text("it may have been done: use tabs")
            await stop(visit)
            assert wire.methods().count("_session/steering") == 1
            assert wire.methods().count("session/prompt") == 1

        in_browser(web, story)


def test_a_message_that_a_running_turn_refuses_comes_back(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("wait")
            await waiting(visit)
            wire.refuses = {"_session/steering": {"code": -32603, "message": "The disk is full."}}
            await attach(visit)
            await visit.say("use tabs")
            await expect(visit.page.get_by_role("alert")).to_have_text("The disk is full.")
            await expect(visit.composer).to_have_value("use tabs")
            await expect(attached(visit)).to_have_count(1)
            await expect(visit.messages).to_have_text(["You:wait"])

        in_browser(web, story)


def test_a_prompt_that_is_refused_comes_back_and_nothing_is_guessed(tmp_path: Path) -> None:
    """Another client's turn runs, of which the page was not told: it says what Crow said, and no turn of its own."""
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            wire.drops = lambda message: message.get("method") in ("_crow/state", "_crow/inbox")
            await wire.tap()
            await visit.begin()
            await visit.say("hello")
            await visit.idle()
            token = await asyncio.to_thread(web.token)
            with web.connect(token) as client:

                def begin() -> None:
                    client.initialize()
                    client.load(visit.page.url.rpartition("/")[2], web.workspace)
                    client.start_prompt("wait")
                    client.wait_for(lambda message: message.get("method") == "_crow/state")

                await asyncio.to_thread(begin)
                await attach(visit)
                await visit.say("mine")
                await expect(visit.page.get_by_role("alert")).to_be_visible()
                await expect(visit.composer).to_have_value("mine")
                await expect(attached(visit)).to_have_count(1)
                await visit.idle()  # what Crow last said
                await expect(visit.messages.filter(has_text="mine")).to_have_count(0)

        in_browser(web, story)


def test_after_a_lost_connection_only_what_is_needed_is_loaded(tmp_path: Path) -> None:
    script = reply(run("true"), when="ask") + WAITS + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            ids: dict[str, str] = {}
            for words in ("ask me", "wait a while", "one", "two"):
                await visit.begin()
                await visit.say(words)
                await expect(visit.messages).to_have_text([f"You:{words}"])
                ids[visit.page.url.rpartition("/")[2]] = words
                if words in ("one", "two"):
                    await visit.idle()
            await expect(visit.page.get_by_role("button", name="question elsewhere")).to_be_visible()
            wire.sent.clear()
            wire.cuts_at = ["_crow/ping"]
            for _ in range(3):
                await wire.loads.acquire()
            await expect(visit.page.locator(".row.is-asks")).to_have_count(1)
            await visit.page.locator(".row", has_text="one").locator(".row-open").click()
            await expect(visit.messages).to_have_text(["You:one"])
            loaded = [ids[one["params"]["sessionId"]] for one in wire.sent if one.get("method") == "session/load"]
            assert sorted(loaded) == ["ask me", "one", "two", "wait a while"]
            assert loaded[-1] == "one"  # once it is looked at

        in_browser(web, story)


def test_sessions_that_are_not_looked_at_any_more_are_left(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=WAITS + DONE) as web:

        async def story(visit: Visit) -> None:
            wire = Wire(visit)
            await wire.tap()
            await visit.begin()
            await visit.say("wait for it")
            await expect(visit.page.get_by_role("button", name="Stop the turn")).to_be_visible()
            for number in range(11):
                await visit.begin()
                await visit.say(f"number {number}.")
                await visit.idle()
            left = wire.methods().count("session/close")
            assert left == 2  # the first two: all but the one that is shown, eight others, and the one that runs
            await visit.page.locator(".row", has_text="number 0.").locator(".row-open").click()
            await expect(visit.messages).to_have_text(["You:number 0."])
            await visit.page.locator(".row", has_text="wait for it").locator(".row-open").click()
            await expect(visit.page.get_by_role("button", name="Stop the turn")).to_be_visible()

        in_browser(web, story)
