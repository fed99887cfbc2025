"""What is allowed for a project: on the person's side, shared by every Crow, never in the repository."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.errors import ConfigError
from crow.policy.base import Ask, Origin
from crow.policy.grants import Grants
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from tests.policy.support import allow, deny, word
from tests.support.patience import DEADLINE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "crow"


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "project").mkdir()
    return str(tmp_path / "project")


def policy(home: Path, project: str) -> RulePolicy:
    return RulePolicy([project], [str(home)], grants=Grants(str(home), project))


def line(command: str, project: str) -> Deed:
    return Deed("terminal", ToolKind.EXECUTE, command=command, cwd=project)


def allow_in_project(asked: RulePolicy, command: str, project: str) -> str:
    ask = asked.judge(line(command, project))
    return asked.remember(ask.project, "project")  # type: ignore[union-attr]


def test_a_grant_outlives_the_session(home, project):
    first = policy(home, project)
    assert allow_in_project(first, "npm test", project) == ""
    assert word(first.judge(line("npm test", project))) == "allow"
    second = policy(home, project)
    verdict = second.judge(line("npm test unit", project))
    assert word(verdict) == "allow"
    assert verdict.origin is Origin.PROJECT_GRANT
    assert second.warning == ""


def test_it_does_not_count_in_another_folder_that_took_the_name_of_the_project(home, project, tmp_path):
    asked = policy(home, project)
    write = Deed("write", ToolKind.EDIT, writes=(f"{project}/src/a.py",))
    allow_in_project(asked, "npm test", project)
    asked.remember(asked.judge(write).session, "session")  # type: ignore[union-attr]
    deeds = [line("npm test", project), write]
    assert [word(asked.judge(deed)) for deed in deeds] == ["allow", "allow"]
    os.rename(project, tmp_path / "away")
    for put in (os.mkdir, lambda path: os.symlink(home, path)):
        put(project)
        for deed in deeds:
            verdict = asked.judge(deed)
            assert isinstance(verdict, Ask)
            assert "has been replaced by another folder since the session was opened" in verdict.reason
            assert (verdict.session, verdict.project) == (None, None)
        asked.mode = "auto"
        assert word(asked.judge(deeds[0])) == "allow"  # by the mode, as before
        asked.mode = "ask"
        os.rename(project, tmp_path / f"other-{put.__name__}")
    os.rename(tmp_path / "away", project)
    assert [word(asked.judge(deed)) for deed in deeds] == ["allow", "allow"]


def test_it_leads_no_program_into_a_folder_that_was_added_later(home, project, tmp_path):
    """`pytest` obeys a `conftest.py` beside the tests that it is given; `cat` does the same anywhere."""
    (tmp_path / "added/tests").mkdir(parents=True)
    roots = [project, str(tmp_path / "added")]
    later = RulePolicy(roots, [str(home)], grants=Grants(str(home), project))
    for command in ("pytest tests", "cat a.txt"):
        allow_in_project(later, command, project)
    assert word(later.judge(line("pytest tests/unit", project))) == "allow"
    assert word(later.judge(line(f"pytest {tmp_path}/added/tests", project))) == "ask"
    assert word(later.judge(line(f"cat {tmp_path}/added/tests", project))) == "allow"
    mine = RulePolicy(roots, [str(home)], user_rules=[allow("pytest *")])
    assert word(mine.judge(line(f"pytest {tmp_path}/added/tests", project))) == "allow"


def test_it_is_kept_in_crows_home_and_for_nobody_else_to_read(home, project):
    allow_in_project(policy(home, project), "npm test", project)
    file = home / "grants.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    kept = json.loads(file.read_text())
    assert kept["projects"] == {os.path.realpath(project): [_as_json(allow("npm test *"))]}
    assert os.listdir(project) == []


def _as_json(rule: PermissionRule) -> dict[str, str | None]:
    return {"tool": rule.tool, "decision": "allow", "command": rule.command, "path": None, "host": None, "digest": None}


def test_it_holds_for_that_project_alone_under_every_name_of_it(home, project, tmp_path):
    allow_in_project(policy(home, project), "npm test", project)
    (tmp_path / "other").mkdir()
    (tmp_path / "alias").symlink_to(project)
    assert word(policy(home, str(tmp_path / "other")).judge(line("npm test", str(tmp_path / "other")))) == "ask"
    assert Grants(str(home), str(tmp_path / "alias")).rules() == (allow("npm test *"),)


def test_what_another_crow_allows_or_revokes_counts_at_once(home, project):
    mine, theirs = policy(home, project), policy(home, project)
    assert word(mine.judge(line("ls", project))) == "ask"
    allow_in_project(theirs, "ls", project)
    assert word(mine.judge(line("ls", project))) == "allow"
    allow_in_project(mine, "npm test", project)
    assert word(theirs.judge(line("npm test", project))) == "allow"
    assert theirs.revoke(allow("ls *"))
    assert word(mine.judge(line("ls", project))) == "ask"
    assert word(mine.judge(line("npm test", project))) == "allow"


def test_no_grant_is_lost_when_many_write(home, project, monkeypatch):
    monkeypatch.setattr("crow.config.home.LOCK_TIMEOUT", DEADLINE)
    commands = [f"tool{number} *" for number in range(24)]

    def add(command: str) -> None:
        Grants(str(home), project).add((allow(command),))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, commands))
    assert {rule.command for rule in Grants(str(home), project).rules()} == set(commands)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 1}',
        b'{"version": 1, "projects": {"/x": 3}}',
        b'{"version": 1, "projects": {"/x": [{"tool": "terminal"}]}}',
        b'{"version": 1, "projects": {"/x": [{"tool": "terminal", "decision": "yes"}]}}',
        b'{"version": 2, "projects": {}}',
        b'{"version": 1, "projects": {}, "more": 1}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_grants_nothing_says_so_and_is_not_overwritten(home, project, content):
    home.mkdir()
    (home / "grants.json").write_bytes(content)
    damaged = policy(home, project)
    assert "grants.json" in damaged.warning
    assert word(damaged.judge(line("ls", project))) == "ask"
    warning = allow_in_project(damaged, "ls", project)
    assert "for this session only" in warning
    assert word(damaged.judge(line("ls", project))) == "allow"
    assert (home / "grants.json").read_bytes() == content
    (home / "grants.json").unlink()
    assert damaged.warning == ""


def test_a_grants_file_can_only_grant(home, project):
    grants = Grants(str(home), project)
    grants.add((deny("ls *"), PermissionRule("read", "ask")))
    assert grants.rules() == ()


def test_a_home_that_cannot_be_written(tmp_path, project):
    (tmp_path / "file").write_text("")
    asked = policy(tmp_path / "file" / "home", project)
    assert "for this session only" in allow_in_project(asked, "ls", project)
    assert word(asked.judge(line("ls", project))) == "allow"


def test_a_lock_that_is_never_released(home, project):
    import fcntl

    grants = Grants(str(home), project)
    grants.add((allow("ls *"),))
    with open(home / "grants.json.lock", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another Crow"):
            grants.add((allow("cat *"),))


def test_a_path_that_is_no_text(home, tmp_path):
    project = str(tmp_path / "a\udcff")
    with pytest.raises(ConfigError, match="UTF-8"):
        Grants(str(home), project).add((allow("ls *"),))


def test_a_grant_does_not_lift_what_is_refused_or_always_asked(home, project):
    Grants(str(home), project).add((allow("rm *"), PermissionRule("write", "allow", path="**")))
    strict = RulePolicy([project], [str(home)], user_rules=[deny("rm *")], grants=Grants(str(home), project))
    assert word(strict.judge(line("rm x", project))) == "deny"
    assert word(strict.judge(Deed("write", ToolKind.EDIT, writes=(f"{project}/.git/config",)))) == "ask"
    assert word(strict.judge(Deed("write", ToolKind.EDIT, writes=(f"{project}/x",)))) == "allow"
