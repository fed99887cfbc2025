"""What the person is told of one server: which one it is, who wants it, what is the matter, what can be done."""

from collections.abc import Callable
from typing import Literal

from crow.events import Notice, Remark
from crow.mcp.using.failures import LoginNeeded, ServerFailed, TimedOut
from crow.mcp.using.server_address import bare_address
from crow.mcp.using.wanted import Origin, Wanted
from crow.visible import one_line


class Telling:
    def __init__(self, wanted: Wanted, tell: Callable[[Notice], None]) -> None:
        self._wanted = wanted
        self._tell = tell

    def login_needed(self) -> LoginNeeded:
        if self._wanted.origin is Origin.CONFIG:
            return LoginNeeded(self._wanted.shown_name)
        # Another server of this name may stand in the configuration, so the editor's is named by its address.
        return LoginNeeded(one_line(bare_address(self._wanted.settings.url), 500), is_address=True)

    def is_ready_now(self, *, was_ready: bool) -> None:
        self._say("info", f"The MCP server {self._shown} is ready now.", was_ready)

    def has_failed(self, failure: ServerFailed, *, was_ready: bool, given_up: bool) -> None:
        verb = "has stopped" if was_ready else "cannot be used"
        if isinstance(failure, TimedOut):
            next_step = f" {self._by_hand}" if self._wanted.settings.url else f" It was ended. {self._by_hand}"
        else:
            next_step = "" if given_up else " It is started again."
        text = f"The MCP server {self._shown} {verb}: {failure.message.rstrip('.')}.{next_step}"
        self._say("warning", text, was_ready)

    def is_given_up(self, failure: ServerFailed, *, was_ready: bool) -> None:
        why = failure.message.rstrip(".")
        self._say("warning", f"The MCP server {self._shown}: It is given up for now: {why}. {self._by_hand}", was_ready)

    def is_late(self, seconds: float, remark: str) -> None:
        text = (
            f"is not ready after {seconds:g} s. The work goes on without it; its tools join when it is ready.{remark}"
        )
        self._tell(Notice("warning", f"The MCP server {self._shown} {text}"))

    def waits_for_login(self) -> None:
        text = f"The MCP server {self._shown} is not ready: it waits for you to log in. Its tools come when you have."
        self._tell(Notice("warning", text))

    def _say(self, severity: Literal["info", "warning"], text: str, was_ready: bool) -> None:
        """What becomes of a server that was in use belongs to the conversation. That one cannot be started is said
        anew whenever the session is opened, as long as it is so."""
        self._tell(Remark(severity, text) if was_ready else Notice(severity, text))

    def warn(self, text: str) -> None:
        self._tell(Notice("warning", f"The MCP server {self._shown}: {text}"))

    @property
    def _shown(self) -> str:
        return f"`{self._wanted.shown_name}` (from {self._wanted.origin})"

    @property
    def _by_hand(self) -> str:
        return f"`/mcp restart {self._wanted.shown_name}` tries again."


def gave_no(what: str, wanted: Wanted, failed: ServerFailed) -> str:
    """A sentence for the model about something that was asked of a server."""
    return f"The MCP server `{wanted.shown_name}` gave no {what}: {failed.for_model.rstrip('.')}."
