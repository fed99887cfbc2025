"""Where a session's commands and skills come from: the user's own folder, and the projects that they trust."""

import os
from collections.abc import Sequence
from typing import Literal

from crow.errors import ConfigError
from crow.project.offer import ProjectOffer, read_offer
from crow.project.prompt_files import PromptFiles, prompt_files_in
from crow.project.skills import Skill, listing
from crow.project.snapshot import OF_PROJECT, OF_USER, Watched
from crow.project.trust import TrustFile


class _Project:
    def __init__(self, root: str) -> None:
        self.watched = Watched(root, OF_PROJECT)
        self.offer = ProjectOffer(root, "")
        self.standing: Literal["trusted", "waiting", "rejected"] = "waiting"
        self.trusted_here = ""
        """The digest that is trusted for this session only."""


class Sources:
    def __init__(self, home: str, roots: Sequence[str]) -> None:
        self.warning = ""
        """What is wrong with the file of trusted projects; empty if all is well."""
        self._home = home
        self._user = Watched(home, OF_USER)
        self._user_files = PromptFiles()
        self._trust = TrustFile(home)
        self._projects = [_Project(root) for root in roots if not _is_home(root, home)]
        self.look()

    def look(self) -> None:
        """Takes in what has changed. A project that changed is trusted no longer, unless it was trusted like this."""
        if self._user.look():
            self._user_files = prompt_files_in(self._user.now, OF_USER)
        for project in self._projects:
            if project.watched.look():
                project.offer = read_offer(project.watched.now)
                if project.standing != "rejected":  # which lasts as long as the session
                    project.standing = "trusted" if self._is_trusted(project) else "waiting"

    def prompt_files(self) -> list[PromptFiles]:
        """What may be used now: the user's first, then that of each trusted project."""
        return [self._user_files, *(offer.prompt_files for offer in self.trusted())]

    def unused(self) -> list[str]:
        """What of the user's own files makes no command or skill, with why."""
        return [os.path.join(self._home, what) for what in self._user_files.unused]

    def skills_listing(self) -> str:
        """For the system prompt. Of two skills with one name the first counts."""
        known: dict[str, Skill] = {}
        for files in self.prompt_files():
            for skill in files.skills:
                known.setdefault(skill.name, skill)
        return listing(list(known.values()))

    def trusted(self) -> list[ProjectOffer]:
        return [project.offer for project in self._projects if project.standing == "trusted"]

    def waiting(self) -> list[ProjectOffer]:
        """What the person has yet to be asked about."""
        waiting = [project.offer for project in self._projects if project.standing == "waiting"]
        return [offer for offer in waiting if offer.digest]

    def accept(self, offer: ProjectOffer, *, remember: bool) -> str:
        """Trusts what was shown, and nothing that has changed since. Gives a warning if it could not be remembered."""
        warning = ""
        if remember:
            try:
                self._trust.trust(offer.root, offer.digest)
            except ConfigError as error:
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

    def _is_trusted(self, project: _Project) -> bool:
        digest = project.offer.digest
        if not digest or digest == project.trusted_here:
            return bool(digest)
        try:
            return self._trust.trusts(project.offer.root, digest)
        except ConfigError as error:
            self.warning = str(error)
            return False


def skills_folder(home: str) -> str:
    """Where the user's own skills are, links resolved."""
    return os.path.realpath(os.path.join(home, OF_USER.skills))


def _is_home(root: str, home: str) -> bool:
    """Whether the folder's `.crow` is Crow's own home: that is the user's, and no project."""
    return os.path.realpath(os.path.join(root, ".crow")) == os.path.realpath(home)
