"""What comes from outside the project: the protocol's schema and a headless client, both from the npm registry."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support.editor import CONFIG, CROW, clean_environment

SDK = "@agentclientprotocol/sdk@2.4.0"
SCHEMA = "package/schema/v1/schema.json"
ACPX = "acpx@0.19.1"
PROJECT = Path(__file__).parent.parent.parent


class Unavailable(Exception):
    """npm is not there, or cannot reach its registry; the reason in words."""


def cache() -> Path:
    folder = Path(tempfile.gettempdir()) / f"crow-conformance-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def schema() -> Path:
    """The protocol's own JSON schema, out of the package of its TypeScript SDK."""
    path = cache() / f"{SDK.rpartition('@')[2]}.schema.json"
    if not path.exists():
        name = _npm(cache(), "pack", SDK, "--json")
        archive = cache() / json.loads(name)[0]["filename"]
        with tarfile.open(archive) as package:
            content = package.extractfile(SCHEMA)
            if content is None:
                raise Unavailable(f"{SDK} has no {SCHEMA}")
            path.write_bytes(content.read())
    return path


def acpx() -> Path:
    """The installed acpx, with a Node that is new enough for it."""
    folder = cache() / ACPX
    program = folder / "node_modules" / ".bin" / "acpx"
    if not program.exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private":true}')
        _npm(folder, "install", "--no-fund", "--no-audit", "--loglevel=error", "node@24", ACPX)
    return program


def _npm(folder: Path, *arguments: str) -> str:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    try:
        done = subprocess.run(["npm", *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm {arguments[0]} took too long") from None
    if done.returncode != 0:
        raise Unavailable(f"npm {arguments[0]} failed: {done.stderr.strip()[:300]}")
    return done.stdout


def acpx_exec(folder: Path, prompt: str, script: str) -> tuple[int, str, Path]:
    """`acpx exec` with Crow as its agent: exit status, what it printed, the recorded traffic."""
    program = acpx()
    folder.mkdir()
    (folder / "script.toml").write_text(script)
    (folder / "config.toml").write_text(CONFIG.format(images="false", more=""))
    record = folder / "acpx.jsonl"
    agent = f"{sys.executable} -m tests.conformance.tee_agent {record} {CROW} acp"
    environment = clean_environment(folder, folder) | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
    }
    done = subprocess.run(
        [str(program), "--agent", agent, "--cwd", str(folder), "--approve-all", "exec", prompt],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr, record
