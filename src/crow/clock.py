"""The time, as sessions are dated."""

import time


def milliseconds_now() -> int:
    """Since 1970."""
    return time.time_ns() // 1_000_000
