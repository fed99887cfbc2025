"""Whether a tool is still the one that was allowed: what it says of itself is part of what a person agrees to.

So is who says it: another program under the same name is another tool. For each tool that may run without asking, the
digest of its description, its schema and its server is kept below CROW_HOME.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping

import msgspec

from crow.config.home import write_file
from crow.config.locking import locked
from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.messages import ToolSpec


class _Approved(msgspec.Struct, frozen=True):
    digests: dict[str, dict[str, str]]
    """By project, by name of the tool."""


def digest_of(spec: ToolSpec, server: McpServerSettings) -> str:
    """The server's variables and headers do not count: those are keys, which may be exchanged."""
    who = (server.command, server.args, server.url)
    said = msgspec.json.encode((spec.name, spec.description, spec.schema, who), order="sorted")
    return hashlib.sha256(said).hexdigest()[:32]


class Approvals:
    """Of one project. What cannot be read or written is as good as never approved: the person is asked once more."""

    def __init__(self, home: str, project: str) -> None:
        self._path = os.path.join(home, "mcp", "approved.json")
        self._project = os.path.realpath(project)
        self._known: dict[str, str] | None = None

    def digest(self, tool: str) -> str:
        return self._of_project().get(tool, "")

    def keep(self, tool: str, digest: str) -> None:
        if self.digest(tool) == digest:
            return
        self._known = {**self._of_project(), tool: digest}
        with contextlib.suppress(ConfigError), locked(self._path):
            digests = dict(self._read())
            digests[self._project] = {**digests.get(self._project, {}), tool: digest}
            write_file(self._path, msgspec.json.encode(_Approved(digests)))

    def _of_project(self) -> dict[str, str]:
        if self._known is None:
            self._known = dict(self._read().get(self._project, {}))
        return self._known

    def _read(self) -> Mapping[str, dict[str, str]]:
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=_Approved).digests
        except (OSError, msgspec.DecodeError, UnicodeError):
            return {}
