"""Ports for servers that a test starts itself, or that must not be there."""

import itertools
import os
import socket

# Systems give ports from 32768 on to whoever asks for any: there, another test has the port as soon as it is free.
FIRST = 20_000
SHARES = 100
"""Each process of the tests has ports of its own, as a port is free until its server has started."""
SHARE = 120
_turns = itertools.count()


def free_port() -> int:
    """A port that nobody listens on, now and while the server of this test is restarted."""
    while True:
        port = FIRST + os.getpid() % SHARES * SHARE + next(_turns) % SHARE
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
