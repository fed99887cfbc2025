"""What the person and a project tell their agents: which files are read, and in which order."""

import os
from pathlib import Path

import pytest

from crow.project.prompt import Instructions


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "app").mkdir()
    return folder


def told(root: Path, home: Path) -> list[str]:
    """The texts, in order: each file holds one line."""
    instructions = Instructions([str(root)], lambda path: path.startswith(str(home)), str(home))
    instructions.refresh()
    return [line for line in instructions.text().splitlines() if line and not line.startswith("From ")]


def test_the_persons_own_come_first_then_the_general_then_the_special(project, home):
    (home / "AGENTS.md").write_text("mine")
    (project / "AGENTS.md").write_text("of the project")
    (project / "app" / "AGENTS.md").write_text("of the app")
    assert told(project / "app", home) == ["mine", "of the project", "of the app"]


def test_claude_md_counts_only_in_a_folder_without_agents_md(project, home):
    (project / "CLAUDE.md").write_text("of the project, for another agent")
    (project / "app" / "AGENTS.md").write_text("of the app")
    (project / "app" / "CLAUDE.md").write_text("not read")
    assert told(project / "app", home) == ["of the project, for another agent", "of the app"]


def test_the_persons_own_may_be_a_link_but_one_of_the_project_into_the_home_is_not_read(project, home, tmp_path):
    (tmp_path / "dotfiles.md").write_text("mine, kept elsewhere")
    (home / "AGENTS.md").symlink_to(tmp_path / "dotfiles.md")
    (home / "config.toml").write_text("secret")
    (project / "CLAUDE.md").symlink_to(home / "config.toml")
    assert told(project, home) == ["mine, kept elsewhere"]


def test_a_change_is_seen_with_the_next_look(project, home):
    instructions = Instructions([str(project)], lambda path: False, str(home))
    instructions.refresh()
    assert instructions.text() == ""
    (home / "AGENTS.md").write_text("mine")
    instructions.refresh()
    assert "mine" in instructions.text()


def remarks(root: Path, home: Path) -> list[str]:
    return Instructions([str(root)], lambda _: False, str(home)).remarks()


def test_what_is_no_file_is_mentioned_and_claude_md_does_not_replace_it(project, home):
    (home / "AGENTS.md").symlink_to("/dev/zero")
    os.mkfifo(project / "AGENTS.md")
    (project / "CLAUDE.md").write_text("for another agent")
    (project / "app" / "AGENTS.md").symlink_to("nowhere")
    files = (project / "AGENTS.md", project / "app" / "AGENTS.md", home / "AGENTS.md")
    why = "not a regular file, or a broken link"
    assert remarks(project / "app", home) == [f"{path} was not read: {why}." for path in files]
    assert told(project / "app", home) == []


def test_that_a_large_file_is_cut_is_said(project, home):
    (project / "AGENTS.md").write_text("x" * (64 * 1024 + 1))
    (home / "AGENTS.md").write_text("x" * 64 * 1024)
    (said,) = remarks(project, home)
    assert said == f"{project / 'AGENTS.md'} is larger than 64 kB: the model gets only the first 64 kB."
