"""An MCP server by hand, that speaks only the newer protocol. With the first call it has one tool more."""

from typing import Any

from bad import Server, send, tool

NEWER = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
WHOLE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Newer(Server):
    listener: Any = None

    def on_initialize(self, id: Any, params: Any) -> None:
        send(id=id, error={"code": -32022, "message": "too old", "data": {"supported": [NEWER]}})

    def on_server_discover(self, id: Any, params: Any) -> None:
        capabilities = {"tools": {"listChanged": True}}
        send(id=id, result={"supportedVersions": [NEWER], "capabilities": capabilities, **WHOLE})

    def on_subscriptions_listen(self, id: Any, params: Any) -> None:
        self.listener = id
        self.tell("subscriptions/acknowledged", notifications={"toolsListChanged": True})

    def on_tools_list(self, id: Any, params: Any) -> None:
        tools = [tool("shift"), *([tool("shifted")] if self.calls else [])]
        send(id=id, result={"tools": tools, **WHOLE})

    def on_tools_call(self, id: Any, params: Any) -> None:
        self.calls += 1
        self.tell("tools/list_changed")
        send(id=id, result={"content": [{"type": "text", "text": "done"}], "resultType": "complete"})

    def tell(self, what: str, **params: Any) -> None:
        """Only those who listen are told."""
        if self.listener is not None:
            send(method=f"notifications/{what}", params={**params, "_meta": {SUBSCRIPTION: self.listener}})


if __name__ == "__main__":
    Newer("newer", "").serve()
