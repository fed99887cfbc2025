"""`crow setup`: what is printed for each editor, and how settings are merged without harm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crow.cli.editors import EDITORS
from crow.cli.setup import CannotMerge, merge, read_settings
from tests.config.support import CROW, crow, environment

ENTRY: dict[str, object] = {"type": "custom", "command": "/bin/crow", "args": ["acp"], "env": {}}


def zed_settings(user: Path, content: bytes | None = None) -> Path:
    path = user / ".config" / "zed" / "settings.json"
    if content is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    return path


def entry(user: Path) -> dict[str, object]:
    return {"type": "custom", "command": CROW, "args": ["acp"], "env": {"CROW_HOME": str(user / "crow")}}


# --- what is printed


def test_without_an_argument_the_editors_are_listed(tmp_path: Path) -> None:
    said = crow(tmp_path, "setup")
    assert (said.returncode, said.stderr) == (0, "")
    for name in ("zed", "jetbrains", "neovim", "emacs", "toad", "vscode"):
        assert f"  crow setup {name:<12}" in said.stdout


def test_an_unknown_editor(tmp_path: Path) -> None:
    said = crow(tmp_path, "setup", "ed")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == 'crow: unknown editor "ed". Available: zed, jetbrains, neovim, emacs, toad, vscode\n'


@pytest.mark.parametrize("editor", list(EDITORS))
def test_the_command_is_absolute_and_nothing_is_written(tmp_path: Path, editor: str) -> None:
    said = crow(tmp_path, "setup", editor)
    assert (said.returncode, said.stderr) == (0, "")
    assert CROW in said.stdout
    assert list(tmp_path.iterdir()) == []


def test_however_it_is_called_the_installed_command_is_named_in_full(tmp_path: Path) -> None:
    here = Path(CROW).parent
    for command in ([os.path.join(".", here.name, "crow")], [sys.executable, "-m", "crow"], ["crow"]):
        said = subprocess.run(
            [*command, "setup", "toad"],
            cwd=here.parent,
            env=environment(tmp_path, CROW_HOME="", PATH=f"{here}:{os.environ['PATH']}"),
            capture_output=True,
            text=True,
        )
        assert f"\n\ntoad acp '{CROW} acp' . --title Crow\n\n" in said.stdout


def test_what_zed_gets(tmp_path: Path) -> None:
    said = crow(tmp_path, "setup", "zed", CROW_HOME="")
    wanted = {"agent_servers": {"Crow": {"type": "custom", "command": CROW, "args": ["acp"], "env": {}}}}
    assert said.stdout == (
        f"Paste this into {tmp_path}/.config/zed/settings.json, "
        "the settings file (in Zed: zed: open settings file):\n\n"
        f"{json.dumps(wanted, indent=2)}\n\n"
        "If the file has settings already, add only what is missing, or run: crow setup zed --write\n"
        "Open the agent panel, press + and choose Crow.\n"
    )


def test_what_jetbrains_and_vscode_get(tmp_path: Path) -> None:
    plain = {"command": CROW, "args": ["acp"], "env": {}}
    for editor, key in (("jetbrains", "agent_servers"), ("vscode", "acp.agents")):
        said = crow(tmp_path, "setup", editor, CROW_HOME="")
        assert json.dumps({key: {"Crow": plain}}, indent=2) in said.stdout


def test_emacs_shows_sessions_that_it_restores(tmp_path: Path) -> None:
    assert "(setq agent-shell-session-restore-verbosity 'full)" in crow(tmp_path, "setup", "emacs").stdout


def test_a_home_of_ones_own_is_passed_on(tmp_path: Path) -> None:
    home = str(tmp_path / "crow")
    assert f'"CROW_HOME": "{home}"' in crow(tmp_path, "setup", "zed").stdout
    assert f'env = {{ CROW_HOME = "{home}" }},' in crow(tmp_path, "setup", "neovim").stdout
    assert f'(agent-shell-make-environment-variables "CROW_HOME" "{home}" :inherit-env t)' in (
        crow(tmp_path, "setup", "emacs").stdout
    )
    assert f"toad acp 'env CROW_HOME={home} {CROW} acp' ." in crow(tmp_path, "setup", "toad").stdout


# --- writing


def test_a_new_file(tmp_path: Path) -> None:
    said = crow(tmp_path, "setup", "zed", "--write")
    path = zed_settings(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"Wrote {path}.\nOpen the agent panel, press + and choose Crow.\n"
    assert json.loads(path.read_bytes()) == {"agent_servers": {"Crow": entry(tmp_path)}}


def test_settings_with_comments_survive(tmp_path: Path) -> None:
    before = b"""\
