"""What a client holds of a session after all that it was told: each update laid over what was there, as Zed does it.

`seen_live` folds a conversation as it was held, `seen_loaded` what came of a `session/load`. The two are the same but
for what is passing (notices), what a client adds by itself (the person's messages) and terminals, which are gone
when a session is loaded: their text stands for them.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.support.editor import Editor, Json

FIELDS = ("title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput")


@dataclass
class ReadTracker:
    order: list[str] = field(default_factory=list)
    """The ids of messages and calls, as they began."""
    messages: dict[str, Json] = field(default_factory=dict)
    prompts: list[list[Json]] = field(default_factory=list)
    calls: dict[str, Json] = field(default_factory=dict)
    terminals: dict[str, str] = field(default_factory=dict)
    """Of the calls that show a terminal: what stands for it in a session that is loaded."""
    plan: list[Json] = field(default_factory=list)
    usage: Json | None = None
    modes: Json | None = None
    options: list[Json] | None = None
    compactions: dict[str, Json] = field(default_factory=dict)
    _prompt_id: str = ""

    def take(self, update: Json) -> None:
        match update["sessionUpdate"]:
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                self._speak(kind, update)
            case "user_message_chunk":
                if update["messageId"] != self._prompt_id:
                    self._prompt_id = update["messageId"]
                    self.prompts.append([])
                self.prompts[-1].append(update["content"])
            case "tool_call" | "tool_call_update":
                self.change(update)
            case "plan":
                self.plan = update["entries"]
            case "usage_update":
                self.usage = update
            case "current_mode_update":
                assert self.modes is not None
                self.modes = self.modes | {"currentModeId": update["currentModeId"]}
            case "config_option_update":
                self.options = update["configOptions"]
            case "compaction_update":
                self.compactions.setdefault(update["compactionId"], {}).update(update)
            case _:
                pass  # what surrounds the session

    def answered(self, result: Json) -> None:
        self.modes, self.options = result["modes"], result["configOptions"]

    def change(self, update: Json) -> None:
        """A call's fields are replaced; also by those that a question for permission shows."""
        id = update["toolCallId"]
        if id not in self.calls:
            self.order.append(id)
            self.calls[id] = {"content": []}
        self.calls[id].update({key: update[key] for key in FIELDS if update.get(key) is not None})

    def without_terminals(self) -> "ReadTracker":
        """The text of terminals is compared by itself: live, the client has it and Crow does not send it."""
        for id, call in self.calls.items():
            if any(block["type"] == "terminal" for block in call["content"]):
                self.terminals[id] = call["rawOutput"]["message"]
                del call["content"]
        return self

    def _speak(self, kind: str, update: Json) -> None:
        id = update["messageId"]
        if id.startswith("notice-"):
            return
        if id not in self.messages:
            self.order.append(id)
            self.messages[id] = {"kind": kind, "text": ""}
        text = self.messages[id]["text"] + update["content"]["text"]
        # Live, a message after another begins with an empty line, for clients that join all text.
        self.messages[id]["text"] = text.lstrip("\n")


def seen_live(crow: Editor) -> ReadTracker:
    """The session that was opened last, as it was lived through."""
    seen = ReadTracker()
    taken = _taken_into_turns(crow)
    for entry in crow.conversation:
        message, params = entry.message, entry.message.get("params") or {}
        if (message.get("result") or {}).get("sessionId") == crow.session_id:
            seen.answered(message["result"])
        elif params.get("sessionId") != crow.session_id:
            continue
        elif message.get("method") == "session/update":
            seen.take(params["update"])
        elif message.get("method") == "session/request_permission":
            seen.change(params["toolCall"])
        elif message.get("method") == "session/prompt" or (
            message.get("method") == "_session/steering" and message["id"] in taken
        ):
            seen.prompts.append(params["prompt"])
    return seen.without_terminals()


def _taken_into_turns(crow: Editor) -> set[Any]:
    """The requests whose message the model got in the turn that ran: accepted, and not left over."""
    results = {message["id"]: message["result"] or {} for message in crow.received if "result" in message}
    facts = {id: (result.get("_meta") or {}).get("steering", {}) for id, result in results.items()}
    left = {message["messageId"] for fact in facts.values() for message in fact.get("leftOver", [])}
    return {id for id, fact in facts.items() if fact.get("messageId", "") not in {"", *left}}


def seen_loaded(crow: Editor, session: str) -> ReadTracker:
    """The session as it is when another process has loaded it."""
    seen = ReadTracker()
    answer = crow.load_session(session)
    crow.request("session/list")  # what follows the answer to a load has come when this is answered
    for update in crow.all_updates_of(session):
        seen.take(update)
    seen.answered(answer)
    return seen


def assert_looks_as_it_did(live: Editor, loaded: Editor) -> None:
    before, after = seen_live(live), seen_loaded(loaded, live.session_id)
    for id, ending in before.terminals.items():
        content: list[Any] = after.calls[id].pop("content")
        assert all(block["type"] == "content" for block in content)
        assert ending in str(content)
    before.terminals.clear()
    before._prompt_id = after._prompt_id = ""
    assert after == before
