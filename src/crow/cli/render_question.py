"""Answering a permission request with one key."""

import asyncio
import contextlib
import os
import re
import termios
import tty
from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol

from crow.acp.wire import PermissionOption

LETTERS = {"allow_once": "y", "allow_always": "ap", "reject_once": "n", "reject_always": "d"}
"""The keys of each kind of option: `a` for what lasts as long as the session, `p` for the project."""
END_OF_INPUT = "\x04"
SPECIAL_KEY = re.compile(r"\x1b(\[[0-9;]*[A-Za-z~]|O.|.)?")
"""Arrows, function keys and the like: they begin with an escape and say nothing here."""


class Choice(NamedTuple):
    key: str
    option: PermissionOption


Answer = tuple[PermissionOption | None, str]
"""The option that was chosen, if one was, and what is written as the answer."""


class Answerer(Protocol):
    """Who answers a question. `listening` begins before the question is shown and lasts until it is answered."""

    def listening(self) -> contextlib.AbstractContextManager[None]: ...

    async def choose(self, choices: Sequence[Choice]) -> Answer: ...


def choices_of(options: Sequence[PermissionOption]) -> list[Choice]:
    """Each option with its key: a letter that says what it does; numbers for all where letters do not suffice."""
    keys: list[str] = []
    for option in options:
        free = [letter for letter in LETTERS.get(option.kind, "") if letter not in keys]
        keys.append(free[0] if free else "")
    if not all(keys):
        keys = [str(number) for number in range(1, len(options) + 1)]
    return [Choice(key, option) for key, option in zip(keys, options, strict=True)]


def rejection(choices: Sequence[Choice]) -> PermissionOption | None:
    """The gentlest way to say no; None if there is only yes to choose from."""
    options = [choice.option for choice in choices]
    for kind in ("reject_once", "reject_always"):
        for option in options:
            if option.kind == kind:
                return option
    return None


class Nobody:
    """For when there is nobody to ask; `rejected` counts what would have been asked."""

    def __init__(self) -> None:
        self.rejected = 0

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice]) -> Answer:
        self.rejected += 1
        return rejection(choices), "rejected, as there is no terminal to ask in"


class Keyboard:
    """The person at the terminal: one key, without Enter. Ctrl-C still interrupts."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._keys: asyncio.Queue[str] = asyncio.Queue()

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        self._keys = asyncio.Queue()
        before = termios.tcgetattr(self._terminal)
        # What was typed so far is discarded: it cannot have been meant for a question that is not yet there.
        tty.setcbreak(self._terminal, termios.TCSAFLUSH)
        loop.add_reader(self._terminal, self._read)
        try:
            yield
        finally:
            loop.remove_reader(self._terminal)
            termios.tcsetattr(self._terminal, termios.TCSADRAIN, before)

    async def choose(self, choices: Sequence[Choice]) -> Answer:
        while True:
            key = await self._keys.get()
            if key == END_OF_INPUT:
                return rejection(choices), "rejected"
            for number, choice in enumerate(choices, start=1):
                if key.lower() in (choice.key, str(number)):
                    return choice.option, choice.option.name

    def _read(self) -> None:
        try:
            typed = os.read(self._terminal, 64).decode("utf-8", "replace")
        except OSError:
            typed = ""
        if not typed:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._terminal)
            typed = END_OF_INPUT
        for key in SPECIAL_KEY.sub("", typed):
            self._keys.put_nowait(key)
