"""The messages between the agent and the process that converts a page: the job, its result, and why there is none."""

from typing import Literal

import msgspec

MOST_TEXT = 1_000_000
"""Characters that are kept of a page."""


class Job(msgspec.Struct, frozen=True):
    """The first line that the process is sent; the content follows, in as many bytes as it says."""

    kind: Literal["html", "plain", "pdf"]
    """HTML as Markdown, HTML as plain text, or a PDF."""
    size: int
    url: str


class Converted(msgspec.Struct, frozen=True):
    text: str
    title: str = ""
    date: str = ""
    note: str = ""
    """What is missing."""
    problem: str = ""
    """Why there is no text, in words for a person."""


class Unreadable(Exception):
    """The content cannot be converted; the message says why."""


class OutOfTime(BaseException):
    """The processor time for reading a PDF is used up; what is left is for handing over what was read.

    No `Exception`: the library that is interrupted by it catches those, and would go on.
    """
