"""A JSON-RPC connection over two file descriptors: finds the handler of a request, matches answers to requests,
cancels, and survives any line.

Rules kept here: a request is answered exactly once, a notification never; notifications are handled in the order
they came, requests run side by side; what we write keeps its order; a peer that stops reading slows us down
instead of filling our memory.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar, assert_never

import msgspec

from crow.rpc import jsonrpc
from crow.rpc.jsonrpc import ErrorCode, Notification, Request, Response, RpcError, Unreadable
from crow.rpc.lines import LineReader, Writer

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class ConnectionLost(Exception):
    """The peer is gone; nothing it was asked will be answered."""


class BadAnswer(RpcError):
    """The peer answered, but not in the shape that the method promises."""


class Answered:
    """What a handler returns, or waits for, if somebody else has sent the answer."""


ANSWERED = Answered()


class PendingRequest:
    """A request of the peer's that is being answered."""

    def __init__(self, id: bytes, params: msgspec.Raw) -> None:
        self.id = id
        self.params = params
        """As they came, until the handler has returned: whoever needs them longer keeps them."""
        self.on_cancel: Callable[[], None] | None = None
        """What `$/cancel_request` does; without it the work is cancelled and answered with -32800."""
        self._task: asyncio.Task[None] | None = None
        self._afterwards: list[Callable[[], None]] = []

    def afterwards(self, action: Callable[[], None]) -> None:
        """Runs once the answer has been written, for what the peer can only understand after it."""
        self._afterwards.append(action)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(work)

    def run_afterwards(self) -> None:
        for action in self._afterwards:
            action()

    def cancel(self) -> None:
        if self.on_cancel is not None:
            self.on_cancel()
        elif self._task is not None:
            # Not at once: a task that is cancelled before its first step never runs, and so would never answer.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def abandon(self) -> None:
        if self._task is not None:
            asyncio.get_running_loop().call_soon(self._task.cancel)
            await asyncio.wait([self._task], timeout=1)


class Route(NamedTuple):
    """How a method is served: the type of its parameters and what handles them.

    The handler is called at once, in the order of arrival, so what it does before it returns an awaitable cannot
    be overtaken by a later message. A notification's handler gets no PendingRequest and returns nothing.
    """

    params: type[Any]
    handle: Callable[..., Any]