// Zed settings
{
    "theme": "One Dark", // dark
    /* fonts */
    "buffer_font_size": 15,
    "agent_servers": {
        "Other": { "command": "other" }, // mine
    },
}
"""
    path = zed_settings(tmp_path, before)
    path.chmod(0o640)
    said = crow(tmp_path, "setup", "zed", "--write")
    backup = path.with_name("settings.json.before-crow")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == (
        f"Added the agent Crow to {path}. Backup: {backup}\nOpen the agent panel, press + and choose Crow.\n"
    )
    assert backup.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert (
        path.read_text()
        == f"""\
// Zed settings
{{
    "theme": "One Dark", // dark
    /* fonts */
    "buffer_font_size": 15,
    "agent_servers": {{
        "Crow": {{
            "type": "custom",
            "command": "{CROW}",
            "args": [
                "acp"
            ],
            "env": {{
                "CROW_HOME": "{tmp_path}/crow"
            }}
        }},
        "Other": {{ "command": "other" }}, // mine
    }},
}}
"""
    )


def test_doing_it_again_changes_nothing(tmp_path: Path) -> None:
    crow(tmp_path, "setup", "jetbrains", "--write")
    path = tmp_path / ".jetbrains" / "acp.json"
    before = path.read_bytes()
    said = crow(tmp_path, "setup", "jetbrains", "--write")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"JetBrains IDEs is already set up: {path} has the agent Crow. Nothing changed.\n"
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (b"[1]", "it does not hold a JSON object"),
        (b'{"agent_servers": []}', 'its "agent_servers" is not an object'),
        (b'{"agent_servers": {"Crow": {"command": "/old/crow", "args": ["x"]}}}', "it has an agent"),
        (b'{"a": 1,\n "b" 2}', "line 2 is not valid JSON"),
        (b'{"a": 1', "line 1 is not valid JSON"),
        (b"\xff\xfe{}", "it is not UTF-8 text"),
    ],
)
def test_what_cannot_be_merged_is_left_alone_and_printed(tmp_path: Path, content: bytes, trouble: str) -> None:
    path = zed_settings(tmp_path, content)
    said = crow(tmp_path, "setup", "zed", "--write")
    assert said.returncode == 1
    assert said.stderr.startswith(f"crow: {path} was not changed: {trouble}")
    assert f'"command": "{CROW}"' in said.stdout
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_an_earlier_backup_is_not_overwritten(tmp_path: Path) -> None:
    path = zed_settings(tmp_path, b"{}")
    first = path.with_name("settings.json.before-crow")
    first.write_bytes(b"precious")
    crow(tmp_path, "setup", "zed", "--write")
    assert first.read_bytes() == b"precious"
    assert path.with_name("settings.json.before-crow-2").read_bytes() == b"{}"


def test_a_linked_settings_file_stays_linked(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "zed.json"
    target.write_bytes(b"{}")
    path = zed_settings(tmp_path)
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    assert crow(tmp_path, "setup", "zed", "--write").returncode == 0
    assert path.is_symlink()
    assert json.loads(target.read_bytes()) == {"agent_servers": {"Crow": entry(tmp_path)}}


def test_a_write_protected_file_is_left_alone(tmp_path: Path) -> None:
    path = zed_settings(tmp_path, b'{"theme": "One"}')
    path.chmod(0o444)
    said = crow(tmp_path, "setup", "zed", "--write")
    assert said.returncode == 1
    assert said.stderr == f"crow: {path} was not changed: it is write-protected (mode 444)\n"
    assert f'"command": "{CROW}"' in said.stdout
    assert path.read_bytes() == b'{"theme": "One"}'
    assert path.stat().st_mode & 0o777 == 0o444
    assert list(path.parent.iterdir()) == [path]


def test_other_editors_are_only_printed_for(tmp_path: Path) -> None:
    said = crow(tmp_path, "setup", "emacs", "--write")
    assert said.returncode == 1
    assert said.stderr == (
        "crow: nothing was written: --write does not support Emacs, with agent-shell. Add this by hand:\n"
    )
    assert said.stdout.startswith("Paste this into your init file")
    assert "(with-eval-after-load 'agent-shell" in said.stdout
    assert list(tmp_path.iterdir()) == []


# --- the insertion itself

CROW_TEXT = json.dumps(ENTRY, indent=2)


def indented(text: str, by: str) -> str:
    return text.replace("\n", "\n" + by)


LAYOUTS = [
    ("", f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }}\n}}\n'),
    ("{}", f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }}\n}}'),
    (
        '{"a": 1}',
        f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }},"a": 1}}',
    ),
    (
        '{\n  "a": 1 // one\n  // end\n}\n',
        f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }},\n  "a": 1 // one\n  // end\n}}\n',
    ),
    (
        "{\n  // nothing yet\n}\n",
        f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }}\n  // nothing yet\n}}\n',
    ),
    (
        '{\n  "agent_servers": {}\n}\n',
        f'{{\n  "agent_servers": {{\n    "Crow": {indented(CROW_TEXT, "    ")}\n  }}\n}}\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), LAYOUTS)
def test_layouts(before: str, after: str) -> None:
    assert merge(before, ENTRY) == after


def test_tabs_and_windows_line_ends_are_followed() -> None:
    after = merge('\ufeff{\r\n\t"a": 1\r\n}\r\n', ENTRY)
    assert after.startswith('\ufeff{\r\n\t"agent_servers": {\r\n\t\t"Crow": {\r\n\t\t\t"type": "custom",\r\n')
    assert after.endswith('\r\n\t},\r\n\t"a": 1\r\n}\r\n')
    assert "\n" not in after.replace("\r\n", "")


def test_text_that_only_looks_like_structure() -> None:
    before = '{\n  "a": "// no comment } , \\" /*", // a real one: "agent_servers": {}\n  "b": [1, 2,]\n}\n'
    after = merge(before, ENTRY)
    assert read_settings(after) == {
        "a": '// no comment } , " /*',
        "b": [1, 2],
        "agent_servers": {"Crow": ENTRY},
    }


def test_an_entry_with_an_environment_of_its_own_counts_as_set_up() -> None:
    text = '{"agent_servers": {"Crow": {"command": "/bin/crow", "args": ["acp"], "env": {"A": "b"}}}}'
    assert merge(text, ENTRY) == text


def test_values_of_every_kind_are_read() -> None:
    assert read_settings('{"a": [-1.5e3, true, false, null, "\\u00e9\\n"], "b": {}}') == {
        "a": [-1500.0, True, False, None, "é\n"],
        "b": {},
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[", '{"a"}', "{a: 1}", "{'a': 1}", "1 2", '"\\x"', "01x", "/* open", "[" * 9999]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(CannotMerge):
        read_settings(text)


def test_an_unequal_command_is_named() -> None:
    with pytest.raises(CannotMerge, match="/old/crow"):
        merge('{"agent_servers": {"Crow": {"command": "/old/crow"}}}', ENTRY)


def test_an_older_crow_is_updated_in_its_place() -> None:
    old = '"Crow": {"command": "/old/crow", "args": ["acp"], "env": {"A": "b"}}, // mine'
    before = f'{{\n  "agent_servers": {{\n    {old}\n  }},\n}}\n'
    after = merge(before, ENTRY)
    assert after.startswith('{\n  "agent_servers": {\n    "Crow": {\n      "command": "')
    assert after.endswith("}, // mine\n  },\n}\n")
    agents = read_settings(after)["agent_servers"]
    assert agents == {"Crow": {"command": ENTRY["command"], "args": ["acp"], "env": {"A": "b"}}}


@pytest.mark.parametrize(
    "text",
    [
        '{"agent_servers": {"Crow": {"command": "/old/crow", /* mine */ "args": ["acp"]}}}',
        '{"agent_servers": {}, "agent_servers": {"Other": {}}}',
        '{"a": "\\"agent_servers\\": {", "b": {"agent_servers": {}}, "agent_servers": {"Other": {}}}',
    ],
)
def test_what_could_go_wrong_is_left_to_the_person(text: str) -> None:
    with pytest.raises(CannotMerge):
        merge(text, ENTRY)
