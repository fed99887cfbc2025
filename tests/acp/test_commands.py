"""Slash commands, custom commands and skills, in conversations with a real `crow acp`."""

import itertools
import json
import os
import re
import stat
import threading

import pytest

from crow.tools.ask import PLAN_MODE
from tests.support.disks import fill_up
from tests.support.editor import NOTICES, SILENCE, chose
from tests.support.patience import DEADLINE
from tests.support.scripts import DONE, call, reply, run, say

BUILT_IN = [
    *("help", "init", "compact", "clear", "context", "export", "rename", "undo"),
    *("plan", "mode", "model", "permissions", "mcp"),
]


def write(path, text="text"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def advertised(crow):
    """The commands, each time they were told."""
    updates = [u for u in crow.all_updates_of(crow.session_id) if u["sessionUpdate"] == "available_commands_update"]
    return [[command["name"] for command in update["availableCommands"]] for update in updates]


def wait_for_commands(crow):
    crow.wait_until(lambda: bool(advertised(crow)), "the commands")


def said(crow, *prompt):
    """What is answered to a prompt."""
    before = len(crow.text())
    assert crow.prompt(*prompt) == {"stopReason": "end_turn"}
    return crow.text()[before:]


@pytest.fixture
def crow(open_editor):
    crow = open_editor(script=DONE, capabilities=NOTICES)
    crow.new_session()
    return crow


# --- being known


@pytest.mark.rule("R127")
def test_all_commands_are_advertised_with_hints_after_a_session_was_opened(crow):
    wait_for_commands(crow)
    (update,) = [u for u in crow.all_updates_of(crow.session_id) if u["sessionUpdate"] == "available_commands_update"]
    commands = {command["name"]: command for command in update["availableCommands"]}
    assert list(commands) == BUILT_IN
    assert all(command["description"] for command in commands.values())
    hints = {name: command["input"]["hint"] for name, command in commands.items() if command.get("input")}
    assert hints == {
        "init": "[what matters most]",
        "compact": "[what to keep]",
        "plan": "[task]",
        "mode": "[mode]",
        "model": "[provider/model]",
        "permissions": "[revoke N | explain COMMAND]",
        "export": "[path]",
        "mcp": "[restart NAME]",
        "rename": "[title]",
    }


@pytest.mark.rule("R128")
def test_an_unknown_command_goes_to_the_model_as_it_is(crow):
    link = {"type": "resource_link", "uri": "file:///nowhere", "name": "x"}
    assert said(crow, "/nope what now", link) == "Done."
    assert crow.last_prompt()[0]["text"] == "/nope what now"
    assert said(crow, "/etc/hosts is odd") == "Done."
    assert crow.last_prompt()[-1]["text"] == "/etc/hosts is odd"


def test_help_lists_all_commands_in_groups_and_the_model_is_not_asked(crow):
    write(crow.home / "commands/review.md", "---\ndescription: Reviews\nargument-hint: BRANCH\n---\nReview $1.")
    write(crow.home / "skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Makes PDFs\n---\nUse latex.")
    text = said(crow, "/help")
    assert "- `/permissions [revoke N | explain COMMAND]`: List" in text
    assert "**Skills**\n\n- `/pdf [what to do]`: Makes PDFs" in text
    assert "**Commands from files**\n\n- `/review BRANCH`: Reviews" in text
    assert crow.model_requests() == []


# --- the model and its memory


def test_init_asks_the_model_to_write_the_projects_instructions(crow):
    assert said(crow, "/init and mind the tests") == "Done."
    (part,) = crow.last_prompt()
    assert "AGENTS.md" in part["text"]
    assert "The user adds: and mind the tests" in part["text"]


def test_clear_lets_the_model_start_afresh(crow):
    said(crow, "first")
    assert "Context cleared" in said(crow, "/clear")
    said(crow, "second")
    assert [part["text"] for message in crow.model_requests()[-1]["messages"] for part in message["parts"]] == [
        "second"
    ]


def test_how_full_the_window_is_is_told_again_when_it_changes_without_a_reply(open_editor):
    config = "context_window = 50000\n[providers.scripted.models.small]\ncontext_window = 9000\n"
    full = reply(say("A long answer. " * 500), "{ usage = { input_tokens = 6000, output_tokens = 2500 } }")
    crow = open_editor(script=full * 3, config=config)
    session = crow.new_session()

    def told(after):
        crow.wait_until(lambda: len(usages()) > after, "the usage")
        return usages()[-1]

    def usages():
        return [(u["used"], u["size"]) for u in crow.updates if u["sessionUpdate"] == "usage_update"]

    crow.prompt("one")
    assert usages() == [(8500, 50_000)]
    crow.request("session/set_config_option", {"sessionId": session, "configId": "model", "value": "scripted/small"})
    assert told(1) == (8500, 9000)
    said(crow, "/undo")
    used, size = told(2)
    assert used < 6000
    assert size == 9000
    crow.prompt("two")
    said(crow, "/clear")
    used, size = told(4)
    assert used < 6000


def test_context_says_what_fills_the_window(crow):
    said(crow, "x" * 30_000)
    text = said(crow, "/context")
    assert "scripted/test" in text
    [sent] = [line for line in text.splitlines() if line.startswith("Your messages")]
    assert re.fullmatch(r"Your messages +10,\d\d\d  █+", sent)
    assert "nearly full" not in text


def test_compact_in_a_short_conversation_says_that_there_is_nothing_to_do(crow):
    assert "nothing to compact" in said(crow, "/compact").lower()
    said(crow, "hello")
    assert said(crow, "/compact the parser")


# --- choosing


def test_the_mode_is_shown_and_changed(crow):
    assert "`ask`" in said(crow, "/mode").splitlines()[0]
    assert "- `auto`: " in said(crow, "/mode")
    assert "`edit`" in said(crow, "/mode edit")
    assert [update["currentModeId"] for update in crow.updates if update["sessionUpdate"] == "current_mode_update"] == [
        "edit"
    ]
    assert re.findall("`(.*?)`", said(crow, "/mode fast")) == ["fast", "ask", "edit", "plan", "auto"]
    assert "`edit`" in said(crow, "/mode").splitlines()[0]


def test_the_model_is_shown_and_changed(open_editor):
    crow = open_editor(script=DONE, config="[providers.scripted.models.other]")
    crow.new_session()
    text = said(crow, "/model")
    assert "`scripted/test`" in text.splitlines()[0]
    assert "- `scripted/other`" in text
    said(crow, "/model scripted/other")
    assert "`scripted/other`" in said(crow, "/model").splitlines()[0]
    refused = said(crow, "/model nobody/nothing")
    assert "`nobody/nothing`" in refused
    assert "`scripted/test`" in refused


def test_plan_changes_the_mode_and_goes_on_with_the_task(crow):
    assert "Mode: `plan`" in said(crow, "/plan")
    assert crow.model_requests() == []
    said(crow, "/mode ask")
    assert said(crow, "/plan mend the parser") == "Done."
    assert crow.last_prompt() == [{"part": "text", "text": text} for text in ("mend the parser", PLAN_MODE)]
    assert "`plan`" in said(crow, "/mode").splitlines()[0]


# --- permissions


RULES = """
[[permission.rules]]
tool = "terminal"
command = "npm test *"
decision = "allow"
"""


def test_permissions_are_listed_explained_and_taken_back(open_editor):
    script = reply(call("write", path="a.txt", content="a")) + DONE
    crow = open_editor(script=script, config=RULES, permit=lambda request: chose("project"))
    crow.new_session()
    said(crow, "go")
    listed = said(crow, "/permissions")
    assert "1. allow terminal: `npm test *` (your config)" in listed
    assert "this session" not in listed, "what Crow allows itself is no rule of the person's"
    granted = [line.partition(". ") for line in listed.splitlines() if "this project" in line]
    assert granted

    assert "`config.toml`" in said(crow, "/permissions revoke 1")
    assert said(crow, "/permissions") == listed
    for number, _, rule in reversed(granted):
        assert rule in said(crow, f"/permissions revoke {number}")
    assert "this project" not in said(crow, "/permissions")
    assert json.loads((crow.home / "grants.json").read_text())["projects"] == {}
    for wrong in ["99", "0", "-1", "x", "1.5", "9" * 500]:
        said(crow, f"/permissions revoke {wrong}")
    assert json.loads((crow.home / "grants.json").read_text())["projects"] == {}

    assert "terminal: `npm test *`; your config" in said(crow, "/permissions explain npm test unit")
    assert "Asks you first" in said(crow, "/permissions explain rm -rf /")
    assert "without asking" in said(crow, "/permissions explain read a.txt")
    assert "keys" in said(crow, "/permissions explain read .env")
    assert "is protected" in said(crow, "/permissions explain write .git/config")
    for wrong in ["explain", "revoke", "forget 1"]:
        assert "revoke N" in said(crow, f"/permissions {wrong}")
    assert len(crow.model_requests()) == 2


# --- what was kept


def test_export_writes_the_conversation_to_a_new_file_and_says_where(crow, tmp_path):
    said(crow, "Mend the parser, please!")
    text = said(crow, "/export")
    (path,) = crow.workspace.glob("*.md")
    assert text == f"Exported to `{path}`."
    assert path.name.startswith("mend-the-parser-please-20")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Mend the parser, please!" in path.read_text()
    assert "Done." in path.read_text()
    assert "already exists" in said(crow, "/export")
    assert said(crow, "/export other.md") == f"Exported to `{crow.workspace / 'other.md'}`."
    assert said(crow, f"/export {tmp_path / 'x.md'}") == f"Exported to `{tmp_path / 'x.md'}`."
    assert "missing/folder/x.md" in said(crow, "/export missing/folder/x.md")
    assert not (crow.workspace / "missing").exists()


def titles(crow):
    updates = crow.all_updates_of(crow.session_id)
    return [update["title"] for update in updates if update["sessionUpdate"] == "session_info_update"]


def test_a_session_is_renamed_for_the_client_the_list_and_later(open_editor):
    crow = open_editor(script=DONE, capabilities=NOTICES)
    crow.new_session()
    said(crow, "Mend the parser, please!")
    assert "The parser" in said(crow, "/rename  The **parser**\nand more")
    assert titles(crow)[-1] == "The parser"
    assert "The parser" in said(crow, "/rename").splitlines()[0]
    said(crow, "Go on.")
    assert titles(crow)[-1] == "The parser"
    (listed,) = crow.request("session/list")["sessions"]
    assert listed["title"] == "The parser"
    assert len(crow.model_requests()) == 2


def test_a_session_that_is_renamed_first_keeps_that_name(crow):
    assert "Untitled" in said(crow, "/rename").splitlines()[0]
    said(crow, "/rename Birds")
    said(crow, "Mend the parser, please!")
    assert titles(crow) == ["Birds"]


def test_asking_for_the_title_gives_the_session_none(crow):
    said(crow, "/rename")
    said(crow, "Mend the parser, please!")
    assert titles(crow) == ["Mend the parser, please!"]


def test_an_export_to_a_full_disk_says_so(crow, small_disk):
    fill_up(small_disk / "filler")
    path = small_disk / "x.md"
    assert said(crow, f"/export {path}").startswith(str(path))
    assert not path.exists()


def test_undo_takes_back_the_last_turn_and_says_what_it_did(open_editor):
    script = reply(call("write", path="a.txt", content="new")) + DONE
    crow = open_editor(script=script, permit=lambda request: chose("once"))
    crow.new_session()
    said(crow, "write it")
    assert (crow.workspace / "a.txt").read_text() == "new"
    assert "a.txt" in said(crow, "/undo")
    assert not (crow.workspace / "a.txt").exists()
    said(crow, "and now?")
    (message,) = crow.model_requests()[-1]["messages"]
    assert message["parts"][-1]["text"] == "and now?"
    assert "write it" not in str(message)


def test_mcp_says_that_there_are_no_servers_and_where_they_would_come_from(crow):
    assert "No MCP servers" in said(crow, "/mcp")


# --- the user's own


def test_own_commands_and_skills_are_advertised_again_when_files_change(crow):
    wait_for_commands(crow)
    path = write(crow.home / "commands/git/review.md", "Review $1.")
    said(crow, "one")
    assert advertised(crow)[-1] == [*BUILT_IN, "git:review"]
    said(crow, "two")
    write(crow.home / "skills/pdf/SKILL.md", "---\ndescription: PDFs\n---\nUse latex.")
    path.unlink()
    said(crow, "three")
    assert advertised(crow)[-1] == [*BUILT_IN, "pdf"]
    told = advertised(crow)
    assert all(before != after for before, after in itertools.pairwise(told)), "only when they have changed"


def test_a_command_that_is_written_between_turns_is_advertised_without_a_prompt(crow):
    wait_for_commands(crow)
    path = write(crow.home / "commands/review.md", "Review $1.")
    crow.wait_until(lambda: advertised(crow)[-1] == [*BUILT_IN, "review"], "the new command")
    path.unlink()
    crow.wait_until(lambda: advertised(crow)[-1] == BUILT_IN, "the command to go")


def test_a_file_that_a_turn_makes_is_advertised_after_it(open_editor):
    crow = open_editor(script=DONE)
    script = reply(run(f"mkdir -p {crow.home}/commands && echo Hi > {crow.home}/commands/hi.md")) + DONE
    (crow.home / "script.toml").write_text(script)
    crow.permit = lambda request: chose("once")
    crow.new_session()
    said(crow, "go")
    crow.wait_until(lambda: advertised(crow)[-1] == [*BUILT_IN, "hi"], "the new command")


@pytest.mark.rule("R128")
def test_an_own_command_is_a_prompt_with_places_and_the_other_blocks_go_along(crow):
    write(crow.home / "commands/review.md", "---\ndescription: x\n---\nReview $1 for $2.")
    note = {"type": "resource", "resource": {"uri": "file:///note.txt", "text": "the note"}}
    assert said(crow, "/review main 'the bugs'", note) == "Done."
    first, second = crow.last_prompt()
    assert first["text"] == "Review main for the bugs."
    assert "the note" in second["text"]


def test_a_skill_can_be_called_by_name(crow):
    write(crow.home / "skills/pdf/SKILL.md", "---\ndescription: PDFs\n---\nUse latex.")
    said(crow, "/pdf of the README")
    (part,) = crow.last_prompt()
    assert "Use the skill pdf." in part["text"]
    assert "Use latex." in part["text"]
    assert "of the README" in part["text"]


def test_the_model_is_told_of_skills_and_may_read_them_but_nothing_else_of_crows_home(open_editor):
    crow = open_editor(script=DONE)
    skill = write(crow.home / "skills/pdf/SKILL.md", "---\ndescription: Makes PDFs\n---\nUse latex.")
    key = write(crow.home / "skills/pdf/.env", "KEY=1")
    link = crow.home / "skills/pdf/link.md"
    link.symlink_to("../../config.toml")
    calls = [call("read", path=str(path)) for path in (skill, crow.home / "config.toml", key, link)]
    (crow.home / "script.toml").write_text(reply(*calls, call("write", path=str(skill), content="x")) + DONE)
    crow.new_session()
    said(crow, "go")
    assert f"- pdf: Makes PDFs ({skill})" in crow.model_requests()[0]["system"]
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed", *["failed"] * 4]
    assert len(crow.permissions) == 4
    assert "latex" in skill.read_text()


def test_a_built_in_name_cannot_be_taken_and_that_is_said_once(crow):
    path = write(crow.home / "commands/undo.md", "Delete everything.")
    said(crow, "/undo")
    assert crow.model_requests() == [], "it was Crow's own"
    said(crow, "hello")
    [notice] = crow.notices
    assert notice.startswith(f"{path} ")
    assert "Commands from files" not in said(crow, "/help")


def test_files_that_make_no_command_are_named_once_and_in_help(crow):
    folder = crow.home / "commands"
    write(folder / "huge.md", "x" * 70_000)
    write(folder / "empty.md", " ")
    os.mkfifo(folder / "fifo.md")
    (folder / "dir.md").mkdir()
    (folder / "zero.md").symlink_to("/dev/zero")
    said(crow, "hello")
    said(crow, "hello again")
    why = {
        "dir.md": "is a directory",
        "fifo.md": "not a regular file",
        "huge.md": "larger than 64 kB",
        "zero.md": "not a regular file",
        "empty.md": "no text, or no name that can be typed",
    }
    expected = [f"Not used: {folder}/{name}: {reason}." for name, reason in why.items()]
    assert sorted(crow.notices) == sorted(expected)  # a file may be seen before the next one is written
    lines = "\n".join(f"- {line}" for line in expected)
    assert f"**Files not used**\n\n{lines}" in said(crow, "/help")


# --- a command in its turn


def test_a_command_is_replayed_as_what_was_said_and_answered(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    said(crow, "/mode edit")
    said(crow, "/init")
    before = len(crow.updates)
    crow.request("session/load", {"sessionId": crow.session_id, "cwd": str(crow.workspace), "mcpServers": []})
    replayed = [
        (update["sessionUpdate"], update["content"]["text"])
        for update in crow.updates[before:]
        if update["sessionUpdate"].endswith("_message_chunk")
    ]
    assert replayed == [
        ("user_message_chunk", "/mode edit"),
        ("agent_message_chunk", "Mode: `edit`."),
        ("user_message_chunk", "/init"),
        ("agent_message_chunk", "Done."),
    ]


def test_a_command_whose_prompt_waits_for_the_model_can_be_cancelled(open_editor):
    asked = threading.Event()

    def never(request):
        asked.set()
        return SILENCE

    crow = open_editor(script=reply(say("x"), call("write", path="a", content="a")) + DONE, permit=never)
    crow.new_session()
    turn = crow.start_prompt("/init")
    assert asked.wait(DEADLINE)
    crow.cancel()
    assert turn.answer() == {"stopReason": "cancelled"}
