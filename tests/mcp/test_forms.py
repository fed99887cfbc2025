"""What servers put before the person: nothing that is no form, leads elsewhere, or hides."""

from typing import Any

import pytest

from crow.mcp.client.forms import LONGEST_LABEL, can_be_opened, validated_form, words


def form(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": field}}


GOOD: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1, "format": "email", "default": "a@b.example"},
    {"type": "string", "enum": ["x", "y"], "default": "y"},
    {"type": "string", "oneOf": [{"const": "x", "title": "The x"}]},
    {"type": "number", "minimum": 0.5, "default": 1.5},
    {"type": "integer", "maximum": 5, "default": 0},
    {"type": "boolean", "default": False},
    {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1, "default": ["x"]},
    {"type": "array", "items": {"anyOf": [{"const": "x", "title": "The x"}]}},
]


@pytest.mark.rule("R131")
@pytest.mark.parametrize("field", GOOD, ids=str)
def test_a_field_that_the_protocol_knows_is_passed_on_as_it_is(field: dict[str, Any]):
    assert validated_form(form(**field)) == form(**field)


def test_titles_of_values_are_written_as_the_protocol_has_them():
    older = {"type": "string", "enum": ["r", "w"], "enumNames": ["Rye", "Wheat\u202e"], "default": "w"}
    choices = [{"const": "r", "title": "Rye"}, {"const": "w", "title": "Wheat⟨U+202E⟩"}]
    assert validated_form(form(**older)) == form(type="string", oneOf=choices, default="w")


@pytest.mark.parametrize("names", [["Rye"], ["Rye", 5], "Rye", None, {}], ids=str)
def test_titles_that_do_not_fit_the_values_are_left_out(names: Any):
    plain = {"type": "string", "enum": ["r", "w"]}
    assert validated_form(form(**plain, enumNames=names)) == form(**plain)


def test_a_value_without_a_title_is_its_own():
    choices = [{"const": "x"}, {"const": "y", "title": "The y"}]
    titled = [{"const": "x", "title": "x"}, {"const": "y", "title": "The y"}]
    assert validated_form(form(type="string", oneOf=choices)) == form(type="string", oneOf=titled)


BAD: list[dict[str, Any]] = [
    {"type": "string", "enum": [1, None, {}]},
    {"type": "string", "enum": []},
    {"type": "string", "enum": "x"},
    {"type": "string", "enum": ["x"], "default": "z"},
    {"type": "string", "enum": ["x\u202e"]},
    {"type": "string", "oneOf": [{"title": "no value"}]},
    {"type": "string", "oneOf": ["x"]},
    {"type": "string", "default": 5},
    {"type": "string", "default": "x\u200b"},
    {"type": "string", "minLength": -1},
    {"type": "string", "title": ["x"]},
    {"type": "string", "format": "password"},
    {"type": "integer", "default": "1"},
    {"type": "boolean", "default": "yes"},
    {"type": "array"},
    {"type": "array", "items": {"type": "object"}},
    {"type": "array", "items": {"type": "string"}},
    {"type": ["string", "null"]},
    {"type": "object"},
]


@pytest.mark.rule("R131")
@pytest.mark.parametrize("field", BAD, ids=str)
def test_a_form_with_a_wrong_field_is_none(field: dict[str, Any]):
    assert validated_form(form(**field)) is None


def test_what_the_protocol_does_not_know_is_left_out():
    assert validated_form({**form(type="string", extra={"x": 1}), "extra": 1}) == form(type="string")


def test_labels_are_short_and_hide_nothing():
    made = validated_form(form(type="string", title="x\u202e\n" + "y" * 1000, description="one\ntwo\x1b"))
    assert made is not None
    field = made["properties"]["a"]
    assert field["title"].startswith("x⟨U+202E⟩⏎y")
    assert len(field["title"]) <= LONGEST_LABEL + 1
    assert field["description"] == "one\ntwo⟨U+001B⟩"


def test_a_servers_words_keep_their_lines_and_are_cut():
    assert words("one\r\ntwo\u202e", 100) == "one\ntwo⟨U+202E⟩"
    assert words("x" * 11, 10) == "x" * 10 + "…"


@pytest.mark.rule("R133")
@pytest.mark.parametrize(
    "address",
    [
        "https://a.example/x?y=1",
        "http://127.0.0.1:8080/x",
        "http://localhost/",
        "http://[::1]:80/",
        "HTTPS://a.example",
    ],
)
def test_an_address_that_leads_where_it_seems_to_can_be_opened(address: str):
    assert can_be_opened(address)


@pytest.mark.rule("R133")
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.1@evil.example/",
        "http://localhost.evil.example/",
        "http://localhost:80@evil.example/",
        "http://127.0.0.1\\@evil.example/",
        "https://user:secret@a.example/",
        "https://@a.example/",
        "https://",
        "https:///path",
        "https://a.example:port/",
        "https://[::1/",
        "https://a.example/\u202egpj",
        "https://a.example/\n",
        "https://a.example /",
        "http://a.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://a.example/" + "x" * 5000,
        "",
    ],
)
def test_any_other_address_cannot(address: str):
    assert not can_be_opened(address)
