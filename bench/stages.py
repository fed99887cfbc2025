"""The stages of the bench, and measuring any ACP agents side by side with them. See README.md.

python3 stages.py agents.json --work DIR --out results.json [--rounds 3] [--only a,b] [--stages start,stream]
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request

from acp_client import ALL_CAPS, AcpClient, AgentError, cpu_seconds, memory_mb
from scenarios import lines

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60  # seconds for one prompt


def busiest_second(times):
    """The most of these moments that lie within one second."""
    first = 0
    most = 0
    for last, moment in enumerate(times):
        while times[first] <= moment - 1:
            first += 1
        most = max(most, last - first + 1)
    return most


class Bench:
    def __init__(self, port, work):
        self.port, self.work = port, work
        self.stored = {}
        self.server = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "fake_llm.py"), str(port)], stdout=subprocess.PIPE
        )
        assert self.server.stdout
        self.server.stdout.readline()

    def close(self):
        self.server.terminate()
        self.server.wait()

    def http(self, path, data=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data=data) as r:
            return json.load(r)

    def log(self, label=None):
        rows = self.http("/_log")
        return [r for r in rows if label is None or r.get("label", "").startswith(label)]

    def reset(self):
        self.http("/_reset", b"")

    def fill(self, x):
        return x.replace("{PORT}", str(self.port)).replace("{WORK}", self.work)

    def path(self, agent, name):
        d = os.path.join(self.work, agent["name"])
        os.makedirs(d, exist_ok=True)
        return os.path.join(d, name)

    def file(self, agent, name, text):
        p = self.path(agent, name)
        with open(p, "w") as f:
            f.write(text)
        return p

    def spawn(self, agent, m):
        """Spawn and initialize; records the two start-up figures."""
        for i in range(50):
            self.file(agent, f"small_{i}.txt", f"one small line, number {i}\n")
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env.update({k: self.fill(v) for k, v in agent.get("env", {}).items()})
        errlog = open(os.path.join(self.work, agent["name"] + ".stderr"), "ab")
        c = AcpClient(
            [self.fill(x) for x in agent["cmd"]],
            env=env,
            cwd=os.path.join(self.work, agent["name"]),
            caps=agent.get("caps", ALL_CAPS),
            stderr=errlog,
        )
        c.agent = agent
        try:
            _, t, c.info = c.initialize()
            m["initialize_s"] = t - c.t_spawn
            m["initialize_cpu_s"] = cpu_seconds(c.proc.pid)
            if agent.get("authenticate"):
                c.request("authenticate", {"methodId": agent["authenticate"]})
        except Exception:
            c.close()
            raise
        return c

    def session(self, c, m=None):
        _, t, r = c.request(
            "session/new", {"cwd": os.path.join(self.work, c.agent["name"]), "mcpServers": c.agent.get("mcp", [])}
        )
        if m is not None:
            m["session_new_s"] = t - c.t_spawn
            m["session_new_cpu_s"] = cpu_seconds(c.proc.pid)
        if c.agent.get("mode"):
            c.request("session/set_mode", {"sessionId": r["sessionId"], "modeId": c.agent["mode"]})
        return r["sessionId"]

    # --- stages: each takes an agent and fills m (name -> figure)
    def start(self, agent, m):
        c = self.spawn(agent, m)
        try:
            sid = self.session(c, m)
            for i, name in enumerate(("first_prompt_to_llm_s", None, "prompt_to_llm_s")):
                self.reset()
                t0, _, _ = c.prompt(sid, "bench:tokens:1")
                seen = self.log("tokens:1")
                if not seen:
                    raise AgentError("the model was never asked")
                if name:
                    m[name] = seen[0]["t_arrive"] - t0
                if i == 0:
                    m["request_kb"] = seen[0]["bytes"] / 1000
                    m["tool_count"] = len(seen[0]["tools"])
                    m["llm_requests_for_one_prompt"] = len(self.log())
        finally:
            c.close()

    def unhurried(self, agent, m):
        """A first prompt half a second after the session was opened, as soon as a person can be."""
        c = self.spawn(agent, {})
        try:
            sid = self.session(c)
            time.sleep(0.5)
            self.reset()
            t0, _, _ = c.prompt(sid, "bench:tokens:1")
            m["unhurried_prompt_to_llm_ms"] = (self.log("tokens:1")[0]["t_arrive"] - t0) * 1000
        finally:
            c.close()

    def stream(self, agent, m):
        c = self.spawn(agent, m)
        try:
            sid = self.session(c)
            c.prompt(sid, "bench:tokens:1")
            gaps = self.paced_delays(c, sid, 60, 20)
            if gaps:
                m["first_delta_ms"] = gaps[0]
                m["delta_median_ms"] = statistics.median(gaps)
                m["delta_p95_ms"] = sorted(gaps)[int(len(gaps) * 0.95)]
            m["deltas_seen_of_60"] = len(gaps)
            # the usual pace of a hosted model
            gaps = self.paced_delays(c, sid, 120, 12)
            if gaps:
                m["delta12_median_ms"] = statistics.median(gaps)
                m["delta12_p95_ms"] = sorted(gaps)[int(len(gaps) * 0.95)]
            # 5,000 deltas as fast as they go
            self.reset()
            c.messages.clear()
            b0, cpu0 = c.bytes_in, cpu_seconds(c.proc.pid)
            t0, t1, _ = c.prompt(sid, "bench:tokens:5000")
            rec = self.log("tokens:5000")[0]
            chunks = [x for x in c.messages if x[4] == "agent_message_chunk"]
            m["stream5000_s"] = chunks[-1][0] - rec["t_first"]
            m["stream5000_turn_s"] = t1 - t0
            m["stream5000_chunks"] = len(chunks)
            m["stream5000_tokens_per_s"] = 5000 / m["stream5000_s"]
            m["stream5000_cpu_s"] = cpu_seconds(c.proc.pid) - cpu0
            m["stream5000_kb_to_client"] = (c.bytes_in - b0) / 1000
            # some seconds of them: a rate over the tenth of a second that 5,000 deltas take would count the first burst
            c.messages.clear()
            c.prompt(sid, "bench:tokens:100000")
            m["chunks_per_s"] = busiest_second([x[0] for x in c.messages if x[4] == "agent_message_chunk"])
        finally:
            c.close()

    def paced_delays(self, c, sid, count, milliseconds):
        """The added latency of each delta of a paced stream, in milliseconds."""
        self.reset()
        c.messages.clear()
        c.prompt(sid, f"bench:slow:{count}:{milliseconds}")
        sent = self.log("slow:")[0]["sent"]
        seen, text = {}, ""
        for t, _, _, _, kind, msg in c.messages:
            if kind == "agent_message_chunk" and msg:
                text += msg["params"]["update"].get("content", {}).get("text", "")
                for n in re.findall(r"<(\d+)>", text):
                    seen.setdefault(int(n), t)
                text = text[text.rfind("<") :] if "<" in text else ""
        return [(seen[i] - s) * 1000 for i, s in enumerate(sent) if i in seen]

    def args(self, agent, m):
        c = self.spawn(agent, m)
        try:
            sid = self.session(c)
            c.prompt(sid, "bench:tokens:1")
            dst = self.path(agent, "stream.txt")
            if os.path.exists(dst):
                os.remove(dst)
            self.reset()
            c.messages.clear()
            b0, cpu0 = c.bytes_in, cpu_seconds(c.proc.pid)
            try:
                t0, t1, _ = c.prompt(sid, f"bench:tool-write:{dst}:8400:40", timeout=LIMIT)
                m["args200k_turn_s"] = t1 - t0
                rounds = self.log("tool-write")
                if len(rounds) > 1:
                    m["args200k_end_to_next_llm_s"] = rounds[1]["t_arrive"] - rounds[0]["t_end"]
                m["args200k_model_stream_s"] = rounds[0]["t_end"] - rounds[0]["t_first"]
                m["args200k_written"] = float(os.path.exists(dst) and open(dst).read() == lines(8400))
            except TimeoutError:
                m["args200k_turn_s"] = f">{LIMIT}"
            m["args200k_mb_to_client"] = (c.bytes_in - b0) / 1e6
            m["args200k_times_payload"] = (c.bytes_in - b0) / len(lines(8400))
            # what is shown of the call, without the file itself where it is written through the client
            shown = sum(x[1] for x in c.messages if x[2] in ("session/update", "session/request_permission"))
            m["args200k_shown_times_payload"] = shown / len(lines(8400))
            m["args200k_messages"] = len(c.messages)
            m["args200k_cpu_s"] = cpu_seconds(c.proc.pid) - cpu0
            m["used_write"] = ",".join(self.log("tool-write")[0]["used"])
            m["client_calls"] = ",".join(f"{k}={v}" for k, v in sorted(c.calls.items()))
            m["args_updates_per_s"] = self.updates_per_second(c, sid, dst)
        finally:
            c.close()

    def updates_per_second(self, c, sid, dst):
        """How often a call is shown while its arguments arrive, over about two seconds of them."""
        os.remove(dst)
        self.reset()
        c.messages.clear()
        c.prompt(sid, f"bench:tool-write:{dst}:8400:400:3", timeout=LIMIT)
        end = self.log("tool-write")[0]["t_end"]
        times = [x[0] for x in c.messages if x[4] == "tool_call_update" and x[0] <= end]
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0

    def diff9k(self, agent, m):
        """The same under 10,000 lines: some agents stop to diff above that."""
        self.diff(agent, m, 9000, "diff9k")

    def diff(self, agent, m, count=20000, tag="diff"):
        old = lines(count)
        rows = old.splitlines(True)
        cases = {
            "new": None,
            "1pct": [f"changed {i}\n" if i % 100 == 50 else r for i, r in enumerate(rows)],
            "every2nd": [f"changed {i}\n" if i % 2 else r for i, r in enumerate(rows)],
            "reversed": rows[::-1],
        }
        for name, new in cases.items():
            c = self.spawn(agent, m)
            try:
                sid = self.session(c)
                dst = self.path(agent, f"{tag}_{name}.txt")
                if new is None:
                    if os.path.exists(dst):
                        os.remove(dst)
                    c.prompt(sid, "bench:tokens:1")  # as in the other cases, the session's first prompt is another one
                else:
                    self.file(agent, f"{tag}_{name}.txt", old)
                    # some agents write only what they have read: let it read the whole file first
                    c.prompt(sid, f"bench:read-all:{dst}")
                src = self.file(agent, f"{tag}_{name}.src", "".join(new or rows))
                self.reset()
                c.messages.clear()
                b0, cpu0 = c.bytes_in, cpu_seconds(c.proc.pid)
                try:
                    c.prompt(sid, f"bench:write-from:{dst}:{src}:65536", timeout=LIMIT)
                    r = self.log("write-from")
                    if open(dst).read() == open(src).read():
                        m[f"{tag}_{name}_s"] = r[1]["t_arrive"] - r[0]["t_end"]
                    else:
                        m[f"{tag}_{name}_s"] = "not written"
                except TimeoutError:
                    m[f"{tag}_{name}_s"] = f">{LIMIT}"
                except FileNotFoundError:
                    m[f"{tag}_{name}_s"] = "not written"
                m[f"{tag}_{name}_mb_to_client"] = (c.bytes_in - b0) / 1e6
                m[f"{tag}_{name}_cpu_s"] = cpu_seconds(c.proc.pid) - cpu0
            finally:
                c.close()

    def turns(self, agent, m):
        c = self.spawn(agent, m)
        try:
            sid = self.session(c)
            c.prompt(sid, "bench:tokens:1")
            self.reset()
            c.messages.clear()
            c.calls.clear()
            cpu0, _b0 = cpu_seconds(c.proc.pid), c.bytes_in
            t0, t1, _ = c.prompt(sid, f"bench:turns:50:{os.path.join(self.work, agent['name'])}")
            r = self.log("turns")
            gaps = [b["t_arrive"] - a["t_end"] for a, b in itertools.pairwise(r)]
            m["turns50_s"] = t1 - t0
            m["turns50_rounds"] = len(r) - 1
            m["turns50_gap_ms"] = statistics.median(gaps) * 1000 if gaps else None
            m["turns50_last5_gap_ms"] = statistics.median(gaps[-5:]) * 1000 if gaps else None
            m["turns50_cpu_s"] = cpu_seconds(c.proc.pid) - cpu0
            m["turns50_messages"] = len(c.messages)
            m["turns50_last_request_kb"] = r[-1]["bytes"] / 1000
            m["used_read"] = ",".join(r[0]["used"])
            m["turns_client_calls"] = ",".join(f"{k}={v}" for k, v in sorted(c.calls.items()))
            can_load = (c.info.get("agentCapabilities") or {}).get("loadSession")
        finally:
            c.close()
        if not can_load:
            m["load50_s"] = "no session/load"
            return
        c = self.spawn(agent, {})
        try:
            c.messages.clear()
            try:
                t0, t1, _ = c.request(
                    "session/load",
                    {
                        "sessionId": sid,
                        "cwd": os.path.join(self.work, agent["name"]),
                        "mcpServers": agent.get("mcp", []),
                    },
                    60,
                )
                time.sleep(0.5)  # some replay after they have answered
                ups = [x for x in c.messages if x[2] == "session/update"]
                m["load50_s"] = t1 - t0
                m["load50_last_update_s"] = (ups[-1][0] if ups else t1) - t0
                m["load50_updates"] = len(ups)
                m["load50_tool_calls"] = len(
                    {
                        x[5]["params"]["update"].get("toolCallId")
                        for x in ups
                        if x[5] and x[4] in ("tool_call", "tool_call_update")
                    }
                )
            except (TimeoutError, AgentError) as e:
                m["load50_s"] = f"failed: {str(e)[:80]}"
        finally:
            c.close()

    def sessions(self, agent, m):
        """Loading long sessions, and listing many. They are made once, through the protocol, and used in each round."""
        if not self.stored:
            self.stored = self.store_sessions(agent)
        for rounds, sid in self.stored.items():
            c = self.spawn(agent, {})
            try:
                self.request_list(c)  # the store is open, so that only the session's own length counts
                c.messages.clear()
                cpu0 = cpu_seconds(c.proc.pid)
                t0, t1, _ = c.request(
                    "session/load", {"sessionId": sid, "cwd": self.cwd(agent), "mcpServers": []}, LIMIT
                )
                m[f"load{rounds}_s"] = t1 - t0
                m[f"load{rounds}_cpu_s"] = cpu_seconds(c.proc.pid) - cpu0
                replayed = {x[5]["params"]["update"]["toolCallId"] for x in c.messages if x[4] == "tool_call"}
                if len(replayed) != rounds:
                    raise AgentError(f"{len(replayed)} of {rounds} tool calls were replayed")
            finally:
                c.close()
        for name, pause in (("list5000_at_once_ms", 0), ("list5000_first_ms", 0.5)):
            c = self.spawn(agent, {})
            try:
                time.sleep(pause)
                m[name] = self.request_list(c)
                m["list5000_ms"] = self.request_list(c)
            finally:
                c.close()

    def store_sessions(self, agent):
        """A session of 500 tool rounds and one of 2,000, and 5,000 others."""
        stored = {}
        c = self.spawn(agent, {})
        try:
            sid = self.session(c)
            c.prompt(sid, "bench:tokens:1")
            for _ in range(4998):
                self.fork(c, agent, sid, close=True)
            for count in range(1, 41):
                c.prompt(sid, f"bench:turns:50:{self.cwd(agent)}", timeout=LIMIT)
                c.prompt(sid, "/clear")  # else the requests, not the sessions, would be what takes the time
                if count == 10:
                    stored[500] = self.fork(c, agent, sid)
            stored[2000] = sid
        finally:
            c.close()
        return stored

    def fork(self, c, agent, sid, close=False):
        _, _, r = c.request("session/fork", {"sessionId": sid, "cwd": self.cwd(agent), "mcpServers": []})
        if close:
            c.request("session/close", {"sessionId": r["sessionId"]})
        return r["sessionId"]

    def request_list(self, c):
        t0, t1, r = c.request("session/list", {})
        if not r["sessions"]:
            raise AgentError("nothing was listed")
        return (t1 - t0) * 1000

    def cwd(self, agent):
        return os.path.join(self.work, agent["name"])

    def memory(self, agent, m):
        c = self.spawn(agent, m)
        try:
            c.prompt(self.session(c), "bench:tokens:1")
            m["mem_1_session_mb"] = memory_mb(c.proc.pid)
            t = time.monotonic()
            for _ in range(20):
                c.prompt(self.session(c), "bench:tokens:20")
            m["sessions20_s"] = time.monotonic() - t
            m["mem_21_sessions_mb"] = memory_mb(c.proc.pid)
            m["mem_peak_mb"] = memory_mb(c.proc.pid, "VmHWM")
        finally:
            c.close()

    def parallel(self, agent, m):
        c = self.spawn(agent, m)
        try:
            sids = [self.session(c) for _ in range(8)]
            c.prompt(sids[0], "bench:tokens:1")
            self.reset()
            t = time.monotonic()
            waits = [c.start_prompt(s, "bench:slow:50:20")[1] for s in sids]
            ends = [c.finish(q, LIMIT)[0] for q in waits]
            m["parallel8_s"] = max(ends) - t
            spans = [(r["t_arrive"], r["t_end"]) for r in self.log("slow:")]
            m["parallel8_at_once"] = max(sum(1 for a, b in spans if a <= x < b) for x, _ in spans)
        finally:
            c.close()

    def attach(self, agent, m):
        """A session that lives in one process, joined from another: the same load, and the same deltas, through it."""
        owner, other = self.spawn(agent, {}), self.spawn(agent, {})
        try:
            sid = self.session(owner)
            for _ in range(10):
                owner.prompt(sid, f"bench:turns:50:{self.cwd(agent)}", timeout=LIMIT)
                owner.prompt(sid, "/clear")
            load = {"sessionId": sid, "cwd": self.cwd(agent), "mcpServers": []}
            self.request_list(other)
            t0, t1, _ = other.request("session/load", load, LIMIT)
            joined = {x[5]["params"]["update"]["toolCallId"] for x in other.messages if x[4] == "tool_call"}
            if len(joined) != 500:
                raise AgentError(f"{len(joined)} of 500 tool calls were replayed")
            delays = [[], []]
            for _ in range(
                2
            ):  # side by side: what one process sees of a prompt of its own, and the other of one of its own
                for client, found in zip((owner, other), delays, strict=True):
                    found += self.paced_delays(client, sid, 60, 20)
            here, through = map(statistics.median, delays)
            m["attached_delta_more_ms"] = through - here
            m["attached_delta_median_ms"] = through
            other.request("session/close", {"sessionId": sid})
            owner.request("session/close", {"sessionId": sid})
            t2, t3, _ = other.request("session/load", load, LIMIT)
            m["join500_ms"], m["load500_here_ms"] = (t1 - t0) * 1000, (t3 - t2) * 1000
            m["join500_more_ms"] = m["join500_ms"] - m["load500_here_ms"]
        finally:
            other.close()
            owner.close()

    def stop(self, agent, m):
        """From a cancel to the prompt's answer, in the text and in a command; from the end of input to the end."""
        c = self.spawn(agent, m)
        try:
            sid = self.session(c)
            for name, prompt, kind in (
                ("cancel_text_ms", "bench:slow:600:100", "agent_message_chunk"),
                ("cancel_command_ms", "bench:shell:sleep 600", "tool_call_update"),
            ):
                seen = len(c.messages)
                _, q = c.start_prompt(sid, prompt)
                self.until(lambda seen=seen, kind=kind: any(row[4] == kind for row in c.messages[seen:]))
                t = time.monotonic()
                c.notify("session/cancel", {"sessionId": sid})
                m[name] = (c.finish(q, LIMIT)[0] - t) * 1000
            t = time.monotonic()
            c.proc.stdin.close()
            c.proc.wait(LIMIT)
            m["exit_ms"] = (time.monotonic() - t) * 1000
        finally:
            c.close()

    def until(self, condition):
        end = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(0.005)


