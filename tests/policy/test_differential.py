"""Lines that the policy allows, mutated at random, judged, and run in real bash if they are still allowed.

What is allowed may neither run the canary, nor change a file, nor read one outside; and every program gets exactly the
words that the policy judged. `CROW_POLICY_MUTANTS=100000` looks longer.
"""

import os
import random
import shutil

import pytest

from crow.actions import Deed
from crow.policy.base import Allow
from crow.policy.plain_lines import read_plain
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from tests.policy.arena import Arena
from tests.policy.support import allow, deny, word

MUTANTS = int(os.environ.get("CROW_POLICY_MUTANTS", "400"))
MOST_RUN = MUTANTS // 16
SEED = int(os.environ.get("CROW_POLICY_SEED", "1"))

RULES = (
    "echo *",
    "cat *",
    "ls *",
    "grep *",
    "git status *",
    "sort *",
    "find *",
    "printf *",
    "test *",
    "cd *",
    "head *",
)
LINES = [
    "echo hi",
    "echo 'one two' \"three\"",
    "cat a.txt",
    "cat a.txt sub/c.txt | sort -r",
    "cat < a.txt",
    "cat -n 'a b'",
    "ls -la sub",
    "ls sub && cat a.txt",
    "grep -n line a.txt",
    "grep -rn 'second' sub 2>/dev/null",
    "git status -s",
    "git status && echo done",
    "sort -u a.txt b.txt",
    "sort -k 2 a.txt; ls",
    "find . -name '*.txt' -type f",
    "find sub -maxdepth 1 | sort",
    "printf '%s\\n' a b",
    "test -f a.txt && cat a.txt",
    "cd sub && cat c.txt",
    "head -n 1 a.txt",
]
SNIPPETS = [
    # what ends a command or a word, and what the shell expands
    *(";", "&", "|", "\n", "&&", "||", ";;", "|&", "\\", "\\\n", "'", '"', "`", "$"),
    *("(", ")", "{", "}", "#", " # ", "!"),
    *("~", "*", "?", "[", "]", "[a-z]*", "{a,b}", "{1..3}", "\t", "\r", "\x0b", "\xa0"),
    *("é", "^", "%", "=", "$'", '$"'),
    *("$(touch pwned)", "`touch pwned`", "<(touch pwned)", "${x:=y}", "$((1))", "$[1]", "$HOME", "${PATH}", "$'\\n'"),
    *("; touch pwned", "\ntouch pwned\n", "& touch pwned", "| touch pwned", "&& ./canary.sh", "; ./canary.sh #"),
    *("(touch pwned)", "{ touch pwned; }", "! ", "time ", "if ", "then", "do "),
    *("coproc ", "function f ", "f() ", "[[ "),
    # redirections
    *(">pwned", "> pwned", ">>a.txt", ">|a.txt", "&>pwned", "2>pwned", "<>pwned"),
    *(">&pwned", "3>pwned", "<out", "< out"),
    *("2>&1", ">/dev/null", "</dev/null", ">/dev/null/../pwned", "<<E", "<<<x", "1>&2", ">&2pwned", "10>pwned", "<&3"),
    # environment and wrappers
    *("PATH=. ", "x=1 ", "x+=1 ", "IFS=/ ", "env ", "eval ", "exec ", "command "),
    *("builtin ", "sudo ", "xargs ", "sh -c "),
    *("bash -c 'touch pwned' ", "source ", ". ./canary.sh ", "./canary.sh "),
    *("touch pwned ", "nohup ", "trap 'touch pwned' 0 "),
    *("alias cat=touch\n", "hash -p ./canary.sh cat;", "export PATH=.;", "set -o x;", "enable -n echo;", "read x;"),
    # options
    *(" -o pwned", " -opwned", " -ro a.txt", " --output=pwned", " --outp pwned", " --out=a.txt", " -T .", " -S 1"),
    *(" --compress-program=./canary.sh", " --comp ./canary.sh", " --files0-from=out", " -f out"),
    *(" -fout", " --file=out"),
    *(" -rfout", " -R x .", " -exec ./canary.sh {} +", " -exec ./canary.sh {} ';'"),
    *(" -execdir ./canary.sh ';'", " -delete"),
    *(" -fprint pwned", " -fls pwned", " -ok ./canary.sh ';'", " -L"),
    *(" -follow", " -v 'x[$(touch pwned)]'", " -v PATH ."),
    *(" -c core.fsmonitor=./canary.sh", " -c alias.status=!./canary.sh", " --exec-path=.", " -C ../outside"),
    *(" --", " -"),
    # paths
    *(" out", " ../outside/secret.txt", " out-folder/secret.txt", " ./out", " sub/../out"),
    *(" /etc/passwd", " ../", " .."),
    *(" 'out'", " o\\ut", ' "o"ut', " out-folder", " sub/../../outside/secret.txt"),
    *("cd out-folder && ", "cd ..;", "cd - ;"),
    # lines that go on, and paths that look like addresses
    *("\\\n", " \\\n", "to\\\nuch pwned", "; to\\\nuch pwned", "\ntou\\\nch pwned\n", " # \\\ntouch pwned"),
    *("&\\\n& touch pwned", "'\\\n'", '"\\\n"', "\\\n; touch pwned", "; \\\ntouch pwned", "$'t\\\nouch' pwned"),
    *(" http://x/../../out", " http://x/../../../outside/secret.txt", " http://x/out", " https://x/../../out"),
    *(" http://x/c.txt", " --file=http://x/out", " http:/x/out", " https://example.com/x"),
    # harmless, so that enough of them stay allowed
    *(" a.txt", " 'x y'", ' "x"', " x\\ y", " -r", " sub", "x", " -n", "1", ".", "/", "-"),
    *("a", ",", ":", "@", "''", '""'),
    *(" | cat", " | sort", "; ls", "\nls", " && echo x", " || echo y", " 'a;b'", ' "a|b"', " '$(x)'", " \\;", " \\$x"),
]  # fmt: skip


