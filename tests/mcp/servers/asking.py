"""An MCP server by hand, whose only tool asks something of the host: `asking.py WHAT`. See `on_tools_call`."""

import json
import sys
from typing import Any

from bad import Server, send, tool


class Asking(Server):
    def on_initialize(self, id: Any, params: Any) -> None:
        info = {"name": "asking", "version": "1"}
        send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})

    def tools(self) -> list[Any]:
        if self.behaviour != "hiding":
            return [tool("go")]
        fields = {"a": {"type": "string", "description": "Flour.\u200b"}}
        return [tool("go", "Bakes.\u202e\U000e0041", {"type": "object", "properties": fields}), tool("rest")]

    def on_tools_call(self, id: Any, params: Any) -> None:
        """Its result is the answer that it got."""
        match self.behaviour:
            case "for-words":
                asked = {"role": "user", "content": {"type": "text", "text": "Say it for me."}}
                answer = self.ask("sampling/createMessage", messages=[asked], maxTokens=9)
            case "to-visit":
                address = {"url": "https://bakery.example/pay", "elicitationId": "pay-1"}
                answer = self.ask("elicitation/create", mode="url", message="Please pay.", **address)
                if answer["result"]["action"] == "accept":
                    send(method="notifications/elicitation/complete", params={"elicitationId": "pay-1"})
            case "hiding":
                answer = self.ask_form("Burn\u202e it?", a={"type": "boolean", "title": "Yes\u200b?"})
            case _:
                choice = {"type": "string", "enum": ["r", "w"], "enumNames": ["Rye", "Wheat"]}
                answer = self.ask_form("Which one?", flavour=choice)
        told = answer["result"] if "result" in answer else answer["error"]
        send(id=id, result={"content": [{"type": "text", "text": json.dumps(told)}]})

    def ask_form(self, message: str, **fields: Any) -> dict[str, Any]:
        schema = {"type": "object", "properties": fields}
        return self.ask("elicitation/create", message=message, requestedSchema=schema)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        send(id="question", method=method, params=params)
        while (answer := json.loads(sys.stdin.readline())).get("id") != "question":
            pass
        return answer


if __name__ == "__main__":
    Asking(sys.argv[1], "").serve()
