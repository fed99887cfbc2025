"""Passes on an editor's messages for a session that lives in another process, and has the session taken over when that
process ends.

    editor ── crow acp: Connection, divert ──▶ Relay ──▶ OwnerLink ── socket ──▶ the owner

Requests get new ids, both ways; all else is passed on as it came. There is one link to each owner, which gets the
editor's own `initialize`, so that the owner sees the editor's capabilities as if it were connected there.

If an owner ends, whoever was attached goes on: one of them becomes the owner, the others attach to that one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from crow.acp import crow_meta, jsonrpc, wire
from crow.acp.attached_session import (
    AttachedSession,
    call_in,
    is_being_released,
    is_released,
    left_over_in,
    seen_in,
    session_in,
    state_in,
    with_session,
    withdrawn_in,
)
from crow.acp.connection import ANSWERED, Answered, Connection, ConnectionLost, PendingRequest
from crow.acp.jsonrpc import ErrorCode, Notification, Request, Response, RpcError
from crow.acp.owner_link import TRY_AGAIN, NobodyListens, OwnerLink, connect, silent
from crow.errors import CrowError, SessionElsewhere
from crow.lines import FLOOD
from crow.session.faces.after_takeover import Seen

logger = logging.getLogger(__name__)

Claimed = TypeVar("Claimed")

ANSWER_TIMEOUT = 5.0
"""Seconds that an owner gets to answer the greeting; also how long one that has just ended is looked after."""
MOST_WAITING = 1000
"""Messages that are kept for a session while it is being attached."""


class _Released(Exception):
    """The session no longer lives in that process."""


class _Asked:
    """A request of the editor's that an owner has not answered yet."""

    def __init__(self, session: AttachedSession, request: Request, link: OwnerLink) -> None:
        self.session = session
        self.request = request
        self.link = link
        self.key = b""
        """Its id at the owner."""
        self.cancels: list[Notification] = []
        """The editor's cancels that came after it: they go with it, should it have to be sent once more."""
        self.is_released = False
        """The owner has let go of the session since. A turn that it had begun would have been answered before that."""


