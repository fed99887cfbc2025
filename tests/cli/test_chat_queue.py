"""What is said in `crow chat` while a turn runs: messages that wait for its end, and those that go into it."""

import signal
from pathlib import Path

import pytest

from tests.cli.chat_support import INPUT, STEERS_IN_A_WHILE, altered_crow, chat, prompt_in, question, recording, talk_to
from tests.cli.test_run import HELLO, WAIT, play
from tests.support.puppet import Puppet
from tests.support.scripts import run as run_command

# --- messages that wait


def test_a_message_is_queued_taken_back_and_sent_after_the_turn(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("second")
        window.wait_for_rows("▸ second", "Enter or Tab: queue", "ask · their/model")
        window.press("tab")
        window.type("third")
        window.press("enter")  # this agent knows no steering
        window.wait_for_rows("  queued: second", "  queued: third", INPUT, "↑: edit", "ask · their/model")
        window.press("up")
        window.wait_for_rows("  queued: second", "▸ third", "Enter or Tab: queue", "ask · their/model")
        window.press("ctrl-u")
        agent.answer(first, {"stopReason": "end_turn"})
        assert prompt_in(agent) == "second"
        window.wait_until(lambda: "▸ second" in window.text and "queued" not in window.text)


def test_what_is_held_is_not_sent_after_another_prompt(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        for text, stop, end in (("first", "cancelled", "■ cancelled"), ("another", "end_turn", "✓ done")):
            window.type(text)
            window.wait_until(f"▸ {text}")
            window.press("enter")
            prompt = agent.expect("session/prompt")
            if text == "first":
                window.type("and push it")
                window.wait_until("▸ and push it")
                window.press("tab")
                window.wait_until("  queued: and push it")
            agent.answer(prompt, {"stopReason": stop})
            window.wait_until(end)
            window.wait_for_rows("  queued: and push it", INPUT, "Enter: send now · ↑: edit", "ask · their/model")
        window.press("enter")
        assert prompt_in(agent) == "and push it"


def test_many_messages_that_wait_leave_room_for_the_rest(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        for number in range(30):
            window.type(f"number {number}")
            window.wait_until(f"▸ number {number}\n")
            window.press("tab")
        window.wait_until("  … 25 more\n  queued: number 25\n")
        agent.request("session/request_permission", question())
        window.wait_until("  y  Yes")
        assert "? Permission needed: Dig here" in window.text


def test_after_a_stop_what_waits_is_held(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("second")
        window.press("tab")
        window.wait_until("queued: second")
        window.press("escape")
        agent.expect("session/cancel")
        agent.answer(first, {"stopReason": "cancelled"})
        window.wait_until("■ cancelled")
        window.wait_until("Enter: send now · ↑: edit")
        window.press("enter")
        assert prompt_in(agent) == "second"


@pytest.mark.parametrize("code", [-32600, -32002])
def test_a_prompt_that_was_not_taken_waits(tmp_path: Path, code: int) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("hello")
        window.press("enter")
        agent.refuse(agent.expect("session/prompt"), code, "A turn of Zed's is running.")
        window.wait_for_rows(
            "✗ A turn of Zed's is running.",
            "",
            "  queued: hello",
            INPUT,
            "Enter: send now · ↑: edit",
            "ask · their/model",
        )
        window.press("enter")
        assert prompt_in(agent) == "hello"


def test_a_prompt_that_failed_is_told(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("hello")
        window.press("enter")
        agent.refuse(agent.expect("session/prompt"), -32603, "The provider\x1b[2J hung up.")
        window.wait_for_rows("✗ The provider␛[2J hung up.", "", INPUT, "ask · their/model")


def test_what_was_not_sent_can_be_had_back(tmp_path: Path) -> None:
    play(tmp_path, WAIT)
    with chat(tmp_path, "go") as window:
        window.wait_until("Once upon a time")
        window.type("queued thing")
        window.press("tab")
        window.wait_until("queued: queued thing")
        window.type("half a thou")
        window.wait_until("half a thou")
        window.process.send_signal(signal.SIGTERM)
        window.ended()
    with chat(tmp_path) as window:
        window.press("up")
        window.wait_until("▸ half a thou")
        window.press("up")
        window.wait_until("▸ queued thing")


# --- steering

STEERING = {"_meta": {"steering": {"supported": True, "idleBehavior": "promptRequired"}}}
AT_ONCE = "conversation.STEERING_DELAY = 0"


def test_enter_steers_the_running_turn_and_tab_queues(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        agent.say("Working on it.")
        window.wait_until("Working on it.")
        window.type("faster")
        window.wait_until("Enter: add to this turn · Tab: queue")
        window.press("enter")
        steering = agent.expect("_session/steering")
        assert steering["params"]["prompt"] == [{"type": "text", "text": "faster"}]
        window.wait_until("  adding to this turn: faster")
        agent.answer(steering, {"outcome": "injected"})
        window.wait_until("Working on it.\n\n▸ faster")
        window.wait_until(lambda: "adding to this turn" not in window.text)
        window.type("afterwards")
        window.press("tab")
        window.wait_until("  queued: afterwards")


def test_a_command_does_not_go_into_the_running_turn(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        agent.update(
            sessionUpdate="available_commands_update",
            availableCommands=[{"name": "context", "description": "How full"}],
        )
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("/con")
        window.wait_until("Enter: accept · Tab: next")
        window.press("ctrl-u")
        window.type("/contexts is no command")
        window.wait_until("Enter: add to this turn · Tab: queue")
        window.press("ctrl-u")
        window.type("/context ")
        window.wait_until("Enter or Tab: queue")
        window.press("enter")
        window.wait_until("  queued: /context")
        agent.answer(first, {"stopReason": "end_turn"})
        assert agent.next()["params"]["prompt"][0]["text"].strip() == "/context"


def test_the_model_gets_what_was_said_into_its_turn(tmp_path: Path) -> None:
    project = play(tmp_path, run_command("until test -e go; do sleep 0.05; done"), HELLO)
    sent = recording(tmp_path)
    crow = altered_crow(tmp_path, STEERS_IN_A_WHILE)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it", program=crow) as window:
        window.wait_until("test -e go")
        window.type("and hurry")
        window.press("enter")
        window.wait_until("  adding to this turn: and hurry")
        window.press("enter")
        window.wait_until("▸ wait for it\n\n▸ and hurry\n")
        (project / "go").touch()
        window.wait_until("✓ done")
        assert window.text.index("▸ and hurry") < window.text.index("✓ until test") < window.text.index("Hello there!")
    first, second = sent.read_text().splitlines()
    assert "and hurry" not in first
    assert "and hurry" in second


def test_what_was_said_into_a_turn_that_is_stopped_waits(tmp_path: Path) -> None:
    play(tmp_path, run_command("sleep 3600"), HELLO)
    crow = altered_crow(tmp_path, STEERS_IN_A_WHILE)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it", program=crow) as window:
        window.wait_until(" sleep 3600")
        window.type("and hurry")
        window.press("enter")
        window.wait_until("  adding to this turn: and hurry")
        window.press("enter")
        window.wait_until("▸ wait for it\n\n▸ and hurry\n")
        window.press("escape")
        window.wait_until("■ cancelled")
        window.wait_for_rows("  queued: and hurry", INPUT, "Enter: send now · ↑: edit", "auto · play/it")


def test_steering_is_taken_back_before_it_is_sent(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=STEERS_IN_A_WHILE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        window.wait_for_rows("  adding to this turn: faster", INPUT, "Enter: send now · ↑: edit", "ask · their/model")
        window.press("up")
        window.wait_until("▸ faster")
        assert "goes into" not in window.text
        window.type(", please")
        window.press("enter")
        window.wait_until("  adding to this turn: faster, please")
        window.press("enter")  # now
        assert agent.next()["params"]["prompt"] == [{"type": "text", "text": "faster, please"}]


def test_steering_that_the_agent_has_not_taken_is_withdrawn(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        steering = agent.expect("_session/steering")
        window.wait_until("  adding to this turn: faster")
        window.press("up")
        assert agent.expect("$/cancel_request")["params"] == {"requestId": steering["id"]}
        window.wait_until("▸ faster")
        assert "goes into" not in window.text


@pytest.mark.parametrize("fault", [AT_ONCE, STEERS_IN_A_WHILE])
def test_steering_that_no_turn_takes_becomes_a_prompt(tmp_path: Path, fault: str) -> None:
    with Puppet(tmp_path, STEERING, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        window.wait_until("  adding to this turn: faster")
        agent.answer(first, {"stopReason": "end_turn"})
        agent.answer(agent.expect("_session/steering"), {"outcome": "promptRequired", "reason": "noRunningTurn"})
        assert prompt_in(agent) == "faster"


@pytest.mark.parametrize("keys", [("enter", "tab"), ("tab", "enter")])
def test_no_message_overtakes_another_or_ends_up_in_its_turn(tmp_path: Path, keys: tuple[str, str]) -> None:
    with Puppet(tmp_path, STEERING, fault=STEERS_IN_A_WHILE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        for text, key in zip(("second", "third"), keys, strict=True):
            window.type(text)
            window.wait_until(f"▸ {text}")
            window.press(key)
            window.wait_until(f": {text}")
        agent.answer(first, {"stopReason": "end_turn"})
        steering = agent.next()
        assert steering["method"] == "_session/steering"
        agent.answer(steering, {"outcome": "promptRequired", "reason": "noRunningTurn"})
        for text in ("second", "third"):
            prompt = agent.next()
            assert prompt["params"]["prompt"][0]["text"] == text
            agent.answer(prompt, {"stopReason": "end_turn"})


@pytest.mark.parametrize("failed", [False, True])
def test_what_a_turn_did_not_take_in_waits(tmp_path: Path, failed: bool) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        taken = {"outcome": "injected", "_meta": {"steering": {"messageId": "m7"}}}
        agent.answer(agent.expect("_session/steering"), taken)
        left = {"leftOver": [{"messageId": id, "text": "a word"} for id in ("m7", "somebody else's")]}
        if failed:
            agent.refuse(first, -32603, "The provider hung up.", {"details": "It hung up.", "steering": left})
        else:
            agent.answer(first, {"stopReason": "cancelled", "_meta": {"steering": left}})
        window.wait_until("  queued: faster")
        window.wait_until("Enter: send now")
        assert "a word" not in window.text
