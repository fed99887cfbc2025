"""Conversations that once went wrong, each kept so that it does not again."""

import base64
import os
import subprocess

import pytest

from tests.support.editor import CROW, NOTICES, Editor, clean_environment
from tests.support.provider import Provider

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
        first = crow.start_prompt("see", {"type": "image", "data": PNG, "mimeType": "image/png"})
        assert "could not process image" in first.error().message
        assert crow.prompt("and now?") == {"stopReason": "end_turn"}
        assert "image_url" in str(provider.openai.requests[0].body)
        assert "image_url" not in str(provider.openai.requests[1].body)
        assert "not sent again" in str(provider.openai.requests[1].body)


@pytest.mark.rule("R11")
def test_an_input_that_cannot_be_read_is_the_end(tmp_path):
    (tmp_path / "in").write_bytes(b"")
    fd = os.open(tmp_path / "in", os.O_WRONLY)
    try:
        done = subprocess.run(
            [CROW, "acp"],
            stdin=fd,
            capture_output=True,
            timeout=20,
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
