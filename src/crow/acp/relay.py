"""Passes on an editor's messages for sessions that live in other processes, until those end.

    editor ── crow acp: Connection, divert ──▶ Relay ──▶ OwnerLink ── socket ──▶ the owner

Requests get new ids, both ways; all else is passed on as it came. There is one link to each owner, which gets the
editor's own `initialize`, so that the owner sees the editor's capabilities as if it were connected there.

When an owner ends or lets go of a session, the client is told. `crow chat` and the page load the session again. For any
other client it is opened again, without a replay, when its next message comes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from crow.acp import crow_meta, translate, wire
from crow.acp.owner_link import TRY_AGAIN, LinkUser, NobodyListens, OwnerLink, connect, silent
from crow.acp.relayed_fields import call_in, session_in, takes_notices, with_session, withdrawn_in
from crow.errors import CrowError, SessionElsewhere
from crow.events import Notice
from crow.live.faces import proof_for
from crow.rpc import jsonrpc
from crow.rpc.connection import ANSWERED, Answered, Connection, ConnectionLost, PendingRequest
from crow.rpc.jsonrpc import ErrorCode, Notification, Request, Response, RpcError
from crow.rpc.lines import FLOOD

logger = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_TIMEOUT = 5.0
"""Seconds that an owner gets to answer `initialize`; also how long one that has just ended is looked after."""
CREATE_TIMEOUT = 2.0
"""Seconds in which another process must have answered our `initialize`; else a new session is opened here."""
NEED_NO_OWNER = {"session/cancel", *(f"session/{name}" for name in ("load", "resume", "fork", "delete", "status"))}
"""What can be done with a session that is not open anywhere."""


class RelayedSession:
    """`params` are those of the request that opened the session, to open it again."""

    def __init__(self, id: str, params: bytes, link: OwnerLink) -> None:
        self.id = id
        self.params = params
        self.link: OwnerLink | None = link
        """To its owner; None once that has ended."""
        self.ended = ""
        """How it ended, in a sentence."""
        self.opening: asyncio.Task[str] | None = None
        """Opens it again since; gives why it could not be opened."""


class Relay(LinkUser):
    """The sessions of one editor that live in other processes.

    `initialize_params` are those that the editor sent. `open_here` opens a session here, with the parameters that
    opened it elsewhere: SessionElsewhere if another process has it. `keys` has those of sessions whose owners trust
    this process, by id.
    """

    def __init__(
        self,
        editor: Connection,
        initialize_params: bytes,
        open_here: Callable[[bytes], Awaitable[None]],
        keys: MutableMapping[str, str],
    ) -> None:
        self._keys = keys
        self._editor = editor
        self._open_here = open_here
        self._sessions: dict[str, RelayedSession] = {}
        self._links: dict[str, asyncio.Task[OwnerLink]] = {}
        """By the owners' tokens."""
        self._asked: dict[bytes, tuple[RelayedSession, OwnerLink, bytes]] = {}
        """What owners were asked and have not answered, with its id there, by the editor's id."""
        self._open_calls: dict[tuple[str, str], OwnerLink] = {}
        """The calls that the editor was shown and whose end it was not, by session and call."""
        self._notices = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.initialize(initialize_params)
        editor.divert = self._divert

    def initialize(self, initialize_params: bytes) -> None:
        """What the editor says of itself counts for the owners that are connected to from now on."""
        self._initialize_params = initialize_params
        self._loads_by_itself = crow_meta.read_in(wire.ClientFacts, initialize_params).state
        self._takes_notices = takes_notices(initialize_params)

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

    # --- opening

    async def attach(
        self,
        there: SessionElsewhere,
        method: str,
        params: bytes,
        pending: PendingRequest,
        claim: Callable[[], Awaitable[T]],
    ) -> T | Answered:
        """Opens a session where it lives, and sends the editor the answer that comes from there.

        If it no longer lives there, the result is what `claim` gives. RpcError if its owner refuses, or does not
        answer: nothing is changed then.
        """

        def open_at(link: OwnerLink) -> Awaitable[Answered]:
            return self._open_at(link, method, params, pending)

        return await self._find_home(open_at, claim, there)

    async def create(self, there: SessionElsewhere, params: bytes, pending: PendingRequest) -> bool:
        """Opens a new session in another process, and sends the editor the answer that comes from there. False if there
        is none: the process has ended, refuses, or does not answer when it is connected to. One that has taken the
        request may take its time: a session that was opened here meanwhile would be a second one."""
        try:
            link = await self._link_to(there, asyncio.get_running_loop().time() + CREATE_TIMEOUT)
            await self._open_at(link, "session/new", params, pending)
        except (NobodyListens, ConnectionLost, RpcError) as error:
            logger.warning("a session is opened here, not in process %s: %s", there.process, error)
            return False
        return True

    async def _find_home(
        self,
        open_at: Callable[[OwnerLink], Awaitable[Answered]],
        open_here: Callable[[], Awaitable[T]],
        there: SessionElsewhere | None = None,
    ) -> T | Answered:
        """Opens a session where it lives, or here if it lives nowhere: whichever comes first, as owners may end at any
        moment. `there` is tried first. RpcError if the process in which the session lives does not answer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ANSWER_TIMEOUT
        while True:
            if there is not None:
                with contextlib.suppress(NobodyListens, ConnectionLost):
                    return await open_at(await self._link_to(there, deadline))
                if loop.time() > deadline:
                    raise silent(there)
                await asyncio.sleep(TRY_AGAIN)  # the lock of an owner is free a moment later than its socket
            try:
                return await open_here()
            except SessionElsewhere as elsewhere:
                there = elsewhere

    async def _open_at(
        self, link: OwnerLink, method: str, params: bytes, pending: PendingRequest | None = None
    ) -> Answered:
        """Opens a session at an owner. The editor gets the answer before anything that comes after it. ConnectionLost
        if the session no longer lives there, RpcError if the owner refuses."""
        if link.has_ended:
            raise ConnectionLost
        answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()

        def settle(response: Response | None) -> None:
            if answered.done():
                self._close_if_unused(link)
            elif response is None or jsonrpc.is_released(response):
                answered.set_exception(ConnectionLost())
            elif (error := response.error) is not None:
                answered.set_exception(RpcError(error.code, error.message, error.data))
            else:
                id = session_in(msgspec.Raw(params)) or session_in(response.result)
                self._sessions[id] = RelayedSession(id, with_session(params, id), link)
                if pending is not None:
                    self._editor.send(jsonrpc.write_response(pending.id, response))
                answered.set_result(ANSWERED)

        key = self._keys.get(session_in(msgspec.Raw(params)))
        proof = wire.LoadFacts(proof=proof_for(link.process, key) if key else "")
        id = link.pass_on(method, crow_meta.added(params, proof) if key else msgspec.Raw(params), settle)
        if pending is not None:
            pending.on_cancel = lambda: link.notify("$/cancel_request", {"requestId": int(id)})
        try:
            return await answered
        finally:
            if pending is not None:
                pending.on_cancel = None
            self._close_if_unused(link)

    async def _link_to(self, there: SessionElsewhere, deadline: float) -> OwnerLink:
        """The link to an owner, which is made if there is none. Raises what `connect` does."""
        task = self._links.get(there.owner)
        if task is None:
            connecting = connect(there, self._initialize_params, self, deadline)
            task = self._links[there.owner] = asyncio.get_running_loop().create_task(connecting)
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._links.get(there.owner) is task:
                del self._links[there.owner]
            raise

    def _drop(self, session: RelayedSession) -> None:
        """It is no longer relayed."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]

    def _close_if_unused(self, link: OwnerLink) -> None:
        """An owner to which nobody is attached should know it."""
        if not link.is_awaited and not any(session.link is link for session in self._sessions.values()):
            self._links.pop(link.there.owner, None)
            self._run(link.close())

    # --- what the editor sends

    def _divert(self, message: Request | Notification) -> bool:
        if isinstance(message, Notification) and message.method == "$/cancel_request":
            return self._cancel(message)
        session = self._sessions.get(session_in(message.params))
        if session is None:
            return False
        if session.link is not None:
            self._pass(session, session.link, message)
        elif message.method == "session/close" and isinstance(message, Request):
            self._drop(session)
            self._editor.send(jsonrpc.write_result(message.id, {}))
        elif message.method in NEED_NO_OWNER:
            if message.method in ("session/load", "session/resume", "session/delete"):
                self._drop(session)
            return False
        else:
            self._serve_later(session, message)
        return True

    def _serve_later(self, session: RelayedSession, message: Request | Notification) -> None:
        """The message leads to the session being opened again, and is served then, before what comes after it."""

        def serve(opening: asyncio.Task[str]) -> None:
            if opening.cancelled():
                return
            if not (problem := opening.result()):
                if not self._divert(message):
                    self._editor.serve(message)
            elif isinstance(message, Request):
                self._refuse(message, _failed(problem))

        if session.opening is not None:
            session.opening.add_done_callback(serve)
            return
        session.opening = self._run(self._open_again(session))
        session.opening.add_done_callback(serve)
        self._editor.hold_until(session.opening)

    def _pass(self, session: RelayedSession, link: OwnerLink, message: Request | Notification) -> None:
        if isinstance(message, Notification):
            link.send(jsonrpc.write_notification(message.method, message.params))
        elif link.unsent > FLOOD:
            self._refuse(message, silent(link.there))
        else:
            settle = partial(self._answer, session, link, message)
            self._asked[message.id] = session, link, link.pass_on(message.method, message.params, settle)
        self._run(link.watch(session.id, lambda: self._tell_of_silence(link)))

    def _cancel(self, notification: Notification) -> bool:
        try:
            asked = self._asked.get(withdrawn_in(notification.params))
        except (msgspec.MsgspecError, UnicodeError):
            return False
        if asked is None:
            return False
        _, link, key = asked
        link.notify("$/cancel_request", {"requestId": int(key)})
        return True

    def _refuse(self, request: Request, error: RpcError) -> None:
        self._editor.send(jsonrpc.write_error(request.id, error))

    # --- what an owner sends

    def _answer(self, session: RelayedSession, link: OwnerLink, request: Request, response: Response | None) -> None:
        self._asked.pop(request.id, None)
        if response is None:
            said = f"The turn was cut off: the Crow that ran this session (process {link.there.process}) has ended."
            self._refuse(request, _failed(f"{said} Send a message to go on." if _is_prompt(request) else _lost(link)))
            return
        if jsonrpc.is_released(response) and not self._loads_by_itself:
            self._end(session, link)
            self._serve_later(session, request)
            return
        self._editor.send(jsonrpc.write_response(request.id, response))
        if response.error is None and request.method in ("session/close", "session/delete"):
            self._drop(session)
        elif response.error is None and request.method in ("session/load", "session/resume"):
            session.params = bytes(request.params)
        elif response.error is None and request.method == "session/fork":
            id = session_in(response.result)
            self._sessions[id] = RelayedSession(id, with_session(bytes(request.params), id), link)
        self._close_if_unused(link)

    def pass_update(self, link: OwnerLink, line: bytes) -> None:
        if (told := call_in(line)) is not None:
            call = told.session_id, told.update.tool_call_id
            if told.update.status in ("completed", "failed"):
                self._open_calls.pop(call, None)
            else:
                self._open_calls[call] = link
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
        elif message.method == "_crow/trusted":
            told = msgspec.json.decode(message.params, type=wire.TrustedNotification)
            self._keys.setdefault(told.session_id, told.key)  # who owns it later may be a command
        elif message.method == "_crow/released":
            session = self._sessions.get(session_in(message.params))
            if session is not None and session.link is link:
                self._end(session, link)
                self._close_if_unused(link)
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
        for session_id in {id for id, _ in self._open_calls}:
            self._end_calls(link, session_id)
        for session in list(self._sessions.values()):
            if session.link is link:
                self._end(session, link)

    def _end(self, session: RelayedSession, link: OwnerLink) -> None:
        """The session no longer lives where it did."""
        if session.link is None:
            return
        session.link, session.ended = None, _lost(link)
        self._end_calls(link, session.id)
        if self._loads_by_itself:
            told = wire.ReleasedNotification(session_id=session.id, reason=session.ended)
            self._editor.notify("_crow/released", told)
        elif self._takes_notices and not any(asked is session for asked, *_ in self._asked.values()):
            self._tell(session, Notice("warning", session.ended, "Send a message to go on."))

    def _end_calls(self, link: OwnerLink, session_id: str) -> None:
        """Nobody else would tell of their end: of a call that had only begun nothing may be stored."""
        for id, call_id in [call for call, there in self._open_calls.items() if there is link]:
            if id == session_id:
                del self._open_calls[id, call_id]
                self._update(id, wire.ToolCallUpdate(tool_call_id=call_id, status="failed"))

    async def _open_again(self, session: RelayedSession) -> str:
        """Opens a session whose owner has ended: where somebody else has gone on with it, or here. Gives what is in the
        way, in sentences; else nothing."""
        try:
            where = await self._find_home(
                lambda link: self._open_at(link, "session/resume", session.params),
                lambda: self._open_here(session.params),
            )
        except Exception as error:
            known = isinstance(error, CrowError | RpcError)
            logger.warning("%s could not be opened again: %s", session.id, error, exc_info=None if known else error)
            why = str(error) if known else f"an unforeseen {type(error).__name__}; the log has the details."
            session.opening = None
            return f"{session.ended} The session could not be opened again: {why}"
        if not isinstance(where, Answered):
            self._drop(session)
        missed = "The session was opened again. Load it to see what you may have missed."
        self._tell(session, Notice("info", f"{session.ended} {missed}"))
        return ""

    # --- what the person is told

    def _tell_of_silence(self, link: OwnerLink) -> None:
        said = f"The Crow that runs this session (process {link.there.process}) does not answer."
        for session in self._sessions.values():
            if session.link is link and self._takes_notices:
                self._tell(session, Notice("warning", said, "End that process to go on here."))

    def _tell(self, session: RelayedSession, notice: Notice) -> None:
        self._notices += 1
        as_message = translate.notice_as_message(notice, f"notice-relay-{self._notices}", "")
        self._update(session.id, translate.notice(notice) if self._takes_notices else as_message)

    def _update(self, session_id: str, update: wire.Update) -> None:
        self._editor.notify("session/update", wire.SessionNotification(session_id=session_id, update=update))

    def _run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _lost(link: OwnerLink) -> str:
    return f"The Crow that ran this session (process {link.there.process}) has ended."


def _failed(said: str) -> RpcError:
    return RpcError(ErrorCode.INTERNAL_ERROR, said, {"details": said})


def _is_prompt(request: Request) -> bool:
    return request.method == "session/prompt"
