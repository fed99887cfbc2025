"""Schemas of servers' tools: one that a provider refuses would make every request fail."""

import random
from typing import Any

import jsonschema
import msgspec
import pytest

from crow.mcp.client.schemas import CONTAINS_ITSELF, LARGEST, NOT_SHOWN, SchemaUnfit, fit_for_models, with_real_names
from tests.mcp.guests import calling, editing, odd, shown


def fitted(schema: dict[str, Any]) -> dict[str, Any]:
    return fit_for_models(schema).schema


def fitted_argument(schema: Any) -> Any:
    return fitted({"properties": {"x": schema}})["properties"]["x"]


# --- references


def test_references_in_a_schema_are_put_in_place():
    schema = {
        "$schema": "x",
        "properties": {"flour": {"$ref": "#/$defs/kind", "description": "of it"}},
        "$defs": {"kind": {"type": "string", "description": "any"}},
    }
    assert fitted(schema) == {"properties": {"flour": {"type": "string", "description": "of it"}}, "type": "object"}


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/of%20it/anyOf/1",
        "#/%24defs/of it/anyOf/01",
        "#/$defs/a~1b~0c",
        "#/properties/direct/items",
        "#/$defs/2",
    ],
)
def test_a_reference_leads_through_lists_and_odd_names(reference):
    kind = {"type": "integer"}
    definitions = {"of it": {"anyOf": [{}, kind]}, "a/b~c": kind, "2": {"$ref": "#/properties/direct/items"}}
    schema = {"properties": {"direct": {"items": kind}, "x": {"$ref": reference}}, "$defs": definitions}
    assert fitted(schema)["properties"]["x"] == kind


def test_a_schema_that_leads_into_itself_ends_in_anything():
    schema: dict[str, Any] = {"properties": {"next": {"$ref": "#"}}}
    within = {"next": {"description": CONTAINS_ITSELF}}
    assert fitted(schema) == {"properties": {"next": {"properties": within}}, "type": "object"}


