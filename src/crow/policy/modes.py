"""What each mode does where no rule says otherwise: the table of docs/permissions.md, as data."""

import enum
from typing import Literal

from crow.config.settings import MODES, Mode

Answer = Literal["go", "ask", "refuse"]


class Aspect(enum.StrEnum):
    """One thing that a deed does. The value is the rule's name in a verdict."""

    READ_INSIDE = "reading in the workspace"
    READ_OUTSIDE = "reading outside the workspace"
    READ_SECRET = "reading a secret"  # noqa: S105 -- no password
    WRITE_INSIDE = "writing in the workspace"
    WRITE_OUTSIDE = "writing outside the workspace"
    WRITE_PROTECTED = "writing to a protected path"
    TERMINAL = "running a command"
    WEB = "asking a host on the web"
    MCP = "calling a server's tool"
    LEAVE_MODE = "changing the mode"
    UNKNOWN = "doing what no rule knows"
    NOTHING = "nothing that needs permission"


# One answer for each of MODES, in their order: ask, edit, plan, auto.
_TABLE: dict[Aspect, tuple[Answer, Answer, Answer, Answer]] = {
    Aspect.READ_INSIDE: ("go", "go", "go", "go"),
    Aspect.READ_OUTSIDE: ("ask", "ask", "ask", "ask"),
    Aspect.READ_SECRET: ("ask", "ask", "ask", "ask"),
    Aspect.WRITE_INSIDE: ("ask", "go", "refuse", "go"),
    Aspect.WRITE_OUTSIDE: ("ask", "ask", "refuse", "ask"),
    Aspect.WRITE_PROTECTED: ("ask", "ask", "refuse", "ask"),
    Aspect.TERMINAL: ("ask", "ask", "refuse", "go"),
    Aspect.WEB: ("ask", "ask", "ask", "go"),
    Aspect.MCP: ("ask", "ask", "ask", "go"),
    Aspect.LEAVE_MODE: ("ask", "ask", "ask", "ask"),
    Aspect.UNKNOWN: ("ask", "ask", "refuse", "ask"),
    Aspect.NOTHING: ("go", "go", "go", "go"),
}

ALWAYS_ASKED = frozenset({Aspect.READ_SECRET, Aspect.WRITE_PROTECTED, Aspect.LEAVE_MODE, Aspect.UNKNOWN})
"""What no allow rule covers."""


def answer(mode: Mode, aspect: Aspect) -> Answer:
    return _TABLE[aspect][MODES.index(mode)]
