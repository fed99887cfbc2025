"""The table of what a `*` stands for: the examples that its entries carry, and the documentation."""

import os
import shlex
from pathlib import Path

import pytest

from crow.policy.wildcard import Covered, option_table, why_not_listed
from tests.policy.support import allow, word

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "permissions.md"


def examples(kind: str) -> list[tuple[str, str]]:
    return [
        (entry.program, line.replace("{program}", entry.program).replace("⏎", "\n"))
        for entry in option_table().values()
        for line in getattr(entry, kind).splitlines()
    ]


def judged(program: str, line: str) -> str | None:
    """By a rule that spells out the program, and its sub-command if the entry is about one."""
    words = tuple(shlex.split(line))
    first = len(program.split())
    return why_not_listed(words, first if words[:first] == tuple(program.split()) else 1)


@pytest.mark.parametrize(("program", "line"), examples("examples"))
def test_covered(program, line):
    assert judged(program, line) is None


@pytest.mark.parametrize(("program", "line"), examples("counterexamples"))
def test_not_covered(program, line):
    assert judged(program, line) is not None


@pytest.mark.parametrize(("program", "line"), examples("counterexamples"))
def test_what_a_rule_spells_out_is_not_looked_at(program, line):
    words = tuple(shlex.split(line))
    reason = why_not_listed(words, len(words))
    assert reason is None or "only a rule without `*`" in reason or words[0] in ("sed", "jq", "awk")


@pytest.mark.parametrize("word", ["bare", "bare/", "./bare", "work", "led.txt"])
@pytest.mark.parametrize("command", ["push", "fetch", "pull", "clone", "ls-remote"])
def test_a_repository_on_this_machine_is_not_covered(tmp_path, command, word):
    """Git also looks for `bare.git`, and follows a file that names a folder: hooks of what is pushed to are run."""
    (tmp_path / "bare.git").mkdir()
    (tmp_path / "work/.git").mkdir(parents=True)
    (tmp_path / "led.txt").write_text("gitdir: bare.git\n")
    assert why_not_listed(("git", command, word), 2, [str(tmp_path)]) is not None
    assert why_not_listed(("git", command, "origin"), 2, [str(tmp_path)]) is None


LOSING = """\
restore .
restore --staged .
checkout -- .
checkout main
checkout -b x
switch main
rm -r src
clean -fd
stash
stash drop
stash pop
reset --hard
reset
push --force
merge main
merge --abort
rebase main
cherry-pick x
revert x
tag -d v1
branch -D x
gc
mv a b
worktree remove x
reflog expire --all
"""


@pytest.mark.parametrize("rest", LOSING.splitlines())
def test_a_rule_for_all_of_git_covers_nothing_that_may_lose_work(rest):
    assert why_not_listed(("git", *rest.split()), 1) is not None


@pytest.mark.parametrize("rest", ["restore .", "checkout -- .", "switch main", "rm -r src", "stash pop", "merge main"])
def test_a_rule_that_names_the_sub_command_covers_it(rest):
    assert why_not_listed(("git", *rest.split()), 2) is None


def test_a_remote_that_lies_on_this_machine_is_not_asked(tmp_path):
    (tmp_path / "bare.git").mkdir()
    assert why_not_listed(("git", "remote", "show", "bare"), 2, [str(tmp_path)]) is not None
    assert why_not_listed(("git", "remote", "show", "origin"), 2, [str(tmp_path)]) is None


SAID_BY_A_FILE = """\
patch -p1
patch a.txt b.diff
git apply a.diff
git am a.mbox
ar x a.a
jar xf a.jar
uudecode a.uu
7za x a.7z
unar a.rar
unrar x a.rar
gunzip AGENTS.md.gz
bunzip2 a.bz2
xz -d a.xz
hg import a.diff
docker cp a b
python -m zipfile -e a.zip .
pnpm list
pnpm ls --depth 0
pnpm why x
pnpm outdated
gcc a.c
gcc -E a.c
gcc-12 a.c
g++-12 a.c
clang++ a.cc
cc a.c
x86_64-linux-gnu-gcc a.c
rustc a.rs
"""


