"""Standard input and output belong to the protocol: nothing else in the process, and no child, can reach them."""

import os


def take() -> tuple[int, int]:
    """The two real descriptors, under numbers of their own that children do not inherit.

    What the rest of the process knows as standard input is empty from now on, and what it prints goes to
    standard error.
    """
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(null, 1)
        os.dup2(null, 2)
    os.close(null)
    return reader, writer
