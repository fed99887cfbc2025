"""Takes out of a reply what the person has seen already: some models begin anew a reply that broke off."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from crow.model.base import CallBegan, Done, ModelEvent, Said, TextData

LEAST_REPEATED = 8
"""Characters: fewer may come twice in a row by chance."""


class RepeatedText:
    """`before` is what was said when the reply broke off. What begins like it is held back until it differs."""

    def __init__(self, before: str) -> None:
        self._before = before if len(before) >= LEAST_REPEATED else ""
        self._repeated = 0
        """So many characters have come again."""

    @property
    def is_all(self) -> bool:
        """Whether nothing has come but the beginning of what was said before."""
        return bool(self._before) and self._repeated > 0

    @property
    def has_begun(self) -> bool:
        return self._repeated > 0

    async def taken_out(self, stream: AsyncGenerator[ModelEvent, None]) -> AsyncGenerator[ModelEvent, None]:
        is_new = False
        async with aclosing(stream):
            async for event in stream:
                text = ""
                if isinstance(event, Said):
                    text = self._new_in(event.text)
                elif isinstance(event, CallBegan | Done):
                    text = self._held()
                if text:
                    is_new = True
                    yield Said(text)
                if not isinstance(event, Said) and (is_new or not isinstance(event, TextData)):
                    yield event

    def _new_in(self, text: str) -> str:
        known = self._before[self._repeated : self._repeated + len(text)]
        if not text.startswith(known):
            return self._held() + text
        self._repeated += len(known)
        if self._repeated == len(self._before):
            self._before = ""
        return text[len(known) :]

    def _held(self) -> str:
        """What was held back and is no repetition after all."""
        held, self._before = self._before[: self._repeated], ""
        return held
