"""Builds and changes single messages of a history: a partial reply, joined neighbours, thoughts left out, calls as
plain text, pruned outputs.

A message that is simplified stays one message, so that positions in a history mean the same before and after.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import msgspec
from msgspec.structs import replace

from crow import events
from crow.events import HistorySimplified
from crow.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ProviderData,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserPart,
    without_middle,
)
from crow.results import ToolResult
from crow.visible import can_be_seen, fence

UNFINISHED = "No result: the call was interrupted before it ended."
MEDIA_DROPPED = "[An attachment was here. The request with it was refused, so it is not sent again.]"
CALLED = "[I called tools here. What they gave follows.]"
LONGEST_PROMPT = 20_000
"""Characters that are kept of one prompt: its beginning and its end."""
PRUNED = "[The output was removed to save room. Call the tool again if you need it.]"


class TurnMessages:
    """What the model knows of one turn: in here, too, no two of the person's messages stand side by side."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.messages: list[Message] = []
        self.remark = ""
        """What the next prompt is told of this turn's end."""
        self.told_mode = ""
        """The mode that one of its messages tells of; empty if none does."""
        self.told_prompt: events.PromptTold | None = None
        """What one of its messages tells of the surroundings."""
        self.replaced: list[TurnMessages] = []
        """The turns that a summary stands for, without what the tools gave; empty for a turn that is no summary."""

    @property
    def answered(self) -> bool:
        spoken = [message for message in self.messages if not says_nothing(message)]
        return bool(spoken) and not isinstance(spoken[-1], UserMessage)

    def add(self, said: tuple[UserPart, ...]) -> None:
        message = UserMessage(said)
        if self.messages and isinstance(self.messages[-1], UserMessage):
            self.messages[-1] = _as_one(self.messages[-1], message)
        else:
            self.messages.append(message)

    def beginning(self, length: int) -> "TurnMessages":
        """Its first messages, to be put back one day: in little room, as what tools gave can be asked for again."""
        kept = TurnMessages(self.id)
        kept.messages = [without_media(pruned(message)) for message in self.messages[:length]]
        kept.remark = self.remark
        kept.replaced = self.replaced
        return kept

    def stands_for(self, turn_id: str) -> bool:
        """Whether it is a summary that tells of the turn, be it through the summary before it."""
        summary = self
        while summary.replaced:
            if any(turn.id == turn_id for turn in summary.replaced):
                return True
            summary = summary.replaced[0]
        return False


class PartialReply:
    """Valid messages at every moment: a call whose arguments are not complete is left out, one without a result gets
    one. Deltas are joined only when the messages are asked for."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str] | ToolCall | None] = {}
        """The parts by message or call id; None holds the place of a call whose arguments are not complete."""
        self._seals: dict[str, events.ThoughtSealed] = {}
        self._thoughts: dict[str, Thought] = {}
        """What is known of each thought but its text."""
        self._kept: dict[str, ProviderData] = {}
        self._results: dict[str, ToolMessage] = {}

    def say(self, message_id: str, text: str) -> None:
        part = self._parts.setdefault(message_id, [])
        if isinstance(part, list):
            part.append(text)

    def think(self, event: events.ThoughtDelta) -> None:
        if event.message_id not in self._thoughts:
            self._thoughts[event.message_id] = Thought(
                "", event.origin, model=event.model, field=event.field, host=event.host
            )
        self.say(event.message_id, event.text)

    def seal(self, event: events.ThoughtSealed) -> None:
        self._thoughts.setdefault(event.message_id, Thought("", event.origin, model=event.model, host=event.host))
        self._seals[event.message_id] = event
        self.say(event.message_id, "")

    def keep(self, event: events.ProviderDataKept) -> None:
        self._kept[event.part_id] = event.kept
        if event.thought:
            kept = event.kept
            self._thoughts.setdefault(event.part_id, Thought("", kept.provider, model=kept.model, host=kept.host))
            self.say(event.part_id, "")

    def open_call(self, call_id: str) -> None:
        self._parts[call_id] = None

    def request_call(self, call: ToolCall) -> None:
        self._parts[call.id] = call

    def settle(self, call_id: str, result: ToolResult) -> None:
        if call_id in self._parts:
            self._results[call_id] = output_of(call_id, result)

    def messages(self) -> list[Message]:
        parts = tuple(part for key, value in self._parts.items() if (part := self._part(key, value)) is not None)
        if not parts:
            return []
        reply = AssistantMessage(parts)
        results = [self._results.get(call.id) or unfinished_output(call.id) for call in reply.calls]
        return [reply, *results]

    def _part(self, key: str, value: list[str] | ToolCall | None) -> AssistantPart | None:
        kept = self._kept.get(key)
        if value is None or isinstance(value, ToolCall):
            return replace(value, kept=kept) if value and kept else value
        text = "".join(value)
        if (thought := self._thoughts.get(key)) is None:
            return Text(text, kept) if text else None
        seal = self._seals.get(key)
        if seal is not None:
            thought = replace(thought, origin=seal.origin, signature=seal.signature, redacted=seal.redacted)
        return replace(thought, text=text, kept=kept) if text or seal or kept else None


def output_of(call_id: str, result: ToolResult) -> ToolMessage:
    return ToolMessage(call_id, result.text, ok=result.ok, images=result.images)


def unfinished_output(call_id: str) -> ToolMessage:
    """What stands in the place of a call's output until the call is settled."""
    return ToolMessage(call_id, UNFINISHED, ok=False)


