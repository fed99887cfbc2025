"""Servers that want a login: through the client where it can show an address, else in a terminal."""

import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.mcp.guests import PATIENT, PROGRAMS, bad, calling, editing, notice_about, over_http, shown
from tests.support.editor import NOTICES, Later, clean_environment
from tests.support.patience import DEADLINE
from tests.support.scripts import DONE, call, reply, say
from tests.support.warm import CROW, warm

LINKS = {**NOTICES, "elicitation": {"url": {}}}


@contextmanager
def guarded(seconds: int = 3600, folder: Path | None = None) -> Generator[str]:
    """With a folder, tokens can be made invalid, see `servers/guarded.py`."""
    more = [str(folder)] if folder is not None else []
    command = [*warm(PROGRAMS / "guarded.py"), str(seconds), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def browse(url: str) -> str:
    """What a browser does with the login page of this server: it is sent on to Crow."""
    with urllib.request.urlopen(url) as page:
        return page.read().decode()


def everything_below(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.rule("R133")
def test_the_client_shows_the_login_page_and_learns_when_it_is_done(tmp_path):
    links = []

    def answer(request: dict) -> dict:
        links.append(request)
        assert browse(request["url"]) == "Crow is logged in. You can close this page."
        return {"action": "accept"}

    with guarded() as url:
        editor = editing(
            tmp_path,
            calling(("mcp__web__open_safe", {})),
            capabilities=LINKS,
            answers={"elicitation/create": answer},
        )
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\na cake\n```"
        [link] = links
        assert link["mode"] == "url"
        assert link["message"] == "Log in to the MCP server web."
        done = editor.wait_for_call("elicitation/complete")
        assert done["params"]["elicitationId"] == link["elicitationId"]
        editor.close()
        [tokens] = (editor.home / "mcp" / "tokens").iterdir()
        assert tokens.stat().st_mode & 0o777 == 0o600
        assert "secret-access-0" in tokens.read_text()
        assert "secret-" not in everything_below(editor.home / "log")


@pytest.mark.parametrize(
    "strange",
    ["code=theirs&state=theirs", "code=theirs", "error=access_denied", "error=access_denied&state=", "state="],
)
def test_only_the_page_of_this_login_ends_it(tmp_path, strange):
    """Any page and any program can knock at the port that the browser comes back to."""

    def answer(request: dict) -> dict:
        [back] = parse_qs(urlsplit(request["url"]).query)["redirect_uri"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            browse(f"{back}?{strange}")
        with refused.value:
            assert refused.value.code == 400
        assert browse(request["url"]) == "Crow is logged in. You can close this page."
        return {"action": "accept"}

    with guarded() as url:
        script = calling(("mcp__web__open_safe", {}))
        editor = editing(tmp_path, script, capabilities=LINKS, answers={"elicitation/create": answer})
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\na cake\n```"


def log_in(request: dict) -> dict:
    browse(request["url"])
    return {"action": "accept"}


def two_calls(tool: str) -> str:
    return reply(call(tool)) + reply(say("So far.")) + reply(call(tool)) + reply(call("mcp__plain__go")) + DONE


def test_a_token_that_the_server_no_longer_takes_is_renewed_within_the_call(tmp_path):
    with guarded(folder=tmp_path) as url:
        logins = []

        def answer(request: dict) -> dict:
            logins.append(request)
            return log_in(request)

        script = two_calls("mcp__web__open_safe")
        editor = editing(tmp_path, script, capabilities=LINKS, answers={"elicitation/create": answer})
        editor.new_session(mcpServers=[over_http(url), bad("plain")])
        editor.prompt("Go.")
        (tmp_path / "refused").write_text("secret-access-0")
        editor.prompt("Go on.")
        assert [shown(one) for one in editor.tool_calls().values()][1] == "```text\na cake\n```"
        assert len(logins) == 1
        editor.close()
        [tokens] = (editor.home / "mcp" / "tokens").iterdir()
        assert "secret-access-1" in tokens.read_text()


def test_a_login_that_cannot_be_renewed_is_told_with_what_to_do_and_other_tools_live_on(tmp_path):
    with guarded(folder=tmp_path) as url:
        editor = editing(tmp_path, DONE, capabilities=LINKS, answers={"elicitation/create": log_in})
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        editor.close()

        editor = editing(tmp_path, two_calls("mcp__web__open_safe"))
        editor.new_session(mcpServers=[over_http(url), bad("plain")])
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\na cake\n```"
        (tmp_path / "refused").write_text("secret-access-0")
        (tmp_path / "closed").touch()
        editor.prompt("Go on.")
        _, refused, plain = editor.tool_calls().values()
        remedy = f"it requires a login: run `crow mcp login {url}`"
        assert "`/mcp`" in shown(refused)
        assert remedy in notice_about(editor, "`web`", "has stopped")
        assert plain["status"] == "completed"
        editor.prompt("/mcp")
        assert f"**web** (from your editor): failed: {remedy}" in editor.text()
        editor.close()


def test_sessions_share_what_one_of_them_has_renewed(tmp_path):
    with guarded(folder=tmp_path) as url:
        editor = editing(tmp_path, DONE, capabilities=LINKS, answers={"elicitation/create": log_in})
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        editor.close()

        script = two_calls("mcp__web__open_safe")
        first, second = editing(tmp_path / "first", script), editing(tmp_path / "second", script)
        for one in (first, second):
            shutil.copytree(editor.home / "mcp", one.home / "mcp", dirs_exist_ok=True)
            one.new_session(mcpServers=[over_http(url), bad("plain")])
            one.prompt("Go.")
        (tmp_path / "refused").write_text("secret-access-0")
        first.prompt("Go on.")
        (tmp_path / "closed").touch()  # the token for renewing can be used once
        shutil.copytree(first.home / "mcp", second.home / "mcp", dirs_exist_ok=True)
        second.prompt("Go on.")
        for one in (first, second):
            assert [shown(each) for each in one.tool_calls().values()][1] == "```text\na cake\n```"
            one.close()


def test_a_server_that_has_forgotten_this_client_gets_to_know_it_anew(tmp_path):
    agreed = threading.Event()
    pages = []

    def agree() -> dict:
        assert agreed.wait(DEADLINE)
        return {"action": "accept"}

    def answer(request: dict) -> object:
        pages.append(request["url"])
        return log_in(request) if len(pages) == 1 else Later(agree)

    opening = reply(call("mcp__web__open_safe")) + reply(say("Next."))
    with guarded(folder=tmp_path) as url:
        editor = editing(tmp_path, opening * 4, capabilities=LINKS, answers={"elicitation/create": answer})
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        (tmp_path / "refused").write_text("secret-access-0")
        (tmp_path / "forgotten").write_text("1")
        editor.prompt("Go on.")
        editor.wait_until(lambda: len(pages) == 2, "the login page is shown again")
        editor.prompt("And now?")
        agreed.set()
        browse(pages[1])
        notice_about(editor, "`web`", "is ready now")
        editor.prompt("Once more.")
        first, lost, waiting, last = (shown(one) for one in editor.tool_calls().values())
        assert first == last == "```text\na cake\n```"
        assert "it requires a login" in lost
        assert "it is waiting for you to log in on the page that your editor was asked to open" in waiting
        editor.close()


def test_a_logout_leaves_nothing_and_says_so(tmp_path):
    with guarded() as url:
        editor = editing(tmp_path, DONE, capabilities=LINKS, answers={"elicitation/create": log_in})
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        editor.close()
    assert len(list((editor.home / "mcp" / "tokens").iterdir())) == 1
    command = [*warm(CROW), "mcp", "logout", url]
    environment = clean_environment(editor.home, tmp_path)
    said = [subprocess.run(command, capture_output=True, text=True, env=environment).stdout for _ in range(2)]
    assert said == [
        f"Logged out of {url}. Its tokens and Crow's registration were deleted from this machine.\n",
        f"Not logged in to {url} on this machine.\n",
    ]
    assert not list((editor.home / "mcp" / "tokens").iterdir())


def test_a_person_who_does_not_log_in_is_told_what_is_missing(tmp_path):
    with guarded() as url:
        editor = editing(
            tmp_path, DONE, capabilities=LINKS, answers={"elicitation/create": lambda request: {"action": "decline"}}
        )
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        assert "log in" in notice_about(editor, "`web`", "Login failed")
        assert f"crow mcp login {url}" in notice_about(editor, "`web`", "cannot be used")
        editor.close()


def test_a_prompt_does_not_wait_for_a_login_for_ever_and_the_tools_come_when_it_is_done(tmp_path):
    agreed = threading.Event()
    pages = []

    def agree() -> dict:
        assert agreed.wait(DEADLINE)
        return {"action": "accept"}

    def answer(request: dict) -> Later:
        pages.append(request["url"])
        return Later(agree)

    with guarded() as url:
        config = "[limits]\nmcp_start = 5\n"
        script = reply(say("Without it, then.")) + calling(("mcp__web__open_safe", {}))
        editor = editing(tmp_path, script, config=config, capabilities=LINKS, answers={"elicitation/create": answer})
        editor.new_session(mcpServers=[over_http(url)])
        assert editor.prompt("Go.") == {"stopReason": "end_turn"}
        notice_about(editor, "`web`", "is waiting for you to log in. Its tools are added after that.")
        editor.prompt("/mcp")
        assert "**web** (from your editor): waiting for you to log in" in editor.text()
        [page] = pages
        agreed.set()
        browse(page)
        notice_about(editor, "`web`", "is ready now")
        editor.prompt("Go on.")
        assert shown(editor.the_call()) == "```text\na cake\n```"
        editor.close()


def test_without_addresses_the_notice_says_how_and_the_terminal_does_it(tmp_path):
    with guarded(seconds=1) as url:  # so short that the token has to be renewed as well
        config = PATIENT + f'[mcp_servers.cakes]\nurl = "{url}"\n'
        editor = editing(tmp_path, calling(("mcp__cakes__open_safe", {})), config=config)
        editor.new_session()
        assert "`crow mcp login cakes`" in notice_about(editor, "`cakes`")
        editor.close()

        login = subprocess.Popen(
            [*warm(CROW), "mcp", "login", "cakes"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(editor.home, tmp_path),
        )
        assert login.stdout is not None
        page = next(line for line in login.stdout if line.startswith("http"))
        browse(page.strip())
        rest, errors = login.communicate(timeout=DEADLINE)
        assert (login.returncode, errors) == (0, "")
        assert rest.strip() == "Logged in to cakes."

        editor = editing(tmp_path, calling(("mcp__cakes__open_safe", {})), config=config)
        editor.new_session()
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\na cake\n```"
        editor.close()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["login"], 2, "name a server"),
        (["login", "nobody"], 1, 'Unknown MCP server "nobody"'),
        (["login", "local"], 1, "has no login"),
        (["logout"], 2, "name a server"),
        (["logout", "nobody"], 1, 'Unknown MCP server "nobody"'),
        (["login", "http://127.0.0.1:9/mcp"], 1, "it cannot be reached"),
    ],
)
def test_a_login_that_cannot_be_says_why(tmp_path, arguments, status, said):
    (tmp_path / "config.toml").write_text('[mcp_servers.local]\ncommand = "x"\n')
    done = subprocess.run(
        [*warm(CROW), "mcp", *arguments], capture_output=True, text=True, env=clean_environment(tmp_path, tmp_path)
    )
    assert done.returncode == status
    assert said in done.stderr


