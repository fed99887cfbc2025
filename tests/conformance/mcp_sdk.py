"""The TypeScript SDK of the Model Context Protocol (npm) as a host of `crow mcp`: it lists and calls every tool."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance import outside
from tests.conformance.clients import Judgement
from tests.mcp.hosts import serving_http, small_web, surroundings, web_config
from tests.support.warm import CROW

PATIENCE = 120
FIRST = b"\xef\xbb\xbfone\r\ntwo\r\n"
"""What the file holds in the beginning and must hold in the end."""

HOST = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const given = JSON.parse(process.argv[2]);
const transport = given.url
  ? new StreamableHTTPClientTransport(new URL(given.url), {
      requestInit: { headers: { Authorization: `Bearer ${given.token}` } },
    })
  : new StdioClientTransport({ command: given.command, args: given.args, env: given.env, cwd: given.cwd });
const client = new Client({ name: "conformance", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of given.calls) {
  results.push(await client.callTool({ name, arguments: args }));
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
process.exit(0);
"""


def judge_mcp(folder: Path) -> Iterator[Judgement]:
    for way in ("on pipes", "over HTTP"):
        name = f"{outside.MCP_SDK} as a host of crow mcp, {way}"
        try:
            wrong = _findings(folder / f"mcp {way}", way)
        except outside.Unavailable as why:
            yield Judgement(name, f"not asked: {why}", ok=True)
        else:
            yield Judgement(name, "; ".join(wrong) or "as it should be", not wrong)


def _findings(project: Path, way: str) -> list[str]:
    program = _host()
    project.mkdir()
    notes = project / "notes.txt"
    notes.write_bytes(FIRST)
    with small_web() as address:
        config, calls = web_config(address), _calls(address)
        if way == "on pipes":
            started = {"command": CROW, "args": ["mcp", "--terminal"], "env": surroundings(project, config)}
            told = _converse(program, {**started, "cwd": str(project), "calls": calls})
        else:
            with serving_http(project, "--terminal", config=config) as server:
                told = _converse(program, {"url": server.url, "token": server.token, "calls": calls})
    if isinstance(told, str):
        return [told]
    results = zip(calls, told["results"], strict=True)
    wrong = [f"{name} failed: {result['content']}"[:300] for (name, _), result in results if result.get("isError")]
    called = list(dict.fromkeys(name for name, _ in calls))
    if told["tools"] != called:
        wrong.append(f"it has {told['tools']}, and {called} were called")
    if notes.read_bytes() != FIRST:
        wrong.append(f"the file holds {notes.read_bytes()!r} after it was all taken back")
    return wrong


def _calls(address: str) -> list[tuple[str, dict[str, Any]]]:
    edits: list[dict[str, Any]] = [
        {"command": "view"},
        {"command": "str_replace", "old_str": "two", "new_str": "2"},
        {"command": "insert", "insert_line": 0, "new_str": "zero"},
        {"command": "create", "file_text": "anew\n"},
        *[{"command": "undo_edit"}] * 3,
    ]
    return [
        *(("file_editor", {"path": "notes.txt", **edit}) for edit in edits),
        ("web_search", {"query": "crows"}),
        ("web_fetch", {"url": f"{address}/page"}),
        ("terminal", {"command": "sleep 1000", "background": True}),
        ("terminal_read", {"id": "b1"}),
        ("terminal_stop", {"id": "b1"}),
    ]


def _converse(program: Path, given: dict[str, Any]) -> dict[str, Any] | str:
    """What the host saw; in words, what went wrong with it."""
    command = ["node", str(program), json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ))
    return json.loads(done.stdout) if done.returncode == 0 else f"the host failed: {done.stderr.strip()[-300:]}"


def _host() -> Path:
    """The program above, beside the installed SDK."""
    program = outside.mcp_sdk() / "host.mjs"
    program.write_text(HOST)
    return program
