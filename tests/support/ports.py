"""Ports for servers that a test starts itself, or that must not be there."""

import random
import socket

# Systems give ports from 32768 on to whoever asks for any: there, another test has the port as soon as it is free.
BELOW_THOSE_GIVEN = range(20_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on, now and while the server of this test is restarted."""
    while True:
        port = random.choice(BELOW_THOSE_GIVEN)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
