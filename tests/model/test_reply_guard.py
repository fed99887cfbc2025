"""Replies without an end, and what a server leaves out of a request."""

from crow.messages import Text, ToolSpec, UserMessage
from crow.model.base import CallBegan, CallGrew, ModelEvent, ModelRequest, Said, Thinking, Usage
from crow.model.replies import ReplyGuard, silent_loss

PASSAGE = "I will now read the file. ---------------------------------- Let me read the file again.\n"


def stopped_after(guard: ReplyGuard, event: ModelEvent, most: int = 5000) -> int | None:
    """How often the event came until there was an objection."""
    return next((number for number in range(1, most) if guard.objection(event)), None)


def test_a_passage_without_end_is_stopped_soon() -> None:
    for event in (Said(PASSAGE), Thinking(PASSAGE), Said("no " * 3)):
        times = stopped_after(ReplyGuard(2**22, repeats=True), event)
        size = len(event.text)
        assert times is not None
        assert 8192 <= times * size <= 12_000


def test_what_a_call_writes_may_repeat_for_longer() -> None:
    guard = ReplyGuard(2**22, repeats=True)
    guard.objection(CallBegan(0, "write"))
    times = stopped_after(guard, CallGrew(0, "0, 0, 0, 0,\\n"))
    assert times is not None
    assert times * 13 > 16_384


def test_a_reply_that_says_something_new_goes_on() -> None:
    guard = ReplyGuard(2**22, repeats=True)
    assert not any(guard.objection(Said(f"| {number} | value {number * 7919 % 10007} |\n")) for number in range(5000))


def test_the_longest_reply() -> None:
    guard = ReplyGuard(1000, repeats=False)
    assert stopped_after(guard, Said("x" * 100)) == 11


TOOLS = (ToolSpec("read", "Read a file. " * 300, {}),)


def asked(text: str) -> ModelRequest:
    return ModelRequest("Be brief. " * 30, [UserMessage((Text(text),))], TOOLS)


def test_a_server_that_cuts_the_prompt() -> None:
    request = asked("word " * 8000)
    assert "OLLAMA_CONTEXT_LENGTH" in silent_loss("local/m", request, Usage(4096, 1), first=True)
    assert silent_loss("local/m", request, Usage(9500, 1), first=True) == ""
    assert silent_loss("local/m", request, Usage(12, 1), first=False) == "", "the rest was read before"


def test_a_template_that_drops_the_tools() -> None:
    request = asked("Hi.")
    assert "leave out the tools" in silent_loss("local/m", request, Usage(80, 1), first=True)
    assert silent_loss("local/m", request, Usage(1000, 1), first=True) == ""
