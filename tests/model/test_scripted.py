import json
from pathlib import Path

import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ConfigError, ModelRefusedKey, ModelUnavailable, ReplyBroken
from crow.messages import AssistantMessage, StopReason, Text, UserMessage
from crow.model import catalog, scripted
from crow.model.base import Done, ModelRequest, Said, Thinking, ThinkingSealed, Usage
from crow.model.scripted import RAN_OUT, Call, Fail, Finish, Say, ScriptedModel, Think, Wait, reply
from tests.model.asking import HELLO, READ, Called, ask, ask_all, run

DONE = Done(StopReason.END_TURN)

SCRIPT = """
[[reply]]
when = "file"
events = [
    { thought = "A file, then.", signature = "sealed" },
    { text = "Let me look. ", pace = 20 },
    { call = "read", arguments = { path = "a.py" }, pieces = 3 },
    { call = "read", raw = "{broken" },
    { usage = { input_tokens = 10, output_tokens = 5 } },
]

[[reply]]
events = [{ wait = 1.5 }, { fail = { status = 429, message = "slow down", retry_after = 3 } }]

[[reply]]
events = [{ text = "Too long" }, { finish = "max_tokens" }]
"""


def said(text: str) -> tuple[UserMessage]:
    return (UserMessage((Text(text),)),)


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.toml"
    path.write_text(text)
    return str(path)


def test_a_script_from_a_file(tmp_path: Path) -> None:
    waits: list[float] = []

    async def pretend(seconds: float) -> None:
        if seconds:
            waits.append(seconds)

    model = ScriptedModel(scripted.load(written(tmp_path, SCRIPT)), sleep=pretend)
    requests = [ModelRequest("", said(text)) for text in ("Hello", "the file", "the file", "Hello")]
    failed, read, long, over = run(ask_all(model, *requests))

    assert isinstance(failed.error, ModelUnavailable)
    assert (failed.error.status, failed.error.retry_after) == (429, 3)
    assert read.events == [
        Thinking("A file, then."),
        ThinkingSealed("sealed"),
        Said("Let me look. "),
        Called("read", '{"path":"a.py"}'),
        Called("read", "{broken"),
        Usage(input_tokens=10, output_tokens=5),
        DONE,
    ]
    assert long.events == [Said("Too long"), Done(StopReason.MAX_TOKENS)]
    assert over.events == [Said(RAN_OUT), DONE]
    assert waits == [1.5, 0.02, 0.02, 0.02]


def test_a_script_from_python() -> None:
    model = ScriptedModel(
        [
            reply("Hello", Call("read", {"path": "a"})),
            reply(Fail(401, "wrong key")),
            reply(Fail(message="gone", after_text="Half")),
            reply(Think("Hm."), Say(" \n"), Wait(0), Finish(StopReason.REFUSAL)),
        ]
    )
    first, refused, broken, last = run(ask_all(model, *[ModelRequest("", HELLO)] * 4))
    assert first.events == [Said("Hello"), Called("read", '{"path":"a"}'), DONE]
    assert isinstance(refused.error, ModelRefusedKey)
    assert broken.events == [Said("Half")]
    assert isinstance(broken.error, ReplyBroken)
    assert last.events == [Thinking("Hm."), Said(" \n"), Done(StopReason.REFUSAL)]


def test_a_reply_that_repeats() -> None:
    model = ScriptedModel([reply("once"), reply("again", repeat=True)])
    outcomes = run(ask_all(model, *[ModelRequest("", HELLO)] * 3))
    assert [outcome.events[0] for outcome in outcomes] == [Said("once"), Said("again"), Said("again")]


def test_it_keeps_what_it_was_sent(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    model = ScriptedModel([reply("Hello")], record=str(record))
    history = [*HELLO]
    ask(model, history, system="Be brief.", tools=[READ])
    history.append(AssistantMessage((Text("later"),)))  # type: ignore[arg-type]
    assert model.requests == [ModelRequest("Be brief.", HELLO, [READ])]
    (line,) = record.read_text().splitlines()
    assert json.loads(line)["messages"] == [{"role": "user", "parts": [{"part": "text", "text": "Hello"}]}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reply = [1,\n!", ["not valid TOML", "line 2"]),
        ("", ["missing required field `reply`"]),
        ("[[reply]]\nevents = [{ txt = 'x' }]", ["unknown field `txt`", "$.reply[0].events[0]"]),
        ("[[reply]]\nevents = [{ text = 5 }]", ["Expected `str | null`", "$.reply[0].events[0].text"]),
        ("[[reply]]\nevents = [{ text = 'x', call = 'y' }]", ["reply[0].events[0]", "exactly one of"]),
        ("[[reply]]\nevents = [{ pace = 3 }]", ["reply[0].events[0]", "exactly one of"]),
        ("[[reply]]\nevents = [{ finish = 'bored' }]", ["'bored'", "finish"]),
    ],
)
def test_a_wrong_script_is_one_clear_message(tmp_path: Path, text: str, words: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        scripted.load(path)
    for word in [path, *words]:
        assert word in str(caught.value)


def test_a_missing_script(tmp_path: Path) -> None:
    settings = ProviderSettings(type="scripted", script=str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match=r"none\.toml"):
        catalog.create("test/x", {"test": settings}, Limits(), {})
