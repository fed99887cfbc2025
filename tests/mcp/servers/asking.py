"""An MCP server by hand, whose only tool asks something of the host: `asking.py WHAT [PATH]`. See `on_tools_call`."""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from bad import Server, send, tool

MANY_FIELDS: dict[str, Any] = {
    "name": {"type": "string", "title": "Your name", "description": "As on the door."},
    "loaves": {"type": "integer", "minimum": 1, "maximum": 9},
    "weight": {"type": "number", "default": 0.5},
    "sliced": {"type": "boolean", "title": "Sliced?"},
    "flour": {"type": "string", "enum": ["r", "w"], "enumNames": ["Rye", "Wheat"]},
    "with": {"type": "array", "items": {"type": "string", "enum": ["nuts", "seeds", "salt"]}},
    "mail": {"type": "string", "title": "E-mail", "format": "email"},
}


STRICT_FIELDS: dict[str, Any] = {
    "name": {"type": "string", "title": "Your name", "minLength": 3},
    "mail": {"type": "string", "title": "E-mail", "format": "email"},
    "site": {"type": "string", "title": "Site", "format": "uri"},
    "day": {"type": "string", "title": "Day", "format": "date"},
    "moment": {"type": "string", "title": "Moment", "format": "date-time", "default": "2026-01-31T10:30:00Z"},
    "age": {"type": "integer", "title": "Age", "minimum": 18},
    "with": {"type": "array", "title": "With", "items": {"type": "string", "enum": ["nuts", "seeds"]}},
}


class Asking(Server):
    def __init__(self, behaviour: str, path: str) -> None:
        super().__init__(behaviour, path)
        self.answers: list[str] = []

    def on_initialize(self, id: Any, params: Any) -> None:
        info = {"name": "asking", "version": "1"}
        send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answers.append(message["result"]["action"])
                if self.path.name:
                    self.path.write_text(f"{len(self.answers)} answers: {set(self.answers)}")
            elif "id" in message:
                getattr(self, "on_" + message["method"].replace("/", "_"))(message["id"], message.get("params") or {})

    def on_tools_list(self, id: Any, params: Any) -> None:
        super().on_tools_list(id, params)
        if self.behaviour == "at-once":
            for number in range(500):
                self.begin_to_ask(f"form-{number}")

    def tools(self) -> list[Any]:
        if self.behaviour != "hiding":
            return [tool("go")]
        fields = {"a": {"type": "string", "description": "Flour.\u200b"}}
        return [tool("go", "Bakes.\u202e\U000e0041", {"type": "object", "properties": fields}), tool("rest")]

    def on_tools_call(self, id: Any, params: Any) -> None:
        """Its result is the answer that it got."""
        match self.behaviour:
            case "and-waits":
                self.begin_to_ask("form")
                return
            case "and-answers" | "at-once":
                if self.behaviour == "and-answers":
                    self.begin_to_ask("form")
                send(id=id, result={"content": [{"type": "text", "text": "Never mind."}]})
                return
            case "to-visit-first" | "to-visit-first-and-tells" if not self.answers:
                self.answers.append("asked")
                address = {"url": "https://bakery.example/pay", "elicitationId": "pay-1"}
                wanted = {"elicitations": [{"mode": "url", "message": "Please pay.", **address}]}
                send(id=id, error={"code": -32042, "message": "Pay first.", "data": wanted})
                if self.behaviour == "to-visit-first-and-tells":
                    while not self.path.exists():
                        time.sleep(0.02)
                    send(method="notifications/elicitation/complete", params={"elicitationId": "pay-1"})
                return
            case "to-visit-first" | "to-visit-first-and-tells":
                send(id=id, result={"content": [{"type": "text", "text": "Paid."}]})
                return
            case "for-words":
                asked = {"role": "user", "content": {"type": "text", "text": "Say it for me."}}
                answer = self.ask("sampling/createMessage", messages=[asked], maxTokens=9)
            case "to-visit":
                address = {"url": "https://bakery.example/pay", "elicitationId": "pay-1"}
                answer = self.ask("elicitation/create", mode="url", message="Please pay.", **address)
                if answer["result"]["action"] == "accept":
                    send(method="notifications/elicitation/complete", params={"elicitationId": "pay-1"})
            case _:
                answer = self.ask_by_form()
        told = answer["result"] if "result" in answer else answer["error"]
        send(id=id, result={"content": [{"type": "text", "text": json.dumps(told)}]})

    def ask_by_form(self) -> dict[str, Any]:
        if self.behaviour == "hiding":
            return self.ask_form("Burn\u202e it?", a={"type": "boolean", "title": "Yes\u200b?"})
        if self.behaviour == "for-a-lot":
            return self.ask_form("What shall be baked?", ["name", "loaves"], **MANY_FIELDS)
        if self.behaviour == "strictly":
            return self.ask_form("Who are you?", ["name", "mail", "with"], **STRICT_FIELDS)
        choice = {"type": "string", "enum": ["r", "w"], "enumNames": ["Rye", "Wheat"]}
        return self.ask_form("Which one?", flavour=choice)

    def begin_to_ask(self, id: str) -> None:
        """Whoever answers, and whatever the host cancels, nothing comes of it."""
        schema = {"type": "object", "properties": {"flavour": {"type": "string"}}}
        send(id=id, method="elicitation/create", params={"message": "Which one?", "requestedSchema": schema})

    def ask_form(self, message: str, required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
        schema = {"type": "object", "properties": fields, "required": list(required)}
        return self.ask("elicitation/create", message=message, requestedSchema=schema)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        send(id="question", method=method, params=params)
        while (answer := json.loads(sys.stdin.readline())).get("id") != "question":
            pass
        return answer


if __name__ == "__main__":
    Asking(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "").serve()