class Relay:
    """The sessions of one editor that live in other processes.

    `greeting` is the parameters of the editor's `initialize`. `take_over` opens a session here whose owner has ended,
    with the parameters that opened it there, shows what was missed, and gives what a turn that was cut off had not
    taken in: SessionElsewhere if another process has it.
    """

    def __init__(
        self,
        editor: Connection,
        greeting: bytes,
        take_over: Callable[[bytes, Seen], Awaitable[list[wire.LeftOverMessage]]],
    ) -> None:
        self.initialize(greeting)
        self._editor = editor
        self._take_over = take_over
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[str, AttachedSession] = {}
        self._links: dict[str, asyncio.Task[OwnerLink]] = {}
        """By the owners' tokens."""
        self._asked: dict[bytes, _Asked] = {}
        """By the editor's ids."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        editor.divert = self._divert

    def initialize(self, greeting: bytes) -> None:
        """What the editor says of itself counts for the owners that are connected to from now on."""
        self._greeting = greeting
        self._editor_takes_state = crow_meta.read_in(wire.ClientFacts, greeting).state

    async def close(self) -> None:
        """Leaves every session."""
        self._is_closed = True
        self._editor.divert = None
        self._sessions.clear()
        links, self._links = list(self._links.values()), {}
        for task in (*self._tasks, *links):
            task.cancel()
        made = await asyncio.gather(*links, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in made if isinstance(link, OwnerLink)))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- attaching

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
        deadline = self._loop.time() + ANSWER_TIMEOUT
        session = AttachedSession(session_in(msgspec.Raw(params)), params)
        self._sessions[session.id] = session
        try:
            while True:
                try:
                    await self._open(session, await self._link_to(there, deadline), method, pending)
                except (NobodyListens, _Released, ConnectionLost):
                    if self._loop.time() > deadline:
                        raise silent(there) from None
                else:
                    return ANSWERED
                session.link = pending.on_cancel = None
                await asyncio.sleep(TRY_AGAIN)
                try:
                    return await claim()
                except SessionElsewhere as elsewhere:
                    there = elsewhere
        finally:
            if session.is_opening:
                self._drop(session)
                self._serve_here(session)

    async def _open(self, session: AttachedSession, link: OwnerLink, method: str, pending: PendingRequest) -> None:
        def answer(response: Response) -> None:
            session.is_opening = False
            if response.error is not None:
                self._drop(session)
            self._editor.send(jsonrpc.write_response(pending.id, response))

        def began(key: bytes) -> None:
            pending.on_cancel = lambda: link.notify("$/cancel_request", {"requestId": int(key)})
            self._bind(session, link)

        await self._ask_to_open(session, link, method, msgspec.Raw(session.params), answer, began)

    async def _ask_to_open(
        self,
        session: AttachedSession,
        link: OwnerLink,
        method: str,
        params: msgspec.Raw,
        answer: Callable[[Response], None],
        began: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """Opens a session at its owner. `answer` is called before anything that comes after the answer is passed on.
        _Released if the session no longer lives there, ConnectionLost if its owner does not."""
        if link.has_ended:
            raise ConnectionLost
        answered: asyncio.Future[None] = self._loop.create_future()

        def settle(response: Response | None) -> None:
            if answered.done():
                return
            if response is None or is_released(response):
                answered.set_exception(_Released())
                return
            if response.error is None:
                session.seen = seen_in(response)
            answer(response)
            answered.set_result(None)

        began(link.pass_on(method, params, settle))
        await answered

    def _bind(self, session: AttachedSession, link: OwnerLink) -> None:
        """From now on the session's messages go through the link, first those that have waited for it."""
        session.link = link
        waiting, session.waiting = session.waiting, []
        for message in waiting:
            self._pass(session, message)

    def _drop(self, session: AttachedSession) -> None:
        """The session does not live elsewhere, or is no longer of interest to the editor."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        link, session.link = session.link, None
        if link is not None:
            self._run(self._close_if_unused(link))

    async def _close_if_unused(self, link: OwnerLink) -> None:
        """An owner to which nobody is attached should know it."""
        is_waited_for = any(asked.link is link for asked in self._asked.values())
        if not is_waited_for and not any(other.link is link or other.is_opening for other in self._sessions.values()):
            self._links.pop(link.there.owner, None)
            await link.close()

    def _serve_here(self, session: AttachedSession) -> None:
        waiting, session.waiting = session.waiting, []
        for message in waiting:
            self._editor.serve(message)

    # --- what the editor sends

    def _divert(self, message: Request | Notification) -> bool:
        if isinstance(message, Notification) and message.method == "$/cancel_request":
            return self._cancel(message)
        session = self._sessions.get(session_in(message.params))
        if session is None:
            return False
        self._pass(session, message)
        return True

    def _pass(self, session: AttachedSession, message: Request | Notification) -> None:
        link = session.link
        if link is None or session.waiting:
            self._wait(session, message)
        elif isinstance(message, Notification):
            self._note_cancel(session, message)
            link.send(jsonrpc.write_notification(message.method, message.params))
        elif link.unsent > FLOOD:
            self._refuse(message, silent(link.there))
        else:
            asked = self._asked[message.id] = _Asked(session, message, link)
            asked.key = link.pass_on(message.method, message.params, lambda response: self._answer(asked, response))

    def _note_cancel(self, session: AttachedSession, notification: Notification) -> None:
        if notification.method == "session/cancel":
            for asked in self._asked.values():
                if asked.session is session:
                    asked.cancels.append(notification)

    def _wait(self, session: AttachedSession, message: Request | Notification) -> None:
        if len(session.waiting) < MOST_WAITING:
            session.waiting.append(message)
        elif isinstance(message, Request):
            self._refuse(message, jsonrpc.being_loaded())

    def _answer(self, asked: _Asked, response: Response | None) -> None:
        session, request = asked.session, asked.request
        if self._asked.get(request.id) is asked:
            del self._asked[request.id]
        if response is None and (self._is_closed or not asked.is_released):
            session.cut_off.append(request)
            return
        if response is None or is_released(response) or is_being_released(response):
            self._send_again(asked, is_released=response is not None and is_released(response))
            return
        if response.error is None:
            self._note(session, request, response)
        self._editor.send(jsonrpc.write_response(request.id, response))
        if session.link is None:
            self._run(self._close_if_unused(asked.link))

    def _send_again(self, asked: _Asked, *, is_released: bool) -> None:
        """Keeps for the next owner what the one that lets go of the session has not begun."""
        session = asked.session
        if is_released:
            self._release(asked.link, session.id)
        for message in (asked.request, *asked.cancels):
            if session.link is asked.link and message.method != "$/cancel_request":
                self._wait(session, message)  # until the owner says that it has let go
            elif not self._divert(message):
                self._editor.serve(message)

    def _note(self, session: AttachedSession, request: Request, response: Response) -> None:
        """What a request that was answered means for where sessions live."""
        match request.method:
            case "session/close" | "session/delete":
                self._drop(session)
                self._serve_here(session)
            case "session/load" | "session/resume":
                session.params = bytes(request.params)
                session.seen = seen_in(response)
            case "session/fork":
                copy = AttachedSession(session_in(response.result), bytes(request.params))
                copy.link, copy.is_opening = session.link, False
                copy.params, copy.seen = with_session(copy.params, copy.id), seen_in(response)
                self._sessions[copy.id] = copy
            case _:
                pass

    def _cancel(self, notification: Notification) -> bool:
        try:
            id = withdrawn_in(notification.params)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        asked = self._asked.get(id)
        if asked is not None:
            asked.cancels.append(notification)
            asked.link.notify("$/cancel_request", {"requestId": int(asked.key)})
            return True
        for session in self._sessions.values():
            for message in session.waiting:
                if isinstance(message, Request) and message.id == id:
                    session.waiting.remove(message)
                    self._refuse(message, RpcError(ErrorCode.REQUEST_CANCELLED, "Request cancelled"))
                    return True
        return False

    def _refuse(self, request: Request, error: RpcError) -> None:
        self._editor.send(jsonrpc.write_error(request.id, error))

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
        self._links.pop(link.there.owner, None)
        self._run(link.close())
        for key in link.questions.values():
            self._editor.withdraw(key)
        link.questions.clear()
        for session in list(self._sessions.values()):
            if session.link is link:
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
            session.link = None
            self._end_calls(session)
            if not session.is_opening:
                self._run(self._go_on(session, link.there))

    def _end_calls(self, session: AttachedSession) -> None:
        """Of a call that had only begun nothing may be stored: nobody else would tell of its end."""
        for call_id in session.open_calls:
            update = wire.ToolCallUpdate(tool_call_id=call_id, status="failed")
            self._editor.notify("session/update", wire.SessionNotification(session_id=session.id, update=update))
        session.open_calls.clear()

    async def _go_on(self, session: AttachedSession, before: SessionElsewhere) -> None:
        """Goes on with a session whose owner has ended: here, or where somebody else has gone on with it."""
        try:
            link = await self._next_owner(session, before)
        except Exception as error:
            known = isinstance(error, CrowError | RpcError)
            logger.warning("%s could not be continued: %s", session.id, error, exc_info=None if known else error)
            why = error if known else f"an unforeseen {type(error).__name__}; the log has the details."
            self._answer_cut_off(session, before, f" It could not be continued here: {why}")
            self._drop(session)
            self._serve_here(session)
            return
        self._answer_cut_off(session, before)
        if link is None:
            self._drop(session)
            self._serve_here(session)
        else:
            self._bind(session, link)

    async def _next_owner(self, session: AttachedSession, before: SessionElsewhere) -> OwnerLink | None:
        """The link to the new owner; None if that is this process."""
        deadline = self._loop.time() + ANSWER_TIMEOUT
        while True:
            there = before
            try:
                session.left_over = await self._take_over(session.params, session.seen)
            except SessionElsewhere as elsewhere:
                there = elsewhere
            else:
                return None
            try:
                # Of a process that has just ended the lock is free a moment later than its socket.
                if there.owner != before.owner:
                    link = await self._link_to(there, deadline)
                    await self._resume_at(session, link)
                    if not link.has_ended:
                        return link
            except (ConnectionLost, NobodyListens, _Released):
                pass
            if self._loop.time() > deadline:
                raise silent(there)
            await asyncio.sleep(TRY_AGAIN)

    async def _resume_at(self, session: AttachedSession, link: OwnerLink) -> None:
        """Attaches to the new owner of a session, which shows what the editor has missed. RpcError if it refuses."""
        answers: list[Response] = []
        facts = wire.LoadFacts(seen=wire.SeenTurn(turn=session.seen.turn, ended=session.seen.ended))
        params = crow_meta.added(session.params, facts)
        await self._ask_to_open(session, link, "session/resume", params, answers.append)
        if (error := answers[0].error) is not None:
            raise RpcError(error.code, error.message, error.data)
        session.left_over = left_over_in(answers[0])

    def _answer_cut_off(self, session: AttachedSession, before: SessionElsewhere, more: str = "") -> None:
        cut_off, session.cut_off = session.cut_off, []
        left_over, session.left_over = session.left_over, []
        for request in cut_off:
            data: dict[str, object] = {}
            if request.method == "session/prompt":
                said = f"The turn was cut off: the Crow in which it ran (process {before.process}) has ended.{more}"
                data = {"steering": wire.LeftOver(left_over=left_over)} if left_over else data
            else:
                said = f"The Crow in which this session lived (process {before.process}) has ended.{more} Try again."
            self._refuse(request, RpcError(ErrorCode.INTERNAL_ERROR, said, {"details": said, **data}))

    # --- links

    async def _link_to(self, there: SessionElsewhere, deadline: float) -> OwnerLink:
        """The link to an owner, which is made if there is none. Raises what `connect` does."""
        task = self._links.get(there.owner)
        if task is None:
            task = self._links[there.owner] = self._loop.create_task(connect(there, self._greeting, self, deadline))
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._links.get(there.owner) is task:
                del self._links[there.owner]
            raise

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
