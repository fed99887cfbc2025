"""What a project would start or load, read and understood. Nothing of it has an effect before it is trusted."""

from collections.abc import Sequence

import msgspec

from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.project.own import Own, own_of
from crow.project.project_config import ProjectConfig, read_project_config
from crow.project.servers import servers_in
from crow.project.snapshot import OF_PROJECT, Snapshot


class Brought(msgspec.Struct, frozen=True):
    root: str
    digest: str
    """Empty if the project brings nothing."""
    own: Own = Own()
    config: ProjectConfig = ProjectConfig()
    servers: dict[str, McpServerSettings] = {}
    """Of both files; on a clash that of Crow's own counts."""
    problems: tuple[str, ...] = ()
    """What is wrong with a file; the others count all the same."""
    texts: dict[str, str] = {}
    """What can be shown of commands and skills, by path."""
    left_out: tuple[str, ...] = ()


def understood(snapshot: Snapshot) -> Brought:
    if not snapshot.files:
        return Brought(snapshot.base, "")
    problems: list[str] = []
    config = _config(snapshot, problems)
    return Brought(
        root=snapshot.base,
        digest=snapshot.digest,
        own=own_of(snapshot, OF_PROJECT),
        config=config,
        servers={**_servers(snapshot, problems), **config.servers},
        problems=tuple(problems),
        texts=_texts(snapshot),
        left_out=snapshot.left_out,
    )


def _config(snapshot: Snapshot, problems: list[str]) -> ProjectConfig:
    content, path = _single(snapshot, OF_PROJECT.single[0])
    try:
        return read_project_config(content, path) if content else ProjectConfig()
    except ConfigError as error:
        problems.append(str(error))
        return ProjectConfig()


def _servers(snapshot: Snapshot, problems: list[str]) -> dict[str, McpServerSettings]:
    content, path = _single(snapshot, OF_PROJECT.single[1])
    try:
        return servers_in(content, path) if content else {}
    except ConfigError as error:
        problems.append(str(error))
        return {}


def _single(snapshot: Snapshot, path: str) -> tuple[bytes, str]:
    return snapshot.files.get(path, b"").strip(), f"{snapshot.base}/{path}"


def _texts(snapshot: Snapshot) -> dict[str, str]:
    folders: Sequence[str] = (OF_PROJECT.commands, OF_PROJECT.skills)
    return {
        path: content.decode("utf-8", "replace")
        for path, content in snapshot.files.items()
        if path.startswith(tuple(f"{folder}/" for folder in folders))
    }
