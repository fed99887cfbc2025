"""A conversation that is loaded again tells what it told when it was lived: words, calls, and what Crow had to say.

How a turn ended comes with the answer to its prompt when it is lived, which a load has none of: there Crow says it.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from crow.tools.terminal import EARLY_END
from tests.mcp.guests import PATIENT, bad, good
from tests.support.editor import NOTICES, TERMINAL, Editor, Json, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, reply, run, say
from tests.support.terminals import JoiningTerminal

FAILED = "The turn failed: "


def once(request: Json) -> Json:
    return chose("once")


PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


class Situation:
    """What happens in a session, and how the turns end that do not end by themselves."""

    def __init__(
        self,
        script: str,
        *prompts: Any,
        tells: str = "",
        ends: str = "",
        servers: tuple[Json, ...] = (),
        permits: Callable[[Any], Json] = once,
        **options: Any,
    ):
        self.script, self.prompts, self.servers, self.options = script, prompts, servers, options
        self.tells = tells
        """Words of what Crow says when it happens."""
        self.ends = ends
        """The beginning of what a load says in place of the answer to the prompt."""
        self.permits = permits
        self.prepare: Callable[[Editor], None] = lambda crow: None
        self.between: Callable[[Editor], None] = lambda crow: None

    def preparing(self, prepare: Callable[[Editor], None]) -> "Situation":
        self.prepare = prepare
        return self

    def waiting(self, between: Callable[[Editor], None]) -> "Situation":
        """What is done after the first prompt."""
        self.between = between
        return self


def grants_lost(crow: Editor) -> Json:
    """The person says yes for good, and just then it can no longer be kept."""
    (crow.home / "grants.json").mkdir(exist_ok=True)
    return chose("project")


def large_files(crow: Editor) -> None:
    for number in range(10):
        (crow.workspace / f"f{number}.txt").write_text("a line that says little\n" * 150)


def end_of_background(crow: Editor) -> None:
    (crow.workspace / "stop").touch()
    crow.wait_until(lambda: crow.the_call()["title"].endswith(" · exit 3"), "the end of the command")


def until_it_is_ready_again(crow: Editor) -> None:
    eventually(lambda: crow.prompt("/mcp") and "is ready now" in str(crow.updates), "the server is there again")


FAIL = "{{ fail = {{ status = {}, message = '{}' }} }}"
READS = "".join(reply(call("read", path=f"f{number}.txt")) for number in range(10))
TALE = reply(say("word " * 900)) + reply(say("And so on."))
END_READ = call("terminal_read", id="b1", wait=60)
BACKGROUND = run("until [ -e stop ]; do sleep 0.05; done; exit 3", background=True)

SITUATIONS = {
    "it no longer fits": Situation(reply(FAIL.format(413, "prompt is too long")), "hi", tells="no longer fits"),
    "too many requests": Situation(
        '[[reply]]\nrepeat = true\nevents = [{ call = "read", arguments = { path = "." } }]',
        "go",
        config="[limits]\nmodel_calls = 3",
        tells="Stopped after 3 requests",
    ),
    "a picture that the model cannot see": Situation(
        DONE, [PICTURE, {"type": "text", "text": "look"}], tells="was left out"
    ),
    "not a word": Situation(reply(), "hi", tells="without a reply"),
    "a reply that was cut": Situation(
        reply(say("Well,"), '{ finish = "max_tokens" }'), "hi", ends="Stopped: the length limit was reached."
    ),
    "a refusal": Situation(
        reply(say("No."), '{ finish = "refusal" }'), "hi", ends="Stopped: the model refused to answer."
    ),
    "a failure": Situation(reply(say("I thi"), FAIL.format(400, "bad")), "hi", ends=FAILED),
    "an always that cannot be kept": Situation(
        reply(run("echo one")) + DONE, "go", permits=grants_lost, tells="Remembered for this session only"
    ),
    "old outputs left out": Situation(
        READS + DONE, "read", config="context_window = 20000", tells="no longer sent to the model"
    ).preparing(large_files),
    "no summary": Situation(TALE + reply() + DONE, "tell", "and", "/compact", tells="could not summarise"),
    "a summary": Situation(
        TALE + reply(say("Words.")) + DONE, "tell", "and", "/compact", tells="continues with a summary"
    ),
    "a terminal that alters commands": Situation(
        reply(run("echo 'a  b'")) + DONE,
        "go",
        capabilities=TERMINAL,
        terminal=JoiningTerminal,
        client_info={"name": "careless", "version": "1"},
        tells="Crow runs them itself",
    ),
    "a background command that ends": Situation(
        reply(BACKGROUND) + DONE, "serve", "and now?", tells="has ended: exit code 3"
    ).waiting(end_of_background),
    "a background command that ends in a turn that is cut": Situation(
        reply(BACKGROUND) + reply(run("touch stop"), END_READ) + reply(say("So"), '{ finish = "max_tokens" }'),
        "serve",
        ends="Stopped: the length limit",
    ),
    "a question of a server that cannot be shown": Situation(
        reply(call("mcp__good__order")) + DONE,
        "order",
        config=PATIENT,
        servers=(good(),),
        tells="cannot show this question",
    ),
    "a server that dies": Situation(
        reply(call("mcp__dies__go")) + DONE,
        "call it",
        config=PATIENT,
        servers=(bad("dies-in-call", name="dies"),),
        tells="has stopped",
    ).waiting(until_it_is_ready_again),
}


def lived(crow: Editor, situation: Situation) -> None:
    situation.prepare(crow)
    crow.new_session(mcpServers=list(situation.servers))
    for number, prompt in enumerate(situation.prompts):
        crow.start_prompt(*([prompt] if isinstance(prompt, str) else prompt)).wait()
        if number == 0:
            situation.between(crow)


def asides(crow: Editor, ids: str = "notice-") -> list[str]:
    """What Crow had to say, as notices or as messages of its own, whose ids begin in this way."""
    told: list[str] = []
    for update in crow.updates:
        if update["sessionUpdate"] == "notice" and ids == "notice-":
            told.append("\n".join(filter(None, (update["title"], update.get("description")))))
        elif update.get("messageId", "").startswith(ids):
            lines = [line.removeprefix(">").strip() for line in update["content"]["text"].split("\n")]
            told.append("\n".join(filter(None, lines)))
    return told


def shown_calls(crow: Editor) -> list[tuple[str, str]]:
    return [(call["title"], call["status"]) for call in crow.tool_calls().values()]


PASSING = ("Summarising the conversation", "Waiting for")


@pytest.mark.rule("R40", "R44")
@pytest.mark.parametrize("capabilities", [{}, NOTICES], ids=["messages", "notices"])
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_what_crow_said_in_a_conversation_is_told_again_where_it_was(open_editor, situation, capabilities):
    options = dict(situation.options)
    options["capabilities"] = {**options.get("capabilities", {}), **capabilities}
    crow = open_editor(script=situation.script, permit=lambda _: situation.permits(crow), **options)
    lived(crow, situation)
    crow.close()
    live = [text for text in asides(crow) if not text.startswith(PASSING)]
    assert situation.tells in str(live)
    other = open_editor(folder=crow.folder, capabilities=options["capabilities"])
    other.load_session(crow.session_id)
    again = asides(other, "notice-past-")  # and not what there is to say of this moment
    ends = [text for text in again if situation.ends and text.startswith(situation.ends)]
    assert len(ends) == bool(situation.ends)
    assert [text for text in again if text not in ends] == live
    assert shown_calls(other) == shown_calls(crow)


def test_a_command_that_ended_with_the_session_is_not_said_to_run(open_editor):
    crow = open_editor(script=reply(run("echo begun; sleep 1000", background=True)) + DONE, permit=once)
    crow.new_session()
    crow.prompt("serve")
    assert crow.the_call()["title"].endswith(" · running in the background as b1")
    crow.close()
    for _ in range(2):
        other = open_editor(folder=crow.folder)
        other.load_session(crow.session_id)
        call = other.the_call()
        assert (call["title"], call["status"]) == ("echo begun; sleep 1000 · no longer running", "completed")
        assert "begun\nno longer running\n" in call["content"][0]["content"]["text"]
        other.close()


def test_the_call_of_a_command_that_was_stopped_says_so(open_editor):
    script = reply(run("echo begun; sleep 1000", background=True)) + reply(call("terminal_stop", id="b1")) + DONE
    crow = open_editor(script=script, permit=once)
    crow.new_session()
    crow.prompt("serve, then stop")
    started, _ = crow.tool_calls().values()
    assert (started["title"], started["status"]) == ("echo begun; sleep 1000 · stopped", "completed")
    shown = re.search(r"begun\nkilled by SIGTERM · ([\d.]+) s\n", started["content"][0]["content"]["text"])
    assert shown is not None
    assert float(shown[1]) >= EARLY_END, "from its beginning on"


@pytest.mark.rule("R88")
def test_a_command_in_the_clients_terminal_tells_its_end_and_leaves_the_terminal_alone(open_editor):
    crow = open_editor(script=reply(BACKGROUND) + DONE, permit=once, capabilities=TERMINAL)
    crow.new_session()
    crow.prompt("serve")
    end_of_background(crow)
    last = [update for update in crow.updates if update["sessionUpdate"] == "tool_call_update"][-1]
    assert "content" not in last
    assert (last["status"], last["rawOutput"]["exitCode"]) == ("failed", 3)
    assert crow.the_call()["content"][0]["type"] == "terminal"
