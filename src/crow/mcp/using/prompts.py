"""Prompts of servers: what `/mcp:server:prompt …` becomes."""

import shlex

from mcp_types import GetPromptResult, Prompt

from crow.errors import CrowError
from crow.events import Sent, SentMedia, SentText
from crow.mcp.using.connection import Connection
from crow.mcp.using.content import read_content
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.naming import prompt_name
from crow.visible import one_line


class ServerPrompt:
    def __init__(self, connection: Connection, prompt: Prompt) -> None:
        self.name = prompt_name(connection.name, prompt.name)
        said = prompt.description or prompt.title or prompt.name
        self.description = f"{one_line(said, 200)} ({one_line(connection.name, 60)})"
        self.hint = " ".join(
            argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments or ()
        )
        self._connection = connection
        self._prompt = prompt

    async def expand(self, arguments: str) -> tuple[Sent, ...]:
        """What the server makes of it. CrowError says what is missing, or why there is no answer."""
        values = self._values(arguments)
        try:
            given = await self._connection.ask(lambda client: client.get_prompt(self._prompt.name, values), "")
        except ServerFailed as failed:
            name = one_line(self._connection.name, 100)
            raise CrowError(f"The MCP server `{name}` gave no prompt: {failed.message.rstrip('.')}.") from None
        return _as_sent(given)

    def _values(self, arguments: str) -> dict[str, str]:
        """`name=value` goes to that argument, other words to the arguments in their order; the last takes the rest."""
        names = [argument.name for argument in self._prompt.arguments or ()]
        values: dict[str, str] = {}
        plain: list[str] = []
        for word in _words(arguments):
            name, sign, value = word.partition("=")
            if sign and name in names:
                values[name] = value
            else:
                plain.append(word)
        open_names = [name for name in names if name not in values]
        for number, name in enumerate(open_names):
            if number < len(plain):
                is_last = number == len(open_names) - 1
                values[name] = " ".join(plain[number:]) if is_last else plain[number]
        required = [argument.name for argument in self._prompt.arguments or () if argument.required]
        if missing := [name for name in required if name not in values]:
            raise CrowError(f"`/{self.name}` needs: {', '.join(missing)}.", remedy=f"Write `/{self.name} {self.hint}`.")
        return values


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe that is only an apostrophe
        return text.split()


def _as_sent(given: GetPromptResult) -> tuple[Sent, ...]:
    sent: list[Sent] = []
    for message in given.messages:
        texts, images = read_content([message.content])
        spoken = "" if message.role == "user" else "You said earlier: "
        sent += [SentText(spoken + text) for text in texts]
        sent += [SentMedia("image", image.data, image.mime_type) for image in images]
    if not sent:
        raise CrowError("The server's prompt is empty.")
    return tuple(sent)
