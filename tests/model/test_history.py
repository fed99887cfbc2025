"""What an adapter encodes can be decoded to the history it came from, but for what its provider cannot be given."""

import base64
import json
from typing import Any, cast

import msgspec
import pytest

from crow.config.settings import Limits, ModelSettings
from crow.messages import (
    AssistantMessage,
    Audio,
    Image,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crow.model import catalog
from crow.model.base import ModelRequest
from crow.model.wires.chat_request import TOOL_IMAGES, CallIds, sent_id
from crow.model.wires.encoding import EMPTY_MESSAGE, NO_OUTPUT
from tests.model.asking import READ, ask_all, run
from tests.support.provider import Provider
from tests.support.provider_anthropic import seal

PICTURE = Image(base64.b64encode(b"a picture").decode(), "image/png")
SOUND = Audio(base64.b64encode(b"a sound").decode(), "audio/wav")


def sent(kind: str, messages: list[Message], **settings: Any) -> dict[str, Any]:
    """The body that the provider got, which it has also found nothing to refuse in."""
    with Provider() as provider:
        dialect = getattr(provider, kind)
        dialect.answer("Fine.")
        providers = {"house": dialect.settings(m=ModelSettings(**settings))}
        model = catalog.create("house/m", providers, Limits(), {})
        (outcome,) = run(ask_all(model, ModelRequest("Be brief.", messages, [READ])))
        assert outcome.error is None
        return dialect.requests[0].body


def decode_openai(body: dict[str, Any]) -> list[Message]:
    messages: list[Message] = []
    for message in body["messages"][1:]:
        content = message["content"]
        match message["role"]:
            case "user":
                texts = [{"type": "text", "text": text} for text in str(content).split("\n\n")]
                parts: list[Any] = texts if isinstance(content, str) else content
                messages.append(UserMessage(tuple(_decode_openai_part(part) for part in parts)))
            case "assistant":
                thoughts = [Thought(message[f], "house") for f in ("reasoning_content",) if f in message]
                calls = [
                    ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                    for call in message.get("tool_calls", [])
                ]
                messages.append(AssistantMessage((*thoughts, *([Text(content)] if content else []), *calls)))
            case "tool":
                messages.append(ToolMessage(message["tool_call_id"], content))
    return messages


def _decode_openai_part(part: dict[str, Any]) -> Text | Image | Audio:
    match part["type"]:
        case "image_url":
            head, _, data = part["image_url"]["url"].partition(";base64,")
            return Image(data, head.removeprefix("data:"))
        case "input_audio":
            return Audio(part["input_audio"]["data"], f"audio/{part['input_audio']['format']}")
        case _:
            return Text(part["text"])


def decode_anthropic(body: dict[str, Any]) -> list[Message]:
    messages: list[Message] = []
    for message in body["messages"]:
        blocks = message["content"]
        if message["role"] == "assistant":
            messages.append(AssistantMessage(tuple(_decode_spoken(block) for block in blocks)))
            continue
        messages.extend(_decode_result(block) for block in blocks if block["type"] == "tool_result")
        if said := [_decode_block(block) for block in blocks if block["type"] != "tool_result"]:
            messages.append(UserMessage(tuple(said)))
    return messages


def _decode_spoken(block: dict[str, Any]) -> Text | Thought | ToolCall:
    match block["type"]:
        case "thinking":
            return Thought(block["thinking"], "house", block["signature"])
        case "redacted_thinking":
            return Thought("", "house", block["data"], redacted=True)
        case "tool_use":
            return ToolCall(block["id"], block["name"], json.dumps(block["input"], separators=(",", ":")))
        case _:
            return Text(block["text"])


def _decode_result(block: dict[str, Any]) -> ToolMessage:
    parts = [_decode_block(inner) for inner in block["content"]]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    images = tuple(part for part in parts if isinstance(part, Image))
    return ToolMessage(block["tool_use_id"], text, not block.get("is_error", False), images)


def _decode_block(block: dict[str, Any]) -> Text | Image:
    if block["type"] == "image":
        return Image(block["source"]["data"], block["source"]["media_type"])
    return Text(block["text"])


DECODE = {"openai": decode_openai, "anthropic": decode_anthropic}


def decoded(kind: str, messages: list[Message], **settings: Any) -> list[Message]:
    """As the provider understands it, with our names for its calls."""
    body = sent(kind, messages, **settings)
    if kind == "openai":
        ids = {sent_id(call.id): call.id for message in messages for call in getattr(message, "calls", ())}
        for message in body["messages"]:
            for call in message.get("tool_calls", []):
                call["id"] = ids[call["id"]]
            if "tool_call_id" in message:
                message["tool_call_id"] = ids[message["tool_call_id"]]
    return DECODE[kind](body)


both = pytest.mark.parametrize("kind", ["openai", "anthropic"])


@both
def test_a_long_conversation_comes_back_as_it_was(kind: str) -> None:
    history: list[Message] = [
        UserMessage((Text("What is in a.py and b.py?"), PICTURE)),
        AssistantMessage(
            (
                Text("Let me look."),
                ToolCall("t1-c1", "read", '{"path":"a.py"}'),
                ToolCall("t1-c2", "read", '{"path":"b.py","limit":3}'),
            )
        ),
        ToolMessage("t1-c1", "print('hello')\n"),
        ToolMessage("t1-c2", "  1\t{}\n"),
        AssistantMessage((ToolCall("t1-c3", "read", "{}"),)),
        ToolMessage("t1-c3", "No path was given."),
        AssistantMessage((Text("Both are short. “Quoted”, \\ and \u2028 too."),)),
        UserMessage((Text("Thanks!"),)),
    ]
    assert decoded(kind, history, images=True) == history


@both
def test_thoughts_of_the_current_rounds_go_back_where_they_came_from(kind: str) -> None:
    signature = seal("Hm.") if kind == "anthropic" else ""
    history: list[Message] = [
        UserMessage((Text("Read a."),)),
        AssistantMessage((Thought("Hm.", "house", signature), ToolCall("c1", "read", "{}"))),
        ToolMessage("c1", "1"),
        AssistantMessage((Thought("Hm.", "house", signature), ToolCall("c2", "read", "{}"))),
        ToolMessage("c2", "2"),
    ]
    assert decoded(kind, history) == history


@both
def test_switching_the_provider_drops_foreign_thoughts_and_nothing_else(kind: str) -> None:
    history: list[Message] = [
        UserMessage((Text("Read a."),)),
        AssistantMessage(
            (
                Thought("Hm.", "elsewhere", "their seal"),
                Thought("", "elsewhere", "their secret", redacted=True),
                Text("Let me look."),
                ToolCall("c1", "read", '{"path":"a"}'),
            )
        ),
        ToolMessage("c1", "nothing"),
        AssistantMessage((Thought("Only a thought.", "elsewhere"),)),
    ]
    assert decoded(kind, history) == [
        history[0],
        AssistantMessage((Text("Let me look."), ToolCall("c1", "read", '{"path":"a"}'))),
        history[2],
    ]


def test_anthropic_takes_no_thought_without_a_seal() -> None:
    history: list[Message] = [
        UserMessage((Text("Hi"),)),
        AssistantMessage((Thought("Cut off in the middle of", "house"), Text("Hello"))),
        UserMessage((Text("Go on."),)),
    ]
    assert decoded("anthropic", history)[1] == AssistantMessage((Text("Hello"),))


@both
def test_what_a_blind_and_deaf_model_cannot_take_is_named(kind: str) -> None:
    (message,) = decoded(kind, [UserMessage((Text("Look, listen:"), PICTURE, SOUND))])
    assert message == UserMessage(
        (
            Text("Look, listen:"),
            Text("[image left out: this model does not take image/png]"),
            Text("[audio left out: this model does not take audio/wav]"),
        )
    )


def test_audio_for_a_model_that_hears() -> None:
    history: list[Message] = [UserMessage((Text("Listen:"), SOUND))]
    assert decoded("openai", history, audio=True) == history


@both
def test_prompts_in_a_row_become_one(kind: str) -> None:
    history: list[Message] = [UserMessage((Text("One"),)), UserMessage((Text("Two"),))]
    assert decoded(kind, history) == [UserMessage((Text("One"), Text("Two")))]


@both
def test_prompts_around_a_reply_that_only_thought_become_one(kind: str) -> None:
    """As after a process that was killed in the middle of a thought, when its session is taken up again."""
    thought = AssistantMessage((Thought("Let me think", "house"),))
    history: list[Message] = [UserMessage((Text("Go."),)), thought, UserMessage((Text("Go on."),))]
    assert decoded(kind, history) == [UserMessage((Text("Go."), Text("Go on.")))]


@both
def test_nothing_empty_is_sent(kind: str) -> None:
    history: list[Message] = [
        UserMessage((Text(""), Text("  \n"))),
        AssistantMessage((Text(""), Text("\n"), ToolCall("c1", "read", ""))),
        ToolMessage("c1", "", ok=False),
        AssistantMessage((Text(""),)),
        AssistantMessage(()),
        UserMessage((Text("Hi"), Text(""))),
    ]
    result, prompt = ToolMessage("c1", NO_OUTPUT, ok=kind == "openai"), UserMessage((Text("Hi"),))
    assert decoded(kind, history) == [
        UserMessage((Text(EMPTY_MESSAGE),)),
        AssistantMessage((ToolCall("c1", "read", "{}"),)),
        result,
        prompt,
    ]


@both
@pytest.mark.parametrize("arguments", ["{path: a", "[1]", "null", '"text"', '{"a": 1} {', "\ud800", "x" * 5000])
def test_arguments_that_are_no_object_are_sent_back_as_such(kind: str, arguments: str) -> None:
    history: list[Message] = [
        UserMessage((Text("Hi"),)),
        AssistantMessage((ToolCall("c1", "read", arguments),)),
        ToolMessage("c1", "Those are no arguments."),
    ]
    [call] = cast("AssistantMessage", decoded(kind, history)[1]).calls
    text = arguments.replace("\ud800", "?")
    text = text if len(text) <= 2000 else f"{text[:2000]}… (3000 more characters)"
    assert msgspec.json.decode(call.arguments) == {"unreadable_arguments": text}


@both
def test_no_arguments_are_sent_as_an_empty_object(kind: str) -> None:
    history: list[Message] = [
        UserMessage((Text("Hi"),)),
        AssistantMessage((ToolCall("c1", "read", ""),)),
        ToolMessage("c1", "Those are no arguments."),
    ]
    assert decoded(kind, history)[1] == AssistantMessage((ToolCall("c1", "read", "{}"),))


@both
def test_a_name_that_no_tool_can_have(kind: str) -> None:
    history: list[Message] = [
        UserMessage((Text("Hi"),)),
        AssistantMessage((ToolCall("c1", "files.read(all)", "{}"), ToolCall("c2", "", "{}"))),
        ToolMessage("c1", "There is no such tool."),
        ToolMessage("c2", "There is no such tool."),
    ]
    assert decoded(kind, history)[1] == AssistantMessage(
        (ToolCall("c1", "files_read_all_", "{}"), ToolCall("c2", "unnamed", "{}"))
    )


IMAGE_ROUND: list[Message] = [
    UserMessage((Text("Look at a and b."),)),
    AssistantMessage((ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}"))),
    ToolMessage("c1", "An image.", images=(PICTURE,)),
    ToolMessage("c2", "Not found.", ok=False),
]


def test_images_of_results_stay_in_them_with_anthropic() -> None:
    assert decoded("anthropic", IMAGE_ROUND, images=True) == IMAGE_ROUND


def test_images_of_results_follow_them_with_openai() -> None:
    seen = decoded("openai", [*IMAGE_ROUND, UserMessage((Text("And?"),))], images=True)
    assert seen[2:] == [
        ToolMessage("c1", "An image."),
        ToolMessage("c2", "Not found."),
        UserMessage((Text(TOOL_IMAGES), PICTURE, Text("And?"))),
    ]
    assert decoded("openai", IMAGE_ROUND, images=True) == [*seen[:4], UserMessage((Text(TOOL_IMAGES), PICTURE))]


@both
def test_text_that_no_utf8_can_carry(kind: str) -> None:
    (message,) = decoded(kind, [UserMessage((Text("half an emoji: \ud83d, ü"),))])
    assert message == UserMessage((Text("half an emoji: ?, ü"),))


# --- the ids of calls


def test_calls_have_ids_that_every_chat_completions_server_takes() -> None:
    calls = [ToolCall(f"turn-{turn}-c{number}", "read", "{}") for turn in range(3) for number in range(12)]
    odd = ToolCall("ünusual id with spaces, and longer than most servers like it to be", "read", "{}")
    history: list[Message] = [UserMessage((Text("Hi"),))]
    for call in (*calls, odd):
        history += [AssistantMessage((call,)), ToolMessage(call.id, "x")]
    first, again = sent("openai", history), sent("openai", history[:9])
    ids = [call["id"] for message in first["messages"] for call in message.get("tool_calls", [])]
    assert len(set(ids)) == len(calls) + 1
    assert first["messages"][: len(again["messages"])] == again["messages"]


def test_two_calls_never_share_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crow.model.wires.chat_request.sent_id", lambda _, attempt=0: f"same{attempt // 2}")
    ids = CallIds()
    assert [ids.of(call_id) for call_id in ("a", "b", "a", "c", "b")] == ["same0", "same1", "same0", "same2", "same1"]
