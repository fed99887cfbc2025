"""python3 report.py results.json [reference agent]: a Markdown table of medians, spread, and ratios to the reference."""

import json
import statistics
import sys

ROWS = [
    ("initialize_s", "spawn → initialize, s"),
    ("session_new_s", "spawn → session/new, s"),
    ("initialize_cpu_s", "CPU s until initialize"),
    ("session_new_cpu_s", "CPU s until session/new"),
    ("first_prompt_to_llm_s", "first prompt → model request, s"),
    ("prompt_to_llm_s", "later prompt → model request, s"),
    ("request_kb", "first request body, kB"),
    ("tool_count", "tools offered"),
    ("first_delta_ms", "first delta, added latency, ms"),
    ("delta_median_ms", "paced delta, added latency, median ms"),
    ("delta_p95_ms", "the same, p95 ms"),
    ("stream5000_s", "5,000 deltas, s"),
    ("stream5000_tokens_per_s", "deltas per s"),
    ("stream5000_chunks", "chunks sent for 5,000 deltas"),
    ("stream5000_cpu_s", "the same, agent CPU s"),
    ("stream5000_kb_to_client", "the same, kB to client"),
    ("args200k_turn_s", "200 kB write call, 40-byte deltas: turn, s"),
    ("args200k_mb_to_client", "the same, MB to client"),
    ("args200k_messages", "the same, messages"),
    ("args200k_cpu_s", "the same, agent CPU s"),
    ("diff_new_s", "20,000-line new file: call end → next request, s"),
    ("diff_1pct_s", "rewrite, 1% of lines changed, s"),
    ("diff_every2nd_s", "rewrite, every 2nd line changed, s"),
    ("diff_reversed_s", "rewrite, lines reversed, s"),
    ("diff_1pct_cpu_s", "1% rewrite, turn's agent CPU s"),
    ("diff_every2nd_cpu_s", "every 2nd, turn's agent CPU s"),
    ("diff_reversed_cpu_s", "reversed, turn's agent CPU s"),
    ("diff9k_1pct_s", "9,000 lines: 1% changed, s"),
    ("diff9k_every2nd_s", "9,000 lines: every 2nd line changed, s"),
    ("diff9k_reversed_s", "9,000 lines: reversed, s"),
    ("diff9k_every2nd_mb_to_client", "9,000 lines: every 2nd, MB to client"),
    ("diff_1pct_mb_to_client", "1% rewrite, MB to client"),
    ("diff_reversed_mb_to_client", "reversed, MB to client"),
    ("turns50_s", "50 tool rounds, s"),
    ("turns50_gap_ms", "per round: answer end → next request, ms"),
    ("turns50_last5_gap_ms", "the same, last 5 rounds, ms"),
    ("turns50_cpu_s", "50 rounds, agent CPU s"),
    ("mem_1_session_mb", "memory, 1 session, MB"),
    ("mem_21_sessions_mb", "memory, 21 sessions, MB"),
    ("mem_peak_mb", "peak resident, MB"),
    ("sessions20_s", "20 × (new session + prompt), s"),
    ("parallel8_at_once", "model requests at once, of 8"),
    ("parallel8_s", "8 prompts of 1.0 s at once, s"),
    ("load50_s", "session/load of the 50 rounds, s"),
    ("load50_last_update_s", "the same, last replayed update, s"),
    ("load50_updates", "updates replayed"),
    ("load50_tool_calls", "tool calls replayed"),
]


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


def cell(values, ref):
    nums = [v for v in values if isinstance(v, (int, float))]
    if not nums:
        return str(values[-1])[:40]
    med = statistics.median(nums)
    out = show(med)
    if len(nums) > 1 and max(nums) != min(nums):
        out += f" ({show(min(nums))}–{show(max(nums))})"
    if ref:
        out += f" ×{med / ref:.2f}"
    return out


def main():
    data = json.load(open(sys.argv[1]))
    ref = sys.argv[2] if len(sys.argv) > 2 else None
    names = list(data)
    print("| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for key, title in ROWS:
        base = [v for v in data.get(ref, {}).get(key, []) if isinstance(v, (int, float))]
        base = statistics.median(base) if base else None
        print(
            f"| {title} | "
            + " | ".join(cell(data[n][key], base if n != ref else None) if data[n].get(key) else "–" for n in names)
            + " |"
        )
    for n in names:
        for e in sorted(set(data[n].get("errors", []))):
            print(f"- {n}: {e}")


main()
