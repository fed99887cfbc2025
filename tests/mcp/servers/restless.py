"""An MCP server by hand that sends much, or does not go away: `restless.py BEHAVIOUR [PATH]`.

progress        tells of the progress of a call 5,000 times at once
blank-lines     writes 200,000 empty lines before its answer
closes-output   once, after its first answer, and then it stays; PATH shows that it has
stubborn        does not end when it is asked to
floods          logs, writes to standard error and announces changes without end, and answers all the same
of-two          answers the first of two calls with the person's answer to what it asks during the second
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from bad import Server, send


def log_without_end() -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    while True:
        os.write(1, f"{line}\n".encode() * 20)


def announce_without_end() -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})
    while True:
        os.write(1, f"{line}\n".encode())


def complain_without_end() -> None:
    while True:
        os.write(2, b"no flour\n" * 1000)


def answer(id: Any, text: str) -> None:
    send(id=id, result={"content": [{"type": "text", "text": text}]})


class Restless(Server):
    def __init__(self, behaviour: str, path: str) -> None:
        super().__init__(behaviour, path)
        self.first: Any = None

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                answer(self.first, message["result"]["action"])
            elif "id" in message:
                getattr(self, "on_" + message["method"].replace("/", "_"))(message["id"], message.get("params") or {})
        if self.behaviour == "stubborn":
            time.sleep(1000)

    def on_tools_list(self, id: Any, params: Any) -> None:
        super().on_tools_list(id, params)
        if self.behaviour == "floods":
            for write in (log_without_end, announce_without_end, complain_without_end):
                threading.Thread(target=write, daemon=True).start()

    def on_tools_call(self, id: Any, params: Any) -> None:
        match self.behaviour:
            case "progress":
                token = params["_meta"]["progressToken"]
                for number in range(5000):
                    send(method="notifications/progress", params={"progressToken": token, "progress": number})
            case "blank-lines":
                sys.stdout.write("\n \r\n" * 100_000)
            case "of-two" if self.first is None:
                self.first = id
                return
            case "of-two":
                schema = {"type": "object", "properties": {"flavour": {"type": "string"}}}
                send(id="form", method="elicitation/create", params={"message": "Which?", "requestedSchema": schema})
            case _:
                pass
        answer(id, "gone")
        if self.behaviour == "closes-output" and not self.path.exists():
            self.path.touch()
            os.close(1)
            time.sleep(1000)


if __name__ == "__main__":
    if sys.argv[1] in ("stubborn", "closes-output"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Restless(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "").serve()
