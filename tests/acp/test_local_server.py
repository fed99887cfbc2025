"""Model servers on this machine: their windows, which are often small, and work that fits into them."""

import json

import pytest

from crow.model.scripted import Call
from tests.support.editor import EVERYTHING
from tests.support.local_server import llama_cpp, lm_studio, local_server, ollama, silent, vllm
from tests.support.provider_dialect import Spoken
from tests.support.windowed import Json, is_summary

ROUNDS = 40
PATIENT = {"CROW_PATIENCE": "300"}
"""However busy the machine is, the server's answer is waited for."""
MAY_EDIT = '[[permission.rules]]\ntool = "edit"\ndecision = "allow"\n'


def worker(body: Json, done: list[int]) -> tuple[Spoken, ...]:
    """A model that reads large files and changes small ones, by turns, until all are changed."""
    if is_summary(body):
        return ("The files are changed one by one, each after a look at a large one.",)
    number = len(done)
    if number == ROUNDS:
        return ("All are changed.",)
    done.append(number)
    if number % 2:
        return (Call("edit", {"path": f"small{number}.txt", "edits": [{"old": f"value {number}", "new": "changed"}]}),)
    return (f"Round {number}.", Call("read", {"path": f"large{number % 3}.txt"}))


def fill(crow) -> None:
    for number in range(3):
        lines = (f"line {line} of file {number}, which says little about anything" for line in range(4000))
        (crow.workspace / f"large{number}.txt").write_text("\n".join(lines))
    for number in range(1, ROUNDS, 2):
        (crow.workspace / f"small{number}.txt").write_text(f"before\nvalue {number}\nafter\n")


