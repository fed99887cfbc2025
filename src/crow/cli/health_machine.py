"""Checks of this machine: Python and packages, Crow's folder, programs, the log."""

import os
import shutil
import sys
from collections.abc import Iterable

from crow.cli.health import Check, failed, fine, warn
from crow.config.home import log_path

PACKAGES = ("httpx2", "msgspec", "jiter", "rapidfuzz", "tree-sitter", "tree-sitter-bash")
PROGRAMS = {
    "git": "Without it, the agent sees no history and no differences. Install git.",
    "rg": "Searching works without it, but slower. Install ripgrep.",
    "bash": "Commands then run in sh. Install bash.",
}


def check_python() -> Iterable[Check]:
    from importlib.metadata import PackageNotFoundError, version

    from crow import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    yield fine(f"Python {python} ({sys.executable})")
    present: list[str] = []
    for package in PACKAGES:
        try:
            present.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            yield failed(f"the package {package} is missing", f"{sys.executable} -m pip install {package}")
    yield fine(f"crow {__version__} with {', '.join(present)}")


def check_home(place: str) -> Iterable[Check]:
    if not os.path.lexists(place):
        yield from _check_missing_home(place)
        return
    if not os.path.isdir(place):
        yield failed(f"{place} is not a folder", "Move it away, or name another folder in CROW_HOME.")
        return
    denied = [
        word for word, rights in (("read", os.R_OK | os.X_OK), ("written", os.W_OK)) if not os.access(place, rights)
    ]
    if denied:
        remedy = f"chown and chmod it so that you own it: chmod 700 {place}"
        yield failed(f"{place} cannot be {' or '.join(denied)}", remedy)
        return
    mode = os.stat(place).st_mode & 0o777
    if mode & 0o077:
        yield warn(
            f"others could look into {place} (mode {mode:o})", "Crow makes it yours alone whenever it is started."
        )
    else:
        yield fine(f"{place} is there, and yours only")


def _check_missing_home(place: str) -> Iterable[Check]:
    parent = os.path.dirname(place)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        yield fine(f"{place} will be made when there is something to keep")
    else:
        yield failed(f"{place} cannot be made in {parent}", "Name another folder in CROW_HOME.")


def check_programs() -> Iterable[Check]:
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if present := [name for name in PROGRAMS if name not in missing]:
        yield fine(f"programs: {', '.join(present)}")
    for name in missing:
        yield warn(f"{name} is not installed", PROGRAMS[name])


def check_log(place: str) -> Iterable[Check]:
    path = log_path(place)
    if not os.path.exists(path):
        yield fine(f"no log yet ({path})")
    elif not os.access(path, os.W_OK):
        yield failed(f"the log {path} cannot be written", f"chmod 600 {path}")
    else:
        yield fine(f"the log is {path} ({max(1, os.path.getsize(path) // 1024)} kB)")
