"""A rule for `git` or `npm` covers them in the workspace's own repository, never in one that somebody planted there.

Real repositories, real git, a real `crow acp`: a planted program writes a file beside itself when it is run.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.editor import NOTHING, TERMINAL, chose
from tests.support.scripts import DONE, call, reply, run


def rules(*commands: str) -> str:
    entries = (f'[[permission.rules]]\ntool = "terminal"\ncommand = "{line}"\ndecision = "allow"' for line in commands)
    return "\n".join(entries)


FOLLOWING = rules("git switch *", "git status *", "cat *")
GIT_RULES = rules("git *", "git status *", "git log *", "git status", "cd *")


def git(folder: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *who, *words), cwd=folder, env=environment, check=True, capture_output=True)


def booby_trap(repository: Path, fired: Path) -> None:
    """Makes git run a program whenever it looks at this repository's files."""
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\n: > {fired}\n")
    trap.chmod(0o755)
    git_dir = repository if (repository / "HEAD").exists() else repository / ".git"
    worktree = f"\tbare = false\n\tworktree = {repository}\n" if git_dir == repository else ""
    with (git_dir / "config").open("a") as config:
        config.write(f"[core]\n{worktree}\tfsmonitor = {trap}\n")


def plant_bare(folder: Path, fired: Path) -> None:
    """A folder that is itself a git directory, as any repository may contain one."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "--bare", ".")
    booby_trap(folder, fired)


def plant_nested(folder: Path, fired: Path) -> None:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    booby_trap(folder, fired)


def plant_file(folder: Path, fired: Path) -> None:
    """A `.git` file, as worktrees and submodules have one, that leads to a planted directory."""
    plant_bare(folder.with_name("elsewhere"), fired)
    folder.mkdir(parents=True)
    (folder / ".git").write_text("gitdir: ../elsewhere\n")


@pytest.fixture
def scene(open_editor, tmp_path):
    """An editor with a repository as its workspace, and what would show that the planted program ran."""

    def start(script: str, *, config: str = GIT_RULES, repository: bool = True, capabilities=NOTHING, **more):
        crow = open_editor(script=script + DONE, config=config, capabilities=capabilities, **more)
        if repository:
            git(crow.workspace, "init", "-q")
            git(crow.workspace, "commit", "-q", "--allow-empty", "-m", "first")
        return crow, tmp_path / "fired"

    return start


COMMANDS = [
    {"command": "git status", "cwd": "vendor/x"},
    {"command": "git status -s", "cwd": "vendor/x"},
    {"command": "cd vendor/x && git status"},
    {"command": "git -C vendor/x status"},
    {"command": "GIT_DIR=vendor/x git status"},
    {"command": "git --git-dir=vendor/x status"},
    {"command": "git --git-dir vendor/x --work-tree . status"},
]


@pytest.mark.parametrize(
    ("plant", "capabilities"), [(plant_bare, NOTHING), (plant_nested, TERMINAL), (plant_file, NOTHING)]
)
def test_git_in_a_planted_repository_is_asked_about(scene, plant, capabilities):
    crow, fired = scene(reply(*(run(**command) for command in COMMANDS)), capabilities=capabilities)
    plant(crow.workspace / "vendor/x", fired)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists(), "the planted program ran"
    assert len(crow.permissions) == len(COMMANDS)


def test_what_a_clone_brings_is_not_obeyed(scene, tmp_path):
    """The planted directory is an ordinary part of the repository's contents."""
    fired = tmp_path / "fired"
    origin = tmp_path / "origin"
    plant_bare(origin / "fixtures/repo", fired)
    (origin / "fixtures/repo/refs/keep").write_text("")  # git keeps no empty folders
    (origin / "fixtures/repo/objects/keep").write_text("")
    git(origin, "init", "-q")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "with a fixture")
    crow, _ = scene(reply(run("git status", cwd="fixtures/repo")), repository=False)
    git(tmp_path, "clone", "-q", str(origin), str(crow.workspace))
    assert (crow.workspace / "fixtures/repo/HEAD").exists()
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == 1


