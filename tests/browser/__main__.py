"""`make browser`: installs a Chromium from the system's packages where that is possible, and says what is missing."""

import os
import shutil
import subprocess
import sys

from tests.browser.chromium import found, missing

INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "fonts-dejavu-core")
LIGHT, WHOLE = (*INSTALL, "chromium-headless-shell"), (*INSTALL, "chromium")
"""Not every system has the first as a package of its own."""


def main() -> int:
    if found() is None:
        install()
    reason = missing()
    print(f"Tests in a browser cannot run: {reason}." if reason else f"Tests in a browser use {found()}.")
    return 1 if reason else 0


def install() -> None:
    """Asks apt for Chromium, as root. Whoever is not root is told what to run."""
    if shutil.which("apt-get") is None:
        print("Install Chromium with the packages of your system: no apt-get is here.")
    elif os.geteuid() != 0:
        print(f"Install Chromium with: sudo {' '.join(LIGHT)} || sudo {' '.join(WHOLE)}")
    else:
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("apt-get", "update", "--quiet"), LIGHT, WHOLE):
            if found() is None:
                subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main())
