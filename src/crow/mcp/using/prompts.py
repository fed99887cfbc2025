"""Prompts of servers: what `/mcp:server:prompt …` becomes."""

import shlex
from collections.abc import Collection, Iterable
from itertools import count

from mcp_types import GetPromptResult, Prompt

from crow.errors import CrowError
from crow.events import Sent, SentMedia, SentText
from crow.mcp.using.answering import AskedIn
from crow.mcp.using.connection import Connection
from crow.mcp.using.content import read_content
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.naming import prompt_name
from crow.mcp.using.telling import gave_no
from crow.visible import one_line

LONGEST_HINT = 200
LONGEST_TEXT = 100_000
"""Characters of one prompt, all its messages together."""


class ServerPrompt:
    """`taken` are the names of other commands: this one gets a number if its own is among them."""

    def __init__(self, connection: Connection, prompt: Prompt, taken: Collection[str] = ()) -> None:
        self.name = _distinct(prompt_name(connection.known_as, prompt.name), taken)
        said = prompt.description or prompt.title or prompt.name
        self.description = f"{one_line(said, 200)} ({one_line(connection.name, 60)})"
        arguments = (one.name if one.required else f"[{one.name}]" for one in prompt.arguments or ())
        self.hint = one_line(" ".join(arguments), LONGEST_HINT)
        self._connection = connection
        self._prompt = prompt

    async def expand(self, arguments: str) -> tuple[Sent, ...]:
        """What the server makes of it. CrowError says what is missing, or why there is no answer."""
        values = self._values(arguments)
        try:
            given = await self._connection.ask(lambda client: client.get_prompt(self._prompt.name, values), AskedIn())
        except ServerFailed as failed:
            raise CrowError(gave_no("prompt", self._connection.wanted, failed)) from None
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
            names = one_line(", ".join(missing), LONGEST_HINT)
            raise CrowError(f"`/{self.name}` needs: {names}.", remedy=f"Write `/{self.name} {self.hint}`.")
        return values


def prompts_of(connections: Iterable[Connection]) -> dict[str, list[ServerPrompt]]:
    """By server. No two of them have the same name, whatever is not allowed in a name being replaced."""
    taken: set[str] = set()
    found: dict[str, list[ServerPrompt]] = {}
    for connection in connections:
        of_it = found.setdefault(connection.name, [])
        for prompt in connection.has.prompts:
            of_it.append(ServerPrompt(connection, prompt, taken))
            taken.add(of_it[-1].name)
    return found


def _distinct(name: str, taken: Collection[str]) -> str:
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f"{name}_{number}") not in taken)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe that is only an apostrophe
        return text.split()


def _as_sent(given: GetPromptResult) -> tuple[Sent, ...]:
    sent: list[Sent] = []
    room = LONGEST_TEXT
    left_out = 0
    for message in given.messages:
        texts, images = read_content([message.content])
        spoken = "" if message.role == "user" else "You said earlier: "
        for text in texts:
            if room:
                sent.append(SentText(spoken + text[:room]))
            left_out += len(text[room:])
            room -= len(text[:room])
        sent += [SentMedia("image", image.data, image.mime_type) for image in images]
    if left_out:
        sent.append(SentText(f"(The rest of this prompt, {left_out:,} characters, is left out.)"))
    if not sent:
        raise CrowError("The server's prompt is empty.")
    return tuple(sent)
