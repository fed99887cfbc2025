"""When a server that failed is started again: after ever longer pauses, and not for ever."""

from crow.mcp.using.failures import ServerFailed

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before each further try; after the last one the server is given up until somebody asks for it."""
LONG_ENOUGH = 60.0
"""Seconds that a server must have run for its failures to be forgotten."""


class Retries:
    def __init__(self) -> None:
        self._failures = 0

    @property
    def is_first(self) -> bool:
        """Whether the failure that comes now is the first of its row."""
        return self._failures == 0

    def forget(self) -> None:
        self._failures = 0

    def has_run(self, seconds: float) -> None:
        if seconds > LONG_ENOUGH:
            self.forget()

    def next_pause(self, failure: ServerFailed) -> float | None:
        """None: it is given up."""
        if failure.lasting or self._failures >= len(PAUSES):
            return None
        self._failures += 1
        return PAUSES[self._failures - 1]
