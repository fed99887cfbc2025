"""Passes on an editor's messages for a session that lives in another process, and has the session taken over when that
process ends.

    editor ── crow acp: Connection, divert ──▶ Relay ──▶ OwnerLink ── socket ──▶ the owner

Requests get new ids, both ways; all else is passed on as it came. There is one link to each owner, which gets the
editor's own `initialize`, so that the owner sees the editor's capabilities as if it were connected there.

If an owner ends, whoever was attached goes on: one of them becomes the owner, the others attach to that one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

import msgspec

from crow.acp import crow_meta, wire
from crow.acp.owner_link import NobodyListens, OwnerLink, silent
from crow.acp.owner_links import OwnerLinks, SessionReleased
from crow.acp.relayed_fields import call_in, session_in, state_in, takes_notices, with_session, withdrawn_in
from crow.acp.relayed_session import AskedRequest, RelayedSession, State
from crow.errors import CrowError, SessionElsewhere
from crow.rpc import jsonrpc
from crow.rpc.connection import ANSWERED, Answered, Connection, ConnectionLost, PendingRequest
from crow.rpc.jsonrpc import Notification, Request, Response, RpcError
from crow.rpc.lines import FLOOD
from crow.session.faces.after_takeover import Seen
from crow.session.faces.faces import proof_for

logger = logging.getLogger(__name__)

Claimed = TypeVar("Claimed")

CREATE_TIMEOUT = 2.0
"""Seconds in which another process must have answered our `initialize`; else a new session is opened here."""
QUIET = 3.0
"""Seconds without a line from an owner that something is awaited of, after which it is asked for a sign."""
SIGN_TIMEOUT = 2.0
"""Seconds that it has to give one, before the person is told that it does not answer."""


class Relay:
    """The sessions of one editor that live in other processes.

    `initialize_params` are those that the editor sent. `take_over` opens a session here whose owner has ended, with
    the parameters that opened it there, shows what was missed, and gives what a turn that was cut off had not taken
    in: SessionElsewhere if another process has it. `keys` has those of sessions whose owners trust this process, by id.
    """

    def __init__(
        self,
        editor: Connection,
        initialize_params: bytes,
        take_over: Callable[[bytes, Seen], Awaitable[list[wire.LeftOverMessage]]],
        keys: MutableMapping[str, str],
    ) -> None:
        self._keys = keys
        self._editor = editor
        self._take_over = take_over
        self._sessions: dict[str, RelayedSession] = {}
        self._links = OwnerLinks(self)
        self._asked: dict[bytes, AskedRequest] = {}
        """By the editor's ids."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.initialize(initialize_params)
        editor.divert = self._divert

    def initialize(self, initialize_params: bytes) -> None:
        """What the editor says of itself counts for the owners that are connected to from now on."""
        self._links.initialize_params = initialize_params
        self._editor_takes_state = crow_meta.read_in(wire.ClientFacts, initialize_params).state
        self._editor_takes_notices = takes_notices(initialize_params)

    async def close(self) -> None:
        """Leaves every session."""
        self._is_closed = True
        self._editor.divert = None
        self._sessions.clear()
        for task in self._tasks:
            task.cancel()
        await self._links.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- attaching, and no longer

    async def attach(
        self,
        there: SessionElsewhere,
        method: str,
        params: bytes,
        pending: PendingRequest,
        claim: Callable[[], Awaitable[Claimed]],
    ) -> Claimed | Answered:
        """Opens a session where it lives, and sends the editor the answer that comes from there.

        If it no longer lives there, the result is what `claim` gives. RpcError if the process in which it lives does
        not answer: nothing is changed then.
        """
        session = RelayedSession(self._editor, session_in(msgspec.Raw(params)), params)
        self._sessions[session.id] = session
        try:
            return await self._links.find_home(lambda link: self._open(session, link, method, pending), claim, there)
        finally:
            if session.is_opening:
                session.answer_cut_off()
                self._drop(session)

    async def create(self, there: SessionElsewhere, params: bytes, pending: PendingRequest) -> bool:
        """Opens a new session in another process, and sends the editor the answer that comes from there. False if there
        is none: the process has ended, refuses, or does not answer when it is connected to. One that has taken the
        request may take its time: a session that was opened here meanwhile would be a second one."""
        deadline = asyncio.get_running_loop().time() + CREATE_TIMEOUT
        created: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(response: Response | None) -> None:
            is_there = response is not None and response.error is None
            if response is not None and is_there:
                id = session_in(response.result)
                session = self._sessions[id] = RelayedSession(self._editor, id, with_session(params, id), link)
                session.note_opened(response)
                self._editor.send(jsonrpc.write_response(pending.id, response))
            if not created.done():
                created.set_result(is_there)

        try:
            link = await self._links.link_to(there, deadline)
        except (NobodyListens, ConnectionLost, RpcError) as error:
            logger.warning("a session is opened here, not in process %s: %s", there.process, error)
            return False
        link.pass_on("session/new", msgspec.Raw(params), settle)
        try:
            return await asyncio.shield(created)
        finally:
            self._run(self._close_if_unused(link))

    async def _open(self, session: RelayedSession, link: OwnerLink, method: str, pending: PendingRequest) -> Answered:
        def began(key: bytes) -> None:
            pending.on_cancel = lambda: link.notify("$/cancel_request", {"requestId": int(key)})
            session.ask(link)
            self._pass_waiting(session)

        def answer(response: Response) -> None:
            session.attach(link)
            self._editor.send(jsonrpc.write_response(pending.id, response))
            session.answer_cut_off()
            if response.error is not None:
                self._drop(session)

        try:
            await session.open_at(link, method, self._with_proof(session, link), answer, began)
        except (SessionReleased, ConnectionLost):
            session.lose()
            pending.on_cancel = None
            raise
        return ANSWERED

    def _with_proof(self, session: RelayedSession, link: OwnerLink) -> msgspec.Raw:
        """The parameters that open it, for an owner that has trusted us with it before."""
        proof = self._proof(session, link)
        return crow_meta.added(session.params, wire.LoadFacts(proof=proof)) if proof else msgspec.Raw(session.params)

    def _proof(self, session: RelayedSession, link: OwnerLink) -> str:
        key = self._keys.get(session.id)
        return proof_for(link.process, key) if key else ""

    def _drop(self, session: RelayedSession) -> None:
        """The session does not live elsewhere, or is no longer of interest to the editor. What has waited for it is
        served here."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        link = session.link
        session.close()
        if link is not None:
            self._run(self._close_if_unused(link))
        for message in session.take_waiting():
            self._editor.serve(message)

    async def _close_if_unused(self, link: OwnerLink) -> None:
        """An owner to which nobody is attached should know it."""
        is_waited_for = any(asked.link is link for asked in self._asked.values())
        if not is_waited_for and not any(other.link is link or other.is_opening for other in self._sessions.values()):
            self._links.forget(link)
            await link.close()

    # --- what the editor sends

    def _divert(self, message: Request | Notification) -> bool:
        if isinstance(message, Notification) and message.method == "$/cancel_request":
            return self._cancel(message)
        session = self._sessions.get(session_in(message.params))
        if session is None:
            return False
        self._pass(session, message)
        return True

    def _pass(self, session: RelayedSession, message: Request | Notification) -> None:
        link = session.link
        if link is None or session.has_waiting:
            session.wait(message)
        elif isinstance(message, Notification):
            self._note_cancel(session, message)
            link.send(jsonrpc.write_notification(message.method, message.params))
            self._watch(link, session)
        elif link.unsent > FLOOD:
            session.refuse(message, silent(link.there))
        else:
            asked = self._asked[message.id] = AskedRequest(session, message, link)
            asked.key = link.pass_on(message.method, message.params, lambda response: self._answer(asked, response))
            self._watch(link, session)

    def _watch(self, link: OwnerLink, session: RelayedSession) -> None:
        """Something is awaited of the owner: whether it lives at all is looked at as long as that is so."""
        if not link.is_watched:
            link.is_watched = True
            self._run(self._look_for_signs(link, session.id))

    async def _look_for_signs(self, link: OwnerLink, session_id: str) -> None:
        is_told = False
        try:
            while not link.has_ended:
                before = link.lines_received
                await asyncio.sleep(QUIET)
                if link.lines_received == before and not link.is_paused:
                    link.pass_on("session/status", wire.SessionRequest(session_id=session_id), lambda _: None)
                    await asyncio.sleep(SIGN_TIMEOUT)
                is_silent = link.lines_received == before and not (link.is_paused or link.has_ended)
                if is_silent and not is_told:
                    self._tell_of_silence(link)
                is_told = is_silent
                if not any(asked.link is link for asked in self._asked.values()):
                    return
        finally:
            link.is_watched = False

    def _tell_of_silence(self, link: OwnerLink) -> None:
        title = f"Process {link.there.process}, in which this session lives, does not answer."
        notice = wire.Notice(severity="warning", title=title, description="End that process to go on here.")
        for session in self._sessions.values():
            if session.link is link and self._editor_takes_notices:
                told = wire.SessionNotification(session_id=session.id, update=notice)
                self._editor.notify("session/update", told)

    def _pass_waiting(self, session: RelayedSession) -> None:
        """From now on the session's messages go to its owner, first those that have waited for it."""
        for message in session.take_waiting():
            self._pass(session, message)

    def _note_cancel(self, session: RelayedSession, notification: Notification) -> None:
        if notification.method == "session/cancel":
            for asked in self._asked.values():
                if asked.session is session:
                    asked.cancels.append(notification)

    def _cancel(self, notification: Notification) -> bool:
        try:
            id = withdrawn_in(notification.params)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        asked = self._asked.get(id)
        if asked is None:
            return any(session.withdraw(id) for session in self._sessions.values())
        asked.cancels.append(notification)
        asked.link.notify("$/cancel_request", {"requestId": int(asked.key)})
        return True

    # --- what an owner answers

    def _answer(self, asked: AskedRequest, response: Response | None) -> None:
        session, request = asked.session, asked.request
        if self._asked.get(request.id) is asked:
            del self._asked[request.id]
        if response is None and (self._is_closed or not asked.is_released):
            session.cut_off(asked)
            return
        if response is None or jsonrpc.is_released(response) or jsonrpc.is_being_released(response):
            self._send_again(asked, is_released=response is not None and jsonrpc.is_released(response))
            return
        if response.error is None:
            self._note(asked, response)
        self._editor.send(jsonrpc.write_response(request.id, response))
        if session.link is None:
            self._run(self._close_if_unused(asked.link))

    def _send_again(self, asked: AskedRequest, *, is_released: bool) -> None:
        """Keeps for the next owner what the one that lets go of the session has not begun."""
        session = asked.session
        if is_released:
            self._release(asked.link, session.id)
        for message in (asked.request, *asked.cancels):
            if session.link is asked.link and message.method != "$/cancel_request":
                session.wait(message)  # until the owner says that it has let go
            elif not self._divert(message):
                self._editor.serve(message)

    def _note(self, asked: AskedRequest, response: Response) -> None:
        """What a request that was answered means for where sessions live."""
        session, request = asked.session, asked.request
        match request.method:
            case "session/close" | "session/delete":
                self._drop(session)
            case "session/load" | "session/resume":
                session.params = bytes(request.params)
                session.note_opened(response)
            case "session/fork":
                copy_id = session_in(response.result)
                params = with_session(bytes(request.params), copy_id)
                copy = self._sessions[copy_id] = RelayedSession(self._editor, copy_id, params, asked.link)
                copy.note_opened(response)
            case _:
                pass

    # --- what an owner sends

    def pass_update(self, line: bytes) -> None:
        if (told := call_in(line)) is not None and (session := self._sessions.get(told.session_id)) is not None:
            session.note_call(told)
        self._editor.send(line + b"\n")

    def take(self, link: OwnerLink, message: Request | Notification) -> None:
        if isinstance(message, Request):
            owners_id = message.id
            link.questions[owners_id] = self._editor.pass_on(
                message.method, message.params, lambda response: link.answer(owners_id, response)
            )
        elif message.method == "$/cancel_request":
            key = link.questions.pop(withdrawn_in(message.params), None)
            if key is not None:
                self._editor.withdraw(key)
        elif message.method == "_crow/state":
            told = state_in(message.params)
            if told.session_id in self._sessions:
                self._sessions[told.session_id].note_state(told)
            if self._editor_takes_state:
                self._editor.send(jsonrpc.write_notification(message.method, message.params))
        elif message.method == "_crow/trusted":
            told = msgspec.json.decode(message.params, type=wire.TrustedNotification)
            self._keys.setdefault(told.session_id, told.key)  # who owns it later may be a command
        elif message.method == "_crow/released":
            self._let_go(link, session_in(message.params))
        else:
            self._editor.send(jsonrpc.write_notification(message.method, message.params))

    def throttle(self, link: OwnerLink) -> None:
        """An editor that does not read slows down the owner, which knows what to do about it."""
        if not self._editor.has_room and not link.is_paused:
            link.is_paused = True
            link.pause()
            self._run(self._resume(link))

    async def _resume(self, link: OwnerLink) -> None:
        await self._editor.room()
        link.is_paused = False
        link.resume()

    # --- the end of an owner

    def lost(self, link: OwnerLink) -> None:
        self._links.forget(link)
        self._run(link.close())
        for key in link.questions.values():
            self._editor.withdraw(key)
        link.questions.clear()
        for session in list(self._sessions.values()):
            self._release(link, session.id)

    def _let_go(self, link: OwnerLink, session_id: str) -> None:
        """The owner says that it has let go of the session."""
        for asked in self._asked.values():
            if asked.link is link and asked.session.id == session_id:
                asked.is_released = True
        self._release(link, session_id)

    def _release(self, link: OwnerLink, session_id: str) -> None:
        """The session no longer lives where it did. One that is being opened is claimed by whoever opens it."""
        session = self._sessions.get(session_id)
        if session is not None and session.link is link:
            session.lose()
            if session.state is State.LOST:
                self._run(self._go_on(session, link.there))

    async def _go_on(self, session: RelayedSession, before: SessionElsewhere) -> None:
        """Goes on with a session whose owner has ended: here, or where somebody else has gone on with it."""

        async def take_over() -> tuple[OwnerLink | None, list[wire.LeftOverMessage]]:
            return None, await self._take_over(session.params, session.shown)

        async def resume(link: OwnerLink) -> tuple[OwnerLink | None, list[wire.LeftOverMessage]]:
            return link, await session.resume_at(link, self._proof(session, link))

        try:
            link, left_over = await self._links.find_home(resume, take_over, gone=before)
        except Exception as error:
            known = isinstance(error, CrowError | RpcError)
            logger.warning("%s could not be continued: %s", session.id, error, exc_info=None if known else error)
            why = error if known else f"an unforeseen {type(error).__name__}; the log has the details."
            session.answer_cut_off(more=f" It could not be continued here: {why}")
            self._drop(session)
            return
        session.answer_cut_off(left_over)
        if link is None:
            self._drop(session)
        else:
            session.attach(link)
            self._pass_waiting(session)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