@pytest.mark.parametrize(
    ("window", "reports", "refused"), [(8192, llama_cpp, 0), (8192, silent, 1), (4096, llama_cpp, 0)]
)
def test_forty_rounds_of_reads_and_edits_in_a_small_window(open_editor, window, reports, refused):
    done: list[int] = []
    with local_server(window, reports, lambda body: worker(body, done)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url, config=MAY_EDIT, capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        assert crow.prompt("Change every value.") == {"stopReason": "end_turn"}
        assert crow.text().endswith("All are changed.")
        assert len(done) == ROUNDS
        assert server.refused == refused
        assert server.largest <= window
        for number in range(1, ROUNDS, 2):
            assert (crow.workspace / f"small{number}.txt").read_text() == "before\nchanged\nafter\n"
        assert all(call["status"] == "completed" for call in crow.tool_calls().values())
        sizes = {update["size"] for update in crow.updates if update["sessionUpdate"] == "usage_update"}
        assert sizes == {window}
        [stated] = [notice for notice in crow.notices if "it gets only the tools" in notice]
        assert f"{window:,} tokens" in stated
        if reports is not silent:
            assert len(json.dumps(server.rounds[0]).encode()) < 4000


def test_before_the_first_prompt_the_window_is_the_one_that_the_list_of_models_has(open_editor):
    with local_server(32768, vllm, lambda body: ("Done.",)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url)
        crow.new_session()
        crow.prompt("/context")
        assert "tokens of 32,768 (" in crow.text()


def reader(body: Json, done: list[int]) -> tuple[Spoken, ...]:
    """A model that reads a large file with each request, and is done after eight of them."""
    if is_summary(body):
        return ("Large files are read.",)
    done.append(len(done))
    return ("All are read.",) if len(done) % 9 == 0 else (Call("read", {"path": f"large{len(done) % 3}.txt"}),)


def test_a_refusal_that_names_no_window_is_an_upper_bound_for_it(open_editor):
    done: list[int] = []
    with local_server(8192, silent, lambda body: reader(body, done)) as server:
        server.names_window = False
        crow = open_editor(environment=PATIENT, base_url=server.url, capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        assert crow.prompt("Read.") == {"stopReason": "end_turn"}
        assert any("without naming its limit" in notice for notice in crow.notices)
        refused = server.refused
        assert 1 <= refused <= 3
        crow.new_session()
        assert crow.prompt("Read again.") == {"stopReason": "end_turn"}
        assert server.refused == refused, "the other session knew it already"


def test_a_window_that_a_refusal_names_wins_over_a_wrong_report(open_editor):
    done: list[int] = []
    with local_server(8192, lambda _: vllm(1_000_000), lambda body: reader(body, done)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url)
        fill(crow)
        crow.new_session()
        for _ in range(2):
            assert crow.prompt("Read.") == {"stopReason": "end_turn"}
        assert server.refused == 1
        server.window = 50_000
        server.reports |= vllm(50_000)  # started anew: another report is no longer the one that was wrong
        crow.prompt("Read.")
        [*_, last] = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"]
        assert last["size"] == 50_000


def test_the_next_process_does_not_run_into_the_same_refusal(open_editor):
    done: list[int] = []
    with local_server(8192, silent, lambda body: reader(body, done)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url)
        fill(crow)
        crow.new_session()
        assert crow.prompt("Read.") == {"stopReason": "end_turn"}
        assert server.refused == 1
        crow.close()
        again = open_editor(folder=crow.folder, environment=PATIENT, base_url=server.url)
        again.new_session()
        assert again.prompt("Read again.") == {"stopReason": "end_turn"}
        assert server.refused == 1
        [*_, last] = [update for update in again.updates if update["sessionUpdate"] == "usage_update"]
        assert last["size"] == 8192


@pytest.mark.parametrize("reports", [llama_cpp, ollama, lm_studio, vllm])
def test_the_window_that_the_server_reports_is_used_at_once_and_shown(open_editor, reports):
    with local_server(12_345, reports, lambda body: ("Hello.",)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url)
        crow.new_session()
        crow.prompt("Hi.")
        sizes = {update["size"] for update in crow.updates if update["sessionUpdate"] == "usage_update"}
        assert sizes == {12_345}
        # vLLM ends a reply with the window; the others would go on for ever.
        assert ("max_tokens" in server.rounds[0]) == (reports is not vllm)


def test_a_configured_window_wins_and_nobody_is_asked(open_editor):
    with local_server(12_345, llama_cpp, lambda body: ("Hello.",)) as server:
        crow = open_editor(
            environment=PATIENT, base_url=server.url, config="[providers.test.models.m]\ncontext_window = 20000\n"
        )
        crow.new_session()
        crow.prompt("Hi.")
        sizes = {update["size"] for update in crow.updates if update["sessionUpdate"] == "usage_update"}
        assert sizes == {20_000}
        assert server.looks == []


def test_a_model_that_ollama_loads_with_the_first_prompt(open_editor):
    """Until then it runs no model, and nothing says how large the window will be."""

    def reply(body: Json) -> tuple[Spoken, ...]:
        server.reports |= ollama(12_345)
        return ("Hello.",)

    with local_server(12_345, silent, reply) as server:
        server.reports["/api/ps"] = {"models": []}
        server.reports["/api/show"] = {"parameters": "stop  <|end|>", "model_info": {"qwen3.context_length": 262144}}
        crow = open_editor(environment=PATIENT, base_url=server.url)
        crow.new_session()
        crow.prompt("Hi.")
        assert "max_tokens" not in server.rounds[0]
        crow.prompt("Again.")
        [*_, last] = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"]
        assert last["size"] == 12_345


def test_a_reply_that_repeats_itself_is_ended_and_said(open_editor):
    with local_server(200_000, llama_cpp, lambda body: ("The same again. " * 5000,)) as server:
        crow = open_editor(environment=PATIENT, base_url=server.url, capabilities=EVERYTHING)
        crow.new_session()
        assert crow.prompt("Hi.") == {"stopReason": "max_tokens"}
        assert any("kept repeating itself" in notice for notice in crow.notices)
        assert len(crow.text()) < 20_000


def test_a_server_that_cuts_the_prompt_is_noticed_once(open_editor):
    """It counts what it has read: less than it was sent."""
    with local_server(200_000, llama_cpp, lambda body: ("Hello.",)) as server:
        server.counts = 2048
        crow = open_editor(environment=PATIENT, base_url=server.url, capabilities=EVERYTHING)
        crow.new_session()
        crow.prompt("word " * 5000)
        crow.prompt("Again.")
        assert len([notice for notice in crow.notices if "OLLAMA_CONTEXT_LENGTH" in notice]) == 1
