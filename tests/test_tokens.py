"""What a text is taken to cost: a request that does not fit costs more than a compaction that comes early."""

import pytest

from crow.messages import ToolSpec, tokens_of_text, tokens_of_tool


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("查询", 2), ("\ud800", 1)])
def test_a_text_costs_what_its_bytes_cost(text, tokens):
    assert tokens_of_text(text) == tokens


def test_a_tool_costs_as_much_in_its_description_as_in_its_schema():
    said = "查询数据库并返回结果" * 100
    described = tokens_of_tool(ToolSpec("find", said, {"type": "object"}))
    in_schema = tokens_of_tool(ToolSpec("find", "", {"type": "object", "description": said}))
    assert described >= len(said)
    assert 0 <= in_schema - described <= 10


@pytest.mark.parametrize("text", ["x" * 5_000_000, "wörd " * 1_000_000, "查询" * 1_500_000])
def test_a_long_text_is_estimated_from_its_samples(text):
    exact = len(text.encode()) / 3
    assert abs(tokens_of_text(text) - exact) < exact / 100
