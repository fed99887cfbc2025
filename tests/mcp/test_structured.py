"""Structured content is told to the model unless a text says it already."""

import json

import pytest

from crow.mcp.results import unsaid

LOAVES = {"loaves": 2, "kinds": ["rye"]}


@pytest.mark.parametrize(
    ("structured", "texts"),
    [
        (None, ["some text"]),
        (LOAVES, [json.dumps(LOAVES)]),
        (LOAVES, ["Here it is:", json.dumps(LOAVES, indent=4)]),
        ({"result": "two loaves"}, ["two loaves"]),
        ({"result": 2}, ["2"]),
        ({"result": ["rye", "wheat"]}, ["rye", "wheat"]),
        ({"result": [{"a": 1}, {"a": 2}]}, ['{"a": 1}', '{"a": 2}']),
    ],
)
def test_what_the_texts_say_is_not_said_again(structured, texts):
    assert unsaid(structured, texts) == []


@pytest.mark.parametrize(
    ("structured", "texts"),
    [
        (LOAVES, []),
        (LOAVES, ["two loaves are ready"]),
        (LOAVES, ['{"loaves": 3}']),
        ({"result": "two loaves"}, ["three loaves"]),
        ({"result": "two loaves", "more": 1}, ["two loaves"]),
    ],
)
def test_what_they_do_not_say_is_told_as_json(structured, texts):
    [told] = unsaid(structured, texts)
    assert json.loads(told) == structured
