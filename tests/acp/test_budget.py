"""Budgets: a turn pauses before it spends more, asks where the client can, and goes on after a yes."""

import re

import pytest

from crow.model.scripted import Call
from tests.support.provider import Cut, Provider, Stall
from tests.support.scripts import DONE, call, reply, say

PRICED = "price_input = 1000.0\nprice_output = 1000.0\n"
"""A thousandth for each token."""
FORMS = {"elicitation": {"form": {}}, "session": {"notices": {}}}
NOTICES = {"session": {"notices": {}}}
STOPPED = {"stopReason": "max_turn_requests", "_meta": {"crow": {"leftOpen": "budget"}}}


def spends(tokens: int) -> str:
    return f"{{ usage = {{ input_tokens = {tokens}, output_tokens = 0 }} }}"


def rounds(number: int, tokens: int = 30) -> str:
    """Replies that cost 0.03 each, of which each calls for another."""
    return "".join(reply(spends(tokens), call("read", path=f"{name}.txt")) for name in range(number))


def opened(open_editor, budget: str, script: str = "", **options):
    crow = open_editor(script=(script or rounds(20)) + DONE, config=f"{PRICED}[budget]\n{budget}\n", **options)
    crow.new_session()
    return crow


def forms(crow):
    return [message["params"] for message in crow.received if message.get("method") == "elicitation/create"]


def choosing(*words: str):
    """A client with forms, in which the first option that begins so is chosen, one word for each form."""
    left = list(words)

    def choose(form):
        word = left.pop(0)
        options = form["requestedSchema"]["properties"]["answer"]["enum"]
        return {
            "action": "accept",
            "content": {"answer": next(one for one in options if one.startswith(word))},
        }

    return {"capabilities": FORMS, "answers": {"elicitation/create": choose}}


@pytest.mark.parametrize("budget", ["turn", "session", "day"])
@pytest.mark.parametrize("amount", ["0.10 USD", "100 tokens"])
def test_it_asks_within_one_reply_and_goes_on_after_a_yes(open_editor, budget, amount):
    crow = opened(open_editor, f'{budget} = "{amount}"', **choosing("Continue with", "Stop"))
    assert crow.prompt("Read.") == STOPPED
    first, second = forms(crow)
    assert "used up" in first["message"]
    assert amount in first["message"]
    assert first["requestedSchema"]["properties"]["answer"]["enum"] == [
        f"Continue with {amount} more",
        "Compact the conversation, then continue",
        "Stop",
    ]
    assert "toolCallId" not in first
    # 0.03 each: 0.12 is the first sum beyond 0.10, and 0.24 the first beyond 0.12 and another 0.10.
    assert len(crow.model_requests()) == 8
    assert ("0.24 USD" if "USD" in amount else "240 tokens") in second["message"]
    assert crow.permissions == []
    near = [notice for notice in crow.notices if "used to" in notice]
    assert len(near) == 2  # one before each question


def test_without_forms_it_stops_with_words_and_the_next_prompt_goes_on(open_editor):
    crow = opened(open_editor, 'session = "0.10 USD"', capabilities=NOTICES)
    assert crow.prompt("Read.") == STOPPED
    assert len(crow.model_requests()) == 4
    [stop] = [notice for notice in crow.notices if "used up" in notice]
    assert re.findall(r"\d\.\d\d USD", stop) == ["0.10 USD", "0.12 USD"]
    assert crow.permissions == []
    assert crow.prompt("go on") == STOPPED
    assert len(crow.model_requests()) == 8
    # It is the same in a session that is loaded: what was spent, and what was granted.
    crow.close()
    other = open_editor(folder=crow.folder, capabilities=NOTICES)
    other.load_session(crow.session_id)
    assert other.prompt("go on") == STOPPED
    assert len(other.model_requests()) == 12
    other.prompt("/context")
    assert "In this session: 0.36 USD, 360 tokens" in other.text()
    assert "Today, in all sessions: 0.36 USD, 360 tokens" in other.text()


