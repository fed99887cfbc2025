"""Passing on an editor's messages for sessions that live in other processes, and what comes back from there.

    editor ── crow acp: Connection, divert ──▶ Relay ──▶ OwnerLink ── socket ──▶ the owner

Requests get new ids, both ways; all else is passed on as it came. There is one link to each owner, which gets the
editor's own `initialize`, so that the owner sees the editor's capabilities as if it were connected there.

If an owner ends, whoever was attached goes on: one of them becomes the owner, the others attach to that one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import msgspec

from crow.acp import jsonrpc, wire
from crow.acp.connection import ANSWERED, Answered, Connection, ConnectionLost, PendingRequest
from crow.acp.jsonrpc import ErrorCode, Notification, Request, Response, RpcError
from crow.acp.owner_link import TRY_AGAIN, NobodyListens, OwnerLink, connect, silent, takes_state, with_facts
from crow.errors import CrowError, SessionElsewhere
from crow.lines import FLOOD
from crow.session.faces.missed import Seen

logger = logging.getLogger(__name__)

Claimed = TypeVar("Claimed")

ANSWER_TIMEOUT = 5.0
"""Seconds that an owner gets to answer the greeting; also how long one that has just ended is looked after."""
_CALL = b'"sessionUpdate":"tool_call'
_BEGINNING = 300
"""In how many bytes of a line that must be for the update to be of a call: the kind is what it begins with."""
MOST_WAITING = 1000
"""Messages that are kept for a session while it is being attached."""


class _Released(Exception):
    """The session no longer lives in that process."""


class _About(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a message that says which session it is about."""

    session_id: str = ""


class _State(msgspec.Struct, frozen=True, rename="camel"):
    """The part of `_crow/state` that the relay needs."""

    session_id: str = ""
    state: str = ""
    turn: str | None = None


class _CallUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a call's update that says whether the call is open."""

    tool_call_id: str = ""
    status: str | None = None