def test_a_root_that_is_a_git_directory_itself(scene):
    crow, fired = scene(reply(run("git status")), repository=False)
    plant_bare(crow.workspace, fired)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == 1


def test_a_root_whose_git_file_leads_to_a_planted_directory(scene):
    crow, fired = scene(reply(run("git status")), repository=False)
    plant_bare(crow.workspace / "elsewhere", fired)
    (crow.workspace / ".git").write_text("gitdir: elsewhere\n")
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == 1


@pytest.mark.parametrize("capabilities", [NOTHING, TERMINAL], ids=["local", "client"])
def test_git_obeys_no_bare_repository_even_if_the_command_was_approved(scene, capabilities):
    """Commands get `safe.bareRepository=explicit`, beside what the person's environment sets for git."""
    mine = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "crow.test", "GIT_CONFIG_VALUE_0": "kept"}
    crow, fired = scene(
        reply(run("cd vendor/x && git status; git config crow.test")),
        capabilities=capabilities,
        environment=mine,
        permit=lambda request: chose("once"),
    )
    plant_bare(crow.workspace / "vendor/x", fired)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    seen = str(crow.model_requests()[-1]["messages"][-1])
    assert "cannot use bare repository" in seen
    assert "kept" in seen


def test_the_environment_names_no_other_repository(scene, tmp_path):
    """A variable such as GIT_DIR, left over from a hook that started the editor, leads git nowhere else."""
    fired = tmp_path / "fired"
    other = tmp_path / "other"
    plant_nested(other, fired)
    crow, _ = scene(reply(run("git status")), environment={"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)})
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert crow.permissions == []


def test_git_in_the_repository_of_the_root_goes(scene):
    crow, fired = scene(reply(run("git status -s"), run("git log --oneline -n 5 && git status")))
    plant_nested(crow.workspace / "vendor/x", fired)
    crow.new_session()
    crow.prompt("go")
    assert crow.permissions == []
    assert {call["status"] for call in crow.tool_calls().values()} == {"completed"}
    assert not fired.exists()


def test_a_repository_that_a_line_would_add_is_not_obeyed(scene):
    """Git takes it for a submodule from then on, and looks into it."""
    lines = ["git add -A && git status", "git add . ; git add -A", "git add vendor && git diff", "git commit -am x"]
    crow, fired = scene(reply(*map(run, lines)) + reply(run("git add -A", background=True), run("git status")))
    plant_nested(crow.workspace / "vendor/x", fired)
    git(crow.workspace / "vendor/x", "-c", "core.fsmonitor=", "commit", "-q", "--allow-empty", "-m", "first")
    fired.unlink(missing_ok=True)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists(), "the planted program ran"
    assert len(crow.permissions) == len(lines) + 1


SWITCHING = [
    "git switch evil",
    "git switch -q evil && git status",
    "git checkout -q evil && git diff",
    "git merge -q evil && git status",
    "git rebase evil",
    "git cherry-pick evil",
    "git reset -q --hard evil && git status",
    "git restore --source evil --staged --worktree . && git status",
    "git stash pop && git status",
    "git read-tree evil && git status",
    "git co -q evil && git status",
]


def test_a_commit_that_calls_an_ignored_repository_a_submodule_is_not_checked_out(scene):
    """Git looks into it from then on. The folder that it lies in is one that nobody would search."""
    commands = dict.fromkeys(part for line in SWITCHING for part in line.split(" && "))
    crow, fired = scene(reply(*map(run, SWITCHING), run("git status")), config=rules(*commands))
    planted = crow.workspace / "node_modules/x"
    git(crow.workspace, "config", "alias.co", "checkout")
    plant_nested(planted, fired)
    git(planted, "-c", "core.fsmonitor=", "commit", "-q", "--allow-empty", "-m", "first")
    commit = (planted / ".git" / (planted / ".git/HEAD").read_text().removeprefix("ref: ").strip()).read_text().strip()
    (crow.workspace / ".gitignore").write_text("node_modules/\n")
    git(crow.workspace, "add", ".gitignore")
    git(crow.workspace, "commit", "-q", "-m", "ignored")
    git(crow.workspace, "branch", "before")
    git(crow.workspace, "update-index", "--add", "--cacheinfo", f"160000,{commit},node_modules/x")
    git(crow.workspace, "commit", "-q", "-m", "a submodule")
    git(crow.workspace, "branch", "evil")
    git(crow.workspace, "-c", "core.fsmonitor=", "reset", "-q", "--hard", "before")
    fired.unlink(missing_ok=True)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists(), "the planted program ran"
    assert [request["toolCall"]["title"] for request in crow.permissions] == SWITCHING


def test_a_link_that_a_branch_brings_is_not_followed(scene, tmp_path):
    """Judged before the branch is there, its path leads nowhere outside."""
    lines = ["git switch -q evil && cat l/id", "git switch -q evil | cat - l/id", "cat l/id | git switch -q evil"]
    crow, _ = scene(reply(*map(run, lines)) + reply(run("git switch -q evil && git status")), config=FOLLOWING)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/id").write_text("THE KEY\n")
    git(crow.workspace, "branch", "main-line")
    (crow.workspace / "l").symlink_to(tmp_path / "outside")
    git(crow.workspace, "add", "l")
    git(crow.workspace, "commit", "-q", "-m", "a link")
    git(crow.workspace, "branch", "evil")
    git(crow.workspace, "reset", "-q", "--hard", "main-line")
    crow.new_session()
    crow.prompt("go")
    assert [request["toolCall"]["title"] for request in crow.permissions] == lines
    assert "THE KEY" not in str(crow.model_requests())
    assert (crow.workspace / "l").is_symlink(), "the last line went"


def test_git_in_a_worktree_and_in_a_folder_of_a_repository_goes(scene, tmp_path):
    crow, _ = scene(reply(run("git status")) * 2, repository=False)
    main = tmp_path / "main"
    (main / "part").mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    for folder in (tmp_path / "tree", main / "part"):
        crow.new_session(folder)
        crow.prompt("go")
    assert crow.permissions == []


@pytest.mark.parametrize("capabilities", [NOTHING, TERMINAL], ids=["local", "client"])
@pytest.mark.parametrize("cwd", ["sub", "."])
def test_a_folder_that_takes_the_place_of_another_while_the_person_is_asked(scene, capabilities, cwd):
    def swap(request):
        folder = (crow.workspace / cwd).resolve()
        folder.rename(folder.with_name("old"))
        folder.mkdir()
        return chose("once")

    crow, _ = scene(reply(run("touch was-here", cwd=cwd)), capabilities=capabilities, repository=False, permit=swap)
    (crow.workspace / "sub").mkdir()
    crow.new_session()
    crow.prompt("go")
    [call] = crow.tool_calls().values()
    assert call["status"] == "failed"
    assert "its folder was replaced by another one. The command was not started." in str(call)
    assert not (crow.workspace / cwd / "was-here").exists()


PACKAGE = '{"name": "x", "scripts": {"test": "sh trap.sh"}}'
OTHERS = [
    ("npm test", "package.json", PACKAGE),
    ("npm run test", "package.json", PACKAGE),
    ("make", "Makefile", "all:\n\tsh trap.sh\n"),
    ("make all", "Makefile", "all:\n\tsh trap.sh\n"),
    ("python -m pytest", "pytest.py", "import os\nos.system('sh trap.sh')\n"),
    ("pytest", "conftest.py", "import os\nos.system('sh trap.sh')\n"),
    ("cargo build", ".cargo/config.toml", '[build]\nrustc-wrapper = "./trap.sh"\n'),
    ("unheard-of", "x", ""),
]


@pytest.mark.parametrize("rule", ["{}", "{} *"])
def test_what_obeys_the_folder_it_runs_in_is_covered_in_a_root_alone(scene, rule):
    lines = [(command, f"vendor/{number}") for number, (command, *_) in enumerate(OTHERS)]
    calls = [run(command, cwd=folder) for command, folder in lines]
    calls += [run(f"cd {folder} && {command}") for command, folder in lines]
    crow, fired = scene(reply(*calls), config=rules(*(rule.format(command) for command, *_ in OTHERS), "cd *"))
    for (_, name, text), (_, place) in zip(OTHERS, lines, strict=True):
        folder = crow.workspace / place
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
        (folder / "trap.sh").write_text(f": > {fired}\n")
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == len(calls)


CONFIGURING = [
    "git config core.fsmonitor ./trap.sh",
    "git config --local core.fsmonitor ./trap.sh",
    "git init vendor/y",
    "git worktree add vendor/y",
    "git update-index --fsmonitor",
    "git hook run pre-commit",
    "git remote add x ./vendor/x",
    "git unheard-of",
]


def test_a_rule_for_all_of_git_covers_no_sub_command_that_configures_it(scene):
    crow, _ = scene(reply(*map(run, CONFIGURING)), config=rules("git *", "git config *"))
    crow.new_session()
    crow.prompt("go")
    assert len(crow.permissions) == len(CONFIGURING)
    assert "trap" not in (crow.workspace / ".git/config").read_text()


@pytest.mark.parametrize("mode", ["edit", "auto"])
def test_writing_what_makes_a_folder_a_git_directory_asks(scene, mode):
    names = ("config", "objects/x", "refs/x", "HEAD", "config2")
    writes = (call("write", path=f"vendor/x/{name}", content="ref: refs/heads/m\n") for name in names)
    crow, _ = scene(reply(*writes), config="", permit=lambda request: chose("once"), environment={"CROW_MODE": mode})
    crow.new_session()
    crow.prompt("go")
    asked = [Path(request["toolCall"]["locations"][0]["path"]).name for request in crow.permissions]
    assert asked == ["HEAD", "config2"]


LOSING = ["git restore .", "git checkout -- .", "git checkout HEAD a.txt", "git rm -r --cached .", "git stash"]


def test_a_rule_for_all_of_git_loses_no_work(scene):
    crow, _ = scene(reply(*map(run, LOSING), run("git add a.txt && git commit -m x")), config=rules("git *"))
    file = crow.workspace / "a.txt"
    file.write_text("kept\n")
    git(crow.workspace, "add", "a.txt")
    git(crow.workspace, "commit", "-q", "-m", "a")
    git(crow.workspace, "config", "user.name", "a")
    git(crow.workspace, "config", "user.email", "a@b.c")
    file.write_text("an afternoon's work\n")
    crow.new_session()
    crow.prompt("go")
    assert file.read_text() == "an afternoon's work\n"
    assert len(crow.permissions) == len(LOSING)


@pytest.mark.parametrize("capabilities", [NOTHING, TERMINAL], ids=["local", "client"])
@pytest.mark.parametrize("entry", [".", "", "tools", "~/tools"])
def test_no_program_is_found_by_a_relative_entry_of_the_path(scene, entry, capabilities):
    """With `.` or nothing at all in PATH, `git` would be a file of whatever folder a command runs in."""
    crow, fired = scene(
        reply(run("git status")), capabilities=capabilities, environment={"PATH": f"{entry}:{os.defpath}"}
    )
    crow.terminals.environment["PATH"] = f"{entry}:{os.defpath}"
    for folder in (".", "tools", "~/tools"):
        (crow.workspace / folder).mkdir(parents=True, exist_ok=True)
        for name in ("git", "bash"):
            planted = crow.workspace / folder / name
            planted.write_text(f"#!/bin/sh\n: > {fired}\n")
            planted.chmod(0o755)
    crow.new_session()
    crow.prompt("go")
    assert crow.permissions == []
    assert not fired.exists(), "the planted program ran"
    assert {call["status"] for call in crow.tool_calls().values()} == {"completed"}


LED = [
    "python3 -m unittest vendor/x/test_trap.py",
    "python3 -m unittest vendor.x.test_trap",
    "python3 -m unittest ./tests/../vendor/x/test_trap.py",
    "python3 -m unittest linked/test_trap.py",
    "pytest vendor/x",
    "pytest vendor/x/test_trap.py::test_a",
    "pytest --deselect=vendor/x -k a",
    "eslint vendor/x/a.js",
    "prettier --check vendor/x/a.js",
    "go test ./vendor/x/...",
    "pre-commit try-repo vendor/x",
    "unheard-of vendor/x",
    "git add vendor/x",
]


@pytest.mark.parametrize("plant", [plant_nested, plant_file])
def test_no_word_leads_a_program_into_another_repository(scene, plant):
    """A clone that lies in the project brings configuration of its own, which test runners and linters obey."""
    programs = dict.fromkeys(" ".join(line.split()[: 3 if "-m" in line else 1]) + " *" for line in LED)
    own = "python3 -m unittest tests/test_own.py"
    crow, fired = scene(reply(*map(run, LED), run(own)), config=rules(*programs, "git add *", "go test *"))
    plant(crow.workspace / "vendor/x", fired)
    (crow.workspace / "tests").mkdir()
    (crow.workspace / "tests/test_own.py").write_text("")
    (crow.workspace / "vendor/x/test_trap.py").write_text(f"open({str(fired)!r}, 'w')\n")
    (crow.workspace / "linked").symlink_to("vendor/x")
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert [request["toolCall"]["title"] for request in crow.permissions] == LED


RECURSING = ["git status", "git diff", "git describe --dirty --always", "git add -u", "git commit --dry-run"]


def add_submodule(repository: Path, path: str, fired: Path, *, absorbed: bool) -> None:
    """A repository in the index of another: with its own `.git`, or as `git submodule add` leaves it."""
    folder = repository / path
    plant_nested(folder, fired)
    (folder / ".gitignore").write_text("trap.sh\n")
    git(folder, "add", ".gitignore")
    git(folder, "-c", "core.fsmonitor=false", "commit", "-q", "-m", "first")
    git(repository, "-c", "core.fsmonitor=false", "add", "-f", path)
    if absorbed:
        (folder / ".git/config").write_text("[core]\n\tbare = false\n")
        (repository / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = {path}\n\turl = ./x\n')
        git(repository, "submodule", "absorbgitdirs", path)
    fired.unlink(missing_ok=True)


@pytest.mark.parametrize("version", ["2", "4"])
def test_git_in_a_repository_with_a_planted_submodule_is_asked_about(scene, version):
    """Git looks into what its index calls a submodule, and obeys the configuration that lies there."""
    crow, fired = scene(reply(*map(run, RECURSING)))
    git(crow.workspace, "config", "index.version", version)
    add_submodule(crow.workspace, "vendor/x", fired, absorbed=False)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == len(RECURSING)


def test_git_in_a_repository_with_a_planted_submodule_of_a_submodule(scene):
    crow, fired = scene(reply(run("git status")))
    add_submodule(crow.workspace, "vendor/x", fired, absorbed=True)
    add_submodule(crow.workspace / "vendor/x", "deep", fired, absorbed=False)
    crow.new_session()
    crow.prompt("go")
    assert not fired.exists()
    assert len(crow.permissions) == 1


def test_git_in_a_repository_with_a_true_submodule_goes(scene):
    crow, fired = scene(reply(run("git status")))
    add_submodule(crow.workspace, "vendor/x", fired, absorbed=True)
    assert (crow.workspace / "vendor/x/.git").is_file()
    crow.new_session()
    crow.prompt("go")
    assert crow.permissions == []
