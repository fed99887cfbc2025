"""Disks with a fault: one that is small enough to fill, one that does not answer."""

import contextlib
import ctypes
import os
import struct
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(place: Path) -> Generator[Path]:
    """A file system of two megabytes."""
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(path: Path) -> None:
    """Makes a file of all that is left."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


# --- a file system that does not answer

_ANSWER_TO_INIT = struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 0, 0, 65536, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)[:64]
"""The answer to a kernel that asks which version of FUSE is spoken: 7.31, without any extras."""
_DETACH = 2


@contextlib.contextmanager
def hung(place: Path) -> Generator[Path]:
    """Mounts a file system over a folder that answers nothing but that it is there, as a lost network disk does.

    Whatever was in the folder is behind it. Calls that hang end with an error when this is left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        channel = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("there is no FUSE here")
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"hung", os.fsencode(place), b"fuse", 0, options):
        os.close(channel)
        pytest.skip("no file system can be mounted here")
    try:
        _, _, number = struct.unpack_from("<IIQ", os.read(channel, 1 << 17))
        os.write(channel, struct.pack("<IiQ", 16 + len(_ANSWER_TO_INIT), 0, number) + _ANSWER_TO_INIT)
        yield place
    finally:
        libc.umount2(os.fsencode(place), _DETACH)
        os.close(channel)
