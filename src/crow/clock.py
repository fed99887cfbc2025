"""The time, as sessions are dated."""

import time


def milliseconds_now() -> int:
    """Since 1970."""
    return time.time_ns() // 1_000_000


def local_day(milliseconds: int) -> str:
    """The date on the wall, such as `2026-01-31`."""
    return time.strftime("%Y-%m-%d", time.localtime(milliseconds / 1000))
