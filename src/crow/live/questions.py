"""Puts a question to all faces of a session, takes the first clear answer, and withdraws the question everywhere else.

A face that leaves, an error, an unknown option or a dialog that was dismissed are no answers: whoever else is there is
still asked. In `crow web` a question that nobody is there for waits until somebody comes. All faces belong to one user
of this machine, so that it does not matter which of them is the fastest.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from crow.actions import Answer, Filled, Form, Link, PermissionAnswer, PermissionQuestion, Person, Question
from crow.live.face import Face
from crow.timeouts import timeout

T = TypeVar("T")

NOBODY = "nobody is there who could be asked."


class _Poll(Generic[T]):
    """One question, while it waits for an answer."""

    def __init__(self, put: Callable[[Face], Awaitable[T]], is_clear: Callable[[T], bool]) -> None:
        self._put = put
        self._is_clear = is_clear
        self._unclear: list[Face] = []
        """The faces that gave no clear answer."""
        self._asked: dict[asyncio.Future[T], Face] = {}
        self._more = asyncio.Event()

    def put_to(self, face: Face) -> None:
        self._asked[asyncio.ensure_future(self._put(face))] = face
        self._more.set()

    async def answer(self, question_timeout: float) -> tuple[T, Face] | None:
        """The first clear answer, and where it was given; the last of the others if there is none; None if nobody
        could be asked. Where nobody is there it waits for so many seconds until somebody comes."""
        last: tuple[T, Face] | None = None
        try:
            while self._asked or await self._somebody_comes(question_timeout):
                await self._next()
                for answer in [answer for answer in self._asked if answer.done()]:
                    last = answer.result(), self._asked.pop(answer)
                    if self._is_clear(last[0]):
                        return last
                    self._unclear.append(last[1])
            return last
        finally:
            for answer in self._asked:
                answer.cancel()

    async def _somebody_comes(self, question_timeout: float) -> bool:
        """False if there is somebody who has been asked in vain, or if nobody comes."""
        if not question_timeout or any(not face.is_gone() for face in self._unclear):
            return False
        self._more.clear()
        with contextlib.suppress(TimeoutError):
            async with timeout(question_timeout):
                await self._more.wait()
        return bool(self._asked)

    async def _next(self) -> None:
        self._more.clear()
        more = asyncio.ensure_future(self._more.wait())
        try:
            await asyncio.wait([*self._asked, more], return_when=asyncio.FIRST_COMPLETED)
        finally:
            more.cancel()


class Questions(Person):
    """`faces` gives those that can be asked now; `changed` is told whenever a question is put or answered. Where nobody
    is there, a question waits for `question_timeout` seconds."""

    def __init__(
        self, faces: Callable[[], Sequence[Face]], changed: Callable[[], None], question_timeout: float = 0.0
    ) -> None:
        self._faces = faces
        self._question_timeout = question_timeout
        self._changed = changed
        self._open: list[_Poll[Any]] = []

    @property
    def has_dialogs(self) -> bool:
        return any(face.person.has_dialogs for face in self._faces())

    @property
    def can_visit(self) -> bool:
        return any(face.person.can_visit for face in self._faces())

    @property
    def is_open(self) -> bool:
        """Whether a question waits for an answer."""
        return bool(self._open)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def put_open_to(self, face: Face) -> None:
        """Asks a face that has joined what all others have been asked."""
        for poll in self._open:
            poll.put_to(face)

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        poll = _Poll(lambda face: face.person.permit(question), lambda answer: answer.is_clear)
        answered = await self._answer_to(poll)
        if answered is None:
            return PermissionAnswer("reject", NOBODY, is_clear=False)
        answer, face = answered
        if not answer.is_clear:
            return answer
        if not answer.allowed and (words := answer.words or await face.person.explain(question)):
            answer = replace(answer, reason=f"permission was refused, with these words: {words}", words=words)
        return replace(answer, by=face.name)

    async def ask(self, question: Question) -> Answer | None:
        return await self._dialog(lambda face: face.person.ask(question))

    async def choose(self, question: Question) -> Answer | None:
        return await self._dialog(lambda face: face.person.choose(question))

    async def fill_in(self, form: Form) -> Filled | None:
        poll = _Poll(lambda face: face.person.fill_in(form), lambda filled: filled is not None and filled.is_clear)
        answered = await self._answer_to(poll)
        return answered[0] if answered else None

    async def visit(self, link: Link) -> bool:
        answered = await self._answer_to(_Poll(lambda face: face.person.visit(link), bool))
        return answered is not None and answered[0]

    def visited(self, link_id: str) -> None:
        for face in self._faces():
            face.person.visited(link_id)

    async def _dialog(self, put: Callable[[Face], Awaitable[Answer | None]]) -> Answer | None:
        poll = _Poll(put, lambda answer: answer is not None and not answer.dismissed)
        answered = await self._answer_to(poll)
        return answered[0] if answered else None

    async def _answer_to(self, poll: _Poll[T]) -> tuple[T, Face] | None:
        for face in self._faces():
            poll.put_to(face)
        self._open.append(poll)
        self._changed()
        try:
            return await poll.answer(self._question_timeout)
        finally:
            self._open.remove(poll)
            self._changed()
