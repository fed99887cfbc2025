"""The protocol's library, for whoever loads it."""

import logging


def silence_library() -> None:
    """It logs messages with all they carry, and failures that we tell in our own words."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
