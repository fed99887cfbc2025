"""Permission questions in `crow chat`: answers with one key, and rejections with a reason that is typed into the input
line.
"""

import contextlib
import time
from collections.abc import Callable, Sequence

from crow.cli.answer_keys import AnswerKeys, Choice
from crow.cli.interactive_client import Answer, Invite
from crow.visible import one_line

REASON_KEY = "Tab"
"""Asks for the reason of a rejection. A letter could be the beginning of a word."""
REJECTS_ONCE = "reject_once"


class ChatQuestions:
    """Answers permission requests with the keys that the person presses; see `Answerer` and `AnswerKeys`.

    `insert` gets what turns out to be typing: it goes into the input line. While there is text in that line
    (`has_text`), every key goes there.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        insert: Callable[[str], None],
        has_text: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.takes_reason = False
        """Whether the question that is asked next, or now, can be rejected with a reason."""
        self.rejecting: Choice | None = None
        """The rejection for which a reason is being typed."""
        self._changed = changed
        self._insert = insert
        self._reason = ""
        self._keys = AnswerKeys(changed, lambda: has_text() or self.rejecting is not None, clock=clock)

    @property
    def choices(self) -> Sequence[Choice]:
        """Of the question that is open; nothing if none is."""
        return self._keys.choices

    @property
    def takes_keys(self) -> bool:
        """Whether the next key may be the answer. Until then it goes into the input line."""
        return self._keys.takes_keys

    @property
    def pressed(self) -> Choice | None:
        """The choice whose key was pressed, while another key may still follow."""
        return self._keys.pressed

    @property
    def rejection(self) -> Choice | None:
        """The choice that can have a reason."""
        rejections = (choice for choice in self.choices if choice.option.kind == REJECTS_ONCE)
        return next(rejections, None) if self.takes_reason else None

    def key_pressed(self) -> None:
        """Any key, wherever it goes."""
        self._keys.key_pressed()

    def text_changed(self) -> None:
        """Something was typed or deleted in the input line."""
        self._keys.open_when_quiet()

    def press(self, key: str) -> None:
        """A key that may be the answer. Arrows and the like are none, and say nothing here."""
        if key.isprintable() and (typed := self._keys.press(key)):
            self._insert(typed)

    def paste(self, text: str) -> None:
        """Text that is no answer."""
        self._insert(self._keys.type(text))

    def begin_reason(self) -> None:
        """From now on the reason of a rejection is typed, if the question takes one."""
        if self.pressed is None and self.rejection is not None:
            self.rejecting = self.rejection
            self._keys.open_when_quiet()

    def confirm(self) -> bool:
        """Enter, with an empty input line. False if it is not about an answer."""
        return self._keys.confirm()

    def take_back(self) -> bool:
        """Whatever was begun of an answer is none. False if nothing was."""
        if self.rejecting is None:
            return self._keys.take_back()
        self.rejecting = None
        self._keys.open_when_quiet()
        return True

    def reject(self, reason: str) -> None:
        """Rejects, with the reason that was typed."""
        self._reason = reason.strip()
        self._keys.answer(self.rejecting)

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        try:
            choice = await self._keys.choose(choices)
            return answer_with(choice, self._reason) if choice is not None else Answer(None, "")
        finally:
            self._reason, self.rejecting = "", None
            self._changed()


def answer_with(choice: Choice, reason: str) -> Answer:
    """The choice, with a reason if there is one."""
    words = f"{choice.option.name}: {one_line(reason)}" if reason else choice.option.name
    return Answer(choice.option, words, reason)
