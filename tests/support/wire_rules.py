"""What the strictest servers of each wire insist on: a request is judged by its JSON, as they do it.

    check_messages(body)      Anthropic's messages API, and those that speak it
    check_chat(body)          chat completions
    check_responses(body)     OpenAI's Responses API

Each raises `Refused` with a server's words for what is wrong. A rule that only some servers have is here too: Crow is
to write a history so that all of them take it.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """A real provider would answer 400 to this request."""


def insist(condition: object, complaint: str) -> None:
    if not condition:
        raise Refused(complaint)


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
THOUGHTS = ("thinking", "redacted_thinking")


def _check_tools(names: Sequence[str], tools: object) -> None:
    insist(tools != [], "tools: must not be empty")
    insist(len(names) == len(set(names)), "tools: names must be unique")
    insist(all(NAME.fullmatch(name) for name in names), "tools: invalid name")


def _is_object(text: object) -> bool:
    try:
        return isinstance(json.loads(text), dict) if isinstance(text, str) else False
    except ValueError:
        return False


def _is_picture(url: str) -> bool:
    head, _, data = url.partition(";base64,")
    try:
        return head.startswith("data:image/") and bool(base64.b64decode(data, validate=True))
    except binascii.Error:
        return False


# --- messages


def check_messages(body: Json, *, seal: Callable[[str], str] | None = None) -> None:
    """With `seal`, the signature of each thought must be what this says of its text."""
    insist(isinstance(body, dict), "The body is no object.")
    insist(body.get("model"), "model: field required")
    insist(body.get("stream") is True, "stream: not true")
    insist(isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0, "max_tokens: field required")
    _check_tools([tool["name"] for tool in body.get("tools", [])], body.get("tools"))
    for block in body.get("system", []):
        _check_text(block, "system")
    insist(json.dumps(body).count('"cache_control"') <= 4, "A maximum of 4 blocks with cache_control may be given")
    _check_thinking(body)
    _check_conversation(body["messages"], seal)


def _check_thinking(body: Json) -> None:
    thinking = body.get("thinking", {})
    insist(thinking.get("type", "adaptive") in ("adaptive", "enabled", "disabled"), "thinking.type: unknown")
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens", 0)
    insist(1_024 <= budget < body["max_tokens"], "thinking.enabled.budget_tokens: out of range")
    first = None
    for place, message in reversed(list(enumerate(body["messages"]))):
        if message["role"] == "assistant":
            first = place, message
        elif not any(block["type"] == "tool_result" for block in message["content"]):
            break
    if first is not None:
        place, message = first
        expected = f"messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found another"
        insist(message["content"][0]["type"] in THOUGHTS, expected)


def _check_conversation(messages: list[Json], seal: Callable[[str], str] | None) -> None:
    insist(messages, "messages: at least one message is required")
    seen_ids: set[str] = set()
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        role, content = message["role"], message["content"]
        insist(role == ("user", "assistant")[place % 2], f"{where}: roles must alternate, beginning with user")
        insist(isinstance(content, list) and content, f"{where}: content must not be empty")
        if role == "user":
            _check_results(content, open_ids, where)
            open_ids = []
        else:
            for block in content:
                _check_spoken(block, seen_ids, where, seal)
            open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
            last = content[-1]["type"]
            insist(last not in THOUGHTS, f"{where}: The final block in an assistant message cannot be `thinking`.")
            insist(not open_ids or last == "tool_use", f"{where}: nothing may follow `tool_use`")
    missing = f"`tool_use` ids were found without `tool_result` blocks immediately after: {open_ids}"
    insist(not open_ids, f"messages.{len(messages) - 1}: {missing}")
    insist(messages[-1]["role"] == "user", "This model does not support assistant message prefill.")


def _check_results(content: list[Json], open_ids: list[str], where: str) -> None:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    insist(sorted(results) == sorted(open_ids), f"{where}: results {results} for the calls {open_ids}")
    leading = [block["type"] for block in content[: len(results)]]
    insist(set(leading) <= {"tool_result"}, f"{where}: tool_result blocks must come first")
    for block in content:
        if block["type"] != "tool_result":
            _check_user_block(block, where)
            continue
        insist(block["content"], f"{where}: empty tool_result")
        for inner in block["content"]:
            _check_user_block(inner, where)
        only_text = all(inner["type"] == "text" for inner in block["content"])
        insist(not block.get("is_error") or only_text, f"{where}: all content must be type text if is_error is true")


def _check_user_block(block: Json, where: str) -> None:
    if block["type"] == "image":
        kinds = ("image/jpeg", "image/png", "image/gif", "image/webp")
        insist(block["source"]["media_type"] in kinds, f"{where}: media_type")
        insist(_is_picture(f"data:image/png;base64,{block['source']['data']}"), f"{where}: image data")
    else:
        _check_text(block, where)


def _check_text(block: Json, where: str) -> None:
    insist(block["type"] == "text", f"{where}: unexpected block {block['type']}")
    insist(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")


def _check_spoken(block: Json, seen_ids: set[str], where: str, seal: Callable[[str], str] | None) -> None:
    match block["type"]:
        case "thinking":
            signed = "signature" in block and (seal is None or block["signature"] == seal(block["thinking"]))
            insist(signed, f"{where}: Invalid `signature` in `thinking` block")
            insist("cache_control" not in block, f"{where}: thinking blocks cannot be cached")
        case "redacted_thinking":
            insist(block["data"], f"{where}: redacted_thinking without data")
            insist("cache_control" not in block, f"{where}: thinking blocks cannot be cached")
        case "tool_use":
            insist(NAME.fullmatch(block["name"]), f"{where}: tool_use name")
            insist(NAME.fullmatch(block["id"]) and block["id"] not in seen_ids, f"{where}: ids must be unique")
            insist(isinstance(block["input"], dict), f"{where}: input must be an object")
            seen_ids.add(block["id"])
        case _:
            _check_text(block, where)


# --- chat completions

CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")  # Mistral's rule; the others take more


def check_chat(body: Json, *, bridged: bool = False, ids: re.Pattern[str] = CALL_ID) -> None:
    """With `bridged`, a prompt may not directly follow the results of calls."""
    insist(isinstance(body, dict), "The body is no object.")
    insist(body.get("model"), "model is missing.")
    insist(body.get("stream") is True, "stream is not true.")
    _check_tools([tool["function"]["name"] for tool in body.get("tools", [])], body.get("tools"))
    insist(json.dumps(body).count('"cache_control"') <= 4, "At most 4 blocks with cache_control")
    messages: list[Json] = body["messages"]
    insist(messages, "messages is empty.")
    open_ids: list[str] = []
    seen_ids: set[str] = set()
    before = ""
    for place, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        where = f"messages[{place}]"
        if role == "tool":
            insist(message["tool_call_id"] in open_ids, f"{where}: no open call has this id.")
            open_ids.remove(message["tool_call_id"])
            insist(_texts(content, where), f"{where}: a tool's content is a text.")
            before = role
            continue
        insist(not open_ids, f"{where}: calls without a result: {open_ids}.")
        match role:
            case "system":
                insist(place == 0 and _texts(content, where), f"{where}: the system message comes first, not empty.")
            case "user":
                insist(before != "user", f"{where}: roles do not alternate.")
                insist(before != "tool" or not bridged, f"{where}: Unexpected role 'user' after role 'tool'")
                _check_said(content, where)
            case "assistant":
                insist(before in ("user", "tool"), f"{where}: roles do not alternate, beginning with user.")
                calls = message.get("tool_calls", [])
                insist("tool_calls" not in message or calls, f"{where}: tool_calls is empty.")
                insist((calls and content is None) or _texts(content, where), f"{where}: empty content.")
                insist(calls or not _ends_in_thought(content), f"{where}: content ends in a thought.")
                for field in ("reasoning_content", "reasoning"):
                    insist(message.get(field) != "", f"{where}: {field} is empty.")
                for call in calls:
                    _check_call(call, seen_ids, ids, where)
                open_ids = [call["id"] for call in calls]
            case _:
                insist(False, f"{where}: unknown role {role}.")
        before = role
    insist(not open_ids, f"Calls without a result: {open_ids}.")
    insist(before in ("user", "tool"), f"Expected last role User or Tool for serving but got {before}")


def _texts(content: object, where: str) -> bool:
    """Whether it is a text, or a list of texts and thoughts with one text in it."""
    if isinstance(content, str):
        return bool(content.strip())
    if not isinstance(content, list) or not content:
        return False
    for part in content:
        thought = part["type"] == "thinking" and part["thinking"]
        insist(thought or part.get("text", "").strip(), f"{where}: an empty part of content.")
    return True


def _ends_in_thought(content: Any) -> bool:
    return isinstance(content, list) and content[-1]["type"] == "thinking"


def _check_said(content: Any, where: str) -> None:
    insist(content, f"{where}: empty content.")
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        match part["type"]:
            case "text":
                insist(part["text"].strip(), f"{where}: empty text.")
            case "image_url":
                insist(_is_picture(part["image_url"]["url"]), f"{where}: image.")
            case "input_audio":
                insist(part["input_audio"]["format"] in ("wav", "mp3"), f"{where}: audio format.")
            case kind:
                insist(False, f"{where}: unknown part {kind}.")


def _check_call(call: Json, seen_ids: set[str], ids: re.Pattern[str], where: str) -> None:
    insist(call["type"] == "function", f"{where}: a call's type is function.")
    insist(call["id"] and call["id"] not in seen_ids, f"{where}: id {call['id']!r} is not unique.")
    insist(ids.fullmatch(call["id"]), f"{where}: id {call['id']!r} is none that every provider takes.")
    seen_ids.add(call["id"])
    insist(NAME.fullmatch(call["function"]["name"]), f"{where}: a call's name is invalid.")
    insist(_is_object(call["function"]["arguments"]), f"{where}: arguments are no JSON object.")


# --- responses


FIELDS = {
    *("model", "input", "stream", "store", "instructions", "tools", "include", "reasoning"),
    *("max_output_tokens", "prompt_cache_key"),
}
ITEM_FIELDS = {
    "message": {"type", "role", "content", "phase"},
    "reasoning": {"type", "summary", "encrypted_content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
}


def check_responses(body: Json, *, seal: Callable[[str], str] | None = None) -> None:
    """With `seal`, the encrypted content of each reasoning item must be what this says of its summary."""
    insist(isinstance(body, dict), "The body is no object.")
    insist(set(body) <= FIELDS, f"Unknown parameters: {sorted(set(body) - FIELDS)}.")
    insist(set(body.get("reasoning", {})) <= {"effort", "summary"}, "Unknown parameter: 'reasoning'.")
    insist(body.get("model"), "Missing required parameter: 'model'.")
    insist(body.get("stream") is True and body.get("store") is False, "stream and not store.")
    insist("instructions" not in body or body["instructions"].strip(), "instructions is empty.")
    tools = body.get("tools", [])
    _check_tools([tool["name"] for tool in tools], body.get("tools"))
    insist(all(tool["type"] == "function" and tool["strict"] is False for tool in tools), "tools: not flat, or strict.")
    insist(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': integer below minimum value.")
    items: list[Json] = body["input"]
    insist(items, "input is empty.")
    open_ids: list[str] = []
    seen_ids: set[str] = set()
    for place, item in enumerate(items):
        where = f"input[{place}]"
        insist("id" not in item, f"{where}: Item with id not found: nothing is stored.")
        kind = item.get("type", "message")
        insist(set(item) <= ITEM_FIELDS.get(kind, set()), f"{where}: unknown fields in {kind}: {set(item)}")
        answered = not open_ids or kind in ("function_call", "function_call_output", "reasoning")
        insist(answered, f"{where}: No tool output found for function call {open_ids}.")
        match kind, item.get("role"):
            case "message", "user":
                _check_input(item["content"], where)
            case "message", "assistant":
                insist(place, f"{where}: the person speaks first.")
                texts = [part["text"] for part in item["content"] if part["type"] == "output_text"]
                insist(texts and all(text.strip() for text in texts), f"{where}: empty text.")
                insist(item.get("phase", "commentary") in ("commentary", "final_answer"), f"{where}: phase.")
            case "reasoning", None:
                insist(item.get("encrypted_content"), f"{where}: reasoning that is not sealed.")
                insist(isinstance(item.get("summary"), list), f"{where}: summary is missing.")
                text = "".join(part["text"] for part in item["summary"])
                verified = seal is None or item["encrypted_content"] == seal(text)
                insist(verified, f"{where}: The encrypted content could not be verified.")
                _check_followed(items, place)
            case "function_call", None:
                insist(item["call_id"] and item["call_id"] not in seen_ids, f"{where}: call_id is not unique.")
                mixed = bool(open_ids) and items[place - 1].get("type") == "function_call_output"
                insist(not mixed, f"{where}: calls and outputs are interleaved.")
                insist(NAME.fullmatch(item["name"]), f"{where}: name.")
                insist(_is_object(item["arguments"]), f"{where}: arguments are no JSON object.")
                seen_ids.add(item["call_id"])
                open_ids.append(item["call_id"])
            case "function_call_output", None:
                insist(item["call_id"] in open_ids, f"{where}: No tool call found for function call output.")
                open_ids.remove(item["call_id"])
                output = item["output"]
                _check_input([{"type": "input_text", "text": output}] if isinstance(output, str) else output, where)
            case _:
                insist(False, f"{where}: unknown item {kind} of {item.get('role')}.")
    insist(not open_ids, f"No tool output found for function call {open_ids}.")
    insist(items[-1].get("type") == "function_call_output" or items[-1].get("role") == "user", "nothing to answer.")


def _check_followed(items: Sequence[Json], place: int) -> None:
    following = next((item for item in items[place + 1 :] if item.get("type") != "reasoning"), {})
    owned = following.get("type") == "function_call" or following.get("role") == "assistant"
    insist(owned, f"input[{place}]: Item of type 'reasoning' was provided without its required following item.")


def _check_input(content: Sequence[Json], where: str) -> None:
    insist(content, f"{where}: empty content.")
    for part in content:
        match part["type"]:
            case "input_text":
                insist(part["text"].strip(), f"{where}: empty text.")
            case "input_image":
                insist(_is_picture(part["image_url"]), f"{where}: image.")
            case kind:
                insist(False, f"{where}: unknown part {kind}.")
