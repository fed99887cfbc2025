"""The slash commands of the session in `crow chat`: tells a text that looks like one from other text, and
refuses one that there is not.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Sequence

from crow.acp.wire import AvailableCommand, AvailableCommandsUpdate
from crow.config.toml import nearest
from crow.timeouts import timeout

LEAVING = ("/exit", "/quit")
"""What leaves the chat, unless the session has a command of that name."""
TOLD_IN = 2.0
"""Seconds in which a session tells its commands after it was opened; it does so at once."""
_COMMAND = re.compile(r"/([\w:-]+)(?!\S)")


class Commands:
    """Those that the session has told."""

    def __init__(self) -> None:
        self.offered: Sequence[AvailableCommand] = ()
        self._others: Sequence[str] = ()
        """The names of those that are not offered, and can be given all the same."""
        self._told = asyncio.Event()

    def take(self, update: AvailableCommandsUpdate) -> None:
        self.offered = update.available_commands
        self._others = update.meta.crow.untrusted if update.meta is not None else ()
        self._told.set()

    def has(self, text: str) -> bool:
        """Whether a text is a command that is offered."""
        name = text.split(maxsplit=1)[0].removeprefix("/") if text.startswith("/") else ""
        return any(command.name == name for command in self.offered)

    def refusal(self, text: str) -> str:
        """Why a text is not sent that looks like a command, where there is none of that name: a slip is not to be paid
        for. Empty for all other text, and as long as the commands are not known."""
        name = _name(text)
        known = [*(command.name for command in self.offered), *self._others, *(word[1:] for word in LEAVING)]
        if not name or not self._told.is_set() or name in known:
            return ""
        meant = next((other for other in known if other.startswith(name)), "") or nearest(name, known)
        instead = f"Did you mean /{meant}?" if meant else "/help lists the commands."
        return f"There is no command /{name}. {instead} To send it to the model, put a space before it."

    async def known_for(self, text: str) -> None:
        """Waits until the commands are known, for a text that looks like one."""
        if _name(text):
            with contextlib.suppress(TimeoutError):
                async with timeout(TOLD_IN):
                    await self._told.wait()


def _name(text: str) -> str:
    """The name of the command that a text looks like; empty for a path, as in `/etc/hosts is wrong` or `/tmp is full`,
    and for the prompt of a server, which may still be starting."""
    found = _COMMAND.match(text)
    if found is None or found[1].startswith("mcp:") or os.path.lexists(found[0]):
        return ""
    return found[1]