@pytest.mark.parametrize("line", SAID_BY_A_FILE.splitlines())
def test_where_a_file_says_what_is_read_or_written_only_exact_words_are_covered(shop, line):
    first, second, *_ = line.split()
    for rule in (f"{first} *", f"{first} {second} *"):
        assert word(shop.policy(allow(rule)).judge(shop.line(line))) == "ask", rule
    assert word(shop.policy(allow(line)).judge(shop.line(line))) == "allow"
    assert shop.policy().judge(shop.line(line)).session.label == f"Allow `{line}` for this session"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        *((f"{name} *", f"{name} {word} env") for name in ("npm", "pnpm") for word in ("run", "test")),
        *((f"npm {word} *", f"npm {word} env") for word in ("run", "run-script", "exec")),
        ("npm run *", "npm run --silent env"),
        ("yarn *", "yarn run env"),
        ("yarn run *", "yarn run env"),
        ("yarn run *", "yarn run tsc"),
        ("bun run *", "bun run env"),
        ("deno run *", "deno run a.ts"),
    ],
)
def test_a_runner_of_scripts_prints_no_environment(shop, rule, line):
    assert word(shop.policy(allow(rule)).judge(shop.line(line))) == "ask"
    assert word(shop.policy(allow(line)).judge(shop.line(line))) == "allow"


@pytest.mark.parametrize("line", ["npm run environment", "npm run env:check", "pnpm run build", "npm test unit"])
def test_a_runner_of_scripts_runs_those_of_the_package(shop, line):
    assert word(shop.policy(allow("npm *"), allow("pnpm *")).judge(shop.line(line))) == "allow"


def rows() -> list[str]:
    """The table as docs/permissions.md shows it: programs with the same words share a row."""
    by_words: dict[str, list[str]] = {}
    for entry in option_table().values():
        if cells := _cells(entry):
            by_words.setdefault(cells, []).append(f"`{entry.program}`")
    return [f"| {' '.join(names)} | {cells} |" for cells, names in by_words.items()]


def _cells(entry: Covered) -> str:
    letters = " ".join(f"`-{letter}`" for letter in entry.flags)
    valued = " ".join(f"`-{letter}`" for letter in entry.valued)
    long = " ".join(f"`{option}`" for option in entry.long.split())
    return " | ".join((letters, valued, long, _about_words(entry)))


def _about_words(entry: Covered) -> str:
    def code(pattern: str) -> str:
        return "`` " + pattern.replace("|", "\\|") + " ``"

    words = [
        "the rule spells out the sub-command" if entry.spelled else "",
        f"also {code(entry.shapes)}" if entry.shapes else "",
        f"no word that begins with {code(entry.refused)}" if entry.refused else "",
        f"first `{entry.first}`" if entry.first else "",
        {0: "no plain word", 1: "one plain word"}.get(entry.operands, ""),
        "no folder" if entry.no_folders else "",
        "nothing that lies there" if entry.no_repositories else "",
        "no characters of the shell" if entry.shell_words else "",
        "behind `--` no option" + (f" but `{entry.after}`" if entry.after else "") if entry.passes_on else "",
        "any folder" if entry.anywhere else "",
        "a plain script" if entry.program in ("sed", "jq", "awk") else "",
    ]
    return "; ".join(filter(None, words))


def test_the_documentation_shows_the_table():
    """`CROW_WRITE_TABLE=1` writes it anew."""
    before, heading, rest = DOCUMENT.read_text().partition("## The option table")
    section, after = rest[: (end := rest.index("\n## "))], rest[end:]
    shown = [line for line in section.splitlines() if line.startswith("| `")]
    if os.environ.get("CROW_WRITE_TABLE"):
        DOCUMENT.write_text(before + heading + section.replace("\n".join(shown), "\n".join(rows())) + after)
    else:
        assert shown == rows()