# --- addresses that hold more than an address


def test_what_follows_the_path_of_an_address_is_told_nobody_and_a_login_works_without_it(tmp_path):
    with guarded() as url:
        script = calling(("mcp__web__open_safe", {}))
        editor = editing(tmp_path, script)
        editor.new_session(mcpServers=[over_http(f"{url}?project=flour#crumbs")])
        editor.prompt("Go.")
        assert f"run `crow mcp login {url}`." in notice_about(editor, "`web`", "cannot be used")
        editor.prompt("/mcp")
        assert f"run `crow mcp login {url}`" in editor.text()
        assert "flour" not in str(editor.received) + str(editor.model_requests()) + everything_below(editor.home)
        editor.close()
        log_in_at_a_terminal(editor.home, url)

        editor = editing(tmp_path, script)
        editor.new_session(mcpServers=[over_http(f"{url}?project=flour")])
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\na cake\n```"
        editor.close()


def log_in_at_a_terminal(home: Path, server: str) -> None:
    login = subprocess.Popen(
        [*warm(CROW), "mcp", "login", server], stdout=subprocess.PIPE, text=True, env=clean_environment(home, home)
    )
    assert login.stdout is not None
    browse(next(line for line in login.stdout if line.startswith("http")).strip())
    login.communicate(timeout=DEADLINE)
    assert login.returncode == 0


@pytest.mark.parametrize(
    ("before", "query", "headers", "place"),
    [
        ("", "?api_key=rye-bread", [], "address"),
        ("me:rye-bread@", "", [], "address"),
        ("", "", [{"name": "X-Api-Key", "value": "rye-bread"}], "headers"),
        ("", "", [{"name": "Authorization", "value": "Bearer rye-bread"}], "headers"),
    ],
)
def test_a_key_that_is_refused_is_named_by_its_place_and_never_shown(tmp_path, before, query, headers, place):
    with guarded() as url:
        address = url.replace("://", f"://{before}") + query
        editor = editing(tmp_path, calling(("mcp__web__open_safe", {})), capabilities=LINKS)
        editor.new_session(mcpServers=[{**over_http(address), "headers": headers}])
        editor.prompt("Go.")
        editor.prompt("/mcp")
        told = f"cannot be used: it rejected the key in its {place}."
        assert notice_about(editor, "`web`") == f"The MCP server `web` (from your editor) {told}"
        assert f"failed: it rejected the key in its {place}" in editor.text()
        assert "rye-bread" not in str(editor.received) + str(editor.model_requests()) + everything_below(editor.home)
        editor.close()


def test_a_login_that_fails_does_not_show_what_follows_the_path(tmp_path):
    command = [*warm(CROW), "mcp", "login", "http://me:rye-bread@127.0.0.1:9/mcp?key=rye-bread"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(tmp_path, tmp_path))
    assert "Not logged in to http://127.0.0.1:9/mcp: it cannot be reached" in done.stderr
    assert "rye-bread" not in done.stdout + done.stderr
