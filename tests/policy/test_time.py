"""Deciding takes no longer than a plain loop of five million steps and 20,000 looks at a file (about 100 ms), however a
line was made up."""

import os
import random
import time

from tests.policy.support import Workshop, allow, deny

STEPS = 5_000_000
LOOKS = 20_000
"""A line with 400 paths in it makes nearly so many: how long it takes is no matter of the processor's speed alone."""
MIXED = int(os.environ.get("CROW_POLICY_MUTANTS", "600")) // 40
PIECES = [
    *("$(", "((", "{ ", "if ", "`", '"', "'", "<(", "a;", "a|", "<<E\n", "$((", "${x:-", "a&&", "case x in ", "[[ "),
    *("(", ")", "for ", "\\", "a=(", "<<<", "!", "$'", "x() { ", '"$(', "a ", "{a,", "*", "&", ">a ", "[ ", "|", "$"),
    *("${", "<<A <<B\n", "\n", "é", "-", "((a", "1", "select x in ", "while ", "a=b ", "${a[", "@(", "[[ a =~ ", "$["),
    *(
        "../",
        "/",
        "-a=b:c,d@e ",
        "~",
        "sudo ",
        "env A=1 ",
        "bash -c '",
        "eval ",
        "xargs ",
        "a/../",
        "-",
        "x=y=z=",
        "echo ",
    ),
    *(
        "git -a ",
        "git -a=git ",
        "docker run a ",
        "uv run ",
        "x=rm,",
        "tmux 'a b' ",
        "find . -exec ",
        "./a ",
        "src/app.py ",
        "link ",
        "ssh a b c ",
        "'' ",
        "-a-b-c ",
        "watch ",
        "\\\n",
        "do ",
        "then ",
    ),
]


def nasty_lines(seed: int, number: int) -> list[str]:
    dice = random.Random(seed)
    whole = [piece * (9_900 // len(piece.encode())) for piece in PIECES]
    # Just below the limit on syntax, where the parser still looks at them.
    short = [piece * (390 // max(1, len(piece))) for piece in PIECES]
    mixed = [
        "".join(dice.choice(PIECES) for _ in range(dice.randrange(20, 3000)))[: dice.randrange(100, 9_900)]
        for _ in range(number)
    ]
    few_marks = [
        "echo " + " ".join("ab/c" * dice.randrange(9) for _ in range(dice.randrange(400))) for _ in range(number)
    ]
    return [*whole, *short, *mixed, *few_marks, *(f"echo {line}" for line in whole), "sudo " * 1900, "env " * 2400]


def test_any_line_is_decided_in_time(shop: Workshop):
    policies = [
        shop.policy(allow("echo *"), allow("a *"), allow("*")),
        shop.policy(deny("rm *"), deny("git push *"), mode="auto"),
    ]
    for policy in policies:
        policy.judge(shop.line("echo warm"))
    slow, most = [], max(_loop() for _ in range(5))
    for line in nasty_lines(7, MIXED):
        for policy in policies:
            deed = shop.line(line)
            took = _time(policy, deed)
            if took > most and (took := _time(policy, deed)) > most:
                slow.append(f"{took * 1000:.0f} ms for {line[:60]!r} ({len(line)} characters)")
    assert not slow, "\n".join(slow)


def _loop() -> float:
    """The time of a plain loop: what a line may take at most, however fast the machine is."""
    start = time.thread_time()
    for _ in range(STEPS):
        pass
    for _ in range(LOOKS):
        os.path.lexists("/nowhere/at/all")
    return time.thread_time() - start


def _time(policy, deed) -> float:
    # Our own time: other processes on a busy machine are not what is measured.
    start = time.thread_time()
    policy.judge(deed)
    return time.thread_time() - start


def test_parser_is_loaded_when_the_first_line_is_judged():
    import subprocess
    import sys

    code = (
        "import sys\nfrom crow.policy.rule_policy import RulePolicy\nfrom crow.actions import Deed\n"
        "from crow.results import ToolKind\n"
        "RulePolicy(['/w']).judge(Deed('read', ToolKind.READ, reads=('/w/x',)))\n"
        "sys.exit('tree_sitter' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
