"""Commands that may bring files: what stands behind them in a line, or runs beside them, opens nothing by its name."""

import shlex
import subprocess

import pytest

from crow.actions import Deed
from crow.policy.base import names
from crow.results import ToolKind
from tests.policy.support import Workshop, allow, word

GIT = names("switch checkout merge pull rebase stash reset restore push fetch clone co commit")
PROGRAMS = names(
    """
    git cat ls head tail grep find sed sort wc cd echo test mkdir touch rg fd jq cut tree npm npm+run make pytest
    unheard-of sleep curl diff awk
    """
)
RULES = [allow(f"{command.replace('+', ' ')} *") for command in (*PROGRAMS, *(f"git+{name}" for name in GIT))]
EXACT = [allow(line) for line in ("tar xf a.tar", "cp -a a b", "cp -a a.txt b.txt")]

BRINGING = [
    *("git switch -q evil", "git checkout evil", "git merge evil", "git pull", "git rebase evil", "git stash pop"),
    *("git restore -s evil .", "git clone https://a.b/c", "git co evil"),
    *("npm test", "make", "pytest", "unheard-of", "tar xf a.tar", "cp -a a.txt b.txt", "npm run build"),
]
OPENING = [
    *("cat l/notes", "cat l", "cat ./l/notes", "cat a.txt", "cat src/app.py", "head -n 1 l/notes", "tail l"),
    *(
        "grep -r x l",
        "grep -n x l/notes",
        "grep -f l a.txt",
        "grep -fl .",
        "grep --file=l .",
        "rg -f l .",
        "grep -e x l",
    ),
    *(
        "find l",
        "find l -name x",
        "find -P l/ -name x",
        "sed -n p l/notes",
        "sort l/notes",
        "wc l/notes",
        "cat < l/notes",
        "ls l",
        "tree l",
    ),
    *("cd l", "cd src && cat app.py", "mkdir l/x", "touch l/x", "git commit -F l/notes", "git commit -aF l/notes"),
    *("git commit --file=l/notes", "git push l/x.git main", "git fetch l/x", "git pull l/x", "cat http://l/x"),
    *("unheard-of l", "pytest l", "npm run build l", "npm test l", "jq . l", "cut -f 1 l", "diff l a.txt", "ls . l"),
    *("grep -e -A 3", "sort -k 1 l", "cat -n 5", "fd x l", "rg --files l", "/bin/cat l"),
    *("awk '{print $1}' l", "awk -F l '{print}' l/notes", "awk -v n=1 1 l", "tree -L 2 l"),
]
OPENING_NOTHING = [
    *("ls", "ls -la", "cat", "head -n 20", "head -20", "tail -n 5", "grep -n foo", "grep -rn foo .", "grep -A 3 foo"),
    *("find . -name foo", "sed -n 1,5p", "sort -k 2 -u", "wc -l", "cut -d , -f 2", "ls .", "echo done", "echo 'l/x'"),
    *("test -f l", "make", "make all", "npm test", "npm run build", "curl -s https://a.b/c", "sleep 5", "jq .a"),
    *("awk '{print $1}'", "awk -F , '{print $1}'", "tree -L 2"),
    *(
        "git status",
        "git status -s",
        "git diff",
        "git diff src/app.py",
        "git log --oneline -n 5",
        "git diff main -- a.txt",
    ),
    *("git commit -m 'l/x'", "git commit -m fix", "git branch -d evil", "git show HEAD", "git push origin main"),
    *("git rebase main", "git fetch origin", "git pull origin main", "git merge main", "git grep -n foo src"),
]


@pytest.fixture
def project(tmp_path) -> Workshop:
    project = Workshop.build(tmp_path)
    (tmp_path / "work/.git/config").write_text('[remote "origin"]\n\turl = https://example.com/x\n')
    return project


