"""What a project offers: what it would start or load. Nothing of it has an effect before it is trusted."""

from collections.abc import Sequence

import msgspec

from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.project.project_config import ProjectConfig, read_project_config, tightening_rules
from crow.project.prompt_files import PromptFiles, prompt_files_in
from crow.project.servers import servers_in
from crow.project.snapshot import OF_PROJECT, Snapshot


class ProjectOffer(msgspec.Struct, frozen=True):
    root: str
    digest: str
    """Empty if it brings nothing."""
    prompt_files: PromptFiles = PromptFiles()
    config: ProjectConfig = ProjectConfig()
    servers: dict[str, McpServerSettings] = {}
    """Of both files; on a clash that of Crow's own counts."""
    with_variables: frozenset[str] = frozenset()
    """Those in which `${VARIABLE}` stands for a value, which the format of the other agents allows."""
    problems: tuple[str, ...] = ()
    """What is wrong with a file; the others count all the same."""
    texts: dict[str, str] = {}
    """What can be shown of commands and skills, by path."""
    left_out: tuple[str, ...] = ()
    """What is there and not used, with why."""


def read_offer(snapshot: Snapshot) -> ProjectOffer:
    if not snapshot.files:
        return ProjectOffer(snapshot.base, "")
    problems: list[str] = []
    config = _config(snapshot, problems)
    shared = _servers(snapshot, problems)
    prompt_files = prompt_files_in(snapshot, OF_PROJECT)
    return ProjectOffer(
        root=snapshot.base,
        digest=snapshot.digest,
        prompt_files=prompt_files,
        config=config,
        servers={**shared, **config.servers},
        with_variables=frozenset(shared.keys() - config.servers.keys()),
        problems=tuple(problems),
        texts=_texts(snapshot),
        left_out=prompt_files.unused,
    )


def _config(snapshot: Snapshot, problems: list[str]) -> ProjectConfig:
    content, path = _single(snapshot, OF_PROJECT.single[0])
    try:
        return read_project_config(content, path) if content else ProjectConfig()
    except ConfigError as error:
        rules = tightening_rules(content)
        count = f" Of this file only its rules that refuse or ask count ({len(rules)} of them)." if rules else ""
        problems.append(f"{error}{count}")
        return ProjectConfig(rules=rules)


def _servers(snapshot: Snapshot, problems: list[str]) -> dict[str, McpServerSettings]:
    content, path = _single(snapshot, OF_PROJECT.single[1])
    return servers_in(content, path, problems) if content else {}


def _single(snapshot: Snapshot, path: str) -> tuple[bytes, str]:
    return snapshot.files.get(path, b"").strip(), f"{snapshot.base}/{path}"


def _texts(snapshot: Snapshot) -> dict[str, str]:
    folders: Sequence[str] = (OF_PROJECT.commands, OF_PROJECT.skills)
    return {
        path: content.decode("utf-8", "replace")
        for path, content in snapshot.files.items()
        if path.startswith(tuple(f"{folder}/" for folder in folders))
    }