def mutate(line: str, dice: random.Random) -> str:
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
        at = dice.randrange(len(line) + 1)
        match dice.randrange(8):
            case 0 | 1 | 2:
                line = line[:at] + dice.choice(SNIPPETS) + line[at:]
            case 3:
                line += dice.choice(SNIPPETS)
            case 4:
                line = dice.choice(SNIPPETS) + line
            case 5:
                line = line[:at] + line[at + dice.randrange(1, 3) :]
            case 6:
                words = line.split(" ")
                words[dice.randrange(len(words))] = dice.choice(SNIPPETS).strip(" ") or "x"
                line = " ".join(words)
            case _:
                other = dice.choice(LINES)
                line = (
                    line[:at] + dice.choice((" ", "; ", " && ", "\n", "", " | ")) + other[dice.randrange(len(other)) :]
                )
    return line


@pytest.fixture(scope="module")
def arena():
    with Arena() as built:
        yield built


def judge(policy: RulePolicy, line: str, arena: Arena):
    return policy.judge(Deed("terminal", ToolKind.EXECUTE, command=line, cwd=str(arena.work)))


@pytest.fixture(scope="module")
def policy(arena) -> RulePolicy:
    return RulePolicy([str(arena.work)], [str(arena.folder / "home")], user_rules=[allow(rule) for rule in RULES])


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("touch pwned", "changed"),
        ("echo x > a.txt", "changed"),
        ("./canary.sh", "canary"),
        ("sort --compress-program=./canary.sh -S 1 out-folder/../work/a.txt; find . -exec ./canary.sh ';'", "canary"),
        ("cat out", "outside"),
        ("cd out-folder && cat secret.txt", "outside"),
        ("test -v 'x[$(touch pwned)]'", "changed"),
        ("cat a.txt | sort", ""),
    ],
)
def test_the_arena_notices(arena, line, effect):
    fired = arena.fires(line)
    assert effect in fired
    assert bool(fired) == bool(effect)
    assert arena.fires("echo ok") == "", "everything is as it was"


def test_the_arena_sees_words(arena):
    assert set(arena.words_given("cat 'a b' \"c\"d; ls\\\n -l")) == {("cat", "a b", "cd"), ("ls", "-l")}


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="there is no bash")
@pytest.mark.timeout(max(600, MUTANTS // 50))
def test_no_allowed_mutant_fires(arena, policy):
    dice = random.Random(SEED)
    for line in LINES:
        assert word(judge(policy, line, arena)) == "allow", line
        assert arena.fires(line) == ""
    allowed: dict[str, None] = {}
    for _ in range(MUTANTS):
        mutant = mutate(dice.choice(LINES), dice)
        if "\0" not in mutant and isinstance(judge(policy, mutant, arena), Allow):
            allowed[mutant] = None
    chosen = list(allowed)[:MOST_RUN]
    assert len(chosen) > min(100, MOST_RUN // 2), "too few mutants stayed allowed to show anything"
    trouble = [f"{line!r}: {found}" for line in chosen if (found := _trouble(line, arena))]
    assert not trouble, f"allowed, and yet (seed {SEED}):\n" + "\n".join(trouble)


def _trouble(line: str, arena: Arena) -> str:
    if fired := arena.fires(line):
        return fired
    judged = [command.words for command in read_plain(line)]
    strangers = [given for given in arena.words_given(line) if given not in judged]
    return f"bash read {strangers}, the policy {judged}" if strangers else ""


@pytest.mark.timeout(max(600, MUTANTS // 50))
def test_no_mutant_that_auto_lets_go_runs_what_is_forbidden(arena):
    policy = RulePolicy([str(arena.work)], mode="auto", user_rules=[deny("touch *")])
    dice = random.Random(SEED)
    allowed: dict[str, None] = {}
    for _ in range(MUTANTS):
        mutant = mutate(dice.choice(LINES), dice)
        if isinstance(judge(policy, mutant, arena), Allow):
            allowed[mutant] = None
    # A line that mentions it is asked about, so those come first that come close.
    close = [line for line in allowed if "\\\n" in line or "ouch" in line]
    chosen = list(dict.fromkeys([*close, *allowed]))[:MOST_RUN]
    assert len(chosen) > min(100, MOST_RUN // 2), "too few mutants to show anything"
    ran = [line for line in chosen if any(given[:1] == ("touch",) for given in arena.words_given(line))]
    assert not ran, f"let go, and yet it ran `touch` (seed {SEED}):\n" + "\n".join(map(repr, ran))


def test_the_programs_are_there():
    assert all(shutil.which(name) for name in ("cat", "ls", "grep", "sort", "find"))
