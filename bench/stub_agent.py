"""The floor: the smallest ACP agent that forwards model deltas; tools are run with no permission and no diff.

It shows what of a figure is the harness's own cost, and tests the harness. STUB_BASE is the model's base URL.
"""

import http.client
import json
import os
import sys
import threading
from urllib.parse import urlparse

URL = urlparse(os.environ["STUB_BASE"])
LOCK, SESSIONS = threading.Lock(), {}
TOOLS = [
    {
        "type": "function",
        "function": {"name": n, "parameters": {"type": "object", "properties": {k: {"type": "string"} for k in ks}}},
    }
    for n, ks in (("write_file", ("path", "content")), ("read_file", ("path",)))
]


def send(obj):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **obj}) + "\n")
        sys.stdout.flush()


def update(sid, **u):
    send({"method": "session/update", "params": {"sessionId": sid, "update": u}})


def run_tool(name, args):
    if name == "write_file":
        with open(args["path"], "w") as f:
            f.write(args["content"])
        return "written"
    with open(args["path"]) as f:
        return f.read()


def turn(mid, sid, text):
    history = SESSIONS[sid]
    history.append({"role": "user", "content": text})
    conn = http.client.HTTPConnection(URL.hostname, URL.port)
    while True:
        body = json.dumps({"model": "fake", "stream": True, "messages": history, "tools": TOOLS})
        conn.request("POST", URL.path + "/chat/completions", body, {"content-type": "application/json"})
        resp, said, call = conn.getresponse(), "", None
        for row in resp:
            if not row.startswith(b"data: {"):
                continue
            for choice in json.loads(row[6:])["choices"]:
                delta = choice["delta"]
                if delta.get("content"):
                    said += delta["content"]
                    update(sid, sessionUpdate="agent_message_chunk", content={"type": "text", "text": delta["content"]})
                for c in delta.get("tool_calls") or []:
                    if "id" in c:
                        call = [c["id"], c["function"]["name"], []]
                        update(sid, sessionUpdate="tool_call", toolCallId=c["id"], title=call[1], status="pending")
                    call[2].append(c["function"]["arguments"])
        if not call:
            history.append({"role": "assistant", "content": said})
            return send({"id": mid, "result": {"stopReason": "end_turn"}})
        args = "".join(call[2])
        result = run_tool(call[1], json.loads(args))
        update(sid, sessionUpdate="tool_call_update", toolCallId=call[0], status="completed")
        history += [
            {
                "role": "assistant",
                "content": said,
                "tool_calls": [{"id": call[0], "type": "function", "function": {"name": call[1], "arguments": args}}],
            },
            {"role": "tool", "tool_call_id": call[0], "content": result},
        ]


for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        send({"id": m["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif m.get("method") == "session/new":
        sid = f"s{len(SESSIONS)}"
        SESSIONS[sid] = []
        send({"id": m["id"], "result": {"sessionId": sid}})
    elif m.get("method") == "session/prompt":
        threading.Thread(
            target=turn, args=(m["id"], m["params"]["sessionId"], m["params"]["prompt"][0]["text"]), daemon=True
        ).start()
