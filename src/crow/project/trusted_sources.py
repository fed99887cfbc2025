"""Collects a session's commands and skills from the user's own folder and from trusted projects, and stores which
projects are trusted.

What the person trusted is kept on their side, in `$CROW_HOME/trust.json`, never in the repository. A project is
trusted as it was: by its real path and by the content of what it brings.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from crow.config.home import Versioned, locked, read_versioned, write_versioned
from crow.disk import Disk
from crow.errors import ConfigError, FileSystemSilent
from crow.paths import shown
from crow.project.folder_files import (
    LOOK_PATIENCE,
    OF_PROJECT,
    OF_USER,
    PromptFiles,
    Skill,
    WatchedFolder,
    prompt_files_in,
)
from crow.project.needs_trust import ProjectOffer, read_offer
from crow.project.server_programs import WatchedPrograms
from crow.project.watching import Watch

LONGEST_LISTING = 4000
"""Characters of the system prompt that the list of skills may take."""
_INTRODUCTION = "Skills: instructions for special tasks. When one fits what you are to do, first `read` its file."
MOST_ROUNDS = 4
"""How often folders are looked at again that change while they begin to be watched."""

TRUST_NAME = "trust.json"
_VERSION = 1


class _Project:
    def __init__(self, root: str) -> None:
        self.watched = WatchedFolder(root, OF_PROJECT)
        self.programs = WatchedPrograms(root)
        self.offer = ProjectOffer(root, "")
        self.standing: Literal["trusted", "waiting", "rejected"] = "waiting"
        self.trusted_here = ""
        """The digest that is trusted for this session only."""
        self._read = self.offer

    def refresh(self) -> bool:
        """Whether what it brings has changed, or a program of its servers."""
        changed = self.watched.refresh()
        if changed:
            self._read = read_offer(self.watched.now)
            self.programs.follow(self._read.servers.values())
        return self.programs.refresh() or changed

    def found(self) -> ProjectOffer:
        """What it brings, as of the last refresh; its digest covers the programs of its servers."""
        read, programs = self._read, self.programs
        if not programs.digest:
            return read
        return msgspec.structs.replace(read, digest=f"{read.digest} {programs.digest}", programs=programs.names)


_Changes = tuple[PromptFiles | None, list[tuple[_Project, ProjectOffer, bool]]]
"""The user's files, if one has changed; and what changed projects offer now, with whether it is trusted."""


