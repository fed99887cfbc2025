"""The arguments of a call, brought into the shape that its tool's schema asks for."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from crow.messages import ToolCall, ToolSpec, json_object
from crow.tools.base import BadArguments
from crow.tools.lenient.json_repair import Ambiguous, CutOff, Unreadable, read_json
from crow.tools.lenient.misfits import (
    MOST_NAMED,
    arrived,
    encoded,
    example_of,
    misfits_in,
    missing_in,
    type_of,
    unknown,
)
from crow.tools.lenient.shapes import reshaped, unwrapped
from crow.tools.lenient.values import Json, coerced_fields
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
        raise BadArguments(_unreadable(call, error)) from None
    example = f"A correct call: {encoded(example_of(call.name, schema))}"
    if fitted is None:
        raise BadArguments(
            f"The arguments of `{call.name}` must be a JSON object, not {type_of(given)}. Nothing was done. {example}"
        )
    wrong = [*fitted.problems, *(fitted.misfits if check_values else ())]
    if wrong:
        raise BadArguments(_explained(call.name, schema, given, fitted, wrong))
    return fitted


def misfit(call: ToolCall, schema: Mapping[str, Any], why: str) -> BadArguments:
    """Arguments in the right shape which the tool cannot use all the same."""
    example = encoded(example_of(call.name, schema))
    return BadArguments(
        f"The arguments of `{call.name}` do not fit, and nothing was done: {why}. A correct call: {example}"
    )


def _unreadable(call: ToolCall, error: Exception) -> str:
    if isinstance(error, CutOff):
        return (
            f"The arguments of `{call.name}` are not valid JSON: the call was cut off ({error}), so nothing was run. "
            "Make the call again and write all of it; if it is very long, do it in several smaller calls."
        )
    if isinstance(error, Ambiguous):
        return (
            f"The arguments of `{call.name}` have no single meaning, and nothing was run: {error}. Make the call again "
            "with one JSON object in which each argument stands once."
        )
    why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
    return (
        f"The arguments of `{call.name}` are not valid JSON, and nothing was run: {why}. Make the call again with one "
        'JSON object, with \\" for a quote, \\\\ for a backslash and \\n for a new line inside of strings.'
    )


def _explained(name: str, schema: Mapping[str, Any], given: Any, fitted: Fitted, wrong: list[str]) -> str:
    strange = [field for field in fitted.unknown if not any(f"`{field}`" in one for one in wrong)]
    missing = [field for field in schema.get("required", ()) if field not in fitted.values]
    lines = [
        f"The arguments of `{name}` do not fit, and nothing was done:",
        *(f"- {one}" for one in wrong[:MOST_NAMED]),
        *(f"- {unknown(field, missing)}" for field in strange[:MOST_NAMED]),
        f"What arrived: {arrived(given)}",
        f"A correct call: {encoded(example_of(name, schema))}",
    ]
    return "\n".join(lines)


def fit(name: str, given: Any, schema: Mapping[str, Any]) -> Fitted | None:
    """None if what was given is no object, however it is turned."""
    notes: list[str] = []
    problems: list[str] = []
    fields = unwrapped(name, given, schema, notes, problems)
    if fields is None:
        return None
    fields = reshaped(name, fields, schema, notes, problems)
    properties: Mapping[str, Any] = schema.get("properties", {})
    values = coerced_fields(fields, schema)
    problems += missing_in(values, schema, "")
    is_open = bool(schema.get("additionalProperties")) or not properties
    unknown = [] if is_open else [field for field in values if field not in properties]
    return Fitted(values, notes, problems, misfits_in(values, schema, ""), unknown)
