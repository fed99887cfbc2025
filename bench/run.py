"""make bench: Crow against its own targets, with the yardsticks measured in the same run and the peers' recorded figures.

python bench/run.py [--rounds 3] [--crow PATH]
                    [--stages start,unhurried,stream,turns,memory,parallel,stop,args,diff,sessions,attach,streams,idle,page,many]

Yardsticks: an empty asyncio process (for start-up) and a bare httpx2-and-JSON loop over the same stream (for
streaming). A figure is the median of the rounds. Exit status 1 if a target is missed.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import live_sessions
import many_sessions
import page_bench
from acp_client import cpu_seconds
from stages import Bench

HERE = os.path.dirname(os.path.abspath(__file__))
STAGES = (
    "start",
    "unhurried",
    "stream",
    "turns",
    "memory",
    "parallel",
    "stop",
    "args",
    "diff",
    "sessions",
    "attach",
    "streams",
    "idle",
    "page",
    "many",
)

CONFIG = """
model = "bench/fake"
[providers.bench]
type = "openai"
base_url = "http://127.0.0.1:{PORT}/v1"
api_key = "none"
[providers.bench.models.fake]
context_window = 1000000
"""

EMPTY = """
import asyncio, sys
async def main():
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
asyncio.run(main())
"""

BARE = """
import asyncio, json, sys, time
import httpx2
BODY = {"model": "fake", "stream": True, "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}]}
async def ask(client, prompt):
    count = 0
    body = {**BODY, "messages": [{"role": "user", "content": prompt}]}
    async with client.stream("POST", sys.argv[1] + "/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    count += choice["delta"].get("content", "") != ""
    return count
async def main():
    async with httpx2.AsyncClient(timeout=60) as client:
        await ask(client, "bench:tokens:1")
        start = time.process_time()
        count = await ask(client, "bench:tokens:5000")
        print(json.dumps({"cpu": time.process_time() - start, "count": count}), flush=True)
asyncio.run(main())
"""

HTTP_STACK = """
import asyncio, os, time, msgspec
start = time.process_time()
import httpx2, httpcore2, anyio._backends._asyncio, anyio.streams.tls, httpcore2._backends.anyio
print(time.process_time() - start)
"""

# name of our figure, what it says, unit, target, how it is judged against yardsticks, the peers' figure
ROWS = [
    ("start_ratio", "CPU until `initialize` is answered, in empty asyncio processes", "×", 1.8, None),
    ("initialize_cpu_s", "CPU until `initialize` is answered", "s", None, "initialize_cpu_s"),
    ("session_ratio", "CPU until `session/new` is answered, in empty asyncio processes", "×", 2.8, None),
    ("session_new_cpu_s", "CPU until `session/new` is answered", "s", None, "session_new_cpu_s"),
    ("chat_first_line_cpu_s", "CPU of `crow chat` itself until its input line is there", "s", 0.4, None),
    (
        "first_prompt_to_llm_s",
        "first prompt, right after `session/new` → model request",
        "s",
        None,
        "first_prompt_to_llm_s",
    ),
    ("first_prompt_ratio", "the same, in CPU times of importing the HTTP library", "×", 2.5, None),
    ("unhurried_prompt_to_llm_ms", "first prompt, half a second after `session/new` → model request", "ms", 15, None),
    ("prompt_to_llm_s", "later prompt → model request", "s", None, "prompt_to_llm_s"),
    ("request_kb", "first request", "kB", 10, "request_kb"),
    ("delta_median_ms", "a slow delta is delayed by, median", "ms", 2, "delta_median_ms"),
    ("delta_p95_ms", "the same, 95th percentile", "ms", 20, "delta_p95_ms"),
    ("delta12_median_ms", "a delta each 12 ms is delayed by, median", "ms", 2, None),
    ("delta12_p95_ms", "the same, 95th percentile", "ms", 20, None),
    ("stream_ratio", "CPU of 5,000 deltas, in bare httpx2-and-JSON loops", "×", 2, None),
    ("stream5000_cpu_us", "CPU a delta at full speed", "µs", 60, None),
    ("stream5000_cpu_s", "CPU of 5,000 deltas", "s", None, "stream5000_cpu_s"),
    ("chunks_per_s", "messages to the client in the busiest second at full speed", "", 75, None),
    ("stream5000_chunks", "messages for 5,000 deltas", "", None, "stream5000_chunks"),
    ("turns50_gap_ms", "tool round: answer's end → next request", "ms", 10, "turns50_gap_ms"),
    ("turns50_last5_gap_ms", "the same, last 5 of 50 rounds", "ms", 10, "turns50_last5_gap_ms"),
    ("args200k_shown_times_payload", "a 200 kB write in 40-byte pieces: what is shown of it", "×", 2.5, None),
    (
        "args200k_times_payload",
        "the same, all bytes to the client, the file itself among them",
        "×",
        2.5,
        "args200k_times_payload",
    ),
    ("args200k_messages", "the same, messages", "", None, "args200k_messages"),
    ("args200k_cpu_s", "the same, CPU", "s", None, "args200k_cpu_s"),
    ("args_updates_per_s", "updates a second while a call arrives", "", 20, None),
    ("diff_new_cpu_s", "a new file of 20,000 lines: CPU of the turn", "s", 0.2, "diff_new_cpu_s"),
    ("diff_1pct_cpu_s", "the same file rewritten, 1 % changed", "s", 0.2, "diff_1pct_cpu_s"),
    ("diff_every2nd_cpu_s", "every second line changed", "s", 0.2, "diff_every2nd_cpu_s"),
    ("diff_reversed_cpu_s", "the lines reversed", "s", 0.2, "diff_reversed_cpu_s"),
    ("diff_reversed_s", "the lines reversed: call's end → next request", "s", None, "diff_reversed_s"),
    ("mem_1_session_mb", "memory (Pss) after the first prompt", "MB", 45, "mem_1_session_mb"),
    ("mem_further_mb", "memory of each further idle session", "MB", 1, None),
    ("load50_s", "load of 50 tool rounds", "s", None, "load50_s"),
    ("load2000_s", "load of 2,000 tool rounds", "s", 1, None),
    ("load_ratio", "CPU of that, in loads of 500 rounds: 4 is linear", "×", 5, None),
    ("list5000_at_once_ms", "first page of 5,000 sessions, asked right after `initialize`", "ms", None, None),
    ("list5000_first_ms", "the same of a new process, half a second later", "ms", 20, None),
    ("list5000_ms", "the same, asked once more", "ms", 20, None),
    ("doctor20000_s", "20,000 sessions, 2.7 GB: `crow doctor`", "s", 3, None),
    ("index20000_s", "the same: all is indexed, from nothing", "s", None, None),
    ("search20000_ms", "a search in them, once all is indexed, the slowest of ten", "ms", 300, None),
    ("delete20000_ms", "a deletion, each of ten", "ms", 50, None),
    ("cancel_text_ms", "a cancel in the text → the prompt's answer", "ms", 1000, None),
    ("cancel_command_ms", "a cancel in a running command → the prompt's answer", "ms", 1000, None),
    ("exit_ms", "the end of input → the end of the process", "ms", 2000, None),
    ("join500_ms", "joining a session of 500 tool rounds that lives in another process", "ms", None, None),
    ("join500_more_ms", "that, more than loading it where it lives nowhere", "ms", 50, None),
    (
        "attached_delta_median_ms",
        "a slow delta of a session in another process is delayed by, median",
        "ms",
        None,
        None,
    ),
    ("attached_delta_more_ms", "that, more than in the process itself", "ms", 1, None),
    ("page_open_cpu_s", "the page opens 4,000 messages, 200 diffs, 100,000 lines: CPU of Chromium", "s", 1, None),
    ("page_typing_ms", "a key is seen there, 95th percentile", "ms", 50, None),
    ("page_script_kb", "the page's script at first load, gzip", "kB", 40, None),
    ("streams200_cpu_us", "200 streams of 40 tokens a second: CPU a token", "µs", 120, None),
    ("streams200_p50_ms", "the same: a delta is delayed by, median", "ms", None, None),
    ("streams200_p99_ms", "the same, 99th percentile", "ms", 150, None),
    ("streams200_cancel_ms", "the same: the slowest of 20 cancels → the prompt's answer", "ms", 300, None),
    ("streams200_model_late_ms", "the same: the model itself was late by, 99th percentile", "ms", None, None),
    ("idle300_descriptors", "open descriptors of 300 idle sessions, right after a prompt each", "", 40, None),
    ("idle300_wake_ups", "wake-ups a second of 300 idle sessions, all threads", "", 0, None),
    ("parallel8_at_once", "model requests at once, of 8 sessions", "", None, "parallel8_at_once"),
]


def empty_process_cpu():
    process = subprocess.Popen([sys.executable, "-c", EMPTY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdout.readline()
    cpu = cpu_seconds(process.pid)
    process.stdin.close()
    process.wait()
    return cpu


def chat_first_line_cpu(crow, environment):
    """Of the process that shows the input line, without the agent that it starts."""
    master, slave = pty.openpty()
    variables = {**os.environ, **environment, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [crow, "chat"], stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True
    )
    os.close(slave)
    shown = b""
    while "▸".encode() not in shown:
        shown += os.read(master, 65536)
    cpu = cpu_seconds(process.pid, children=False)
    os.write(master, b"\x04")
    with contextlib.suppress(OSError):  # how Linux says that the other side has closed
        while os.read(master, 65536):
            pass
    process.wait()
    os.close(master)
    return cpu


def http_stack_cpu():
    return float(subprocess.run([sys.executable, "-c", HTTP_STACK], capture_output=True, check=True, text=True).stdout)


def uncompiled_modules():
    """How many of Crow's modules every start compiles anew."""
    root = importlib.util.find_spec("crow").submodule_search_locations[0]
    sources = [os.path.join(d, name) for d, _, names in os.walk(root) for name in names if name.endswith(".py")]
    caches = [(source, importlib.util.cache_from_source(source)) for source in sources]
    return sum(not os.path.exists(c) or os.path.getmtime(c) < os.path.getmtime(s) for s, c in caches)


def bare_loop_cpu(port):
    out = subprocess.run([sys.executable, "-c", BARE, f"http://127.0.0.1:{port}/v1"], capture_output=True, check=True)
    result = json.loads(out.stdout)
    assert result["count"] == 5000, result
    return result["cpu"]


def page_figures(options, work):
    """The long session of the page takes a while to make, and is opened several times: once is enough."""
    if reason := page_bench.missing():
        print(f"The page is not measured: {reason}.", file=sys.stderr)
        return {}
    return page_bench.measure(options.crow, work)


def figures_of_many_sessions(options, work):
    """The store takes a minute to make: once is enough."""
    home = os.path.join(work, "many")
    os.makedirs(home, mode=0o700)
    many_sessions.make(home)
    try:
        return many_sessions.measure(options.crow, home)
    finally:
        shutil.rmtree(home)


def measure(options):
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="crow-bench-") as work:
        bench = Bench(options.port, work)
        home = os.path.join(work, "home")
        os.makedirs(home, mode=0o700)
        with open(os.path.join(home, "config.toml"), "w") as f:
            f.write(CONFIG.replace("{PORT}", str(options.port)))
        agent = {"name": "crow", "cmd": [options.crow, "acp"], "env": {"CROW_HOME": home, "CROW_LOCAL_SERVERS": ""}}
        try:
            for number in range(options.rounds):
                for stage in options.stages.split(","):
                    began, m = time.monotonic(), {}
                    if stage == "start":
                        m["empty_cpu_s"] = empty_process_cpu()
                        m["http_stack_cpu_s"] = http_stack_cpu()
                        m["chat_first_line_cpu_s"] = chat_first_line_cpu(options.crow, agent["env"])
                    if stage == "stream":
                        m["bare_cpu_s"] = bare_loop_cpu(options.port)
                    if stage in ("page", "many"):
                        once = page_figures if stage == "page" else figures_of_many_sessions
                        m.update(once(options, work) if number == 0 else {})
                    elif stage in ("streams", "idle"):
                        m.update(live_sessions.measure(options.crow, stage))
                    else:
                        getattr(bench, stage)(agent, m)
                    derive(stage, m)
                    for key, value in m.items():
                        if isinstance(value, int | float):
                            figures.setdefault(key, []).append(value)
                    print(
                        f"round {number + 1} {stage:9} {time.monotonic() - began:5.1f} s", file=sys.stderr, flush=True
                    )
        finally:
            bench.close()
    return figures


def derive(stage, m):
    """The ratios that the targets are about."""
    if stage == "start":
        m["start_ratio"] = m["initialize_cpu_s"] / m["empty_cpu_s"]
        m["first_prompt_ratio"] = m["first_prompt_to_llm_s"] / m["http_stack_cpu_s"]
        m["session_ratio"] = m["session_new_cpu_s"] / m["empty_cpu_s"]
    if stage == "stream":
        m["stream_ratio"] = m["stream5000_cpu_s"] / m["bare_cpu_s"]
        m["stream5000_cpu_us"] = m["stream5000_cpu_s"] / 5000 * 1e6
    if stage == "sessions":
        m["load_ratio"] = m["load2000_cpu_s"] / m["load500_cpu_s"]
    if stage == "memory":
        m["mem_further_mb"] = (m["mem_21_sessions_mb"] - m["mem_1_session_mb"]) / 20


def table(figures, peers):
    """Markdown, and whether every target was met."""
    lines, met = ["| what | Crow | target | best peer | typical peer |", "|---|---|---|---|---|"], True
    for key, what, unit, target, peer_key in ROWS:
        if key not in figures:
            continue
        ours = statistics.median(figures[key])
        good = target is None or ours <= target
        met = met and good
        mark = "" if target is None else f"≤ {target:g} {unit} {'✓' if good else '✗ MISSED'}"
        theirs = peer_figures(peers, peer_key)
        lines.append(f"| {what} | {show(ours)} {unit} | {mark} | {theirs[0]} | {theirs[1]} |")
    return "\n".join(lines), met


def peer_figures(peers, key):
    values = []
    for name, figures in peers.items():
        numbers = [v for v in figures.get(key, []) if isinstance(v, int | float)] if name != "stub" else []
        if numbers:
            values.append(statistics.median(numbers))
    if not values:
        return "", ""
    best = max(values) if key == "parallel8_at_once" else min(values)
    return show(best), show(statistics.median(values))


def show(x):
    return (
        f"{x:.0f}"
        if abs(x) >= 100 or x == int(x)
        else f"{x:.1f}"
        if abs(x) >= 10
        else f"{x:.2f}"
        if abs(x) >= 1
        else f"{x:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--crow", default=os.path.join(os.path.dirname(sys.executable), "crow"))
    options = parser.parse_args()
    if missing := uncompiled_modules():
        print(f"{missing} modules of Crow are not compiled: start-up is measured too slow. Run `make compiled`.")
    figures = measure(options)
    with open(os.path.join(HERE, "peers.json")) as f:
        text, met = table(figures, json.load(f))
    results = os.path.join(HERE, "results")
    os.makedirs(results, exist_ok=True)
    with open(os.path.join(results, "latest.json"), "w") as f:
        json.dump(figures, f, indent=1)
    print(text)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
