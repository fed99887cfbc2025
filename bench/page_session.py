"""A long session for the page: 4,000 messages, 200 diffs and an output of 100,000 lines, in a `crow web` that runs.

It is made through the protocol, with the scripted provider, and once. `LongSession` is what the page is measured with.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess

from websockets.sync.client import connect

TURNS, EDITS, LINES = 2000, 200, 100_000
LAST_WORDS = "This is the end of the long session."
CONFIG = """
model = "play/it"
[providers.play]
type = "scripted"
script = "script.toml"
[providers.play.models.it]
context_window = 100000000
"""
ANSWER = """Done, and this is why it is right:

- The **settings** are read once, in `load_settings`, and handed down.
- A file that is missing is no error: *defaults* count then.

```python
def load_settings(path: Path) -> Settings:
    return Settings(**json.loads(path.read_text()))
```

Say `make test` to see it."""


def text_of(number, value):
    lines = [f"def step_{number}_{line}(value: int) -> int:\n    return value + {line}\n\n" for line in range(25)]
    return "".join(lines).replace("value + 7\n", f"value {value}\n").replace("value + 18\n", f"value {value}\n")


def script():
    edits = []
    for number in range(EDITS):
        places = ("step_{}_7", "step_{}_18")
        changes = [
            {"old": head + "    return value - 1\n", "new": head + "    return value * 2\n"}
            for head in (f"def {place.format(number)}(value: int) -> int:\n" for place in places)
        ]
        arguments = json.dumps(json.dumps({"path": f"file_{number}.py", "edits": changes}))
        edits.append(f'[[reply]]\nwhen = "change {number}:"\nevents = [{{ call = "edit", raw = {arguments} }}]\n')
    command = json.dumps({"command": f"seq -f 'line %.0f of a long output' {LINES}"})
    run = f'[[reply]]\nwhen = "run it"\nevents = [{{ call = "terminal", raw = {json.dumps(command)} }}]\n'
    end = f'[[reply]]\nwhen = "the end"\nevents = [{{ text = "{LAST_WORDS}" }}]\n'
    rest = f"[[reply]]\nrepeat = true\nevents = [{{ text = {json.dumps(ANSWER)} }}]\n"
    return "".join(edits) + run + end + rest


class LongSession:
    def __init__(self, crow, work):
        self.home, self.cwd = os.path.join(work, "page-home"), os.path.join(work, "page-work")
        os.makedirs(self.home, mode=0o700)
        os.makedirs(self.cwd)
        for number in range(EDITS):
            with open(os.path.join(self.cwd, f"file_{number}.py"), "w") as f:
                f.write(text_of(number, "- 1"))
        with open(os.path.join(self.home, "config.toml"), "w") as f:
            f.write(CONFIG)
        with open(os.path.join(self.home, "script.toml"), "w") as f:
            f.write(script())
        self.crow = crow
        self.environment = {**os.environ, "CROW_HOME": self.home, "CROW_LOCAL_SERVERS": ""}
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
        self.process = subprocess.Popen(
            [crow, "web", "--port", port],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.link = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.title = ""
        try:
            self._fill(f"ws://127.0.0.1:{port}/acp")
        except BaseException:
            self.close()
            raise

    def new_link(self):
        out = subprocess.run([self.crow, "web"], env=self.environment, capture_output=True, text=True, check=True)
        return re.search(r"http\S+", out.stdout)[0]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _fill(self, address):
        token = subprocess.run(
            [self.crow, "web", "--token"], env=self.environment, capture_output=True, text=True, check=True
        ).stdout.strip()
        header = {"Authorization": f"Bearer {token}"}
        with connect(address, additional_headers=header, subprotocols=["acp.v1"], max_size=None, proxy=None) as peer:
            client = _Client(peer)
            client.request("initialize", {"protocolVersion": 1, "clientInfo": {"name": "bench", "version": "1"}})
            self.id = client.request("session/new", {"cwd": self.cwd, "mcpServers": []})["sessionId"]
            client.request("session/set_mode", {"sessionId": self.id, "modeId": "auto"})
            for number in range(TURNS):
                client.prompt(self.id, self._words(number))
                if number % 50 == 25:
                    client.prompt(self.id, "/clear")  # else each request would be longer than the one before

    def _words(self, number):
        if number == TURNS - 1:
            return "say the end"
        if number == TURNS - 20:
            return "run it"
        if number % (TURNS // EDITS) == 5:
            return f"change {number // (TURNS // EDITS)}: please make it better"
        return f"question {number}: how are the settings read, and why is it right that way?"


class _Client:
    def __init__(self, peer):
        self.peer, self.last = peer, 0

    def request(self, method, params):
        self.last += 1
        self.peer.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        while True:
            message = json.loads(self.peer.recv())
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def prompt(self, session, text):
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
