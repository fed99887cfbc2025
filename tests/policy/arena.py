"""A throw-away folder in which a shell line may do its worst, and what shows that it did.

Lines run in real bash as nobody, in a session of their own, with closed input, narrow limits and a PATH that leads to
a handful of harmless programs. Afterwards everything that could have been touched is compared with what it was.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.support.patience import DEADLINE

NOBODY = 65534
TOKEN = "outside-token"
PROGRAMS = ("cat", "ls", "grep", "sort", "find", "git", "touch", "head", "wc")
CANARY = "#!/bin/sh\n: > {folder}/fired\n"
RECORDER = '#!/bin/sh\nprintf "%s\\0" "${{0##*/}}" "$@" > {folder}/argv/$$\n'
"""Stands in for every program and writes down the words that it was really given."""


class Arena:
    places = ("work", "outside", "home", "bin")
    cpu_seconds = 2
    open_files = 64

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="crow-arena-"))
        self.work = self.folder / "work"
        self.folder.chmod(0o777)
        self._fill()
        self._link_programs()
        self._before = self._state()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def _fill(self) -> None:
        for name in ("work/sub", "work/http:/x", "work/.git/refs", "work/.git/objects", "outside", "home"):
            (self.folder / name).mkdir(parents=True)
        for name in ("a.txt", "b.txt", "sub/c.txt", "http:/x/c.txt", "-weird", "a b"):
            (self.work / name).write_text(f"{name}\nsecond line\n")
        (self.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.work / ".git/config").write_text("[core]\n\trepositoryformatversion = 0\n")
        (self.folder / "outside/secret.txt").write_text(TOKEN)
        (self.work / "out").symlink_to("../outside/secret.txt")
        (self.work / "out-folder").symlink_to("../outside")
        (self.work / "http:/x/out").symlink_to("../../../outside/secret.txt")
        (self.work / "canary.sh").write_text(CANARY.format(folder=self.folder))
        (self.work / "canary.sh").chmod(0o755)
        if os.geteuid() == 0:
            for path in (self.work, *self.work.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def _link_programs(self) -> None:
        self._recorders = self.folder / "recorders"
        self._given = self.folder / "argv"
        self._given.mkdir()
        self._given.chmod(0o777)
        self.path = str(self.folder / "bin")
        for folder in (self.folder / "bin", self._recorders):
            folder.mkdir()
        for name in PROGRAMS:
            if found := shutil.which(name):
                (self.folder / "bin" / name).symlink_to(found)
            (self._recorders / name).write_text(RECORDER.format(folder=self.folder))
            (self._recorders / name).chmod(0o755)

    def fires(self, line: str) -> str:
        """What the line did that no allowed line may do; empty if nothing."""
        output = self._run(line, self.path)
        if (self.folder / "fired").exists():
            (self.folder / "fired").unlink()
            return "the canary ran"
        if TOKEN.encode() in output:
            return "it read what lies outside, or the environment"
        after = self._state()
        if after != self._before:
            changed = {entry[0] for entry in after ^ self._before}
            self._restore()
            return f"it changed {sorted(changed)}"
        return ""

    def words_given(self, line: str) -> list[tuple[str, ...]]:
        """The words that each program was given, in no certain order."""
        self._run(line, str(self._recorders))
        given: list[tuple[str, ...]] = []
        for log in self._given.iterdir():
            given.append(tuple(log.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]))
            log.unlink()
        return given

    def _run(self, line: str, path: str) -> bytes:
        root = os.geteuid() == 0
        bash = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile", "-c", line],
            cwd=self.work,
            env={
                "PATH": path,
                "HOME": str(self.folder / "home"),
                "GIT_CEILING_DIRECTORIES": str(self.folder),
                "SECRET": TOKEN,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=self._limit,  # noqa: PLW1509 -- this process has no other threads
            user=NOBODY if root else None,
            group=NOBODY if root else None,
            extra_groups=[] if root else None,
        )
        try:
            output, _ = bash.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            output = b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(bash.pid, signal.SIGKILL)
            bash.wait()
        return output

    def _state(self) -> set[tuple[str, int, int, bytes]]:
        found: set[tuple[str, int, int, bytes]] = set()
        for place in (self.folder / name for name in self.places):
            for path in (place, *place.rglob("*")):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found.add((str(path.relative_to(self.folder)), status.st_mode, status.st_size, content))
        found |= {(name, 0, 0, b"") for name in os.listdir(self.folder)}
        return found

    def _restore(self) -> None:
        known = {name for name, *_ in self._before}
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if str(path.relative_to(self.folder)) not in known and "recorders" not in path.parts:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, mode, _, content in self._before:
            path = self.folder / name
            if content and not path.is_symlink():
                path.write_bytes(content)
                path.chmod(mode & 0o777)

    def _limit(self) -> None:
        for kind, most in (
            (resource.RLIMIT_CPU, self.cpu_seconds),
            (resource.RLIMIT_FSIZE, 1 << 20),
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_NPROC, 512),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (most, most))
