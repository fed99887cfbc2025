"""Changing config.toml as text: every byte that is not meant stays."""

import pytest
import tomlkit

from crow.config.edit import CannotEdit, choose_model

KEY = {"type": "anthropic", "api_key": "sk-1"}
TABLE = '[providers.anthropic]\ntype = "anthropic"\napi_key = "sk-1"\n'


def changed(text: str, connection: dict[str, str] = KEY) -> str:
    return choose_model(text, "/config.toml", "anthropic/m", "anthropic", connection)


def test_an_empty_file() -> None:
    assert changed("") == f'model = "anthropic/m"\n\n{TABLE}'


def test_everything_else_stays() -> None:
    before = """\
# my settings

mode = 'edit'   # careful
model   =   'other/x'  # the good one
[terminal]      # commands
timeout = 5

[providers.local]
type = "openai"
base_url = "http://h/v1"
"""
    after = before.replace("'other/x'", '"anthropic/m"') + "\n" + TABLE
    assert changed(before) == after


def test_the_model_goes_behind_the_files_heading() -> None:
    assert changed("# Heading\n# more\n\nmode = 'ask'\n") == (
        f"# Heading\n# more\n\nmodel = \"anthropic/m\"\nmode = 'ask'\n\n{TABLE}"
    )
    assert changed("# about the mode\nmode = 'ask'\n").startswith('model = "anthropic/m"\n# about the mode\n')


def test_a_key_takes_the_place_of_the_command_that_printed_one() -> None:
    before = (
        '[providers.anthropic]\ntype = "anthropic"\napi_key_command = "print-it"  # hourly\nheaders = { a = "b" }\n'
    )
    after = '[providers.anthropic]\ntype = "anthropic"\nheaders = { a = "b" }\napi_key = "sk-1"\n'
    assert changed(before) == f'model = "anthropic/m"\n{after}'
    command = {"type": "anthropic", "api_key_command": "print-it"}
    assert changed(before, command) == f'model = "anthropic/m"\n{before}'


def test_a_providers_table_is_changed_in_place() -> None:
    before = """\
model = "anthropic/old"
[providers.anthropic]
type = "anthropic"   # Claude
api_key_env = "OLD"
# kept

[providers.anthropic.models.m]
context_window = 1000
[terminal]
timeout = 5
"""
    assert (
        changed(before)
        == """\
model = "anthropic/m"
[providers.anthropic]
type = "anthropic"   # Claude
# kept
api_key = "sk-1"

[providers.anthropic.models.m]
context_window = 1000
[terminal]
timeout = 5
"""
    )


def test_doing_it_twice_changes_nothing() -> None:
    once = changed("mode = 'ask'\n")
    assert changed(once) == once


def test_a_model_key_of_a_table_is_not_the_default() -> None:
    before = (
        '[providers.local]\ntype = "openai"\nbase_url = "http://h/v1"\n[providers.local.models.model]\nimages = true\n'
    )
    assert changed(before) == f'model = "anthropic/m"\n{before}\n{TABLE}'


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    before = '\ufeffmode = "ask"\r\n[terminal]\r\ntimeout = 5\r\n'
    after = changed(before)
    assert after == '\ufeffmodel = "anthropic/m"\r\n' + before[1:] + "\r\n" + TABLE.replace("\n", "\r\n")


def test_a_missing_last_line_end_is_completed() -> None:
    assert changed('[providers.anthropic]\ntype = "anthropic"') == (
        'model = "anthropic/m"\n[providers.anthropic]\ntype = "anthropic"\napi_key = "sk-1"\n'
    )
    assert changed("mode = 'ask'") == f"model = \"anthropic/m\"\nmode = 'ask'\n{TABLE}"


def test_odd_strings_are_written_as_toml() -> None:
    text = choose_model("", "/c.toml", 'a b/"q"', "a b", {"type": "openai", "base_url": "http://h/v1"})
    assert text == 'model = "a b/\\"q\\""\n\n[providers."a b"]\ntype = "openai"\nbase_url = "http://h/v1"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'providers = { anthropic = { type = "anthropic" } }\n',
            'model = "anthropic/m"\nproviders = { anthropic = { type = "anthropic", api_key = "sk-1"} }\n',
        ),
        (
            'providers.anthropic.type = "anthropic"\n',
            'model = "anthropic/m"\nproviders.anthropic.type = "anthropic"\nproviders.anthropic.api_key = "sk-1"\n',
        ),
        ('model = """\nanthropic/old"""\n', f'model = "anthropic/m"\n\n{TABLE}'),
        (
            "# about commands\n[terminal]\ntimeout = 5\n",
            f'model = "anthropic/m"\n# about commands\n[terminal]\ntimeout = 5\n\n{TABLE}',
        ),
    ],
)
def test_other_layouts(before: str, after: str) -> None:
    assert changed(before) == after


def test_tables_of_providers_that_others_stand_between() -> None:
    local = '[providers.local]\ntype = "openai"\nbase_url = "http://h/v1"\n'
    other = '[providers.other] # mine\ntype = "openai"\nbase_url = "http://h/v2"\n'
    after = changed(f"{local}[terminal]\ntimeout = 5\n{other}")
    assert all(table in after for table in (local, other, TABLE))


@pytest.mark.parametrize("text", ["model = [\n]\n[providers]\nanthropic = 1\n", "providers = 1\n"])
def test_what_cannot_be_done_for_certain_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        changed(text)


def test_what_would_mean_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = tomlkit.parse
    monkeypatch.setattr(tomlkit, "parse", lambda text: parse(text.replace("timeout = 5", "timeout = 6")))
    with pytest.raises(CannotEdit):
        changed("[terminal]\ntimeout = 5\n")
