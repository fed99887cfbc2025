"""What a scripted model is told to do: written in Python by tests, or in a TOML file.

    [[reply]]
    when = "hello"                     # optional: only if the last user message contains this
    events = [
        { thought = "A greeting." },
        { text = "Hello there!", pace = 30 },            # streamed by word, 30 ms each
        { call = "read", arguments = { path = "a.py" } },
    ]

An event is exactly one of `text`, `thought`, `call`, `usage`, `wait`, `fail`, `finish`.
"""

import tomllib
from typing import Any

import msgspec

from crow.errors import ConfigError
from crow.messages import StopReason
from crow.model.base import Usage


class Say(msgspec.Struct, frozen=True):
    text: str
    pace: float = 0
    """Milliseconds a word."""


class Think(msgspec.Struct, frozen=True):
    text: str
    pace: float = 0
    signature: str = ""


class Call(msgspec.Struct, frozen=True):
    """A tool call; `raw` is sent instead of `arguments` and may be no JSON. Streamed in `pieces` fragments."""

    tool: str
    arguments: dict[str, Any] = {}
    raw: str | None = None
    pieces: int = 1

    @property
    def text(self) -> str:
        return self.raw if self.raw is not None else msgspec.json.encode(self.arguments).decode()


class Wait(msgspec.Struct, frozen=True):
    seconds: float


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fails as an HTTP status would; without a status, as a connection that breaks off."""

    status: int | None = None
    message: str = ""
    retry_after: float | None = None
    after_text: str = ""


class Finish(msgspec.Struct, frozen=True):
    """Ends the reply with this reason; without it a reply ends with `end_turn`."""

    reason: StopReason


ScriptEvent = Say | Think | Call | Usage | Wait | Fail | Finish


class Reply(msgspec.Struct, frozen=True):
    events: tuple[ScriptEvent, ...]
    when: str = ""
    repeat: bool = False
    """Used any number of times, not once."""


def reply(*events: ScriptEvent | str, when: str = "", repeat: bool = False) -> Reply:
    """`reply("Let me look.", Call("read", {"path": "a.py"}))`: a plain string is text."""
    return Reply(tuple(Say(event) if isinstance(event, str) else event for event in events), when=when, repeat=repeat)


# --- the TOML form


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | None = None
    thought: str | None = None
    call: str | None = None
    usage: Usage | None = None
    wait: float | None = None
    fail: Fail | None = None
    finish: StopReason | None = None
    # details of text, thought and call
    pace: float = 0
    signature: str = ""
    arguments: dict[str, Any] = {}
    raw: str | None = None
    pieces: int = 1

    def event(self) -> ScriptEvent | None:
        """What this entry stands for; None if it is not exactly one thing."""
        found: list[ScriptEvent] = []
        if self.text is not None:
            found.append(Say(self.text, self.pace))
        if self.thought is not None:
            found.append(Think(self.thought, self.pace, self.signature))
        if self.call is not None:
            found.append(Call(self.call, self.arguments, self.raw, self.pieces))
        if self.wait is not None:
            found.append(Wait(self.wait))
        if self.finish is not None:
            found.append(Finish(self.finish))
        found.extend(event for event in (self.usage, self.fail) if event is not None)
        return found[0] if len(found) == 1 else None


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: list[_Entry]
    when: str = ""
    repeat: bool = False


class _Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reply: list[_Reply]


def load(path: str) -> list[Reply]:
    try:
        with open(path, "rb") as file:
            written = msgspec.convert(tomllib.load(file), _Script)
    except OSError as error:
        raise ConfigError(
            f"The script {path} cannot be read: {error.strerror}.", remedy="Check `script` in the configuration."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The script {path} is no valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"The script {path} is wrong: {error}.") from error
    return [_reply(path, number, entry) for number, entry in enumerate(written.reply)]


def _reply(path: str, number: int, written: _Reply) -> Reply:
    events: list[ScriptEvent] = []
    for position, entry in enumerate(written.events):
        event = entry.event()
        if event is None:
            raise ConfigError(
                f"The script {path} is wrong: reply[{number}].events[{position}] must have exactly one of "
                "text, thought, call, usage, wait, fail, finish."
            )
        events.append(event)
    return Reply(tuple(events), when=written.when, repeat=written.repeat)