def test_a_loaded_session_has_spent_what_it_spent(open_editor):
    crow = opened(open_editor, 'session = "0.10 USD"', reply(spends(90), say("Hi.")), capabilities=NOTICES)
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    crow.close()
    other = open_editor(script=rounds(9) + DONE, folder=crow.folder, config=f'{PRICED}[budget]\nsession = "0.10 USD"\n')
    other.load_session(crow.session_id)
    before = len(other.model_requests())
    assert other.prompt("Read.") == STOPPED
    assert len(other.model_requests()) - before == 1


def test_a_subagent_spends_from_the_same_purse_and_stops_too(open_editor):
    script = (
        reply(spends(30), call("task", prompt="look around", kind="explore", title="Scout"))
        + "".join(reply(spends(30), call("read", path=f"{name}.txt"), when="look around") for name in range(9))
        + rounds(9)
    )
    crow = opened(open_editor, 'turn = "0.10 USD"', script, capabilities=NOTICES)
    assert crow.prompt("go") == STOPPED
    assert len(crow.model_requests()) == 4
    [call_] = [call for call in crow.tool_calls().values() if "Scout" in call["title"]]
    assert call_["status"] == "failed"
    assert "0.10 USD" in str(call_["content"])
    assert len([notice for notice in crow.notices if "used up" in notice]) == 1


def test_a_subagent_goes_on_after_a_yes(open_editor):
    script = (
        reply(spends(30), call("task", prompt="look around", kind="explore", title="Scout"))
        + "".join(reply(spends(30), call("read", path=f"{name}.txt"), when="look around") for name in range(4))
        + reply(say("Nothing there."), when="look around")
    )
    crow = opened(open_editor, 'turn = "0.10 USD"', script, **choosing("Continue with"))
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert len(forms(crow)) == 1
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"]


def test_two_processes_share_a_day(open_editor):
    crow = opened(open_editor, 'day = "0.10 USD"', reply(spends(60), say("Hi.")), capabilities=NOTICES)
    other = open_editor(folder=crow.folder, capabilities=NOTICES)
    other.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert other.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.prompt("hi") == STOPPED
    assert any(re.search("today.* 0.10 USD.* 0.12 USD", notice) for notice in crow.notices)
    assert len(crow.model_requests()) == 2  # both record to the same file


def test_compacting_costs_as_well(open_editor):
    words = "x" * 4000
    script = (
        reply(spends(30), call("read", path="0.txt"), say(words))
        + reply(spends(30), call("read", path="1.txt"))
        + reply(spends(60), say("A summary."))  # of the beginning
        + DONE
    )
    crow = opened(open_editor, 'turn = "0.05 USD"', script, **choosing("Compact", "Stop"))
    assert crow.prompt(words) == STOPPED
    assert [len(form["requestedSchema"]["properties"]["answer"]["enum"]) for form in forms(crow)] == [3, 3]
    assert any("Compacted" in notice for notice in crow.notices)


def test_a_cheaper_model_takes_over(open_editor):
    cheap = "price_input = 1000.0\nprice_output = 1.0\n"
    crow = open_editor(
        script=rounds(20) + DONE,
        config=f'{PRICED}[budget]\nturn = "0.10 USD"\n[providers.scripted.models.small]\n{cheap}',
        **choosing("Continue with 0.10 USD more, on", "Stop"),
    )
    crow.new_session()
    assert crow.prompt("Read.") == STOPPED
    options = forms(crow)[0]["requestedSchema"]["properties"]["answer"]["enum"]
    assert options[2] == "Continue with 0.10 USD more, on scripted/small"
    changed = [update for update in crow.updates if update["sessionUpdate"] == "config_option_update"]
    assert "scripted/small" in str(changed[-1])


def test_a_price_that_is_not_known_is_said_when_the_session_begins(open_editor):
    crow = open_editor(script=DONE, config='[budget]\nday = "1 USD"\n', capabilities=NOTICES)
    crow.new_session()
    crow.wait_until(lambda: crow.notices, "a notice")
    assert "price" in crow.notices[0]
    assert "is unknown" in crow.notices[0]
    other = open_editor(script=DONE, config=f'{PRICED}[budget]\nday = "1 EUR"\n', capabilities=NOTICES)
    other.new_session()
    other.wait_until(lambda: other.notices, "a notice")
    assert "EUR" in other.notices[0]
    assert "USD" in other.notices[0]


