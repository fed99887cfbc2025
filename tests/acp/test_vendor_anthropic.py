"""Anthropic with nothing but a key: tool rounds and thoughts, a stop in the middle of a thought, thoughts that are
refused for good."""

from pathlib import Path

from tests.support.editor import Editor
from tests.support.vendors import DONE, PATH, Vendors, thought_of
from tests.support.vendors_anthropic import Anthropic, Forgetful, blocks_of


def editor(folder: Path, vendors: Vendors, vendor: Anthropic) -> Editor:
    crow = Editor(folder, environment={"ANTHROPIC_API_KEY": vendor.key, **vendors.environment})
    (crow.workspace / PATH).write_text("Some notes.\n")
    return crow


def test_two_prompts_with_a_stop_in_mid_thought_between_them(tmp_path: Path) -> None:
    vendor = Anthropic(thinks_forever=3)
    with Vendors(vendor) as vendors:
        crow = editor(tmp_path, vendors, vendor)
        session = crow.new_session()
        assert crow.prompt("Read the notes.")["stopReason"] == "end_turn", vendor.refusals
        stopped = crow.start_prompt("Think.")
        crow.wait_until(lambda: thought_of(3) in crow.thoughts(), "the thought")
        crow.cancel()
        assert stopped.answer()["stopReason"] == "cancelled"
        assert crow.prompt("Once more.")["stopReason"] == "end_turn", vendor.refusals
        assert crow.close() == 0
        again = editor(tmp_path, vendors, vendor)
        again.load_session(session)
        assert again.prompt("And again.")["stopReason"] == "end_turn", vendor.refusals
        assert again.close() == 0
    assert vendor.refusals == []
    assert vendor.replies == 2 + 1 + 2 + 2
    assert crow.text() == DONE * 2
    assert crow.thoughts() == "".join(map(thought_of, range(1, 6)))
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 2
    body = vendor.requests[-1].body
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert all(tool["eager_input_streaming"] for tool in body["tools"])
    thoughts = [block["thinking"] for block in blocks_of(body) if block["type"] == "thinking"]
    assert thoughts == [thought_of(reply) for reply in (1, 2, 4, 5, 6)]


def test_thoughts_that_are_refused_for_good_are_left_out_for_good(tmp_path: Path) -> None:
    vendor = Forgetful()
    with Vendors(vendor) as vendors:
        crow = editor(tmp_path, vendors, vendor)
        session = crow.new_session()
        assert crow.prompt("Read the notes.")["stopReason"] == "end_turn", vendor.refusals
        assert len(vendor.refusals) == 1
        assert crow.text().count("the model's earlier thoughts are no longer sent") == 1
        assert crow.close() == 0
        again = editor(tmp_path, vendors, vendor)
        again.load_session(session)
        for prompt in ("Once more.", "And again.", "And again."):
            assert again.prompt(prompt)["stopReason"] == "end_turn", vendor.refusals
        assert again.close() == 0
    # The thoughts since the first refusal were refused once more; from then on none is sent.
    assert len(vendor.refusals) == 2
    assert again.text().count("anthropic/claude-sonnet-5 gets none of its thoughts back") == 1
    assert not any(block["type"] == "thinking" for block in blocks_of(vendor.requests[-1].body))
