"""What the policy is asked, and its three answers."""

from typing import Protocol

import msgspec

from crow.actions import Deed


class Scope(msgspec.Struct, frozen=True):
    """What an "always" would cover, in words and as data: the label says exactly what will be remembered."""

    label: str
    tool: str
    folder: str


class Allow(msgspec.Struct, frozen=True):
    rule: str


class Ask(msgspec.Struct, frozen=True):
    rule: str
    reason: str
    """Why the person is asked, in a sentence for them."""
    scope: Scope | None = None
    """What may be allowed for the rest of the session; None where each time must be asked for."""


class Deny(msgspec.Struct, frozen=True):
    rule: str
    reason: str


Verdict = Allow | Ask | Deny


class Policy(Protocol):
    """Decides from rules alone; asks nobody and does nothing. Each verdict names the rule that gave it."""

    def judge(self, deed: Deed) -> Verdict: ...

    def is_secret(self, path: str) -> bool:
        """Whether a resolved path may hold credentials: then it is never read unasked, not even as an attachment."""
        ...

    def remember(self, scope: Scope) -> None:
        """The person allowed this scope for the rest of the session."""
        ...
