"""Exit codes that are answers: `grep` says with 1 that nothing matched, `diff` that two files differ.

Only the last command of a line is looked at, since its exit code is the line's. What cannot be told for sure counts as
a failure, as every code but 0 does by default.
"""

import shlex
from collections.abc import Sequence

NO = 1
"""The exit code that means no."""
LONGEST_LINE = 4000
"""Characters of a line that is worth looking at."""

_SEARCHES = frozenset({"grep", "egrep", "fgrep", "zgrep", "rgrep", "rg", "ag", "ack", "pgrep", "pidof"})
_COMPARISONS = frozenset({"diff", "cmp", "zdiff", "colordiff", "comm"})
_TESTS = frozenset({"test", "[", "[[", "which", "type", "hash", "expr"})
_ANSWERING = _SEARCHES | _COMPARISONS | _TESTS
_ANSWERING_GIT = frozenset({"grep", "diff", "merge-base", "check-ignore", "show-ref"})
_SEPARATORS = frozenset({";", "|", "|&", "&&", "||", "&", "(", ")", "{", "}", ";;"})
_CONDITIONS = frozenset({"&&", "||"})


def answers_no(command: str, code: int | None, output: str) -> bool:
    """Whether a line that ended with this code has given an answer, and not failed."""
    if code != NO or len(command) > LONGEST_LINE:
        return False
    words = _words(command)
    last = max((number for number, word in enumerate(words) if word in _SEPARATORS), default=-1)
    if not _is_answering(words[last + 1 :]):
        return False
    # With a condition before it, the code may be another command's: one that failed would have said so.
    return not output.strip() or not _CONDITIONS.intersection(words)


def _words(command: str) -> list[str]:
    """The words and operators of a line; nothing of one that cannot be read."""
    reader = shlex.shlex(command.strip().replace("\n", " ; "), posix=True, punctuation_chars="();|&")
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        return list(reader)
    except ValueError:
        return []


def _is_answering(words: Sequence[str]) -> bool:
    names = [word for word in words if "=" not in word.split("/")[0] or word.startswith("-")]
    if not names:
        return False
    program, rest = names[0].rpartition("/")[2], names[1:]
    if program == "git":
        return next((word for word in rest if not word.startswith("-")), "") in _ANSWERING_GIT
    return program in _ANSWERING
