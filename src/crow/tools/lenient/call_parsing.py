"""Reads a call's arguments leniently into the form that its tool's schema asks for, and explains to the model what does
not fit.
"""

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from crow.messages import ToolCall, ToolSpec, json_object
from crow.tools.base import BadArguments
from crow.tools.lenient.arguments import Json, coerced_fields, is_fields, is_items, normalised, unwrapped
from crow.tools.lenient.json_repair import Ambiguous, TooManyValues, TruncatedJson, Unreadable, read_json
from crow.tools.lenient.names import squeezed
from crow.visible import one_line


class Fitted(NamedTuple):
    """Arguments in the shape of a schema, as far as that can be done."""

    values: Json
    notes: list[str]
    """What was read as something else than was written."""
    problems: list[str]
    """What is missing, or has two meanings."""
    misfits: list[str]
    """Values that are not what they should be."""
    unknown: list[str]


class Read(NamedTuple):
    """The arguments of a call that were read with leniency."""

    arguments: str
    """As they will be used: JSON."""
    note: str
    """What the model is to know of it; empty if nothing."""


def read_leniently(call: ToolCall, spec: ToolSpec) -> Read | None:
    """None if they cannot be read at all."""
    try:
        fitted = fit(call.name, read_json(call.arguments), spec.schema)
    except (Unreadable, RecursionError):
        return None
    is_object = json_object(call.arguments) is not None
    if fitted is None or (fitted.problems and is_object):
        return None
    arguments, notes = encoded(fitted.values), list(fitted.notes)
    if not is_object and call.arguments.strip() != "null":
        notes.insert(0, f"the arguments were no JSON object and were read as {one_line(arguments, 300)}")
    return Read(arguments, f"({'; '.join(notes)})" if notes else "")


def fit_call(call: ToolCall, schema: Mapping[str, Any], *, check_values: bool = True) -> Fitted:
    """The arguments in the shape of the schema: BadArguments if that cannot be."""
    try:
        given = read_json(call.arguments)
        fitted = fit(call.name, given, schema)
    except (Unreadable, RecursionError) as error:
        raise _unreadable(call, error) from None
    example = f"A correct call: {encoded(example_of(call.name, schema))}"
    if fitted is None:
        raise BadArguments(
            f"The arguments of `{call.name}` must be a JSON object, not {type_of(given)}. Nothing was done.",
            advice=example,
        )
    wrong = [*fitted.problems, *(fitted.misfits if check_values else ())]
    if wrong:
        raise BadArguments(_explained(call.name, schema, given, fitted, wrong), advice=example)
    return fitted


def misfit(call: ToolCall, schema: Mapping[str, Any], why: str) -> BadArguments:
    """Arguments in the right shape which the tool cannot use all the same."""
    example = encoded(example_of(call.name, schema))
    return BadArguments(
        f"The arguments of `{call.name}` do not fit, and nothing was done: {why}.", advice=f"A correct call: {example}"
    )


def _unreadable(call: ToolCall, error: Exception) -> BadArguments:
    if isinstance(error, TruncatedJson):
        return BadArguments(
            f"The arguments of `{call.name}` are not valid JSON: the call was cut off ({error}), so nothing was run.",
            advice="Make the call again and write all of it; if it is very long, do it in several smaller calls.",
        )
    if isinstance(error, Ambiguous):
        return BadArguments(
            f"The arguments of `{call.name}` have no single meaning, and nothing was run: {error}.",
            advice="Make the call again with one JSON object in which each argument stands once.",
        )
    if isinstance(error, TooManyValues):
        return BadArguments(
            f"The arguments of `{call.name}` were not read, and nothing was run: {error}.",
            advice="Do it in several smaller calls, or write the values to a file.",
        )
    why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
    return BadArguments(
        f"The arguments of `{call.name}` are not valid JSON, and nothing was run: {why}.",
        advice='Make the call again with one JSON object, with \\" for a quote, \\\\ for a backslash and \\n for a new '
        "line inside of strings.",
    )


def _explained(name: str, schema: Mapping[str, Any], given: Any, fitted: Fitted, wrong: list[str]) -> str:
    strange = [field for field in fitted.unknown if not any(f"`{field}`" in one for one in wrong)]
    missing = [field for field in schema.get("required", ()) if field not in fitted.values]
    lines = [
        f"The arguments of `{name}` do not fit, and nothing was done:",
        *(f"- {one}" for one in wrong[:MOST_NAMED]),
        *(f"- {unknown(field, missing)}" for field in strange[:MOST_NAMED]),
        f"What arrived: {arrived(given)}",
    ]
    return "\n".join(lines)


def fit(name: str, given: Any, schema: Mapping[str, Any]) -> Fitted | None:
    """None if what was given is no object, however it is turned."""
    notes: list[str] = []
    problems: list[str] = []
    fields = unwrapped(name, given, schema, notes, problems)
    if fields is None:
        return None
    fields = normalised(name, fields, schema, notes, problems)
    properties: Mapping[str, Any] = schema.get("properties", {})
    values = coerced_fields(fields, schema)
    problems += missing_in(values, schema, "")
    is_open = bool(schema.get("additionalProperties")) or not properties
    unknown = [] if is_open else [field for field in values if field not in properties]
    return Fitted(values, notes, problems, misfits_in(values, schema, ""), unknown)


