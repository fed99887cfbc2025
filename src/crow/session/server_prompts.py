"""The prompts of MCP servers, as commands of the session."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crow.events import CommandInfo, Sent
from crow.session.commands import Command, Prompt
from crow.turn.conversation import TurnIds

if TYPE_CHECKING:
    from crow.mcp.using.prompts import ServerPrompt


class ServerPrompts:
    """`there` gives those that the servers have now."""

    def __init__(self, there: "Callable[[], Sequence[ServerPrompt]]") -> None:
        self._there = there

    def look(self) -> None:
        """They come and go by themselves."""

    def commands(self) -> Sequence[Command]:
        return [PromptCommand(prompt) for prompt in self._there()]

    def find(self, name: str) -> Command | None:
        return next((command for command in self.commands() if command.info.name == name), None)


class PromptCommand:
    def __init__(self, prompt: "ServerPrompt") -> None:
        self.info = CommandInfo(prompt.name, prompt.description, prompt.hint)
        self._prompt = prompt

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        return Prompt((*await self._prompt.expand(arguments), *rest))
