"""What comes from outside the project: the protocol's schema, a headless client (npm) and a Jupyter kernel (PyPI)."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.editor import CONFIG, clean_environment
from tests.support.warm import CROW

SDK = "@agentclientprotocol/sdk@2.4.0"
SCHEMA = "package/schema/v1/schema.json"
UNSTABLE = "package/schema/v1/schema.unstable.json"
OFFERED = {
    "fork": ("ForkSessionRequest", "ForkSessionResponse", "SessionForkCapabilities"),
    "status": ("SessionStatusRequest", "SessionStatusResponse", "SessionStatus", "SessionStatusCapabilities"),
}
"""What Crow offers of the protocol's unstable part, by capability; nothing else of it is accepted."""
WS = "ws@8"
"""The constructor of WebSockets that the SDK's documentation names for node."""
MCP_SDK = "@modelcontextprotocol/sdk@1.29.0"
ACPX = "acpx@0.19.1"
KERNEL = ("agent-client-kernel==0.2.0", "agent-client-protocol==0.4.9", "jupyter-client", "metakernel")
"""It asks for any SDK since 0.4.0; 0.4.9 is of the generation that it was written for."""
PATIENCE = 120.0
"""Seconds that a client may take."""
PROJECT = Path(__file__).parent.parent.parent


class Unavailable(Exception):
    """It is not there and cannot be fetched; the reason in words."""


def cache() -> Path:
    folder = Path(tempfile.gettempdir()) / f"crow-conformance-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def schema() -> Path:
    """The protocol's own JSON schema, out of the package of its TypeScript SDK: the stable one, with OFFERED."""
    path = cache() / f"{SDK.rpartition('@')[2]}.with-{'-'.join(OFFERED)}.schema.json"
    if not path.exists():
        archive = _package()
        stable, unstable = _read_from(archive, SCHEMA), _read_from(archive, UNSTABLE)
        types, unstable_types = stable["$defs"], unstable["$defs"]
        types.update({name: unstable_types[name] for names in OFFERED.values() for name in names})
        types["ForkSessionRequest"]["properties"].pop("systemPrompt", None)  # unstable by itself
        capabilities = unstable_types["SessionCapabilities"]["properties"]
        types["SessionCapabilities"]["properties"].update({name: capabilities[name] for name in OFFERED})
        path.write_text(json.dumps(stable))
    return path


def unstable_schema() -> dict[str, Any]:
    """The same with everything that is still talked about."""
    return _read_from(_package(), UNSTABLE)


def _package() -> Path:
    name = _npm(cache(), "pack", SDK, "--json")
    return cache() / json.loads(name)[0]["filename"]


def _read_from(archive: Path, name: str) -> dict[str, Any]:
    with tarfile.open(archive) as package:
        content = package.extractfile(name)
        if content is None:
            raise Unavailable(f"{SDK} has no {name}")
        return json.load(content)


def acpx() -> Path:
    """The installed acpx, with a Node that is new enough for it."""
    folder = cache() / ACPX
    program = folder / "node_modules" / ".bin" / "acpx"
    if not program.exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private":true}')
        _npm(folder, "install", "--no-fund", "--no-audit", "--loglevel=error", "node@24", ACPX)
    return program


def mcp_sdk() -> Path:
    """The folder in which the Model Context Protocol's TypeScript SDK is installed."""
    folder = cache() / MCP_SDK.replace("/", "-")
    if not (folder / "node_modules").exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private":true}')
        _npm(folder, "install", "--no-fund", "--no-audit", "--loglevel=error", MCP_SDK)
    return folder


def web_sdk() -> Path:
    """The folder in which the protocol's TypeScript SDK is installed, with a library for WebSockets that it can use."""
    folder = cache() / f"{SDK.replace('/', '-')}-{WS}"
    if not (folder / "node_modules").exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private":true}')
        _npm(folder, "install", "--no-fund", "--no-audit", "--loglevel=error", SDK, WS)
    return folder


def kernel() -> Path:
    """The Python of a virtual environment that holds the Jupyter kernel, the SDK it was written for, and a client."""
    folder = cache() / KERNEL[0].replace("==", "-")
    ready = folder / "ready"
    if not ready.exists():
        _run("python -m venv", [sys.executable, "-m", "venv", "--clear", str(folder)])
        _run("pip install", [str(folder / "bin" / "pip"), "install", "--quiet", *KERNEL])
        ready.touch()
    return folder / "bin" / "python"


