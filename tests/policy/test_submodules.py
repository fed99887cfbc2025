"""What git may take for a submodule: a command that changes its index is covered only if it can add no repository."""

import os
import subprocess
from pathlib import Path

import pytest

from crow.policy import submodules
from tests.policy.support import Workshop, allow, word
from tests.support.work import lines_run

RULES = [allow(command) for command in ("git *", "git checkout *", "git pull", "npm test *", "git clone *", "ls *")]


@pytest.fixture
def project(tmp_path) -> Workshop:
    return Workshop.build(tmp_path)


def plant(folder: str) -> None:
    Path(folder, ".git").mkdir(parents=True)


def judged(project: Workshop, line: str) -> str:
    return word(project.policy(*RULES).judge(project.line(line)))


ADDING = """\
git add -A
git add .
git add vendor
git add 'v*'
git add src
git add -u
git add src/app.py vendor
git add nothing-there
git commit -am x
git commit -qa
git commit --all -m x
git commit vendor
git checkout main
git pull
git add -A && git status
git status && git add .
"""


@pytest.mark.parametrize("line", ADDING.splitlines())
def test_not_covered_while_a_repository_lies_there(project, line):
    assert judged(project, line) == "allow"
    plant(f"{project.root}/vendor/x")
    plant(f"{project.root}/src/y")
    assert judged(project, line) == "ask"


@pytest.mark.parametrize(
    "line", ["git add src", "git add a.txt && git commit -m add", "git commit -m x", "git commit -qm 'a b' --amend"]
)
def test_covered_if_it_adds_nothing_of_the_repository(project, line):
    plant(f"{project.root}/vendor/x")
    assert judged(project, line) == "allow"


@pytest.mark.parametrize(
    "line", ["npm test && git add -A", "npm test | git add .", "git clone https://a.b/c && git add ."]
)
def test_what_another_program_may_have_brought_is_not_added(project, line):
    assert judged(project, line) == "ask"
    assert judged(project, line.partition("git add")[0] + "git status") == "allow"
    assert judged(project, f"ls; {line.partition('git add')[1]} .") == "allow"


def test_a_true_submodule_is_no_other_repository(project):
    Path(project.root, ".git/modules/x").mkdir(parents=True)
    Path(project.root, "vendor/x").mkdir(parents=True)
    Path(project.root, "vendor/x/.git").write_text("gitdir: ../../.git/modules/x\n")
    assert judged(project, "git add -A") == "allow"
    Path(project.root, "vendor/x/.git").write_text("gitdir: ../../src\n")
    assert judged(project, "git add -A") == "ask"


def test_a_large_project_is_not_searched_to_its_end(project, monkeypatch):
    monkeypatch.setattr(submodules, "_MOST_FOLDERS", 8)
    assert judged(project, "git add -A") == "allow"
    for number in range(9):
        Path(project.root, f"node_modules/{number}").mkdir(parents=True)
    assert judged(project, "git add -A") == "ask"
    assert judged(project, "git add src/app.py") == "allow"
    Path(project.root, ".gitignore").write_text("node_modules/\n")
    assert judged(project, "git add -A") == "allow"
    assert judged(project, "git checkout main") == "ask", "a branch may have an entry of any name"
    Path(project.root, ".gitignore").write_text("node_modules/\n!node_modules/1\n")
    assert judged(project, "git add -A") == "ask"


@pytest.mark.parametrize("nested", ["", "!node_modules\n", "*.log\n"])
def test_what_a_folder_brings_back_is_searched(project, nested):
    Path(project.root, ".gitignore").write_text("node_modules/\n")
    plant(f"{project.root}/src/deep/node_modules/x")
    Path(project.root, "src/.gitignore").write_text(nested)
    found = "ask" if "!" in nested else "allow"
    assert judged(project, "git add -A") == found
    assert judged(project, "git add src/deep") == found
    assert judged(project, "git add -A src && git commit -am x") == found


SWITCHING = """\
git checkout main
git pull
git pull --rebase
git -P checkout main
git add -f .
git add --force src
git stash
git co main
git bisect start
git read-tree main
git unheard-of
"""


@pytest.mark.parametrize("line", SWITCHING.splitlines())
def test_an_ignored_folder_holds_no_repository(project, line):
    """The commit that is checked out may call it a submodule."""
    Path(project.root, ".gitignore").write_text("node_modules/\n")
    policy = project.policy(allow(line))
    assert word(policy.judge(project.line(line))) == "allow"
    plant(f"{project.root}/src/node_modules/x")
    assert word(policy.judge(project.line(line))) == "ask"
    assert judged(project, "git status && git add -A && git commit -m x") == "allow"


@pytest.mark.parametrize("setting", ["[core]\nhooksPath = .husky", "[include]\npath = ../git.cfg"])
def test_no_commit_brings_what_git_obeys(project, setting):
    policy = project.policy(*map(allow, [*SWITCHING.splitlines(), "git *", "git merge *", "git switch *"]))
    switching = [*SWITCHING.splitlines(), "git merge evil", "git switch evil"]
    assert {word(policy.judge(project.line(line))) for line in switching} == {"allow"}
    Path(project.root, ".git/config").write_text(f"{setting}\n")
    assert {word(policy.judge(project.line(line))) for line in switching} == {"ask"}
    for line in ("git status", "git add -A", "git commit -am x", "git branch x", "git log"):
        assert word(policy.judge(project.line(line))) == "allow", line
    Path(project.root, ".git/config").write_text("[core]\nhooksPath = /somewhere/else\n[include]\npath = more\n")
    assert word(policy.judge(project.line("git switch evil"))) == "allow"


def test_git_runs_a_hook_that_a_branch_brings(tmp_path):
    """What the policy takes for granted of the git that is installed."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    git("config", "core.hooksPath", ".husky")
    git("commit", "-q", "--allow-empty", "-m", "a")
    git("switch", "-qc", "evil")
    hook = tmp_path / ".husky/post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n: > fired\n")
    hook.chmod(0o755)
    git("add", ".")
    git("commit", "-qm", "evil")
    git("switch", "-q", "main")
    (tmp_path / "fired").unlink(missing_ok=True)
    git("switch", "-q", "evil")
    assert (tmp_path / "fired").exists()


def test_the_project_is_searched_once_for_a_line(project):
    def work() -> tuple[int, int]:
        """For one command, and for a line of twenty."""
        one, line = "git checkout main", "; ".join(["git checkout main"] * 20)
        return lines_run(lambda: judged(project, one)), lines_run(lambda: judged(project, line))

    before = work()
    for number in range(1000):
        Path(project.root, f"node_modules/{number}").mkdir(parents=True)
    once, often = (after - least for after, least in zip(work(), before, strict=True))
    assert once > 1000
    assert often < 2 * once


@pytest.mark.parametrize("name", ["index", "commondir"])
def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(project, name):
    os.mkfifo(Path(project.root, ".git", name))
    assert judged(project, "git status") == ("ask" if name == "index" else "allow")
    os.mkfifo(Path(project.root, "src/.git"))
    assert judged(project, "git add -A") == "ask"
