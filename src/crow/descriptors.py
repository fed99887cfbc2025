"""How many descriptors may be open: as many as the system allows in Crow's own processes, as before in those it starts.

Three hundred sessions with their files and connections need more than the usual soft limit; programs that Crow starts
may take a high one badly, as those do that close all descriptors there could be.
"""

import contextlib

soft_limit_before: list[int] = []
"""What programs that Crow starts are given back; empty if it is what there is."""


def raise_limit() -> None:
    """To be called once, when the process begins."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft_limit_before[:] = [soft]
