"""What the model is told of the tools: complete, self-contained, and short."""

import json

import msgspec
import pytest

from crow.actions import Answer, PermissionAnswer
from crow.tools.ask import Ask
from crow.tools.edit import Edit
from crow.tools.find import Find
from crow.tools.plan import Plan
from crow.tools.read import Read
from crow.tools.search import Search
from crow.tools.seen import Seen
from crow.tools.write import Write


class Nobody:
    async def permit(self, question: object) -> PermissionAnswer:
        return PermissionAnswer("reject")

    async def ask(self, question: object) -> Answer | None:
        return None


TOOLS = [Read(), Write(Seen()), Edit(Seen()), Find(), Search(lambda path: False), Plan(), Ask(Nobody())]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)
def test_a_schema_is_whole(tool):
    text = json.dumps(tool.spec.schema)
    assert "$ref" not in text
    assert tool.spec.schema["type"] == "object"
    assert tool.spec.schema["properties"]


def test_all_of_them_together_are_small():
    assert sum(len(msgspec.json.encode(tool.spec)) for tool in TOOLS) < 6000
