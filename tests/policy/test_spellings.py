"""Spellings that common rules with a `*` must not cover (`spellings.txt`). All are judged; what would run unasked runs,
as nobody in a throw-away home, and must do nothing. `make soak` runs the others too, to see what they do."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crow.policy.base import names
from crow.policy.commands import CommandPattern
from crow.policy.path_words import ExecutionContext
from crow.policy.shell import NotCovered, coverage
from tests.policy.arena import NOBODY, TOKEN, Arena

DATA = Path(__file__).with_name("spellings.txt")
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "safe.directory=*")
LOCAL = names(
    """
    git make find fd sort shuf uniq tree ls grep rg sed awk jq xxd iconv du diff cat head tail touch mkdir test less
    rake just
    """
)
"""Programs that ask no network, and whose effects can be seen."""
FILES = {
    "package.json": '{"name": "a", "version": "1.0.0", "scripts": {"test": "echo", "build": "echo"}}\n',
    "Makefile": "html:\n\t@echo $@\n%: FORCE\n\t@echo $@\nFORCE:\n",
    "x.mk": "all:\n\t./x\n",
    "justfile": "build *words:\n    echo {{words}}\n",
    "Rakefile": 'rule(//) { |task| sh "echo #{task.name}" }\n',
    "build.ninja": "rule a\n  command = echo\nbuild html: a\n",
    "composer.json": '{"scripts": {"test": "echo"}}\n',
    "deno.json": '{"tasks": {"build": "echo"}}\n',
    "run.sh": "#!/bin/sh\necho\n",
    "prog": "./x\n",
    "prog.sed": "w pwned\n",
    "prog.awk": 'BEGIN { system("./x") }\n',
    "prog.jq": "env\n",
    "conf.curl": "output = pwned\n",
    "names0": "../outside/secret.txt\0",
    "sums": "d41d8cd98f00b204e9800998ecf8427e  ../outside/secret.txt\n",
    "a.hex": "00000000: 61\n",
    "a.json": '{"a": {"b": 1}}\n',
    "x.js": 'require("fs").writeFileSync("pwned", "")\n',
    "evil.patch": "--- /dev/null\n+++ b/pwned\n@@ -0,0 +1 @@\n+a\n",
}


def blocks() -> Iterator[tuple[str, list[str]]]:
    """Each rule without its `*`, and what follows it."""
    heads: list[str] = []
    tails: list[str] = []
    for line in [*DATA.read_text().splitlines(), "[end]"]:
        if match := re.match(r"\[(.+?)\] ?(.*)", line):
            yield from ((head, tails) for head in heads)
            heads = match[2].split("|") if match[1] == "runners" else [match[1]]
            tails = []
        elif not line.startswith("#"):
            tails += [tail.replace("⏎", "\n") for tail in re.split(r" {2,}", line) if tail]


class Bench(Arena):
    """An arena with a project for every tool, a repository with a remote, and the programs of this machine."""

    places = (*Arena.places, "remote.git")
    cpu_seconds = 20
    open_files = 256

    def _fill(self) -> None:
        super()._fill()
        shutil.rmtree(self.work / ".git")
        for name, text in FILES.items():
            (self.work / name).write_text(text)
        (self.work / "canary.sh").rename(self.work / "x")
        (self.work / "run.sh").chmod(0o755)
        (self.folder / "outside" / TOKEN).touch()
        self._fill_repository()
        self._pristine = self.folder.with_name(f"{self.folder.name}-pristine")
        shutil.copytree(self.folder, self._pristine, symlinks=True)
        self._give_away()

    def _give_away(self) -> None:
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def _restore(self) -> None:
        for place in (self.folder / name for name in self.places if name != "bin"):
            shutil.rmtree(place)
            shutil.copytree(self._pristine / place.name, place, symlinks=True)
        for other in set(os.listdir(self.folder)) - self._names:
            path = self.folder / other
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._give_away()

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._pristine)
        super().__exit__()

    def _fill_repository(self) -> None:
        def git(*words: str) -> None:
            subprocess.run([*GIT, *words], cwd=self.work, check=True, capture_output=True)

        git("init", "-q", "-b", "main")
        git("config", "core.checkStat", "minimal")  # copies are no changes
        git("config", "core.trustCtime", "false")
        git("add", "a.txt", "b.txt", "sub")
        git("commit", "-qm", "a")
        git("branch", "work")
        git("switch", "-qc", "evil")
        (self.work / "a.txt").write_text("./x\n")
        git("commit", "-qam", "evil")
        git("clone", "-q", "--bare", ".", "../remote.git")
        git("switch", "-q", "main")
        git("commit", "-q", "--allow-empty", "-m", "b")
        git("remote", "add", "origin", "../remote.git")
        git("push", "-q", "origin", "evil:x")

    def _link_programs(self) -> None:
        """None are linked: the path is that of this machine, as far as nobody may follow it."""
        super()._link_programs()
        self._names = set(os.listdir(self.folder))
        self.path = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if _is_open(folder))

    def has(self, program: str) -> bool:
        return program in ("test", "printf") or shutil.which(program, path=self.path) is not None


def _is_open(folder: str) -> bool:
    """Whether anybody may look for a program there."""
    real = Path(os.path.realpath(folder))
    # From the root on: below a closed folder nothing can be looked at.
    return all(place.is_dir() and place.stat().st_mode & 0o001 for place in (*reversed(real.parents), real))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as bench:
        yield bench


def is_covered(line: str, rule: CommandPattern, execution: ExecutionContext) -> bool:
    try:
        coverage(line, [rule], execution)
    except NotCovered:
        return False
    return True


def test_no_rule_lets_one_of_them_have_an_effect(bench):
    assert len({tail for _, tails in blocks() for tail in tails}) >= 600
    root = str(bench.work)
    execution = ExecutionContext((root,), (), root)
    unasked = [
        f"{head} {tail}"
        for head, tails in blocks()
        for rule in [CommandPattern.parse(f"{head} *")]
        for tail in tails
        if is_covered(f"{head} {tail}", rule, execution)
    ]
    assert {line: effect for line in unasked if (effect := bench.fires(line))} == {}
    assert len(unasked) <= 10, "most of them are asked about, whatever they do here"


def test_effects_are_noticed(bench):
    lines = ["find . -exec ./x \\;", "sed 's/a/b/w pwned' a.txt", "sort -o b.txt a.txt", "cat out", "make 'a;./x'"]
    lines += ["git fetch -q origin x:work", "git -c alias.z='!./x' z", "git branch -D work", "ls out-folder"]
    assert [line for line in lines if bench.has(line.split()[0]) and not bench.fires(line)] == []
    assert [line for line in ("git status", "ls", "cat a.txt", "make html", "git log") if bench.fires(line)] == []


@pytest.mark.slow
def test_many_of_them_would_have_an_effect(bench):
    """Else they would show nothing. Those that would ask the network are left out."""
    fired = {
        program: sum(
            bool(bench.fires(f"{head} {tail}"))
            for head, tails in blocks()
            if head.split()[0] == program
            for tail in tails
        )
        for program in LOCAL
        if bench.has(program)
    }
    assert [program for program, count in fired.items() if not count] == []
    assert sum(fired.values()) >= 200
