"""A minimal ACP client: newline-delimited JSON-RPC over a subprocess's stdio, no SDK.

fs/* and terminal/* are done for real; every permission is granted; every message is kept with its arrival time and size.
"""

import contextlib
import fcntl
import json
import os
import queue
import subprocess
import threading
import time

F_SETPIPE_SZ = 1031
ALL_CAPS = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


class AgentError(Exception):
    pass


class Terminal:
    def __init__(self, p):
        env = {**os.environ, **{e["name"]: e["value"] for e in p.get("env") or []}}
        args = p.get("args") or []
        self.limit = p.get("outputByteLimit") or 1 << 20
        self.out, self.cut = b"", False
        self.proc = subprocess.Popen(
            [p["command"], *args] if args else p["command"],
            shell=not args,
            cwd=p.get("cwd") or None,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.reader = threading.Thread(target=self._pump, daemon=True)
        self.reader.start()

    def _pump(self):
        while data := os.read(self.proc.stdout.fileno(), 65536):
            self.out += data
            if len(self.out) > self.limit:
                self.out, self.cut = self.out[-self.limit :], True

    def wait(self):
        self.proc.wait()
        self.reader.join(5)
        return self.status()

    def status(self):
        code = self.proc.poll()
        return (
            None
            if code is None
            else {"exitCode": code if code >= 0 else None, "signal": None if code >= 0 else str(-code)}
        )


class AcpClient:
    def __init__(self, cmd, env=None, cwd=None, caps=ALL_CAPS, stderr=None, keep_raw=False):
        self.caps, self.keep_raw = caps, keep_raw
        self.messages = []  # (time, bytes, method, session id, kind of update, the message)
        self.bytes_in = 0
        self.calls = {}  # how often the agent called each client method
        self.waiting, self.terminals, self.next_id = {}, {}, 0
        self.lock = threading.Lock()
        self.t_spawn = time.monotonic()
        self.proc = subprocess.Popen(
            cmd,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr or subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        for stream in (self.proc.stdin, self.proc.stdout):
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream.fileno(), F_SETPIPE_SZ, 1 << 20)
        threading.Thread(target=self._read, daemon=True).start()

    # --- wire
    def _read(self):
        fd, rest = self.proc.stdout.fileno(), b""
        while True:
            data = os.read(fd, 1 << 20)
            now = time.monotonic()
            if not data:
                break
            self.bytes_in += len(data)
            if b"\n" not in data:
                rest += data
                continue
            *rows, rest = (rest + data).split(b"\n")
            for row in rows:
                if row.strip():
                    self._handle(row, now)
        for q in list(self.waiting.values()):
            q.put((time.monotonic(), {"error": {"message": "the agent closed its output"}}))

    def _handle(self, row, now):
        try:
            msg = json.loads(row)
        except ValueError:
            self.messages.append((now, len(row), "not-json", None, None, row[:200]))
            return
        method, p = msg.get("method"), msg.get("params") or {}
        update = p.get("update") or {} if isinstance(p, dict) else {}
        big = len(row) > 4096 and not self.keep_raw
        kept = {"params": {"update": {"toolCallId": update.get("toolCallId")}}} if big else msg
        self.messages.append(
            (
                now,
                len(row),
                method,
                p.get("sessionId") if isinstance(p, dict) else None,
                update.get("sessionUpdate"),
                kept,
            )
        )
        if method is None:
            q = self.waiting.pop(msg.get("id"), None)
            if q:
                q.put((now, msg))
        elif "id" in msg:
            self.calls[method] = self.calls.get(method, 0) + 1
            if method == "terminal/wait_for_exit":  # may take long: not on the reader's thread
                threading.Thread(target=self._serve, args=(msg, method, p), daemon=True).start()
            else:
                self._serve(msg, method, p)

    def _send(self, obj):
        raw = json.dumps(obj, separators=(",", ":")).encode() + b"\n"
        with self.lock:
            view = memoryview(raw)
            while view:
                view = view[os.write(self.proc.stdin.fileno(), view) :]

    def _serve(self, msg, method, p):
        try:
            result = self._client_method(method, p)
            self._send({"jsonrpc": "2.0", "id": msg["id"], "result": result})
        except KeyError as e:
            self._send({"jsonrpc": "2.0", "id": msg["id"], "error": {"code": -32601, "message": f"not found: {e}"}})
        except FileNotFoundError as e:
            self._send(
                {
                    "jsonrpc": "2.0",
                    "id": msg["id"],
                    "error": {
                        "code": -32002,
                        "message": "Resource not found",
                        "data": {"uri": p.get("path"), "details": str(e)},
                    },
                }
            )
        except OSError as e:
            self._send({"jsonrpc": "2.0", "id": msg["id"], "error": {"code": -32603, "message": str(e)}})

    # --- what the agent may ask of us
    def _client_method(self, method, p):
        if method == "session/request_permission":
            options = p["options"]
            best = next(
                (o for kind in ("allow_once", "allow_always") for o in options if o.get("kind") == kind), options[0]
            )
            return {"outcome": {"outcome": "selected", "optionId": best["optionId"]}}
        if method == "fs/read_text_file":
            with open(p["path"], encoding="utf-8", newline="") as f:
                text = f.read()
            if p.get("line") or p.get("limit"):
                start = (p.get("line") or 1) - 1
                rows = text.splitlines(True)
                text = "".join(rows[start : start + p["limit"]] if p.get("limit") else rows[start:])
            return {"content": text}
        if method == "fs/write_text_file":
            os.makedirs(os.path.dirname(p["path"]), exist_ok=True)
            with open(p["path"], "w", encoding="utf-8", newline="") as f:
                f.write(p["content"])
            return {}
        if method == "terminal/create":
            tid = f"term{len(self.terminals)}"
            self.terminals[tid] = Terminal(p)
            return {"terminalId": tid}
        if method.startswith("terminal/"):
            term = self.terminals[p["terminalId"]]
            if method == "terminal/output":
                return {
                    "output": term.out.decode("utf-8", "replace"),
                    "truncated": term.cut,
                    "exitStatus": term.status(),
                }
            if method == "terminal/wait_for_exit":
                return term.wait()
            if term.proc.poll() is None and method in ("terminal/kill", "terminal/release"):
                term.proc.kill()
            return {}
        raise KeyError(method)

    # --- what we ask of the agent
    def start(self, method, params):
        self.next_id += 1
        q = self.waiting[self.next_id] = queue.Queue()
        t = time.monotonic()
        self._send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return t, q

    def finish(self, q, timeout):
        try:
            t, msg = q.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if "error" in msg:
            raise AgentError(json.dumps(msg["error"])[:400])
        return t, msg.get("result") or {}

    def request(self, method, params, timeout=60):
        """Returns (time sent, time answered, result)."""
        t0, q = self.start(method, params)
        t1, result = self.finish(q, timeout)
        return t0, t1, result

    def notify(self, method, params):
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, timeout=90):
        info = {"name": "acp-bench", "title": "acp-bench", "version": "1"}
        return self.request(
            "initialize", {"protocolVersion": 1, "clientCapabilities": self.caps, "clientInfo": info}, timeout
        )

    def prompt(self, sid, text, timeout=60):
        return self.request("session/prompt", {"sessionId": sid, "prompt": [{"type": "text", "text": text}]}, timeout)

    def start_prompt(self, sid, text):
        return self.start("session/prompt", {"sessionId": sid, "prompt": [{"type": "text", "text": text}]})

    def close(self):
        """Close the agent's input; then end it and what it started (its own process group)."""
        with contextlib.suppress(OSError):
            self.proc.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.proc.wait(2)
        for sig in (15, 9):
            try:
                os.killpg(self.proc.pid, sig)
            except ProcessLookupError:
                break
            try:
                self.proc.wait(2)
            except subprocess.TimeoutExpired:
                continue
        for term in self.terminals.values():
            if term.proc.poll() is None:
                term.proc.kill()


# --- the process tree, from /proc
def tree(pid):
    kids = {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat") as f:
                    ppid = int(f.read().rsplit(")", 1)[1].split()[1])
                kids.setdefault(ppid, []).append(int(d))
            except OSError:
                pass
    todo, out = [pid], []
    while todo:
        p = todo.pop()
        out.append(p)
        todo += kids.get(p, [])
    return out


def cpu_seconds(pid, *, children=True):
    """CPU time of every thread of the tree, to the nanosecond (clock ticks would be as coarse as our start-up)."""
    total = 0
    for p in tree(pid) if children else [pid]:
        try:
            for thread in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{thread}/schedstat") as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def memory_mb(pid, field="Pss"):
    """Sum over the tree of Pss (a shared page counted once); of VmHWM (peak resident) with field='VmHWM'."""
    total = 0
    for p in tree(pid):
        try:
            with open(f"/proc/{p}/status" if field.startswith("Vm") else f"/proc/{p}/smaps_rollup") as f:
                total += next((int(x.split()[1]) for x in f if x.startswith(field + ":")), 0)
        except OSError:
            pass
    return total / 1024