def test_where_a_form_comes_again_its_type_and_its_own_description_are_kept():
    node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/node", "description": "Smaller."}}}
    schema = {"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    [left] = fitted(schema)["properties"]["tree"]["properties"].values()
    assert left == {"type": "object", "description": f"Smaller. {CONTAINS_ITSELF}"}


@pytest.mark.parametrize(
    "reference",
    [
        *("http://elsewhere/schema", "#/nowhere", "#/properties/x/y/z", "", "#anchor", "#/", 5, None, ["#"]),
        *("#/required/0", "#/required/9", "#/required/x", "#/required/-1", "#/required/" + "9" * 5000),
    ],
)
def test_a_reference_to_nowhere_stands_for_anything(reference):
    schema = {"properties": {"x": {"$ref": reference, "description": "Its own."}}, "required": ["x"]}
    assert fitted(schema)["properties"]["x"] == {"description": "Its own."}


def test_a_value_that_looks_like_a_reference_is_a_value():
    assert fitted_argument({"default": {"$ref": "#", "$id": 1}}) == {"default": {"$ref": "#", "$id": 1}}


# --- size


def test_a_schema_that_grows_without_end_is_cut_where_it_grows():
    doubling: dict[str, Any] = {"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": {}}
    for number in range(30):
        doubling["$defs"][str(number)] = {"anyOf": [{"$ref": f"#/$defs/{number + 1}"}] * 2}
    [first, second] = fitted(doubling)["properties"]["a"]["anyOf"]
    assert first == second
    assert NOT_SHOWN in str(first)


@pytest.mark.parametrize("kinds", [2, 5, 8, 20])
def test_kinds_that_contain_one_another_cost_no_tool(kinds):
    fields = {f"p{number}": {"$ref": f"#/$defs/T{number}"} for number in range(kinds)}
    definitions = {f"T{number}": {"type": "object", "properties": fields} for number in range(kinds)}
    found = fitted({"properties": {"q": {"$ref": "#/$defs/T0"}}, "$defs": definitions})
    assert found["properties"]["q"]["properties"].keys() == fields.keys()
    assert CONTAINS_ITSELF in str(found)


def test_references_to_references_are_not_deep():
    chain: dict[str, Any] = {str(number): {"$ref": f"#/$defs/{number + 1}"} for number in range(100)}
    schema = {"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": {**chain, "100": {"type": "string"}}}
    assert fitted(schema)["properties"]["x"] == {"type": "string"}


def test_references_that_lead_too_deep_are_cut():
    lists: dict[str, Any] = {str(number): {"items": {"$ref": f"#/$defs/{number + 1}"}} for number in range(100)}
    found = fitted({"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": lists})
    assert NOT_SHOWN in str(found)


def test_a_text_that_is_too_large_is_unfit_with_references_as_without():
    fields = {f"p{number}": {"type": "string", "description": "x" * 50} for number in range(500)}
    with pytest.raises(SchemaUnfit, match="larger than 32 KiB"):
        fit_for_models({"properties": {**fields, "x": {"$ref": "#"}}})
    with pytest.raises(SchemaUnfit, match="larger than 32 KiB"):
        fit_for_models({"$ref": "#/$defs/all", "$defs": {"all": {"properties": fields}}})
    assert fitted({"properties": {"x": {"$ref": "#/$defs/all"}}, "$defs": {"all": {"properties": fields}}})


def test_a_schema_just_below_the_limit_is_fit():
    schema = {"properties": {f"p{number}": {"type": "string", "format": "date"} for number in range(760)}}
    assert LARGEST * 0.9 < len(msgspec.json.encode(schema)) < LARGEST
    assert fitted(schema)["properties"] == schema["properties"]


@pytest.mark.parametrize("word", ["default", "anyOf", "$comment", "x", "type", "required", "enum"])
def test_what_is_empty_counts_too(word):
    references = {f"p{number}": {"$ref": "#/$defs/n"} for number in range(500)}
    looked_at: list[int] = []

    class Counted(list[Any]):
        def __iter__(self) -> Any:
            looked_at.append(len(self))
            return super().__iter__()

    fitted({"properties": references, "$defs": {"n": {word: Counted([{}] * 5000)}}})
    assert len(looked_at) <= 15


def test_a_schema_that_is_too_deep_is_unfit():
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"items": deep}
    with pytest.raises(SchemaUnfit, match="too deep"):
        fit_for_models({"properties": {"x": deep}})


def test_a_number_that_no_model_can_be_told_is_unfit_or_rounded():
    assert fitted_argument({"maximum": 2**256}) == {"maximum": float(2**256)}
    with pytest.raises(SchemaUnfit, match="too large"):
        fit_for_models({"properties": {"x": {"maximum": 10**400}}})


# --- several forms at the top


def test_forms_that_need_different_arguments_become_one_that_says_so():
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    forms = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": properties, "required": ["c"]}
    found = fit_for_models({"type": "object", **forms})
    assert found.schema == {"type": "object", "properties": properties, "required": ["c"]}
    assert found.remark == "The arguments take one of these forms: a; or b."


def test_different_objects_become_one_with_the_arguments_of_all():
    by_name = {"title": "by name", "properties": {"kind": {"const": "n"}, "name": {}}, "required": ["kind", "name"]}
    by_number = {"properties": {"kind": {"const": 5}, "number": {"type": "integer"}}, "required": ["kind", "number"]}
    closed = {"additionalProperties": False}
    found = fit_for_models({"type": "object", "oneOf": [{**by_name, **closed}, by_number, {"type": "null"}], **closed})
    assert found.schema == {
        "type": "object",
        "properties": {"kind": {"anyOf": [{"const": "n"}, {"const": 5}]}, "name": {}, "number": {"type": "integer"}},
        "required": ["kind"],
    }
    assert found.remark == 'The arguments take one of these forms: by name (kind = "n", name); or kind = 5, number.'