STAGES = ("start", "stream", "turns", "memory", "parallel", "args", "diff", "diff9k")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("agents")
    ap.add_argument("--work", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--only", default="")
    ap.add_argument("--stages", default=",".join(STAGES))
    ap.add_argument("--port", type=int, default=8901)
    a = ap.parse_args()
    agents = [x for x in json.load(open(a.agents)) if not a.only or x["name"] in a.only.split(",")]
    os.makedirs(a.work, exist_ok=True)
    results = json.load(open(a.out)) if os.path.exists(a.out) else {}
    bench = Bench(a.port, os.path.abspath(a.work))
    try:
        for rnd in range(a.rounds):
            for stage in a.stages.split(","):
                for agent in agents:  # interleaved: the machine's mood is shared by all
                    res, m, t = results.setdefault(agent["name"], {}), {}, time.monotonic()
                    err = ""
                    try:
                        getattr(bench, stage)(agent, m)
                    except Exception as e:
                        err = f"{type(e).__name__}: {e}"[:300]
                        res.setdefault("errors", []).append(f"{stage}: {err}")
                    for k, v in m.items():
                        if v is not None:
                            res.setdefault(k, []).append(v)
                    print(f"{rnd} {stage:9} {agent['name']:14} {time.monotonic() - t:6.1f}s {err}", flush=True)
                    with open(a.out, "w") as f:
                        json.dump(results, f, indent=1)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