def judged(project: Workshop, line: str, *beside: str) -> str:
    policy = project.policy(*RULES, *EXACT, allow("/bin/cat *"))
    return word(policy.judge(Deed("terminal", ToolKind.EXECUTE, command=line, cwd=project.root, beside=beside)))


@pytest.mark.parametrize("opening", OPENING)
def test_what_may_have_been_brought_is_not_opened(project, opening):
    if not opening.startswith("cat http:"):  # a folder of this name would be needed, and is not there
        assert judged(project, opening) == "allow"
    for joined in ("{} && {}", "{}; {}", "{}\n{}", "{} | {}", "{} && echo x && {}", "{} | head -5 && {}"):
        assert judged(project, joined.format("git switch -q evil", opening)) == "ask", joined


@pytest.mark.parametrize("bringing", BRINGING)
def test_whatever_may_bring_files(project, bringing):
    assert judged(project, bringing) == "allow"
    assert judged(project, f"{bringing} && cat l/notes") == "ask"
    assert judged(project, f"cat l/notes | {bringing}") == "ask", "they run at the same time"
    assert judged(project, f"cat l/notes && {bringing}") == "allow"


@pytest.mark.parametrize("opening", OPENING_NOTHING)
def test_what_opens_nothing_by_its_name_goes(project, opening):
    assert judged(project, opening) == "allow"
    assert judged(project, f"git switch main && {opening}") == "allow"
    changes_index = opening in ("git rebase main", "git pull origin main", "git merge main")
    assert judged(project, f"npm test && {opening}") == ("ask" if changes_index else "allow")


@pytest.mark.parametrize(
    "line",
    [
        "cd src && ls",
        "ls src && cat a.txt",
        "git add a.txt && git commit -m x && cat a.txt",
        "git status && cat a.txt | grep -n x | head -n 5",
        "mkdir -p build && touch build/x && cat a.txt",
        "git log --oneline && cat a.txt",
    ],
)
def test_behind_what_only_reads_files_are_opened(project, line):
    assert judged(project, line) == "allow"


def test_a_command_that_still_runs_counts(project):
    assert judged(project, "sleep 9 && cat l/notes", "sleep 5 && git switch -q evil") == "ask"
    assert judged(project, "cat l/notes", "for x in y; do git switch evil; done") == "ask"
    assert judged(project, "cat a.txt", "npm run dev") == "ask"
    assert judged(project, "git status && ls -la", "npm run dev") == "allow"
    assert judged(project, "cat a.txt", "sleep 5 && cat b.txt") == "allow"


def test_a_line_that_still_runs_is_not_brought_anything(project):
    assert judged(project, "git switch -q evil", "sleep 9 && cat l/notes") == "ask"
    assert judged(project, "git switch -q evil", "npm run dev") == "allow"
    assert judged(project, "git status", "sleep 9 && cat l/notes") == "allow"
    assert judged(project, "git switch -q main", "./allowed-once.sh l/notes") == "allow"


def test_git_follows_no_link_that_a_branch_brings(tmp_path):
    """What the policy takes for granted of the git that is installed: links of the repository are not followed."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/id").write_text("SECRET\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a\n")
    (work / "l").symlink_to("../out")
    (work / "lf").symlink_to("../out/id")

    def run(line: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        words = shlex.split(line)
        return subprocess.run(["git", *who, *words[1:]], cwd=work, capture_output=True, text=True).stdout

    run("git init -q")
    run("git add a")
    run("git commit -qm a")
    lines = ["diff l/id a", "diff lf a", "grep --untracked SEC l", "grep SEC -- l/id", "log -p -- l/id", "show l/id"]
    lines += ["blame l/id", "ls-files -o l/id", "add l/id", "add lf", "diff --cached", "commit -m x lf", "show HEAD"]
    assert not [line for line in lines if "SECRET" in run(f"git {line}")]
    assert "SECRET" in run("git diff --no-index l/id a"), "no rule's `*` stands for this option"
