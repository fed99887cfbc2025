"""Standard input and output belong to the protocol: nothing else in the process, and no child, can reach them."""

import os
import sys


def take_for(program: str, hint: str) -> tuple[int, int] | None:
    """The two descriptors, with a hint for a person who started it by hand; None, and why, if they are not open."""
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] -- None if closed
        print(hint, file=sys.stderr)
    try:
        return take()
    except OSError:
        print(f"crow: {program} needs an open standard input and output.", file=sys.stderr)
        return None


def take() -> tuple[int, int]:
    """The two real descriptors, under numbers of their own that children do not inherit.

    What the rest of the process knows as standard input is empty from now on, and what it prints goes to
    standard error. Raises OSError if one of the two is not open.
    """
    for number in (0, 1):
        os.fstat(number)  # else the copy of one would take the number of the other
    # Opened first: it takes the lowest free number, and so becomes standard error where there is none.
    null = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(2, True)  # noqa: FBT003 -- the function takes it so
    reader, writer = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    if null != 2:
        os.close(null)
    return reader, writer
