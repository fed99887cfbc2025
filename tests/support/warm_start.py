"""A program in the place of another: `python -I -S warm_start.py SOCKET PROGRAM ARGUMENTS…`.

For whoever starts programs by themselves, as libraries and agents do. It hands its descriptors, folder and environment
to the process that has everything imported (see `warm`), passes signals on, and ends like the process that is forked
there; if it is killed, so is that one. Nothing is imported here that costs time.
"""

import os
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from collections.abc import Mapping, Sequence

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def ask_for(
    place: str, program: Sequence[str], cwd: str, env: Mapping[bytes, bytes], descriptors: Sequence[int], how: str = ""
) -> tuple[socket, int]:
    """Has a process forked: the connection on which its end will be told, and its id."""
    words = [os.fsencode(word) for word in (how, cwd, *program)]
    variables = [name + b"=" + value for name, value in env.items()]
    request = b"\0".join([str(len(words)).encode(), *words, *variables])
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(place)
    passed = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    connection.sendmsg([len(request).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, passed)])
    connection.sendall(request)
    return connection, int.from_bytes(connection.recv(4), "big")


def end_of(connection: socket) -> int:
    """Waits for the end of the process: its exit code, or minus the number of the signal that ended it."""
    return int.from_bytes(connection.recv(4), "big", signed=True)


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _stand_in(place: str, program: list[str]) -> int:
    if any(map(_is_closed, (0, 1, 2))):
        os.execv(program[0], program)  # the socket would take its place
    connection, pid = ask_for(place, program, os.getcwd(), os.environb, (0, 1, 2))
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(pid, number))
    for number in (0, 1, 2):
        os.close(number)  # what comes to an end there comes to an end for everybody
    code = end_of(connection)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(_stand_in(sys.argv[1], sys.argv[2:]))