def test_what_holds_together_is_put_together():
    one = {"$ref": "#/definitions/one"}
    schema: dict[str, Any] = {"allOf": [one, {"properties": {"a": {"minLength": 1}, "b": True}, "required": ["b"]}]}
    schema["definitions"] = {"one": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}
    assert fitted(schema) == {
        "type": "object",
        "properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 1}]}, "b": {}},
        "required": ["a", "b"],
    }


def test_conditions_at_the_top_are_told_in_words():
    found = fit_for_models({"properties": {"a": {}}, "not": {"required": ["a"]}})
    assert "not" not in found.schema
    assert found.remark == 'The arguments must also fit: {"not":{"required":["a"]}}'


def test_arguments_that_can_be_no_object_make_a_tool_unfit():
    with pytest.raises(SchemaUnfit, match="no object"):
        fit_for_models({"anyOf": [{"type": "string"}, {"type": "null"}]})


def test_forms_of_an_argument_stay_as_they_are():
    forms = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert fitted_argument(forms) == forms


# --- names of arguments


@pytest.mark.parametrize("name", ["definitions", "title", "required", "properties", "not", "a.b-c_D"])
def test_an_argument_may_be_called_like_a_word_of_schemas(name):
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    assert fit_for_models(schema).schema == schema


@pytest.mark.parametrize("name", ["user id", "$id", "$ref", "$defs", "größe", "工具", "x" * 65, "", "a\n"])
def test_an_argument_whose_name_providers_refuse_gets_another_and_the_server_its_own(name):
    within = {"type": "array", "items": {"properties": {name: {"type": "string"}}}}
    found = fit_for_models({"properties": {name: {"type": "string"}, "in": within}, "required": [name]})
    [given, inside] = found.schema["properties"]
    assert inside == "in"
    assert given.isascii()
    assert given.replace("_", "").isalnum()
    assert len(given) <= 64
    assert found.schema["required"] == [given]
    assert list(found.schema["properties"]["in"]["items"]["properties"]) == [given]
    sent = with_real_names({given: 1, "in": [{given: 2, "else": {}}]}, found.real_names)
    assert sent == {name: 1, "in": [{name: 2, "else": {}}]}


# --- forms of the past, and what is malformed


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"minimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMinimum": True}, {}),
        ({"type": "strin"}, {}),
        ({"type": ["string", "nul"]}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": [{}, "null"]}, {"type": "null"}),
        ({"type": 5, "description": 5, "enum": "a", "properties": [], "anyOf": []}, {}),
        ({"enum": [], "minLength": -1, "maxItems": "3", "pattern": 1, "items": 5}, {}),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"minimum": float("nan"), "default": float("inf")}, {"default": None}),
        ({"multipleOf": 0}, {}),
        ({"multipleOf": -1, "minimum": -1}, {"minimum": -1}),
        ({"required": ["x", "x"]}, {"required": ["x"]}),
        ({"dependentRequired": {"a": "b"}, "dependencies": 5, "contentSchema": 5, "$vocabulary": "x"}, {}),
        ({"dependencies": {"a": {"$ref": "#/gone"}}, "contentSchema": {"$ref": "#/gone"}, "unheard of": 1}, {}),
        ({"pattern": "^[a-z]{2,}(?:-|$)"}, {"pattern": "^[a-z]{2,}(?:-|$)"}),
        ({"patternProperties": {"(": {}, "^x-": {"type": 5}}}, {"patternProperties": {"^x-": {}}}),
        (True, {}),
        (False, {"not": {}}),
        ("text", {}),
    ],
)
def test_old_forms_are_brought_up_to_date_and_malformed_ones_dropped(said, kept):
    assert fitted_argument(said) == kept