def _npm(folder: Path, *arguments: str) -> str:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    return _run(f"npm {arguments[0]}", ["npm", *arguments], folder)


def _run(what: str, command: list[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} took too long") from None
    if done.returncode != 0:
        raise Unavailable(f"{what} failed: {done.stderr.strip()[:300]}")
    return done.stdout


class Exchange(NamedTuple):
    """What came of a prompt to a client that has Crow as its agent."""

    status: int
    printed: str
    record: Path
    """The traffic between the two."""


def acpx_exec(folder: Path, script: str, permission: str) -> Exchange:
    """`acpx exec` in a folder that is there."""
    program = acpx()
    agent = " ".join(_agent(folder, script))
    command = [str(program), "--agent", agent, "--cwd", str(folder), permission, "exec", "go"]
    return _converse(command, folder, {"PATH": f"{program.parent}:{os.environ['PATH']}"})


def kernel_cell(folder: Path, script: str) -> Exchange:
    """One cell of the Jupyter kernel, which asks nobody for permission and offers nothing."""
    python = kernel()
    command, *arguments = _agent(folder, script)
    variables = {"ACP_AGENT_COMMAND": command, "ACP_AGENT_ARGS": " ".join(arguments)}
    return _converse([str(python), "-c", CELL, "go"], folder, variables)


class AcpxSession:
    """acpx in its session mode: each command is a process of its own, and so is each `crow acp` behind it."""

    def __init__(self, folder: Path, script: str, *, may_resume: bool) -> None:
        program = acpx()
        agent = " ".join(_agent(folder, script, *([] if may_resume else ["--without-resume"])))
        self._command = [str(program), "--agent", agent, "--cwd", str(folder), "--ttl", "60", "--approve-all"]
        self._variables = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        self._folder = folder
        self.home, _ = _surroundings(folder, {})

    def run(self, *arguments: str) -> Exchange:
        return _converse([*self._command, *arguments], self._folder, self._variables)

    def cancel_after(self, words: str, *arguments: str) -> Exchange:
        """Cancels a prompt when these words were shown; what came of the prompt."""
        home, environment = _surroundings(self._folder, self._variables)
        with subprocess.Popen(
            [*self._command, *arguments],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as prompting:
            patience = threading.Timer(PATIENCE, prompting.kill)
            patience.start()
            printed = b""
            assert prompting.stdout is not None
            while words.encode() not in printed and (more := os.read(prompting.stdout.fileno(), 65536)):
                printed += more
            cancelled = self.run("cancel")
            printed += prompting.stdout.read()
            patience.cancel()
        text = printed.decode("utf-8", "replace") + cancelled.printed
        return Exchange(prompting.returncode or cancelled.status, text, home / "traffic.jsonl")


def _agent(folder: Path, script: str, *options: str) -> list[str]:
    home = folder.with_name(f"{folder.name}-home")
    home.mkdir()
    (home / "script.toml").write_text(script)
    (home / "config.toml").write_text(CONFIG.format(images="false", more=""))
    return [sys.executable, "-m", "tests.conformance.tee_agent", *options, str(home / "traffic.jsonl"), CROW, "acp"]


def _surroundings(folder: Path, variables: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """The home of a client that works in a folder, and its environment."""
    home = folder.with_name(f"{folder.name}-home")
    environment = clean_environment(home, home) | {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)} | variables
    return home, environment


def _converse(command: list[str], folder: Path, variables: dict[str, str]) -> Exchange:
    home, environment = _surroundings(folder, variables)
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )
    return Exchange(done.returncode, done.stdout + done.stderr, home / "traffic.jsonl")


CELL = """
import sys
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

def show(message):
    content = message["content"]
    data = content.get("data") or {}
    print(content.get("text") or data.get("text/markdown") or data.get("text/plain") or content.get("evalue") or "")

manager = KernelManager()
command = [sys.executable, "-m", "agent_client_kernel", "-f", "{connection_file}"]
manager._kernel_spec = KernelSpec(argv=command, display_name="acp", language="text")
manager.start_kernel()
client = manager.client()
client.start_channels()
try:
    client.wait_for_ready(timeout=60)
    reply = client.execute_interactive(sys.argv[1], timeout=60, output_hook=show, allow_stdin=False)
    print("[status]", reply["content"]["status"])
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=False)
"""