# --- what is wrong with arguments, and examples of right ones

MOST_NAMED = 20
LONGEST_SHOWN = 60

EXAMPLES: dict[str, Json] = {
    "read": {"path": "src/main.py", "offset": 1, "limit": 200},
    "write": {"path": "src/main.py", "content": "print('hello')\n"},
    "edit": {"path": "src/main.py", "edits": [{"old": "text as it is in the file", "new": "what takes its place"}]},
    "find": {"pattern": "**/*.py"},
    "search": {"pattern": "def main", "path": "src"},
    "terminal": {"command": "ls -la"},
    "plan": {"entries": [{"content": "Read the code", "status": "in_progress"}]},
    "ask": {"question": "Which one?", "options": ["the first", "the second"]},
    "web_fetch": {"url": "https://example.com/page"},
    "task": {"title": "Find the tests", "kind": "explore", "prompt": "Find all tests of the parser and list them."},
}

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_ENGLISH = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def missing_in(values: Json, schema: Mapping[str, Any], where: str) -> list[str]:
    return [f"`{where}{name}` is missing" for name in schema.get("required", ()) if values.get(name) is None]


def misfits_in(values: Json, schema: Mapping[str, Any], where: str) -> list[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return [
        problem
        for name, value in values.items()
        if is_fields(about := properties.get(name)) and value is not None
        for problem in _misfits_of_value(value, about, f"{where}{name}")
    ]


def _misfits_of_value(value: Any, schema: Json, where: str) -> list[str]:
    wanted = schema.get("type")
    if not isinstance(wanted, str) or wanted not in _TYPES:
        return []
    if not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
        return [f"`{where}` must be {_ENGLISH[wanted]}, not {type_of(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"`{where}` must be one of {', '.join(f'`{one}`' for one in schema['enum'])}"]
    if is_fields(value):
        return missing_in(value, schema, f"{where}.") + misfits_in(value, schema, f"{where}.")
    if is_items(value):
        about = schema.get("items", {})
        found = [p for place, one in enumerate(value) for p in _misfits_of_value(one, about, f"{where}[{place}]")]
        return _length_problems(len(value), schema, where, "items", "Items") + found
    if isinstance(value, str):
        return _length_problems(len(value), schema, where, "characters", "Length")
    return _limit_problems(value, schema, where)


def _length_problems(length: int, schema: Json, where: str, unit: str, bound: str) -> list[str]:
    if length < schema.get(f"min{bound}", 0):
        least = schema[f"min{bound}"]
        return [f"`{where}` is empty" if length == 0 else f"`{where}` must have at least {least} {unit}"]
    if (most := schema.get(f"max{bound}")) is not None and length > most:
        return [f"`{where}` has {length:,} {unit}, more than {most:,}"]
    return []


def _limit_problems(value: float, schema: Json, where: str) -> list[str]:
    if (least := schema.get("minimum")) is not None and value < least:
        return [f"`{where}` must be at least {least}, not {value}"]
    if (bound := schema.get("exclusiveMinimum")) is not None and value <= bound:
        return [f"`{where}` must be more than {bound}, not {value}"]
    if (most := schema.get("maximum")) is not None and value > most:
        return [f"`{where}` must be at most {most}, not {value}"]
    return []


def unknown(field: str, missing: list[str]) -> str:
    near = difflib.get_close_matches(squeezed(field), missing, 1, 0.7)
    return f"`{one_line(field, 60)}` is unknown" + (f": is `{near[0]}` meant?" if near else "")


def type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return "text"
        case _ if is_items(value):
            return f"a list of {len(value)}"
        case _ if is_fields(value) and value:
            return f"an object with {', '.join(f'`{one_line(name, 40)}`' for name in list(value)[:5])}"
        case _:
            return "an empty object"


def arrived(given: Any) -> str:
    if not is_fields(given) or not given:
        return "an empty object" if given in ({}, None) else type_of(given)
    named = [f"`{one_line(name, 60)}` ({_shown(value)})" for name, value in list(given.items())[:MOST_NAMED]]
    return ", ".join(named) + (f" and {len(given) - MOST_NAMED} more" if len(given) > MOST_NAMED else "")


def _shown(value: Any) -> str:
    return f'text "{one_line(value, LONGEST_SHOWN)}"' if isinstance(value, str) else type_of(value)


def example_of(name: str, schema: Mapping[str, Any]) -> Json:
    """Arguments that the tool would take."""
    return EXAMPLES.get(name) or {
        field: _example_value(schema.get("properties", {}).get(field, {})) for field in schema.get("required", ())
    }


def _example_value(schema: Json) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [_example_value(schema.get("items", {}))]
        case "object":
            return example_of("", schema)
        case _:
            return "…"


def encoded(value: Json) -> str:
    return msgspec.json.encode(value).decode()
