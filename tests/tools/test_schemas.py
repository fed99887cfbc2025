"""What the model is told of the tools: complete, self-contained, and short."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

import crow.mcp
import crow.tools
from crow.actions import Answer, PermissionAnswer, Person
from crow.messages import ToolCall
from crow.tools.arguments import ArgumentReader
from crow.tools.ask import Ask, Plan
from crow.tools.edit import Edit
from crow.tools.read import Read, ReadTracker
from crow.tools.search import Find, Search
from crow.tools.write import Write


class Nobody(Person):
    async def permit(self, question: object) -> PermissionAnswer:
        return PermissionAnswer("reject")

    async def ask(self, question: object) -> Answer | None:
        return None


TOOLS = [Read(), Write(ReadTracker()), Edit(ReadTracker()), Find(), Search(lambda path: False), Plan(), Ask(Nobody())]


def readers() -> Iterator[Any]:
    """What reads the arguments of every tool that we offer, to our own model or to other programs."""
    for package in (crow.tools, crow.mcp):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                if isinstance(value, ArgumentReader):
                    yield pytest.param(value, id=f"{found.name}.{name}")


READERS = list(readers())


def check(schema: dict[str, Any]) -> None:
    """A host that knows little of JSON Schema can use it: one type for each value, and nothing to look up."""
    assert isinstance(schema.get("type"), str), schema
    assert not {"anyOf", "oneOf", "allOf", "$ref", "$defs", "title"} & set(schema), schema
    assert schema.get("default", 0) is not None, schema
    match schema["type"]:
        case "object" if "properties" in schema:
            assert set(schema.get("required", [])) <= set(schema["properties"])
            for part in schema["properties"].values():
                check(part)
        case "array":
            check(schema["items"])
        case _:
            pass


@pytest.mark.parametrize("reader", READERS)
def test_a_schema_is_whole_and_plain(reader: ArgumentReader[Any]):
    schema = reader.schema()
    assert schema["type"] == "object"
    assert schema["properties"]
    check(schema)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("reader", READERS)
def test_an_argument_that_may_be_left_out_may_be_null(reader: ArgumentReader[Any]):
    schema = reader.schema()
    required = {name: sample(schema["properties"][name]) for name in schema.get("required", [])}
    nulls = dict.fromkeys(schema["properties"]) | required
    alone, _ = reader.read(ToolCall("c1", "tool", json.dumps(required)))
    assert reader.read(ToolCall("c1", "tool", json.dumps(nulls))) == (alone, ())


def sample(schema: dict[str, Any]) -> Any:
    """Some value that fits."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "string":
            return "x" * max(1, schema.get("minLength", 1))
        case "array":
            return [sample(schema["items"])] * max(1, schema.get("minItems", 1))
        case "object":
            return {name: sample(schema["properties"][name]) for name in schema.get("required", [])}
        case "boolean":
            return True
        case _:
            return max(1, schema.get("minimum", 1))


def test_all_of_them_together_are_small():
    assert sum(len(msgspec.json.encode(tool.spec)) for tool in TOOLS) < 6000
