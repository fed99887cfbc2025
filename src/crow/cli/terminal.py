"""Asks a person on the command line (a text, yes or no, a choice, a secret without echo), and knows whether there is a
terminal.
"""

import os
import sys
from collections.abc import Mapping
from typing import TextIO


def is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]  a closed one is None


def only_prints_lines(environment: Mapping[str, str]) -> bool:
    """Whether the terminal can neither move its cursor nor show colours, as far as it says."""
    return environment.get("TERM", "") in ("", "dumb")


def keyboard_of(stream: TextIO) -> int | None:
    """A descriptor to read keys from, in the terminal that `stream` writes to, also if standard input is a pipe.

    None if there is no terminal, or if we run in its background, where reading a key would stop us.
    """
    if not stream.isatty():
        return None
    places = [lambda: os.dup(sys.stdin.fileno())] if is_interactive() else []
    places += [lambda path=path: os.open(path, os.O_RDWR | os.O_NOCTTY) for path in (_name_of(stream), "/dev/tty")]
    for open_place in places:
        try:
            descriptor = open_place()
        except OSError:
            continue
        try:
            if os.tcgetpgrp(descriptor) == os.getpgrp():
                return descriptor
        except OSError:
            pass  # not our controlling terminal
        os.close(descriptor)
    return None


def _name_of(stream: TextIO) -> str:
    try:
        return os.ttyname(stream.fileno())
    except OSError:
        return "/dev/tty"


def speaks_utf8(stream: TextIO | None = None) -> bool:
    """Whether every sign can be shown there; by default, on standard output."""
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", "") or ""
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def ask(question: str, default: str = "") -> str:
    """The answer without surrounding space; an empty one means the default."""
    hint = f" [{default}]" if default else ""
    return input(f"{question}{hint}: ").strip() or default


def confirm(question: str) -> bool:
    """Yes unless the person says no."""
    while True:
        answer = ask(f"{question} [Y/n]").lower()
        if answer in ("", "y", "yes"):
            return True
        if answer in ("n", "no"):
            return False


def choose(question: str, options: list[str], default: int = 0) -> int:
    """Shows a numbered list and returns the index of the chosen one."""
    for number, option in enumerate(options, start=1):
        print(f"  {number:>2}  {option}")
    while True:
        answer = ask(question, str(default + 1))
        if answer.isdecimal() and 0 < int(answer) <= len(options):
            return int(answer) - 1
        print(f"Enter a number from 1 to {len(options)}.")


def ask_secret(question: str) -> str:
    """Never shown while it is typed: if the terminal cannot hide it, nothing is asked."""
    import getpass
    import warnings

    from crow.errors import CrowError

    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(f"{question}: ").strip()
        except getpass.GetPassWarning:
            raise CrowError(
                "This terminal would show the key as you type.", remedy="Use `crow login --key-stdin`."
            ) from None
