"""`_meta.crow` is read leniently: what is not as it should be counts as left out, and costs nothing else."""

from typing import Any

import msgspec
import pytest

from crow.acp import crow_meta
from crow.acp.wire import ClientFacts, PromptRequestFacts

SAID = ClientFacts(attach=1, version="2.0", process=7, state=True)


def test_what_is_written_is_read():
    assert crow_meta.read(ClientFacts, crow_meta.written(SAID)) == SAID
    assert crow_meta.read_in(ClientFacts, msgspec.json.encode({"_meta": crow_meta.written(SAID)})) == SAID


def test_keys_are_as_everywhere_in_the_protocol():
    assert crow_meta.written(SAID) == {"crow": {"attach": 1, "version": "2.0", "process": 7, "state": True}}


def test_who_has_nothing_to_say_writes_nothing():
    assert crow_meta.written(ClientFacts()) is None


@pytest.mark.parametrize("field", ["attach", "version", "process", "state"])
@pytest.mark.parametrize("value", [None, {}, [], -1.5])
def test_a_field_of_a_wrong_type_loses_only_itself(field: str, value: Any):
    said = {**msgspec.to_builtins(SAID), field: value, "unknown": value}
    left_out = {key: each for key, each in msgspec.to_builtins(SAID).items() if key != field}
    assert crow_meta.read(ClientFacts, {"crow": said}) == ClientFacts(**left_out)


@pytest.mark.parametrize("said", [1, "true", "yes", [True], None])
def test_only_true_is_true(said: Any):
    assert not crow_meta.read(ClientFacts, {"crow": {"unattended": said}}).unattended


@pytest.mark.parametrize("meta", [None, 3, "crow", [], {}, {"crow": None}, {"crow": []}, {"Crow": {"state": 1}}])
def test_a_meta_of_any_form_is_read(meta: Any):
    assert crow_meta.read(ClientFacts, meta) == ClientFacts()
    assert crow_meta.read_in(ClientFacts, msgspec.json.encode({"_meta": meta})) == ClientFacts()


@pytest.mark.parametrize("message", [b"", b"null", b"[]", b"7", b'{"_meta":', b"\xff", b"[" * 10_000])
def test_a_message_of_any_form_is_read(message: bytes):
    assert crow_meta.read_in(ClientFacts, message) == ClientFacts()


def test_facts_are_added_to_those_that_are_there():
    params = {"cwd": "/p", "_meta": {"theirs": 1, "crow": {"choices": True, "state": False}}}
    added = msgspec.json.decode(crow_meta.added(msgspec.json.encode(params), ClientFacts(state=True)))
    assert added == {"cwd": "/p", "_meta": {"theirs": 1, "crow": {"choices": True, "state": True}}}


@pytest.mark.parametrize("meta", [None, 3, "crow", [], {}, {"crow": 3}])
def test_facts_are_added_to_a_meta_of_any_form(meta: Any):
    added = msgspec.json.decode(crow_meta.added(msgspec.json.encode({"_meta": meta}), ClientFacts(state=True)))
    assert added == {"_meta": {"crow": {"state": True}}}


@pytest.mark.parametrize(
    ("columns", "width"), [(0, 0), (-5, 0), (1, 72), (72, 72), (100, 100), (10**30, 240), (True, 0), ("100", 0)]
)
def test_the_width_of_a_commands_terminal_has_bounds(columns: Any, width: int):
    assert crow_meta.read(PromptRequestFacts, {"crow": {"columns": columns}}).terminal_width == width
