"""The protocol's own TypeScript SDK (npm) as a client of `crow web`: a whole conversation over its WebSocket transport,
and the session loaded again on a second connection.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance import outside, schema_check
from tests.conformance.clients import Judgement
from tests.support.scripts import DONE, edit, reply, run
from tests.support.web import serving

PATIENCE = 120
SCRIPT = (
    reply(edit("notes.txt", "one", "1"), when="change")
    + reply(run("echo so it is; exit 3"), when="run")
    + "[[reply]]\nwhen = 'wait'\nevents = [{ text = 'Once' }, { wait = 600 }]\n"
    + DONE
)
CLIENT = """
import { appendFileSync } from "node:fs";
import { WebSocket } from "ws";
import { client } from "@agentclientprotocol/sdk";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const given = JSON.parse(process.argv[2]);

function recorded(run) {
  const headers = { Authorization: `Bearer ${given.token}` };
  const stream = createWebSocketStream(given.url, { WebSocket, headers });
  const note = (from) => new TransformStream({
    transform(msg, controller) {
      appendFileSync(given.record, JSON.stringify({ run, from, msg }) + "\\n");
      controller.enqueue(msg);
    },
  });
  const outward = note("client");
  outward.readable.pipeTo(stream.writable).catch(() => undefined);
  return { readable: stream.readable.pipeThrough(note("agent")), writable: outward.writable };
}

async function converse(run, talk) {
  const seen = { updates: [], asked: 0, onUpdate: undefined };
  const app = client({ name: "conformance" })
    .onRequest("session/request_permission", ({ params }) => {
      seen.asked += 1;
      const { optionId } = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId } };
    })
    .onNotification("session/update", ({ params }) => {
      seen.updates.push(params.update);
      seen.onUpdate?.(params.update);
    });
  const connection = app.connect(recorded(run));
  const agent = connection.agent;
  await agent.request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "conformance", version: "1" },
    clientCapabilities: {},
  });
  const result = await talk(agent, seen);
  connection.close();
  await connection.closed;
  return { ...result, asked: seen.asked, updates: seen.updates };
}

const first = await converse("first", async (agent, seen) => {
  const { sessionId } = await agent.request("session/new", { cwd: given.cwd, mcpServers: [] });
  const say = (text) => agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  const reasons = [(await say("change it")).stopReason, (await say("run it")).stopReason];
  const waiting = say("wait");
  await new Promise((resolve) => {
    seen.onUpdate = (update) => JSON.stringify(update).includes("Once") && resolve();
  });
  await agent.notify("session/cancel", { sessionId });
  reasons.push((await waiting).stopReason);
  return { sessionId, reasons };
});
const second = await converse("second", async (agent) => {
  await agent.request("session/load", { sessionId: first.sessionId, cwd: given.cwd, mcpServers: [] });
  const { stopReason } = await agent.request("session/prompt", {
    sessionId: first.sessionId,
    prompt: [{ type: "text", text: "and?" }],
  });
  return { reasons: [stopReason] };
});
console.log(JSON.stringify({ first, second }));
process.exit(0);
"""


def judge_web(folder: Path) -> Iterator[Judgement]:
    name = f"{outside.SDK} as a client of crow web: edit, command, cancel, load"
    try:
        wrong = _findings(folder / "web")
    except outside.Unavailable as why:
        yield Judgement(name, f"not asked: {why}", ok=True)
    else:
        yield Judgement(name, "; ".join(wrong) or "as it should be", not wrong)


def _findings(folder: Path) -> list[str]:
    program = outside.web_sdk() / "client.mjs"
    program.write_text(CLIENT)
    record = folder / "record.jsonl"
    with serving(folder, script=SCRIPT) as web:
        notes = web.workspace / "notes.txt"
        notes.write_text("one\n")
        address = f"ws://127.0.0.1:{web.port}/acp"
        told = _converse(
            program, {"url": address, "token": web.token(), "cwd": str(web.workspace), "record": str(record)}
        )
        if isinstance(told, str):
            return [told]
        wrong = schema_check.findings(outside.schema(), record)[:3]
        if notes.read_text() != "1\n":
            wrong.append(f"the file holds {notes.read_text()!r}")
    return wrong + list(_not_as_told(told))


def _not_as_told(told: dict[str, Any]) -> Iterator[str]:
    first, second = told["first"], told["second"]
    if first["reasons"] != ["end_turn", "end_turn", "cancelled"] or second["reasons"] != ["end_turn"]:
        yield f"the turns ended with {first['reasons']} and {second['reasons']}"
    if first["asked"] != 2:
        yield f"it was asked {first['asked']} times"
    for words in ("so it is", "Once", "notes.txt", "Done."):
        for name in ("first", "second"):
            if words not in json.dumps(told[name]["updates"]):
                yield f"{words!r} was not shown on the {name} connection"


def _converse(program: Path, given: dict[str, Any]) -> dict[str, Any] | str:
    """What the client saw; in words, what went wrong with it."""
    command = ["node", str(program), json.dumps(given)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ))
    except subprocess.TimeoutExpired:
        return "the client did not come to an end"
    return json.loads(done.stdout) if done.returncode == 0 else f"the client failed: {done.stderr.strip()[-500:]}"
