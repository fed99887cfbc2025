"""Conversations that once went wrong, each kept so that it does not again."""

import base64
import json
import os
import subprocess

import pytest

from tests.support.editor import NOTICES, Editor, clean_environment
from tests.support.patience import DEADLINE
from tests.support.provider import Provider
from tests.support.warm import CROW, warm

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


@pytest.mark.rule("R31")
def test_crows_home_is_a_secret_also_behind_a_link(tmp_path):
    """A home that links into a repository of dotfiles: the key in its configuration must not reach the model."""
    workspace = tmp_path / "editor" / "work"
    dotfiles = workspace / "dot"
    dotfiles.mkdir(parents=True)
    (tmp_path / "editor" / "home").symlink_to(dotfiles)
    script = "[[reply]]\nevents = [{ call = 'read', arguments = { path = 'dot/config.toml' } }]\n" + HELLO
    crow = Editor(tmp_path / "editor", script=script)
    try:
        crow.new_session()
        crow.prompt("read it", {"type": "resource_link", "uri": f"file://{dotfiles}/config.toml", "name": "config"})
        assert len(crow.permissions) == 1
        assert 'type = "scripted"' not in str(crow.model_requests())
    finally:
        crow.close()


@pytest.mark.parametrize("rule", [("*", "deny"), ("read", "deny"), ("search", "deny"), ("read", "ask")])
def test_a_search_of_the_folder_above_does_not_show_what_a_rule_keeps(open_editor, rule):
    tool, decision = rule
    config = f'[[permission.rules]]\ntool = "{tool}"\npath = "private/**"\ndecision = "{decision}"\n'
    script = "[[reply]]\nevents = [{ call = 'search', arguments = { pattern = 'hidden|open' } }]\n" + HELLO
    crow = open_editor(script=script, config=config)
    (crow.workspace / "private").mkdir()
    (crow.workspace / "private/notes.txt").write_text("what is hidden\n")
    (crow.workspace / "a.txt").write_text("what is open\n")
    crow.new_session()
    crow.prompt("look")
    told = str(crow.model_requests()[-1]["messages"])
    assert "what is open" in told
    assert "what is hidden" not in told
    assert crow.permissions == []


@pytest.mark.rule("R25")
def test_trying_without_a_key_works_also_if_the_configured_model_does_not(open_editor):
    crow = open_editor()
    (crow.home / "config.toml").write_text(
        'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NOT_SET"\n'
    )
    assert crow.start("session/new", {"cwd": str(crow.workspace), "mcpServers": []}).error().code == -32000
    assert crow.request("authenticate", {"methodId": "crow-demo"}) == {}
    crow.new_session()
    assert crow.prompt("hello") == {"stopReason": "end_turn"}
    again = crow.start("authenticate", {"methodId": "crow-configured"}).error()
    assert "NOT_SET" in again.message


def test_a_picture_that_a_provider_refuses_is_not_sent_again(open_editor):
    with Provider() as provider:
        provider.openai.fail(400, "could not process image")
        provider.openai.answer("Fine without it.")
        crow = open_editor(capabilities=NOTICES)
        (crow.home / "config.toml").write_text(
            f'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "{provider.openai.url}"\n'
            "[providers.p.models.m]\nimages = true\n"
        )
        crow.new_session()
        provider.openai.answer("Still fine.")
        picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
        assert crow.prompt("see", picture) == {"stopReason": "end_turn"}
        assert crow.prompt("and now?") == {"stopReason": "end_turn"}
        with_it, without, later = (str(request.body) for request in provider.openai.requests)
        assert "image_url" in with_it
        assert "image_url" not in without
        assert "image_url" not in later
        assert "not sent again" in later
        [notice] = [text for text in crow.notices if "rejected" in text]
        assert notice.startswith("p rejected the conversation as it was")


@pytest.mark.rule("R11")
def test_an_input_that_cannot_be_read_is_the_end(tmp_path):
    (tmp_path / "in").write_bytes(b"")
    fd = os.open(tmp_path / "in", os.O_WRONLY)
    try:
        done = subprocess.run(
            [*warm(CROW), "acp"],
            stdin=fd,
            capture_output=True,
            timeout=DEADLINE,
            env=clean_environment(tmp_path / "home", tmp_path),
        )
    finally:
        os.close(fd)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.rule("R78")