# --- without what was refused


def simplified(messages: Sequence[Message], how: HistorySimplified) -> list[Message]:
    flattened = frozenset(how.flattened)
    calls = {call.id: call for message in messages if isinstance(message, AssistantMessage) for call in message.calls}
    return [
        _flat(message, calls) if place in flattened else _without_thoughts(message) if how.thoughts else message
        for place, message in enumerate(messages)
    ]


def has_thoughts(message: Message) -> bool:
    """Whether it holds what only its provider understands: thoughts, or data that came with its parts."""
    return isinstance(message, AssistantMessage) and any(_is_thought(part) for part in message.parts)


def can_be_flattened(message: Message) -> bool:
    match message:
        case UserMessage():
            return not all(isinstance(part, Text) for part in message.parts)
        case AssistantMessage():
            return bool(message.calls) or has_thoughts(message)
        case ToolMessage():
            return True


def whole_rounds(messages: Sequence[Message], places: Sequence[int]) -> tuple[int, ...]:
    """The places, and with each call its results, with each result its call and the results beside it."""
    found: set[int] = set()
    for place in places:
        first = place
        while first and isinstance(messages[first], ToolMessage):
            first -= 1
        last = first + 1
        while last < len(messages) and isinstance(messages[last], ToolMessage):
            last += 1
        found.update(range(first, last))
    return tuple(place for place in sorted(found) if can_be_flattened(messages[place]))


def without_media(message: Message) -> Message:
    if not isinstance(message, UserMessage):
        return message
    return UserMessage(tuple(part if isinstance(part, Text) else Text(MEDIA_DROPPED) for part in message.parts))


def _is_thought(part: AssistantPart) -> bool:
    return isinstance(part, Thought) or part.kept is not None


def _without_thoughts(message: Message) -> Message:
    if not has_thoughts(message):
        return message
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    return AssistantMessage(tuple(replace(part, kept=None) for part in parts if not isinstance(part, Thought)))


def without_thoughts_of(message: Message, models: Collection[str]) -> Message:
    """Without the thoughts that these models had, and what came with their words and calls."""
    if not isinstance(message, AssistantMessage) or not models:
        return message
    parts = (part for part in message.parts if not isinstance(part, Thought) or not _is_of(part, models))
    return AssistantMessage(tuple(_without_kept(part, models) for part in parts))


def _is_of(thought: Thought, models: Collection[str]) -> bool:
    """Whether one of these models had the thought. Of a thought that was withheld, only the provider is known."""
    return any(name.startswith(f"{thought.origin}/{thought.model}") for name in models)