def test_a_cost_that_the_provider_tells_in_another_currency_is_said_once(open_editor):
    spent = "{ usage = { input_tokens = 10, output_tokens = 0, cost = 0.5, currency = 'USD' } }"
    config = f'{PRICED}currency = "EUR"\n[budget]\nsession = "0.10 EUR"\n'
    crow = open_editor(script=reply(spent, say("Hi.")) * 2, config=config, capabilities=NOTICES)
    crow.new_session()
    for _ in range(2):
        assert crow.prompt("hi") == {"stopReason": "end_turn"}
    [notice] = crow.notices
    assert "EUR" in notice
    assert "USD" in notice


def test_a_project_can_only_lower_it(open_editor):
    crow = open_editor(
        script=rounds(20) + DONE,
        config=f'{PRICED}[budget]\nturn = "0.10 USD"\n',
        capabilities=NOTICES,
        permit=lambda request: {"outcome": {"outcome": "selected", "optionId": request["options"][0]["optionId"]}},
    )
    folder = crow.workspace / ".crow"
    folder.mkdir()
    (folder / "config.toml").write_text('[budget]\nturn = "50 tokens"\nsession = "1 USD"\nday = "0.2 USD"\n')
    crow.new_session()
    assert crow.prompt("Read.") == STOPPED
    assert len(crow.model_requests()) == 2
    shown = str(crow.permissions[0]["toolCall"])
    for line in ("budget.turn = 50 tokens", "budget.session = 1.00 USD", "budget.day = 0.20 USD"):
        assert f"{line} (only if yours is not lower)" in shown


# --- replies without a count


@pytest.fixture
def asking(open_editor, tmp_path):
    """Opens a session with a model that costs a hundredth of a cent for each token."""

    def start(dialect, budget):
        home = tmp_path / "asking" / "home"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            f'model = "test/m"\n[budget]\n{budget}\n[limits]\nretry_wait = 0\n'
            f'[providers.test]\ntype = "{dialect.type}"\nbase_url = "{dialect.url}"\napi_key = "none"\n'
            "[providers.test.models.m]\nprice_input = 100.0\nprice_output = 100.0\n"
        )
        crow = open_editor(folder=home.parent, capabilities=NOTICES)
        crow.new_session()
        return crow

    return start


@pytest.mark.parametrize("usage", [None, {"input": 0, "output": 0}])
@pytest.mark.parametrize("budget", ['turn = "0.10 USD"', 'session = "1k tokens"', 'day = "1k tokens"'])
def test_a_reply_without_a_count_is_estimated(asking, usage, budget):
    with Provider() as provider:
        for number in range(3):
            provider.openai.answer("Let me look.", Call("read", {"path": f"{number}.txt"}), usage=usage)
        crow = asking(provider.openai, budget)
        assert crow.prompt("Read.") == STOPPED
        assert len(provider.openai.requests) == 1
        assert "test/m does not report token usage, so the budgets count Crow's estimate." in crow.notices


def test_subagents_without_a_count_are_estimated(asking):
    with Provider() as provider:
        counted = {"input": 10, "output": 1}
        task = Call("task", {"prompt": "look around", "kind": "explore", "title": "Scout"})
        provider.openai.answer(task, usage=counted)
        for number in range(3):
            provider.openai.answer("Let me look.", Call("read", {"path": f"{number}.txt"}))
        crow = asking(provider.openai, 'turn = "1k tokens"')
        assert crow.prompt("go") == STOPPED
        assert len(provider.openai.requests) == 2


@pytest.mark.parametrize("then", [Cut(), Stall()])
def test_what_was_counted_of_a_reply_that_ended_early_is_spent(asking, then):
    with Provider() as provider:
        provider.anthropic.answer("Part of it.", usage={"input": 5000, "output": 1}, then=then)
        crow = asking(provider.anthropic, 'session = "0.50 USD"')
        turn = crow.start_prompt("hi")
        if isinstance(then, Stall):
            crow.wait_for_text("Part of it.")
            crow.cancel()
        turn.wait()
        assert crow.prompt("go on") == STOPPED
        assert len(provider.anthropic.requests) == 1
        crow.prompt("/context")
        assert "In this session: 0.5012 USD, 5,012 tokens" in crow.text()
