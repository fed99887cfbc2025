"""A local fake model: OpenAI chat completions and responses, Anthropic messages, Gemini generateContent; all streaming.

python3 fake_llm.py PORT      GET /_log -> [request records]      POST /_reset
Times are CLOCK_MONOTONIC seconds, so they compare with those of the client on the same machine.
"""

import asyncio
import json
import sys
import time

import scenarios
from scenarios import Tool

LOG = []
J = lambda o: json.dumps(o, separators=(",", ":"))  # noqa: E731


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text") or "" for p in content or [] if isinstance(p, dict))


# Each wire reads (history, tools) from a request body, and yields (bytes, is_delta) for the parts of an answer.
class Chat:
    @staticmethod
    def read(b):
        hist = [(m["role"], text_of(m.get("content")), bool(m.get("tool_calls"))) for m in b.get("messages", [])]
        return hist, [
            Tool(t["function"]["name"], t["function"].get("parameters"))
            for t in b.get("tools") or []
            if "function" in t
        ]

    @staticmethod
    def stream(b, parts, rid):
        base = {"id": f"c{rid}", "object": "chat.completion.chunk", "created": 1, "model": b.get("model", "fake")}

        def ev(delta, finish=None):
            return (
                f"data: {J({**base, 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n".encode()
            )

        yield ev({"role": "assistant", "content": ""}), False
        n = 0
        for part in parts:
            if part[0] == "call":
                yield (
                    ev(
                        {
                            "tool_calls": [
                                {
                                    "index": n,
                                    "id": f"call_{rid}_{n}",
                                    "type": "function",
                                    "function": {"name": part[1].name, "arguments": ""},
                                }
                            ]
                        }
                    ),
                    False,
                )
                for d in part[2]:
                    yield ev({"tool_calls": [{"index": n, "function": {"arguments": d}}]}), True
                n += 1
            else:
                key = "content" if part[0] == "text" else "reasoning_content"
                for d in part[1]:
                    yield ev({key: d}), True
        yield ev({}, "tool_calls" if n else "stop"), False
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        yield f"data: {J({**base, 'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode(), False

    @staticmethod
    def whole(b, parts, rid):
        msg = {"role": "assistant", "content": "".join("".join(p[1]) for p in parts if p[0] == "text") or None}
        calls = [p for p in parts if p[0] == "call"]
        if calls:
            msg["tool_calls"] = [
                {
                    "id": f"call_{rid}_{i}",
                    "type": "function",
                    "function": {"name": p[1].name, "arguments": "".join(p[2])},
                }
                for i, p in enumerate(calls)
            ]
        return {
            "id": f"c{rid}",
            "object": "chat.completion",
            "created": 1,
            "model": b.get("model", "fake"),
            "choices": [{"index": 0, "message": msg, "finish_reason": "tool_calls" if calls else "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        }


class Responses:
    @staticmethod
    def read(b):
        hist = []
        items = b.get("input") or []
        for m in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            if m.get("type") in ("function_call", "custom_tool_call", "local_shell_call"):
                hist.append(("assistant", "", True))
            elif m.get("role"):
                hist.append((m["role"], text_of(m.get("content")), False))
        tools = [
            Tool(t["name"], t.get("parameters"), t["type"] == "custom") for t in b.get("tools") or [] if "name" in t
        ]
        return hist, tools

    @staticmethod
    def stream(b, parts, rid):
        def ev(kind, **kw):
            return f"event: {kind}\ndata: {J({'type': kind, **kw})}\n\n".encode()

        yield (
            ev(
                "response.created",
                response={"id": f"r{rid}", "object": "response", "status": "in_progress", "output": []},
            ),
            False,
        )
        out = []
        for i, part in enumerate(parts):
            iid = f"i{rid}_{i}"
            if part[0] == "call":
                custom = part[1].custom
                field, kind = ("input", "custom_tool_call") if custom else ("arguments", "function_call")
                item = {"type": kind, "id": iid, "call_id": f"call_{rid}_{i}", "name": part[1].name, field: ""}
                delta = "response.custom_tool_call_input.delta" if custom else "response.function_call_arguments.delta"
                full, deltas = {**item, field: "".join(part[2])}, part[2]
            elif part[0] == "text":
                item = {"type": "message", "id": iid, "role": "assistant", "content": []}
                full, deltas, delta = (
                    {**item, "content": [{"type": "output_text", "text": "".join(part[1]), "annotations": []}]},
                    part[1],
                    "response.output_text.delta",
                )
            else:
                item = {"type": "reasoning", "id": iid, "summary": []}
                full, deltas, delta = (
                    {**item, "summary": [{"type": "summary_text", "text": "".join(part[1])}]},
                    part[1],
                    "response.reasoning_summary_text.delta",
                )
            yield ev("response.output_item.added", output_index=i, item=item), False
            for d in deltas:
                yield ev(delta, item_id=iid, output_index=i, content_index=0, summary_index=0, delta=d), True
            yield ev("response.output_item.done", output_index=i, item=full), False
            out.append(full)
        usage = {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 100,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 1100,
        }
        yield (
            ev(
                "response.completed",
                response={"id": f"r{rid}", "object": "response", "status": "completed", "output": out, "usage": usage},
            ),
            False,
        )

    @staticmethod
    def whole(b, parts, rid):
        for chunk, _ in Responses.stream(b, parts, rid):
            last = chunk
        return json.loads(last.split(b"data: ", 1)[1])["response"]


class Messages:
    @staticmethod
    def read(b):
        hist = []
        for m in b.get("messages", []):
            c = m.get("content")
            hist.append((m["role"], text_of(c), isinstance(c, list) and any(p.get("type") == "tool_use" for p in c)))
        return hist, [Tool(t["name"], t.get("input_schema")) for t in b.get("tools") or [] if "input_schema" in t]

    @staticmethod
    def stream(b, parts, rid):
        def ev(kind, **kw):
            return f"event: {kind}\ndata: {J({'type': kind, **kw})}\n\n".encode()

        usage = {
            "input_tokens": 1000,
            "output_tokens": 1,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        yield (
            ev(
                "message_start",
                message={
                    "id": f"m{rid}",
                    "type": "message",
                    "role": "assistant",
                    "model": b.get("model"),
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": usage,
                },
            ),
            False,
        )
        calls = False
        for i, part in enumerate(parts):
            if part[0] == "call":
                calls = True
                yield (
                    ev(
                        "content_block_start",
                        index=i,
                        content_block={"type": "tool_use", "id": f"toolu_{rid}_{i}", "name": part[1].name, "input": {}},
                    ),
                    False,
                )
                for d in part[2]:
                    yield (
                        ev("content_block_delta", index=i, delta={"type": "input_json_delta", "partial_json": d}),
                        True,
                    )
            else:
                kind = "text" if part[0] == "text" else "thinking"
                yield ev("content_block_start", index=i, content_block={"type": kind, kind: ""}), False
                for d in part[1]:
                    yield ev("content_block_delta", index=i, delta={"type": f"{kind}_delta", kind: d}), True
            yield ev("content_block_stop", index=i), False
        yield (
            ev(
                "message_delta",
                delta={"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None},
                usage={"output_tokens": 100},
            ),
            False,
        )
        yield ev("message_stop"), False

    @staticmethod
    def whole(b, parts, rid):
        content = [
            {"type": "text", "text": "".join(p[1])}
            if p[0] != "call"
            else {"type": "tool_use", "id": f"toolu_{rid}_{i}", "name": p[1].name, "input": json.loads("".join(p[2]))}
            for i, p in enumerate(parts)
        ]
        return {
            "id": f"m{rid}",
            "type": "message",
            "role": "assistant",
            "model": b.get("model"),
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }


class Gemini:
    @staticmethod
    def read(b):
        hist = []
        for m in b.get("contents", []):
            parts = m.get("parts") or []
            hist.append(
                (
                    "assistant" if m.get("role") == "model" else "user",
                    text_of(parts),
                    any("functionCall" in p for p in parts),
                )
            )
        decls = [d for t in b.get("tools") or [] for d in t.get("functionDeclarations") or []]
        return hist, [Tool(d["name"], d.get("parametersJsonSchema") or d.get("parameters")) for d in decls]

    @staticmethod
    def _obj(parts, finish=None):
        cand = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            cand["finishReason"] = finish
        return {
            "candidates": [cand],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
            "modelVersion": "fake",
        }

    @staticmethod
    def stream(b, parts, rid):  # this API never streams the arguments of a call
        for part in parts:
            if part[0] == "call":
                call = [
                    {
                        "functionCall": {"name": part[1].name, "args": json.loads("".join(part[2]))},
                        "thoughtSignature": "c2ln",
                    }
                ]
                yield f"data: {J(Gemini._obj(call))}\n\n".encode(), True
            else:
                for d in part[1]:
                    yield (
                        f"data: {J(Gemini._obj([{'text': d, **({'thought': True} if part[0] == 'think' else {})}]))}\n\n".encode(),
                        True,
                    )
        yield f"data: {J(Gemini._obj([{'text': ''}], 'STOP'))}\n\n".encode(), False

    @staticmethod
    def whole(b, parts, rid):
        want_json = (b.get("generationConfig") or {}).get("responseMimeType") == "application/json"
        text = "{}" if want_json else "".join("".join(p[1]) for p in parts if p[0] == "text")
        return Gemini._obj([{"text": text}], "STOP")


def wire_for(path):
    if path.endswith("/chat/completions"):
        return Chat
    if path.endswith("/responses"):
        return Responses
    if path.endswith("/messages"):
        return Messages
    if "enerateContent" in path:
        return Gemini
    return None


async def answer(w, path, body, query):
    wire, b = wire_for(path), json.loads(body or b"{}")
    rec = {"id": len(LOG), "t_arrive": time.monotonic(), "path": path, "bytes": len(body)}
    LOG.append(rec)
    hist, tools = wire.read(b)
    try:
        label, rnd, parts, pace = scenarios.answer(hist, tools)
    except Exception as e:
        label, rnd, parts, pace = f"error: {e!r}", 0, [("text", [f"scenario failed: {e!r}"])], 0
    rec.update(
        label=label,
        round=rnd,
        tools=[t.name for t in tools],
        used=[p[1].name for p in parts if p[0] == "call"],
        model=b.get("model"),
    )
    streaming = b.get("stream") or "streamGenerateContent" in path
    if not streaming:
        raw = J(wire.whole(b, parts, rec["id"])).encode()
        rec["t_first"] = time.monotonic()
        w.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(raw) + raw)
        await w.drain()
        rec["t_end"] = time.monotonic()
        return
    w.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    sent = []
    try:
        for n, (chunk, is_delta) in enumerate(wire.stream(b, parts, rec["id"])):
            if is_delta:
                if pace:
                    await asyncio.sleep(pace / 1000)
                if pace or not sent:
                    sent.append(time.monotonic())
            w.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            if n % 16 == 0 or pace:
                await w.drain()
        w.write(b"0\r\n\r\n")
        await w.drain()
    except ConnectionError:
        rec["dropped"] = True
    rec.update(t_first=sent[0] if sent else None, sent=sent if pace else [], t_end=time.monotonic())


async def serve(r, w):
    try:
        while head := await r.readuntil(b"\r\n\r\n"):
            first, *rows = head.decode("latin1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            path, _, query = target.partition("?")
            heads = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in rows if x)}
            if heads.get("expect") == "100-continue":
                w.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if heads.get("transfer-encoding") == "chunked":
                body = b""
                while size := int((await r.readline()).split(b";")[0], 16):
                    body += (await r.readexactly(size + 2))[:-2]
                await r.readline()
            else:
                body = await r.readexactly(int(heads.get("content-length", 0)))
            if method == "POST" and wire_for(path):
                await answer(w, path, body, query)
                continue
            status, obj = 200, {}
            if path == "/_log":
                obj = LOG
            elif path == "/_reset":
                LOG.clear()
            elif path.endswith("/models"):
                obj = {
                    "object": "list",
                    "data": [
                        {"id": "fake", "object": "model", "created": 1, "owned_by": "bench", "context_length": 1000000}
                    ],
                    "models": [],
                }
            else:
                status = 404
                LOG.append(
                    {"id": len(LOG), "t_arrive": time.monotonic(), "path": f"{method} {path}", "label": "unserved"}
                )
            raw = J(obj).encode()
            w.write(
                b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(raw))
                + raw
            )
            await w.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        w.close()


async def main(port):
    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 26)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8901))