def test_one_huge_delta_becomes_lines_that_every_client_takes(open_editor):
    text = "ä" * 3_000_000
    crow = open_editor(script=f'[[reply]]\nevents = [{{ text = "{text}" }}]')
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.text() == text
    assert max(len(line) for line in crow.lines) < 10 * 1024 * 1024
    assert len({update["messageId"] for update in crow.updates if "messageId" in update}) == 1


@pytest.mark.parametrize("target", [".env", "../outside.txt"])
def test_instructions_that_are_a_link_to_a_secret_or_out_of_the_project_are_not_read(open_editor, target):
    """A cloned repository must not hand over a key with the first hello."""
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    (crow.workspace / ".git").mkdir()
    (crow.workspace / ".env").write_text("KEY=hunter2")
    (crow.workspace.parent / "outside.txt").write_text("hunter2")
    (crow.workspace / "AGENTS.md").symlink_to(target)
    crow.new_session()
    crow.prompt("hello")
    assert "hunter2" not in str(crow.model_requests())
    [notice] = crow.notices
    assert "AGENTS.md was not read: it points outside the project or to a secret." in notice


def test_instructions_are_read_from_the_repository_down_and_again_when_they_change(open_editor):
    crow = open_editor(script=HELLO)
    (crow.workspace / ".git").mkdir()
    (crow.workspace / "AGENTS.md").write_text("Use tabs.")
    inner = crow.workspace / "inner"
    inner.mkdir()
    (inner / "notes.md").write_text("No: use spaces.")
    (inner / "AGENTS.md").symlink_to("notes.md")
    crow.new_session(inner)
    crow.prompt("hello")
    (crow.workspace / "AGENTS.md").write_text("Use three spaces.")
    crow.prompt("and now?")
    first, second = crow.model_requests()
    assert first["system"].index("Use tabs.") < first["system"].index("No: use spaces.")
    # What was sent stays as it was; the change is told behind it.
    assert second["system"] == first["system"]
    told = str(second["messages"][-1])
    assert told.index("Use three spaces.") < told.index("No: use spaces.")


@pytest.mark.parametrize("guess", ["KEY=h", "KEY=x"])
def test_an_edit_says_nothing_of_a_secret_before_it_was_allowed_to_look(open_editor, guess):
    """Whether a text is in a file is content, too: right and wrong guesses must look the same."""
    edits = f"[{{ old = '{guess}', new = 'y' }}, {{ old = 'not there', new = 'z' }}]"
    script = f"[[reply]]\nevents = [{{ call = 'edit', arguments = {{ path = '.env', edits = {edits} }} }}]\n" + HELLO
    crow = open_editor(script=script)
    (crow.workspace / ".env").write_text("KEY=hunter2\n")
    crow.new_session()
    crow.prompt("edit it")
    [asked] = crow.permissions
    assert asked["toolCall"]["title"] == "Read .env before changing it"
    assert crow.model_requests()[-1]["messages"][-1]["text"] == "Not done: permission was asked for, and refused."


@pytest.mark.parametrize(("name", "target"), [("AGENTS.md", "notes.txt"), (".envrc", "e.txt")])
def test_a_protected_name_stays_protected_if_it_is_a_link(open_editor, name, target):
    call = f"{{ call = 'write', arguments = {{ path = '{name}', content = 'x', append = true }} }}"
    crow = open_editor(script=f"[[reply]]\nevents = [{call}]\n" + HELLO, environment={"CROW_MODE": "edit"})
    (crow.workspace / target).write_text("old")
    (crow.workspace / name).symlink_to(target)
    crow.new_session()
    crow.prompt("write it")
    assert len(crow.permissions) == 1
    assert (crow.workspace / target).read_text() == "old"


@pytest.mark.parametrize(("content", "warned"), [("x\u202ey", True), ("x\u200by", True), ("plain\n\ttext é 🐦", False)])
def test_a_diff_that_hides_something_comes_with_a_warning(open_editor, content, warned):
    raw = json.dumps({"path": "a.txt", "content": content})
    crow = open_editor(script=f"[[reply]]\nevents = [{{ call = 'write', raw = '{raw}' }}]\n" + HELLO)
    crow.new_session()
    crow.prompt("write it")
    [asked] = crow.permissions
    diff, *words = asked["toolCall"]["content"]
    assert diff["newText"] == content
    assert any("Careful" in word["content"]["text"] for word in words) == warned