class Connection:
    def __init__(
        self,
        reader: int,
        writer: int,
        requests: Mapping[str, Route],
        notifications: Mapping[str, Route],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._input = LineReader(reader, self.receive, self._on_input_end)
        self._output = Writer(writer, self._on_output_lost, self._input)
        self._requests = requests
        self._notifications = notifications
        self._decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
        self._pending: dict[bytes, PendingRequest] = {}
        self._waiting: dict[bytes, Callable[[Response | None], None]] = {}
        """Who gets the answers to our requests; None instead of one if the peer has gone."""
        self._last_id = 0
        self._held: list[bytes | None] | None = None
        """The lines that came while they are held back."""
        self._ends_after_held = False
        self._ended = asyncio.Event()
        self.divert: Callable[[Request | Notification], bool] | None = None
        """Takes, and then returns True, what is not to be served here: what is for a session in another process."""

    async def run(self) -> None:
        """Serves until the peer is gone."""
        self._input.start()
        await self._ended.wait()

    async def flushed(self) -> None:
        """Returns when the peer has everything that was sent, or is gone."""
        await self._output.flushed()

    async def close(self) -> None:
        """Ends what is still being answered and sends what can be sent at once."""
        self._on_end()
        self._input.stop()
        await asyncio.gather(*(pending.abandon() for pending in list(self._pending.values())))
        self._output.stop()

    # --- what we ask of the peer

    def notify(self, method: str, params: object) -> None:
        self._output.send(jsonrpc.write_notification(method, params))

    async def request(self, method: str, params: object, result: type[Result]) -> Result:
        """The peer's answer. Cancelling the wait withdraws the request with `$/cancel_request`."""
        if self._ended.is_set():
            raise ConnectionLost
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        key = self.pass_on(method, params, lambda response: _settle(future, response))
        try:
            answer = await future
        except asyncio.CancelledError:
            self.withdraw(key)
            raise
        try:
            return self.decode(result, answer)
        except RpcError as error:
            raise BadAnswer(error.code, f"{method} was answered with something unusable: {error.message}") from None

    def pass_on(self, method: str, params: object, settle: Callable[[Response | None], None]) -> bytes:
        """Sends a request at once and gives its id. `settle` gets the answer before anything that comes after it is
        handled; None if the peer has gone."""
        self._last_id += 1
        key = b"%d" % self._last_id
        self._waiting[key] = settle
        self._output.send(jsonrpc.write_request(self._last_id, method, params))
        return key

    def withdraw(self, key: bytes) -> None:
        """Asks the peer to give up a request of ours, if it has not been answered; the answer no longer matters."""
        if self._waiting.pop(key, None):
            self.notify("$/cancel_request", {"requestId": int(key)})

    def send(self, data: bytes) -> None:
        """Sends messages that are written already: whole lines."""
        self._output.send(data)

    @property
    def is_lost(self) -> bool:
        """Whether the peer is gone, so that nothing it was asked will be answered."""
        return self._ended.is_set()

    @property
    def failure(self) -> OSError | None:
        """Why nothing can be sent to the peer, if it is not that it has left."""
        return self._output.failure

    @property
    def has_room(self) -> bool:
        return self._output.has_room

    @property
    def unsent(self) -> int:
        """Bytes that the peer has not taken yet."""
        return self._output.unsent

    async def room(self) -> None:
        await self._output.room()

    # --- what the peer asks of us

    def limit_lines(self, longest: int) -> None:
        """Lines with more bytes are skipped from now on, and answered with an error; one without an end is dropped."""
        self._input.longest = longest
        self._input.drops_partial_line = True

    def pause(self) -> None:
        """Reads nothing more until `resume`."""
        self._input.pause()

    def resume(self) -> None:
        self._input.resume()

    def hold_until(self, ready: asyncio.Future[Any]) -> None:
        """What the peer sends is read, but handled only when the future is done, in the order in which it came."""
        self._held = []
        ready.add_done_callback(lambda _: self._release())

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for line in held:
            self.receive(line)
        if self._ends_after_held:
            self._on_end()

    def _on_input_end(self) -> None:
        if self._held is None:
            self._on_end()
        else:
            self._ends_after_held = True

    def receive(self, line: bytes | None) -> None:
        """Handles a line of the peer's; None stands for one that was skipped, being too long."""
        if self._held is not None:
            self._held.append(line)
            return
        try:
            if line is None:
                text = f"Invalid request: a line over {self._input.longest / 2**20:g} MiB was skipped"
                raise Unreadable(ErrorCode.INVALID_REQUEST, text)
            message = jsonrpc.read_line(line)
        except Unreadable as error:
            logger.warning("unreadable line: %s", error.message)
            self._output.send(jsonrpc.write_error(error.id, error))
            return
        if isinstance(message, Response):
            self._settle(message)
        elif self.divert is None or not self.divert(message):
            self.serve(message)

    def serve(self, message: Request | Notification) -> None:
        """Handles what the peer wants of us, by the routes."""
        match message:
            case Request():
                self._serve(message)
            case Notification():
                self._take_notice(message)
            case _:
                assert_never(message)

    def _serve(self, request: Request) -> None:
        pending = PendingRequest(request.id, request.params)
        try:
            route = self._requests.get(request.method)
            if route is None:
                name = request.method[:200]
                raise RpcError(ErrorCode.METHOD_NOT_FOUND, f"Method not found: {name}", {"method": name})
            answer = route.handle(self.decode(route.params, request.params), pending)
        except RpcError as error:
            self._answer_error(pending, error)
            return
        except Exception as error:  # noqa: BLE001 -- the edge: whatever fails in here becomes an answer
            self._answer_error(pending, _unforeseen(request.method, error))
            return
        finally:
            pending.params = jsonrpc.ABSENT  # they may be large, and a turn long
        if isinstance(answer, Awaitable):
            self._pending[request.id] = pending
            pending.run(self._answer(request.method, pending, answer))  # pyright: ignore[reportUnknownArgumentType] -- a handler's result
        else:
            self._answer_result(pending, answer)

    async def _answer(self, method: str, pending: PendingRequest, answer: Awaitable[object]) -> None:
        try:
            result = await answer
        except RpcError as error:
            self._answer_error(pending, error)
        except asyncio.CancelledError:
            self._answer_error(pending, RpcError(ErrorCode.REQUEST_CANCELLED, "Request cancelled"))
        except Exception as error:  # noqa: BLE001 -- the edge, as above
            self._answer_error(pending, _unforeseen(method, error))
        else:
            self._answer_result(pending, result)
        finally:
            if self._pending.get(pending.id) is pending:
                del self._pending[pending.id]

    def _answer_result(self, pending: PendingRequest, result: object) -> None:
        if not isinstance(result, Answered):
            self._output.send(jsonrpc.write_result(pending.id, result))
        pending.run_afterwards()

    def _answer_error(self, pending: PendingRequest, error: RpcError) -> None:
        self._output.send(jsonrpc.write_error(pending.id, error))

    def _take_notice(self, notification: Notification) -> None:
        try:
            if notification.method == "$/cancel_request":
                self._cancel(self.decode(_CancelRequest, notification.params))
                return
            route = self._notifications.get(notification.method)
            if route is None:
                logger.debug("ignored notification %s", notification.method[:200])
                return
            route.handle(self.decode(route.params, notification.params))
        except RpcError as error:
            logger.warning("ignored %s: %s", notification.method[:200], error.message)
        except Exception:
            logger.exception("notification %s failed", notification.method[:200])

    def _cancel(self, request: "_CancelRequest") -> None:
        pending = self._pending.get(bytes(request.request_id))
        if pending is not None:
            pending.cancel()

    def _settle(self, response: Response) -> None:
        settle = self._waiting.pop(response.id, None)
        if settle is None:
            logger.debug("ignored an answer to nothing")
        else:
            settle(response)

    def decode(self, kind: type[Result], raw: msgspec.Raw) -> Result:
        """What a message says, as a type; RpcError if it is not of that type."""
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = self._decoders[kind] = msgspec.json.Decoder(kind)
        try:
            return decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: {error}"[:500]) from None

    def _on_output_lost(self) -> None:
        # Not here, where one of its lines may be being handled.
        self._loop.call_soon(self._read_last_words)

    def _read_last_words(self) -> None:
        """What the peer sent before it left still counts: it may have cancelled a turn, or answered a question."""
        self._input.drain()
        self._on_input_end()

    def _on_end(self) -> None:
        self._ended.set()
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for settle in waiting:
            settle(None)


class _CancelRequest(msgspec.Struct, frozen=True, rename="camel"):
    request_id: msgspec.Raw


def _settle(future: asyncio.Future[msgspec.Raw], response: Response | None) -> None:
    if future.done():
        return
    if response is None:
        future.set_exception(ConnectionLost())
    elif response.error is not None:
        error = response.error
        future.set_exception(RpcError(error.code, error.message, error.data))
    else:
        future.set_result(response.result or msgspec.Raw(b"null"))


def _unforeseen(method: str, error: Exception) -> RpcError:
    logger.error("%s failed", method, exc_info=error)
    details = f"{method} failed with an unforeseen {type(error).__name__}; the log has the details."
    return RpcError(ErrorCode.INTERNAL_ERROR, details, {"details": details})
