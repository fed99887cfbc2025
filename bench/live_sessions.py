"""Many sessions of one process: two hundred that stream at once, and three hundred that are idle.

python bench/live_sessions.py [CROW]      these rows alone
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time

STREAMS = 200
RATE = 40
"""Tokens a second of each stream."""
WARM_UP = 2.0
MEASURED = 5.0
CANCELLED = 20
IDLE = 300
SETTLED = 3.0
CONFIG = """
model = "bench/fake"
[providers.bench]
type = "openai"
wire = "chat"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "none"
[providers.bench.models.fake]
context_window = 1000000
"""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
NO_LIST = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


def chunk(text, finish=None):
    delta = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    event = b"data: " + json.dumps(delta).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


class Model:
    """Streams to everyone who asks, each token with the moment at which it was sent; or answers at once."""

    def __init__(self):
        self.streams = []
        self.at_once = False
        self.late = []

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                for line in head:
                    if line.startswith(b"content-length:"):
                        await reader.readexactly(int(line[15:]))
                if not head[0].startswith(b"post"):
                    writer.write(NO_LIST)
                elif self.at_once:
                    writer.write(HEAD + chunk("Yes.", "stop") + b"0\r\n\r\n")
                else:
                    writer.write(HEAD)
                    self.streams.append(writer)

    async def stream(self):
        groups, due = 5, time.perf_counter()
        while True:
            for group in range(groups):  # not all in the same moment
                self.late.append(time.perf_counter() - due)
                for writer in self.streams[group::groups]:
                    if not writer.is_closing():
                        writer.write(chunk(f" t{time.perf_counter():.4f}"))
                due += 1 / RATE / groups
                await asyncio.sleep(max(0, due - time.perf_counter()))


class Crow:
    def __init__(self, process):
        self.process = process
        self.delays = []
        self.measuring = False
        self._asked = {}
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        while line := await self.process.stdout.readline():
            now, message = time.perf_counter(), json.loads(line)
            if "method" not in message:
                self._asked.pop(message["id"]).set_result((now, message.get("result")))
            elif self.measuring and message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
                moments = message["params"]["update"]["content"]["text"].split(" t")[1:]
                self.delays += [now - float(moment) for moment in moments]

    def tell(self, method, **params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def ask(self, method, **params):
        number = len(self._asked) + time.perf_counter_ns()
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        return answer

    async def open(self, count, work):
        await self.ask("initialize", protocolVersion=1, clientCapabilities={})
        sessions = []
        for number in range(count):
            folder = os.path.join(work, str(number))
            os.mkdir(folder)
            _, answer = await self.ask("session/new", cwd=folder, mcpServers=[])
            sessions.append(answer["sessionId"])
        return sessions

    def prompt(self, session):
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Go."}])

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def wake_ups(self):
        """So far, of all threads."""
        total = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
        return total

    async def end(self):
        self.process.kill()
        await self.process.wait()
        await self._reader


def configure(home, port):
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write(CONFIG.format(port=port))


@contextlib.asynccontextmanager
async def running(crow, model):
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, backlog=1000)
    with tempfile.TemporaryDirectory(prefix="crow-bench-") as work:
        home = os.path.join(work, "home")
        os.mkdir(home, 0o700)
        configure(home, server.sockets[0].getsockname()[1])
        process = await asyncio.create_subprocess_exec(
            *(crow, "acp"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
            env={**os.environ, "CROW_HOME": home, "CROW_LOCAL_SERVERS": ""},
        )
        started = Crow(process)
        try:
            yield started, work
        finally:
            await started.end()
            server.close()


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000


async def streams(crow_command):
    model = Model()
    async with running(crow_command, model) as (crow, work):
        sessions = await crow.open(STREAMS, work)
        prompts = [crow.prompt(session) for session in sessions]
        while len(model.streams) < STREAMS:  # noqa: ASYNC110 -- 50 ms more or less do not matter
            await asyncio.sleep(0.05)
        ticking = asyncio.create_task(model.stream())
        await asyncio.sleep(WARM_UP)
        cpu, crow.measuring, model.late = crow.cpu(), True, []
        await asyncio.sleep(MEASURED)
        cpu, crow.measuring = crow.cpu() - cpu, False
        cancels = []
        for session, prompt in zip(sessions[:CANCELLED], prompts, strict=False):
            began = time.perf_counter()
            crow.tell("session/cancel", sessionId=session)
            ended, _ = await prompt
            cancels.append(ended - began)
        ticking.cancel()
        return {
            "streams200_cpu_us": cpu / len(crow.delays) * 1e6,
            "streams200_p50_ms": quantile(crow.delays, 0.5),
            "streams200_p99_ms": quantile(crow.delays, 0.99),
            "streams200_cancel_ms": max(cancels) * 1000,
            "streams200_model_late_ms": quantile(model.late, 0.99),
        }


async def idle(crow_command):
    model = Model()
    model.at_once = True
    async with running(crow_command, model) as (crow, work):
        sessions = await crow.open(IDLE, work)
        await asyncio.gather(*map(crow.prompt, sessions))
        await asyncio.sleep(SETTLED)
        woken = crow.wake_ups()
        await asyncio.sleep(MEASURED)
        woken = crow.wake_ups() - woken
        return {"idle300_descriptors": crow.descriptors(), "idle300_wake_ups": woken / MEASURED}


def measure(crow_command, stage):
    return asyncio.run(streams(crow_command) if stage == "streams" else idle(crow_command))


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(sys.executable), "crow")
    for name in ("streams", "idle"):
        for key, value in measure(command, name).items():
            print(f"{key} {value:.1f}", flush=True)