@pytest.mark.parametrize(
    "pattern", ["(", "*", "[z-a]", "a{99999999999}", "(" * 300, "(?P<x>a)", "(?i)a", r"\p{L}", "a" * 301, "\u200b"]
)
def test_a_pattern_that_not_every_reader_knows_is_dropped(pattern):
    assert fitted_argument({"pattern": pattern, "patternProperties": {pattern: {}}}) == {"patternProperties": {}}


def test_hidden_characters_are_found_wherever_they_stand():
    found = fit_for_models({"properties": {"x": {"enum": ["a\u202e"], "description": "b\u2066"}, "\u200b": {}}})
    assert sorted(found.hidden) == ["\u200b", "\u202e", "\u2066"]
    assert found.schema["properties"]["x"]["description"] == "b⟨U+2066⟩"


# --- whatever a server writes


WORDS = [
    *("$ref", "$id", "$defs", "$anchor", "$vocabulary", "type", "title", "description", "default", "const"),
    *("enum", "examples", "properties", "required", "items", "prefixItems", "additionalItems"),
    *("additionalProperties", "patternProperties", "propertyNames", "anyOf", "oneOf", "allOf", "not", "if"),
    *("then", "else", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"),
    *("maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "dependencies"),
    *("dependentRequired", "dependentSchemas", "contentSchema", "contains", "minContains"),
    *("unevaluatedProperties", "nullable", "deprecated", "readOnly", "x-own"),
]
VALUES = [
    *(None, True, False, 0, -1, 1.5, float("nan"), 2**70, "", "(", "a", "工具", "\u202e", "string", "object", "array"),
    *(
        "#",
        "#/$defs/a",
        "#/properties/a/anyOf/0",
        "#/$defs/gone",
        "#a",
        "#/items/%20",
        [],
        ["a", "a"],
        ["string", "nul"],
    ),
]


def made_up(chance: random.Random, depth: int) -> Any:
    """A schema as nobody would write it, with references to what is and what is not there."""
    schema: dict[str, Any] = {}
    for word in chance.sample(WORDS, chance.randint(0, 8)):
        within = [made_up(chance, depth - 1) for _ in range(chance.randint(0, 3))] if depth else []
        names = chance.sample(["a", "b", "(", "^x", "$ref", "工具", "\u200b", ""], len(within))
        by_name = dict(zip(names, within, strict=True))
        schema[word] = chance.choice([by_name, within, *within[:1], *chance.sample(VALUES, 2)])
    return schema


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_whatever_a_server_writes_what_models_are_given_is_a_schema(seed):
    chance = random.Random(seed)
    fit = 0
    for _ in range(40):
        schema = {**made_up(chance, 4), "type": "object", "$defs": {"a": made_up(chance, 3)}}
        try:
            found = fit_for_models(schema)
        except SchemaUnfit:
            continue
        fit += 1
        jsonschema.Draft202012Validator.check_schema(found.schema)
        assert len(msgspec.json.encode(found.schema)) <= LARGEST
        assert "anyOf" not in found.schema
        assert len(found.remark) <= 1001
    assert fit > 20


# --- as a whole


def test_a_tool_of_several_forms_and_odd_names_is_called_with_the_servers_own_names(tmp_path):
    given = next(iter(fit_for_models({"properties": {"user id": {}}}).real_names))
    editor = editing(tmp_path, calling(("mcp__unions__go", {given: "me"}), ("mcp__unions__go", {"a": 1})))
    editor.new_session(mcpServers=[odd("unions")])
    editor.prompt("Go.")
    [tool] = [tool for tool in editor.model_requests()[0]["tools"] if tool["name"] == "mcp__unions__go"]
    assert "anyOf" not in tool["schema"]
    assert tool["description"] == "A tool.\n\nThe arguments take one of these forms: a; or b."
    called, missing = editor.tool_calls().values()
    assert shown(called) == '```text\ncalled go with {"user id": "me"}\n```'
    assert '"user id": "me"' in shown(editor.permissions[0]["toolCall"])
    assert f"- `{given}` is missing" in shown(missing)
    editor.close()
