"""The model of a session, created with its first request: retries, calls written as text, bounds, windows.

What fails before anything was shown is sent again. Calls that the model writes as text become calls. The window is the
one that its server reports, or refuses by. A reply without end is stopped.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from crow.errors import ContextOverflow, CrowError, ModelUnavailable, ReplyBroken
from crow.messages import StopReason
from crow.model.base import (
    Awaiting,
    CallBegan,
    Done,
    Model,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Noticed,
    ReplyRetries,
    Said,
    Usage,
    Waiting,
    chance,
)
from crow.model.replies import ReplyGuard, has_media, silent_loss, tokens_of_request, with_limit
from crow.session.models import ModelChoice

if TYPE_CHECKING:
    from crow.model.listing import ServerReport
    from crow.model.text_calls import TextCalls

logger = logging.getLogger(__name__)


class SessionModel:
    """Wraps a model and is one.

    It is created with its first request, so that opening a session costs next to nothing.
    """

    def __init__(
        self,
        choice: ModelChoice,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = chance,
    ) -> None:
        self._choice = choice
        self._sleep = sleep
        self._chance = chance
        self._info = msgspec.structs.replace(choice.info, context_window=choice.known_window)
        self._server: ServerReport | None = None
        self._asking: asyncio.Task[None] | None = None
        self._model: Model | None = None
        self._replies = 0
        self._counted = self._noticed = self._advised = False
        self._makes_calls = False
        """The provider has made a real call: what is written as text is none."""
        self._retired = False

    @property
    def info(self) -> ModelInfo:
        """What is known of the model. It changes when the server tells how large its window is."""
        return self._info

    @property
    def server(self) -> "ServerReport | None":
        """What a server on this machine or nearby said of itself."""
        return self._server

    def warm_up(self) -> None:
        self._choice.warm_up()

    async def ask_server(self, patience: float) -> None:
        """Asks a server nearby what it is. What it says after so many seconds counts when it comes."""
        asked_in_vain = self._asking is not None and self._asking.done() and self._server is None
        if not self._info.local or self._choice.has_configured_window or asked_in_vain:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_server())
        await asyncio.wait([self._asking], timeout=patience)

    async def _ask_server(self) -> None:
        try:
            self._server = await self._choice.ask_server() or self._server
        except CrowError as error:
            logger.info("the server of %s could not be asked: %s", self._info.name, error)
        except Exception:
            logger.exception("the server of %s could not be asked", self._info.name)
        if self._server is not None:
            self._info = msgspec.structs.replace(self._info, needs_limit=not self._server.ends_replies)
            if self._server.window is not None:
                self._choice.windows.report(self._choice.info, self._server.window)
                self._set_window(self._choice.known_window)
                await self._choice.windows.save()

    def learn_listed_window(self, tokens: int | None) -> None:
        """What the provider's list says counts as long as nobody has said more."""
        if self._info.context_window is None and tokens is not None:
            self._set_window(tokens)

    def _set_window(self, tokens: int | None) -> None:
        self._info = msgspec.structs.replace(self._info, context_window=tokens)

    def _learn_from(self, overflow: ContextOverflow, request: ModelRequest) -> str:
        """What a refusal shows of the window, with a notice for the person if it is but a guess. Also where the
        configuration says otherwise: what does not fit, does not fit."""
        if overflow.window is not None:
            reported = self._server.window if self._server else None
            self._choice.windows.refuse(self._choice.info, overflow.window, reported)
            self._set_window(overflow.window)
            return ""
        # What is too long about pictures are their bytes, which are no tokens.
        if any(map(has_media, request.messages)):
            return ""
        size = tokens_of_request(request)
        bound = self._choice.windows.bound(self._choice.info, size, self._info.context_window)
        if bound is None:
            return ""
        self._set_window(bound)
        return (
            f"{self._info.provider} refused about {size:,} tokens without naming its limit. Crow now assumes a context "
            f"window of {bound:,} tokens. If you know it, set `context_window` of {self._info.model} in config.toml."
        )

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self._replies += 1
        try:
            if self._model is None:
                await asyncio.shield(self._choice.warm_up())
                self._model = self._model or self._choice.create()
            guard = ReplyGuard(int(self._choice.limits.reply * 2**20), repeats=self._info.local)
            async with aclosing(self._attempts(self._model, with_limit(request, self._info))) as events:
                async for event in events:
                    yield event
                    if self._info.local and (notice := self._notice(request, event)):
                        yield Noticed(notice)
                    if objection := guard.objection(event):
                        yield Noticed(objection)
                        yield Done(StopReason.MAX_TOKENS)
                        break
            if self._server is not None and self._server.window is None:
                await self.ask_server(0)  # it has loaded the model by now
        except ContextOverflow as overflow:
            if notice := self._learn_from(overflow, request):
                yield Noticed(notice)
            await self._choice.windows.save()
            raise
        finally:
            self._replies -= 1
            if self._retired and not self._replies:
                await self.close()

    async def _attempts(self, model: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Sends a request that failed again after a pause, for as long as the settings allow."""
        from crow.model.text_calls import TextCalls

        retries = request.retries or ReplyRetries(self._choice.limits.retry_wait, self._chance)
        while True:
            reads_text = model.info.calls_as_text and not self._makes_calls
            reader = TextCalls(request.tools, request.messages) if reads_text else None
            shown = False
            try:
                async with aclosing(model.reply(request)) as events:
                    async for event in events:
                        for piece in self._read(reader, event):
                            shown = shown or not isinstance(piece, Noticed | Awaiting)
                            yield piece
            except (ModelUnavailable, ReplyBroken) as error:
                if shown:
                    error.message = f"The reply was cut off: {error.message}"
                if shown and not request.unseen:
                    raise
                reason, pause = error.message, retries.pause_after(error)
            else:
                return
            yield Waiting(reason, *pause)
            await self._sleep(pause.seconds)

    def _read(self, reader: "TextCalls | None", event: ModelEvent) -> Sequence[ModelEvent]:
        """What can be shown by now: the event itself, unless it may belong to calls that are written as text."""
        if reader is None or (type(event) is Said and reader.passes(event.text)):
            return (event,)
        self._makes_calls = self._makes_calls or type(event) is CallBegan
        pieces = reader.take(event)
        if type(event) is Done and reader.syntax is not None and not self._advised:
            self._advised = True
            pieces.insert(-1, Noticed(reader.syntax.advice(self.info.name)))
        return pieces

    def _notice(self, request: ModelRequest, event: ModelEvent) -> str:
        """What the person should know of the server, once: what it leaves out of the requests."""
        if not isinstance(event, Usage) or not request.tools or self._noticed:
            return ""
        first, self._counted = not self._counted, True
        notice = silent_loss(self._info.name, request, event, first=first)
        if not notice and self._server is not None and not self._server.takes_tools:
            notice = f"The server's template for {self._info.name} does not support tools, so the model cannot use any."
        self._noticed = bool(notice)
        return notice

    async def retire(self) -> None:
        """Closes the model as soon as nothing is streaming any more: another one takes its place."""
        self._retired = True
        if not self._replies:
            await self.close()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
        model, self._model = self._model, None
        if model is not None:
            await model.close()
