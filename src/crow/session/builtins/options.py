"""/mode, /model, /plan: what is chosen for the session, by typing."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from crow.errors import CrowError
from crow.events import Choice, CommandInfo, Sent, SentText, SessionOption
from crow.session.commands import Prompt, Reply
from crow.session.options import Options
from crow.turn.conversation import TurnIds
from crow.visible import one_line

MOST_CHOICES = 60
"""Choices that are listed; some providers have hundreds of models."""


class Choose:
    """Lists the choices of an option, or makes one."""

    def __init__(self, options: Options, option: Literal["mode", "model"], info: CommandInfo) -> None:
        self.info = info
        self._options = options
        self._option = option

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        option = self._now()
        if not arguments:
            return Reply("\n".join(_listed(option)))
        if all(choice.value != arguments for choice in option.choices):
            known = ", ".join(f"`{choice.value}`" for choice in option.choices[:MOST_CHOICES])
            return Reply(f"There is no {self._option} `{one_line(arguments)}`. There is: {known}.")
        await self._options.choose(self._option, arguments)
        return Reply(f"The {self._option} is `{self._now().value}` now.")

    def _now(self) -> SessionOption:
        found = next((option for option in self._options.all() if option.id == self._option), None)
        if found is None:
            raise CrowError(f"In this session there is no {self._option} to choose.")
        return found


def mode_command(options: Options) -> Choose:
    return Choose(options, "mode", CommandInfo("mode", "Shows or changes what Crow may do without asking", "[mode]"))


def model_command(options: Options) -> Choose:
    return Choose(options, "model", CommandInfo("model", "Shows or changes the model", "[provider/model]"))


class Plan:
    info = CommandInfo("plan", "Changes to the mode plan: looks and plans, changes nothing", "[task]")

    def __init__(self, options: Options) -> None:
        self._options = options

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply | Prompt:
        await self._options.choose("mode", "plan")
        if not arguments and not rest:
            return Reply("The mode is `plan` now: nothing is changed until you agree to a plan or choose another mode.")
        return Prompt((SentText(arguments), *rest) if arguments else tuple(rest))


def _listed(option: SessionOption) -> Iterator[str]:
    yield f"The {option.id} is `{option.value}`. There is:\n"
    group = ""
    for choice in islice(option.choices, MOST_CHOICES):
        if choice.group != group:
            group = choice.group
            yield f"\n**{one_line(group)}**\n"
        yield _line(choice, current=choice.value == option.value)
    if len(option.choices) > MOST_CHOICES:
        yield f"\nand {len(option.choices) - MOST_CHOICES} more."
    yield f"\nChange it with `/{option.id} {'NAME' if option.id == 'model' else 'MODE'}`."


def _line(choice: Choice, *, current: bool) -> str:
    description = f": {one_line(choice.description)}" if choice.description else ""
    return f"- `{choice.value}`{' (now)' if current else ''}{description}"
