"""How many descriptors may be open: as many as the system allows in Crow's own processes, as before in those it starts.

Three hundred sessions with their files and connections need more than the usual soft limit; programs that Crow starts
may take a high one badly, as those do that close all descriptors there could be.
"""

import contextlib

_soft_limit_before: list[int] = []


def raise_limit() -> None:
    """To be called once, when the process begins."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _soft_limit_before[:] = [soft]


def soft_limit_before() -> int | None:
    """What a program that Crow starts is given back; None if it is what there is."""
    return _soft_limit_before[0] if _soft_limit_before else None
