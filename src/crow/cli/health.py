"""One result of a check: what was found, and how to mend it."""

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True):
    outcome: Literal["fine", "warn", "failed"]
    text: str
    remedy: str = ""


def fine(text: str) -> Check:
    return Check("fine", text)


def warn(text: str, remedy: str) -> Check:
    return Check("warn", text, remedy)


def failed(text: str, remedy: str) -> Check:
    return Check("failed", text, remedy)
