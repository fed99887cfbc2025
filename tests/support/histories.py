"""What every history must be, so that any provider takes it."""

from typing import Any


def assert_valid(messages: list[dict[str, Any]]) -> None:
    """Each call has exactly one result, directly after its message; nothing is empty; user messages never touch."""
    before: dict[str, Any] = {"role": ""}
    open_calls: list[str] = []
    for message in messages:
        match message["role"]:
            case "tool":
                assert message["call_id"] in open_calls, f"a result without its call: {message}"
                open_calls.remove(message["call_id"])
                assert message["text"] or message.get("images"), "an empty result"
            case role:
                assert not open_calls, f"calls without results: {open_calls}"
                assert message["parts"], "an empty message"
                assert role != "user" or before["role"] != "user", "two user messages side by side"
                open_calls = [part["id"] for part in message["parts"] if part["part"] == "call"]
        before = message
    assert not open_calls, f"calls without results: {open_calls}"


def said(messages: list[dict[str, Any]], role: str) -> list[str]:
    """The texts of one side, a string a message."""
    return [
        "".join(part.get("text", "") for part in message["parts"] if part["part"] == "text")
        for message in messages
        if message["role"] == role
    ]