class _CallParams(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    update: _CallUpdate


class _CallLine(msgspec.Struct, frozen=True):
    params: _CallParams


class _Opened(msgspec.Struct, frozen=True):
    meta: wire.OpenedMeta = msgspec.field(name="_meta", default_factory=wire.OpenedMeta)


class _Withdrawn(msgspec.Struct, frozen=True, rename="camel"):
    request_id: msgspec.Raw


_about = msgspec.json.Decoder(_About)
_call_line = msgspec.json.Decoder(_CallLine)
_state = msgspec.json.Decoder(_State)
_opened = msgspec.json.Decoder(_Opened)
_withdrawn = msgspec.json.Decoder(_Withdrawn)


class _Asked(NamedTuple):
    """A request of the editor's that an owner has not answered yet: its id there."""

    link: OwnerLink
    key: bytes


class _AttachedSession:
    """A session that lives elsewhere."""

    def __init__(self, id: str, params: bytes) -> None:
        self.id = id
        self.params = params
        """Of the request that opened it, to open it again."""
        self.link: OwnerLink | None = None
        """None while it is being attached."""
        self.is_opening = True
        """The request that opens it is not answered yet."""
        self.seen = Seen("", ended=True)
        """How far the owner has told of it."""
        self.open_calls: dict[str, None] = {}
        """The calls that the editor was shown and whose end it was not."""
        self.waiting: list[Request | Notification] = []
        """What came while it was being attached."""
        self.cut_off: list[Request] = []
        """What its owner was asked and had not answered when it ended."""


class Relay:
    """The sessions of one editor that live in other processes.

    `greeting` is the parameters of the editor's `initialize`. `take_over` opens a session here whose owner has ended,
    with the parameters that opened it there, and shows what was missed: SessionElsewhere if another process has it.
    """

    def __init__(
        self, editor: Connection, greeting: bytes, take_over: Callable[[bytes, Seen], Awaitable[None]]
    ) -> None:
        self.greeting = greeting
        self._editor_takes_state = takes_state(greeting)
        self._editor = editor
        self._take_over = take_over
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[str, _AttachedSession] = {}
        self._links: dict[str, asyncio.Task[OwnerLink]] = {}
        """By the owners' tokens."""
        self._asked: dict[bytes, _Asked] = {}
        """By the editor's ids."""
        self._tasks: set[asyncio.Task[None]] = set()
        editor.divert = self._divert

    async def close(self) -> None:
        """Leaves every session."""
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
        session = _AttachedSession(_session_in(msgspec.Raw(params)), params)
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

    async def _open(self, session: _AttachedSession, link: OwnerLink, method: str, pending: PendingRequest) -> None:
        if link.has_ended:
            raise ConnectionLost
        answered: asyncio.Future[None] = self._loop.create_future()

        def settle(response: Response | None) -> None:
            if answered.done():
                return
            if response is None or _is_released(response):
                answered.set_exception(_Released())
                return
            session.is_opening = False
            if response.error is not None:
                self._drop(session)
            else:
                session.seen = _seen_in(response)
            self._editor.send(jsonrpc.write_response(pending.id, response))
            answered.set_result(None)

        key = link.pass_on(method, msgspec.Raw(session.params), settle)
        pending.on_cancel = lambda: link.notify("$/cancel_request", {"requestId": int(key)})
        self._bind(session, link)
        await answered

    def _bind(self, session: _AttachedSession, link: OwnerLink) -> None:
        """From now on the session's messages go through the link, first those that have waited for it."""
        session.link = link
        waiting, session.waiting = session.waiting, []
        for message in waiting:
            self._pass(session, message)

    def _drop(self, session: _AttachedSession) -> None:
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

    def _serve_here(self, session: _AttachedSession) -> None:
        waiting, session.waiting = session.waiting, []
        for message in waiting:
            self._editor.serve(message)

    # --- what the editor sends

    def _divert(self, message: Request | Notification) -> bool:
        if isinstance(message, Notification) and message.method == "$/cancel_request":
            return self._cancel(message)
        session = self._sessions.get(_session_in(message.params))
        if session is None:
            return False
        self._pass(session, message)
        return True

    def _pass(self, session: _AttachedSession, message: Request | Notification) -> None:
        link = session.link
        if link is None:
            self._wait(session, message)
        elif isinstance(message, Notification):
            link.send(jsonrpc.write_notification(message.method, message.params))
        elif link.unsent > FLOOD:
            self._refuse(message, silent(link.there))
        else:
            # Of a prompt only the id is kept: it may be large, and a turn long.
            kept = message if message.method in _OPENS else message._replace(params=jsonrpc.ABSENT)
            key = link.pass_on(message.method, message.params, lambda response: self._answer(session, kept, response))
            if session.link is link:  # it may have ended with this very message
                self._asked[message.id] = _Asked(link, key)

    def _wait(self, session: _AttachedSession, message: Request | Notification) -> None:
        if len(session.waiting) < MOST_WAITING:
            session.waiting.append(message)
        elif isinstance(message, Request):
            self._refuse(message, jsonrpc.being_loaded())

    def _answer(self, session: _AttachedSession, request: Request, response: Response | None) -> None:
        asked = self._asked.pop(request.id, None)
        if response is None:
            session.cut_off.append(request)
            return
        if response.error is None:
            self._note(session, request, response)
        self._editor.send(jsonrpc.write_response(request.id, response))
        if asked is not None and session.link is None:
            self._run(self._close_if_unused(asked.link))

    def _note(self, session: _AttachedSession, request: Request, response: Response) -> None:
        """What a request that was answered means for where sessions live."""
        match request.method:
            case "session/close" | "session/delete":
                self._drop(session)
            case "session/load" | "session/resume":
                session.params = bytes(request.params)
                session.seen = _seen_in(response)
            case "session/fork":
                copy = _AttachedSession(_session_in(response.result), bytes(request.params))
                copy.link, copy.is_opening = session.link, False
                copy.params, copy.seen = with_session(copy.params, copy.id), _seen_in(response)
                self._sessions[copy.id] = copy
            case _:
                pass

    def _cancel(self, notification: Notification) -> bool:
        try:
            id = bytes(_withdrawn.decode(notification.params).request_id)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        asked = self._asked.get(id)
        if asked is not None:
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
        if line.find(_CALL, 0, _BEGINNING) >= 0:
            self._note_call(_call_line.decode(line).params)
        self._editor.send(line + b"\n")

    def _note_call(self, told: _CallParams) -> None:
        session = self._sessions.get(told.session_id)
        if session is None:
            return
        if told.update.status in ("completed", "failed"):
            session.open_calls.pop(told.update.tool_call_id, None)
        else:
            session.open_calls[told.update.tool_call_id] = None

    def take(self, link: OwnerLink, message: Request | Notification) -> None:
        if isinstance(message, Request):
            owners_id = message.id
            link.questions[owners_id] = self._editor.pass_on(
                message.method, message.params, lambda response: link.answer(owners_id, response)
            )
        elif message.method == "$/cancel_request":
            key = link.questions.pop(bytes(_withdrawn.decode(message.params).request_id), None)
            if key is not None:
                self._editor.withdraw(key)
        elif message.method == "_crow/state":
            self._note_state(_state.decode(message.params))
            if self._editor_takes_state:
                self._editor.send(jsonrpc.write_notification(message.method, message.params))
        elif message.method == "_crow/released":
            self._release(link, _session_in(message.params))
        else:
            self._editor.send(jsonrpc.write_notification(message.method, message.params))

    def _note_state(self, told: _State) -> None:
        session = self._sessions.get(told.session_id)
        if session is not None:
            session.seen = Seen(told.turn or session.seen.turn, ended=told.state == "idle")

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

    def _release(self, link: OwnerLink, session_id: str) -> None:
        """The session no longer lives where it did. One that is being opened is claimed by whoever opens it."""
        session = self._sessions.get(session_id)
        if session is not None and session.link is link:
            session.link = None
            self._end_calls(session)
            if not session.is_opening:
                self._run(self._go_on(session, link.there))

    def _end_calls(self, session: _AttachedSession) -> None:
        """Of a call that had only begun nothing may be stored: nobody else would tell of its end."""
        for call_id in session.open_calls:
            update = wire.ToolCallUpdate(tool_call_id=call_id, status="failed")
            self._editor.notify("session/update", wire.SessionNotification(session_id=session.id, update=update))
        session.open_calls.clear()

    async def _go_on(self, session: _AttachedSession, before: SessionElsewhere) -> None:
        """Goes on with a session whose owner has ended: here, or where somebody else has gone on with it."""
        try:
            link = await self._next_owner(session, before)
        except (CrowError, RpcError) as error:
            logger.warning("%s could not be continued: %s", session.id, error)
            self._answer_cut_off(session, before, f" It could not be continued here: {error}")
            self._drop(session)
            self._serve_here(session)
            return
        self._answer_cut_off(session, before)
        if link is None:
            self._drop(session)
            self._serve_here(session)
        else:
            self._bind(session, link)

    async def _next_owner(self, session: _AttachedSession, before: SessionElsewhere) -> OwnerLink | None:
        """The link to the new owner; None if that is this process."""
        deadline = self._loop.time() + ANSWER_TIMEOUT
        while True:
            there = before
            try:
                await self._take_over(session.params, session.seen)
            except SessionElsewhere as elsewhere:
                there = elsewhere
            else:
                return None
            try:
                # Of a process that has just ended the lock is free a moment later than its socket.
                if there.owner != before.owner:
                    link = await self._link_to(there, deadline)
                    seen = {"turn": session.seen.turn, "ended": session.seen.ended}
                    await link.request("session/resume", with_facts(session.params, {"seen": seen}), msgspec.Raw)
                    if not link.has_ended:
                        return link
            except (ConnectionLost, NobodyListens):
                pass
            except RpcError as error:
                if not _says_released(error.data):
                    raise
            if self._loop.time() > deadline:
                raise silent(there)
            await asyncio.sleep(TRY_AGAIN)

    def _answer_cut_off(self, session: _AttachedSession, before: SessionElsewhere, more: str = "") -> None:
        cut_off, session.cut_off = session.cut_off, []
        for request in cut_off:
            if request.method == "session/prompt":
                said = f"The turn was cut off: the Crow in which it ran (process {before.process}) has ended.{more}"
            else:
                said = f"The Crow in which this session lived (process {before.process}) has ended.{more} Try again."
            self._refuse(request, RpcError(ErrorCode.INTERNAL_ERROR, said, {"details": said}))

    # --- links

    async def _link_to(self, there: SessionElsewhere, deadline: float) -> OwnerLink:
        """The link to an owner, which is made if there is none. Raises what `connect` does."""
        task = self._links.get(there.owner)
        if task is None:
            task = self._links[there.owner] = self._loop.create_task(connect(there, self.greeting, self, deadline))
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


_OPENS = ("session/load", "session/resume", "session/fork")
"""The requests whose parameters are needed again."""


def with_session(params: bytes, session_id: str) -> bytes:
    fields = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**fields, "sessionId": session_id})


def _session_in(params: msgspec.Raw) -> str:
    """The session that a message is about; empty if it is about none."""
    try:
        return _about.decode(params).session_id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def _seen_in(response: Response) -> Seen:
    """What an owner's answer says of how far the session is. Whether a turn runs is told after it."""
    return Seen(_opened.decode(response.result).meta.crow.turn, ended=True)


def _is_released(response: Response) -> bool:
    return response.error is not None and _says_released(response.error.data)


def _says_released(data: object) -> bool:
    return data == jsonrpc.RELEASED