def _without_kept(part: AssistantPart, models: Collection[str]) -> AssistantPart:
    kept = part.kept
    return replace(part, kept=None) if kept and f"{kept.provider}/{kept.model}" in models else part


def _flat(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    match message:
        case AssistantMessage():
            texts = tuple(Text(part.text) for part in message.parts if isinstance(part, Text))
            return AssistantMessage(texts or ((Text(CALLED),) if message.calls else ()))
        case ToolMessage():
            call = calls.get(message.call_id)
            what = f"`{call.name}` with the arguments `{call.arguments}`" if call else "a tool"
            told = f"[Crow called {what}. It {'gave' if message.ok else 'failed with'}:]\n{fence(message.text)}"
            return UserMessage((Text(told), *(Text(MEDIA_DROPPED) for _ in message.images)))
        case UserMessage():
            return without_media(message)


# --- joining


def grouped(entries: list[Message]) -> list[list[int]]:
    """For each message, the positions of the entries that it is made of.

    Nobody speaks twice in a row, as many providers refuse that, and a reply that was cut off before it had said
    anything is no message.
    """
    groups: list[list[int]] = []
    for place, entry in enumerate(entries):
        if says_nothing(entry):
            continue
        if groups and not isinstance(entry, ToolMessage) and type(entries[groups[-1][0]]) is type(entry):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def joined(entries: list[Message]) -> list[Message]:
    return [reduce(_as_one, (entries[place] for place in group)) for group in grouped(entries)]


def _as_one(first: Message, second: Message) -> Message:
    match first, second:
        case UserMessage(), UserMessage():
            return UserMessage(first.parts + second.parts)
        case AssistantMessage(), AssistantMessage():
            return AssistantMessage(first.parts + second.parts)
        case _:
            raise TypeError(f"no two messages of one speaker: {first}, {second}")


def says_nothing(message: Message) -> bool:
    """Whether it is a reply of which there is nothing that could be sent by itself."""
    return isinstance(message, AssistantMessage) and all(
        isinstance(part, Thought) or (isinstance(part, Text) and not can_be_seen(part.text)) for part in message.parts
    )


def pruned(message: Message) -> Message:
    return replace(message, text=PRUNED, images=()) if isinstance(message, ToolMessage) else message


# --- what no summary of a history may lose


class _TurnEssentials(msgspec.Struct):
    turn_id: str
    prompts: list[str] = []
    """The turn's own, and what was said into it while it ran."""
    files: dict[str, None] = {}
    """Paths, in the order of their first change."""


class Essentials:
    """What a summary must not lose, whoever writes it: the person's own words, and which files were changed.

    Kept turn by turn beside the messages, so that it outlives any number of compactions.
    """

    def __init__(self) -> None:
        self._turns: list[_TurnEssentials] = []

    def begin(self, turn_id: str) -> None:
        self._turns.append(_TurnEssentials(turn_id))

    def add_prompt(self, said: events.UserSaid) -> None:
        if words := _own_words(said).strip():
            self._current().prompts.append(without_middle(words, LONGEST_PROMPT))

    def add_file(self, path: str) -> None:
        self._current().files[path] = None

    def forget(self, turn_id: str) -> None:
        self._turns = [turn for turn in self._turns if turn.turn_id != turn_id]

    def forget_all(self) -> None:
        self._turns = []

    @property
    def prompts(self) -> list[str]:
        """Oldest first."""
        return [prompt for turn in self._turns for prompt in turn.prompts]

    @property
    def files(self) -> list[str]:
        """What the model has changed; what a command of the person's own wrote is not among it."""
        return list(dict.fromkeys(path for turn in self._turns if turn.prompts for path in turn.files))

    def _current(self) -> _TurnEssentials:
        if not self._turns:
            self._turns.append(_TurnEssentials(""))
        return self._turns[-1]


def _own_words(said: events.UserSaid) -> str:
    """What was typed, without what was attached; if something longer was meant by it, that."""
    texts = [part.text for part in said.parts if isinstance(part, Text)]
    typed = {item.text for item in said.sent if isinstance(item, events.SentText)}
    return "\n".join([text for text in texts if text in typed] or texts)