class Sources:
    """What the user's own folder and the projects of a session bring."""

    def __init__(self, home: str, roots: Sequence[str]) -> None:
        self.warning = ""
        """What is wrong with the file of trusted projects; empty if all is well."""
        self._home = home
        self._roots = roots
        self._disk = Disk(roots[0])
        self._open_close_lock = asyncio.Lock()
        self._watch: Watch | None = None
        self._user = WatchedFolder(home, OF_USER)
        self._user_files = PromptFiles()
        self._trust = TrustFile(home)
        users_own = os.path.realpath(home)  # a folder whose `.crow` this is, is no project
        self._projects = [_Project(root) for root in roots if os.path.realpath(f"{root}/.crow") != users_own]
        self.refresh()

    def refresh(self) -> None:
        """Reads what has changed. A project that changed is trusted no longer, unless it was trusted as it is now."""
        self._take(self._find())

    async def refresh_in_thread(self) -> None:
        """Does the same beside the event loop. FileSystemSilent, and no change, if a folder does not answer."""
        async with self._open_close_lock:  # of two at once, one would find nothing new before the other has taken it in
            try:
                found = await self._disk.run(self._find, LOOK_PATIENCE)
            except FileSystemSilent as silent:
                remedy = silent.remedy
                either = f"The file system of {shown(self._roots[0])}, or that of {shown(self._home)}, does not answer."
                raise FileSystemSilent(either, remedy=remedy) from None
            self._take(found)

    def watch(self, tell: Callable[[], None]) -> None:
        """From the next refresh on, `tell` is called when another one is worth it."""
        loop = asyncio.get_running_loop()

        def tell_on_the_loop() -> None:
            with contextlib.suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(tell)

        self._watch = Watch(tell_on_the_loop)

    @property
    def is_watched(self) -> bool:
        """Whether every change is reported. Else the owner has to refresh from time to time."""
        return self._watch is not None and self._watch.is_complete

    def close(self) -> None:
        """Watches nothing any longer."""
        if self._watch is not None:
            self._watch.close()

    def _find(self) -> _Changes:
        everything = [self._user, *self._projects]
        places = [self._user, *(place for project in self._projects for place in (project.watched, project.programs))]
        fresh = {source for source in everything if source.refresh()}
        for _ in range(MOST_ROUNDS):
            if self._watch is None or not self._watch.follow([place.watch_list() for place in places]):
                break
            fresh |= {source for source in everything if source.refresh()}
        user = prompt_files_in(self._user.now, OF_USER) if self._user in fresh else None
        changed = [project for project in self._projects if project in fresh]
        offers = [project.found() for project in changed]
        trusted = [self._is_trusted(project, offer) for project, offer in zip(changed, offers, strict=True)]
        return user, list(zip(changed, offers, trusted, strict=True))

    def _take(self, found: _Changes) -> None:
        user, projects = found
        if user is not None:
            self._user_files = user
        for project, offer, trusted in projects:
            project.offer = offer
            if project.standing != "rejected":  # which lasts as long as the session
                project.standing = "trusted" if trusted else "waiting"

    def prompt_files(self) -> list[PromptFiles]:
        """The files that may be used now: the user's first, then those of each trusted project."""
        return [self._user_files, *(offer.prompt_files for offer in self.trusted())]

    def unused(self) -> list[str]:
        """The user's own files that make no command or skill, each with the reason."""
        return [os.path.join(self._home, what) for what in self._user_files.unused]

    def skills_listing(self) -> str:
        """The list of skills for the system prompt. Of two skills with one name the first counts."""
        known: dict[str, Skill] = {}
        for files in self.prompt_files():
            for skill in files.skills:
                known.setdefault(skill.name, skill)
        return skills_listing(list(known.values()))

    def trusted(self) -> list[ProjectOffer]:
        return [project.offer for project in self._projects if project.standing == "trusted"]

    def waiting(self) -> list[ProjectOffer]:
        """The offers that the person has yet to be asked about."""
        return [project.offer for project in self._projects if project.standing == "waiting" and project.offer.digest]

    async def accept(self, offer: ProjectOffer, *, remember: bool) -> str:
        """Trusts what was shown, and nothing that has changed since. Gives a warning if it could not be remembered."""
        warning = ""
        if remember:
            try:
                await self._disk.run(lambda: self._trust.trust(offer.root, offer.digest), LOOK_PATIENCE)
            except (ConfigError, FileSystemSilent) as error:
                warning = f"The project is trusted for this session only: {error}"
        for project in self._projects:
            if project.offer == offer:
                project.trusted_here = offer.digest
                project.standing = "trusted"
        return warning

    def reject(self, offer: ProjectOffer) -> None:
        for project in self._projects:
            if project.offer.root == offer.root:
                project.standing = "rejected"

    def _is_trusted(self, project: _Project, offer: ProjectOffer) -> bool:
        digest = offer.digest
        if not digest or digest == project.trusted_here:
            return bool(digest)
        try:
            return self._trust.trusts(offer.root, digest)
        except ConfigError as error:
            self.warning = str(error)
            return False


def skills_listing(skills: Sequence[Skill]) -> str:
    """The list of skills for the system prompt; empty if there are none."""
    if not skills:
        return ""
    text = f"\n{_INTRODUCTION}\n"
    for number, known in enumerate(skills):
        line = f"- {known.name}: {known.description} ({shown(known.path)})\n"
        if len(text) + len(line) > LONGEST_LISTING:
            return f"{text}({len(skills) - number} more are not listed.)\n"
        text += line
    return text


def skills_folder(home: str) -> str:
    """Where the user's own skills are, links resolved."""
    return os.path.realpath(os.path.join(home, OF_USER.skills))


class _Trusted(Versioned, frozen=True):
    projects: dict[str, str]
    """The digest of what was trusted, by the project's real path."""


class TrustFile:
    """Read each time it is asked, as another Crow may have written it. One that cannot be read trusts nothing."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, TRUST_NAME)

    def trusts(self, root: str, digest: str) -> bool:
        """Whether the project was trusted as it is. ConfigError if the file cannot be understood."""
        return self._read().projects.get(os.path.realpath(root)) == digest

    def trust(self, root: str, digest: str) -> None:
        """Stores that the project is trusted as it is. ConfigError if it cannot be stored."""
        with locked(self._path):
            projects = {**self._read().projects, os.path.realpath(root): digest}
            write_versioned(self._path, _Trusted(_VERSION, projects))

    def _read(self) -> _Trusted:
        return read_versioned(self._path, _Trusted(_VERSION, {}), "no project is trusted by it")
