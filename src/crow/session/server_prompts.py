"""The prompts of MCP servers, as commands of the session."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from crow.events import CommandInfo, Sent
from crow.session.commands import Command, Prompt, Reply
from crow.turn.conversation import TurnIds
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.using.prompts import ServerPrompt

PREFIX = "mcp:"
"""How the names of all of them begin."""


class ServerPrompts:
    """`there` gives those that the servers have now; `prepare` waits for the servers, as before any prompt."""

    def __init__(
        self, there: "Callable[[], Sequence[ServerPrompt]]", prepare: Callable[[TurnIds], Awaitable[None]]
    ) -> None:
        self._there = there
        self._prepare = prepare
        self._tell: Callable[[], None] = lambda: None

    async def look(self) -> None:
        """They come and go by themselves."""

    def watch(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    @property
    def is_watched(self) -> bool:
        return True

    def has_changed(self) -> None:
        """Is called when there may be others than before."""
        self._tell()

    def close(self) -> None:
        self._tell = lambda: None

    def commands(self) -> Sequence[Command]:
        return [PromptCommand(prompt) for prompt in self._there()]

    def find(self, name: str) -> Command | None:
        """Also one that is not there: its server may still be starting."""
        return self.there(name) or (LatePrompt(name, self, self._prepare) if name.startswith(PREFIX) else None)

    def there(self, name: str) -> Command | None:
        return next((command for command in self.commands() if command.info.name == name), None)


class LatePrompt:
    def __init__(self, name: str, prompts: ServerPrompts, prepare: Callable[[TurnIds], Awaitable[None]]) -> None:
        self.info = CommandInfo(name, "")
        self._prompts = prompts
        self._prepare = prepare

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply | Prompt:
        await self._prepare(ids)
        command = self._prompts.there(self.info.name)
        if command is not None:
            return await command.run(arguments, rest, ids)
        return Reply(
            f"There is no prompt `/{one_line(self.info.name, 200)}`, so nothing was sent to the model. "
            "`/mcp` shows the MCP servers, how they are and their prompts."
        )


class PromptCommand:
    def __init__(self, prompt: "ServerPrompt") -> None:
        self.info = CommandInfo(prompt.name, prompt.description, prompt.hint)
        self._prompt = prompt

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        return Prompt((*await self._prompt.expand(arguments), *rest))
