"""Changes of files are told, whatever becomes of the folders that they are in."""

import threading

import pytest

from crow.project import watching
from crow.project.folder_files import OF_PROJECT, OF_USER, WatchedFolder
from crow.project.watching import Watch
from tests.support.patience import DEADLINE


class Told:
    """A watch of what a folder brings, and whether it has told of a change."""

    def __init__(self, folder, layout=OF_PROJECT):
        self.told = threading.Event()
        self.watch = Watch(self.told.set)
        self.folder = WatchedFolder(str(folder), layout)
        self.refresh()

    def refresh(self):
        self.told.clear()
        changed = self.folder.refresh()
        while self.watch.follow([self.folder.watch_list()]):
            changed = self.folder.refresh() or changed
        return changed

    def tells(self, change):
        change()
        assert self.told.wait(DEADLINE)
        return self.refresh()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def told(project):
    told = Told(project)
    assert told.watch.is_complete
    yield told
    told.watch.close()


def test_a_folder_that_is_made_step_by_step(told, project):
    crow = project / ".crow"
    told.tells(crow.mkdir)
    told.tells((crow / "commands").mkdir)
    told.tells((crow / "commands" / "git").mkdir)
    assert told.tells(lambda: (crow / "commands" / "git" / "a.md").write_text("text"))
    told.tells((crow / "skills").mkdir)
    told.tells((crow / "skills" / "one").mkdir)
    assert told.tells(lambda: (crow / "skills" / "one" / "SKILL.md").write_text("text"))
    assert told.tells(lambda: (crow / "config.toml").write_text(""))
    assert told.tells(lambda: (project / ".mcp.json").write_text("{}"))


def test_a_folder_that_is_moved_and_replaced(told, project):
    commands = project / ".crow" / "commands"
    told.tells(lambda: commands.mkdir(parents=True))
    assert told.tells(lambda: (commands / "a.md").write_text("text"))
    assert told.tells(lambda: (project / ".crow").rename(project / "away"))
    told.tells(lambda: commands.mkdir(parents=True))
    assert told.tells(lambda: (commands / "b.md").write_text("text"))


def test_a_whole_project_that_comes_late(tmp_path):
    late = Told(tmp_path / "not" / "there")
    late.tells(lambda: (tmp_path / "not" / "there" / ".crow").mkdir(parents=True))
    assert late.tells(lambda: (tmp_path / "not" / "there" / ".mcp.json").write_text("{}"))
    late.watch.close()


def test_a_file_behind_a_link(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere.md"
    (home / "commands").mkdir(parents=True)
    elsewhere.write_text("text")
    (home / "commands" / "a.md").symlink_to(elsewhere)
    told = Told(home, OF_USER)
    assert told.tells(lambda: elsewhere.write_text("another text"))
    told.watch.close()


def test_what_does_not_matter_is_not_told(told, project):
    (project / "notes.txt").write_text("text")
    told.tells(lambda: (project / ".mcp.json").write_text("{}"))
    told.refresh()
    names = told.folder.watch_list()[str(project)]
    assert names == {".crow", ".mcp.json"}


def test_two_watches_of_one_folder_are_told_until_they_are_closed(told, project):
    other = Told(project)
    told.tells((project / ".crow").mkdir)
    assert other.told.wait(DEADLINE)
    other.refresh()
    told.watch.close()
    told.told.clear()
    other.tells((project / ".crow" / "commands").mkdir)
    assert not told.told.is_set()
    other.watch.close()


def test_without_inotify_a_watch_is_not_complete(project, monkeypatch):
    monkeypatch.setattr(watching, "_kernel", lambda: None)
    assert not Told(project).watch.is_complete


def test_a_limit_that_is_reached_makes_a_watch_incomplete(project, monkeypatch):
    monkeypatch.setattr(watching, "_nearest", lambda kernel, place, names: (-1, names))
    assert not Told(project).watch.is_complete


def test_on_a_network_file_system_a_watch_is_not_complete(project, monkeypatch):
    monkeypatch.setattr(watching, "network_file_system", lambda folder: "nfs4")
    assert not Told(project).watch.is_complete
