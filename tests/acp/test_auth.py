"""Without a model: what is answered, what is offered, and how each offer works."""

import subprocess

import pytest

from tests.support.editor import EVERYTHING, ErrorAnswer, clean_environment
from tests.support.warm import CROW

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
SCRIPTED = '[providers.mine]\ntype = "scripted"\nscript = "script.toml"\n[providers.mine.models.small]\n'


@pytest.mark.rule("R17", "R25", "R26", "R27", "R29", "R170")
def test_the_methods_on_offer(open_editor):
    methods = {method["id"]: method for method in open_editor(capabilities=EVERYTHING).initialized["authMethods"]}
    assert list(methods) == ["crow-configured", "crow-demo", "crow-login"]
    assert all(method["name"] and method["description"] for method in methods.values())
    assert "type" not in methods["crow-demo"]
    assert methods["crow-login"]["type"] == "terminal"
    assert methods["crow-login"]["args"] == ["login"]


@pytest.mark.rule("R27")
def test_a_login_that_cannot_ask_anyone_fails_and_stores_nothing(tmp_path):
    """The client runs its agent's command with our arguments behind it, and looks at the exit status."""
    login = [CROW, "acp", "login"]
    done = subprocess.run(
        login, env=clean_environment(tmp_path, tmp_path), stdin=subprocess.DEVNULL, capture_output=True
    )
    assert done.returncode != 0
    assert done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "config.toml").exists()


@pytest.mark.rule("R26", "R14")
@pytest.mark.parametrize("auth", [None, {}, {"terminal": False}, {"terminal": None}])
def test_a_login_in_a_terminal_is_offered_only_to_clients_that_have_one(open_editor, auth):
    methods = open_editor(capabilities={"auth": auth, "terminal": True}).initialized["authMethods"]
    assert [method["id"] for method in methods] == ["crow-configured", "crow-demo"]


@pytest.mark.rule("R24")
def test_without_a_model_a_session_asks_for_a_login_and_says_how(open_editor):
    crow = open_editor()
    with pytest.raises(ErrorAnswer) as refused:
        crow.new_session()
    assert refused.value.code == -32000
    assert "crow login" in refused.value.message
    assert refused.value.data == {"details": refused.value.message}


@pytest.mark.rule("R25", "R24")
def test_trying_without_a_key(open_editor):
    crow = open_editor()
    assert crow.request("authenticate", {"methodId": "crow-demo"}) == {}
    crow.new_session()
    prompt = crow.start_prompt("hi")
    crow.wait_for_text("Hello! I am **Crow**")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}


@pytest.mark.rule("R25", "R24")
def test_having_configured_it(open_editor):
    crow = open_editor()
    assert crow.start("authenticate", {"methodId": "crow-configured"}).error().code == -32000
    (crow.home / "config.toml").write_text(SCRIPTED)
    (crow.home / "script.toml").write_text('[[reply]]\nevents = [{ text = "Yes." }]')
    assert crow.request("authenticate", {"methodId": "crow-configured"}) == {}
    crow.new_session()
    assert crow.prompt("there?") == {"stopReason": "end_turn"}
    assert crow.text() == "Yes."


@pytest.mark.rule("R28")
@pytest.mark.parametrize("method", ["crow-login", "unheard-of", "", "x" * 10_000])
def test_methods_that_cannot_be_called_are_refused(open_editor, method):
    error = open_editor(capabilities=EVERYTHING).start("authenticate", {"methodId": method}).error()
    assert error.code == -32602
    assert len(error.message) < 300


@pytest.mark.rule("R24", "R62")
def test_a_wrong_configuration_is_one_clear_message_and_can_be_mended(open_editor):
    crow = open_editor(initialize=False)
    (crow.home / "config.toml").write_text('model = "mine/small"\n[providers.mine]\ntype = "magic"\n')
    crow.initialize()
    with pytest.raises(ErrorAnswer) as refused:
        crow.new_session()
    assert refused.value.code == -32603
    assert "config.toml" in refused.value.message
    assert "providers.mine.type" in refused.value.message
    (crow.home / "config.toml").write_text(SCRIPTED)
    (crow.home / "script.toml").write_text('[[reply]]\nevents = [{ text = "Yes." }]')
    crow.new_session()
    assert crow.prompt("there?") == {"stopReason": "end_turn"}


@pytest.mark.rule("R31", "R3")
def test_keys_are_never_said(open_editor):
    config = '[providers.mine]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-hunter2"\n'
    crow = open_editor(initialize=False)
    (crow.home / "config.toml").write_text(config + "[limits]\nretry_wait = 0\n[providers.mine.models.m]\n")
    crow.initialize()
    crow.new_session()
    error = crow.start_prompt("hi").error()
    assert error.code == -32603
    assert b"hunter2" not in b"".join(crow.lines)
    logs = [path.read_text() for path in crow.home.glob("log/*")]
    assert "hunter2" not in "".join(logs)


@pytest.mark.rule("R30")
def test_after_a_logout_open_sessions_go_on_and_no_other_is_opened_until_the_next_login(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    assert crow.request("logout") == {}
    assert crow.prompt("still here?") == {"stopReason": "end_turn"}
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        assert crow.start(method, params).error().code == -32000
    assert [entry["sessionId"] for entry in crow.request("session/list")["sessions"]] == [session]
    crow.request("authenticate", {"methodId": "crow-configured"})
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}


@pytest.mark.rule("R30")
def test_a_logout_forgets_the_choice_of_the_demo(open_editor):
    crow = open_editor()
    crow.request("authenticate", {"methodId": "crow-demo"})
    crow.new_session()
    crow.request("logout", {"_meta": {}})
    error = crow.start("session/new", {"cwd": str(crow.workspace), "mcpServers": []}).error()
    assert error.code == -32000
    crow.request("authenticate", {"methodId": "crow-demo"})
    crow.new_session()


@pytest.mark.rule("R25")
def test_the_demo_never_takes_the_place_of_a_configured_model(open_editor):
    """Some clients take a method of the list without asking anyone."""
    crow = open_editor(script=HELLO)
    assert crow.initialized["authMethods"][0]["id"] == "crow-configured"
    for method in ("crow-demo", "crow-configured", "crow-demo"):
        assert crow.request("authenticate", {"methodId": method}) == {}
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.text() == "Hello there."
