"""Where Crow keeps its things, and how it writes them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crow.config.home import config_path, create_folder, home, log_path, write_file, write_new_file
from crow.errors import ConfigError, CrowError
from tests.support.disks import fill_up


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_default_is_in_the_users_home() -> None:
    assert home({"HOME": "/home/ada"}) == "/home/ada/.crow"


def test_crow_home_is_made_absolute_and_a_tilde_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert home({"HOME": "/home/ada", "CROW_HOME": "somewhere"}) == str(tmp_path / "somewhere")
    assert home({"HOME": "/home/ada", "CROW_HOME": "~/elsewhere"}) == "/home/ada/elsewhere"
    assert home({"HOME": "/home/ada", "CROW_HOME": ""}) == "/home/ada/.crow"


def test_everything_lies_below_it() -> None:
    assert config_path("/h") == "/h/config.toml"
    assert log_path("/h") == "/h/log/crow.log"


def test_folders_are_private_and_existing_ones_stay_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    create_folder(str(tmp_path / "a" / "b"))
    assert (mode(tmp_path), mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o755, 0o700, 0o700)


def test_a_file_is_private_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    old_mask = os.umask(0)
    try:
        write_file(str(path), b"one")
        write_file(str(path), b"two")
    finally:
        os.umask(old_mask)
    assert path.read_bytes() == b"two"
    assert mode(path) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "config.toml"
    target.write_bytes(b"old")
    link = tmp_path / "config.toml"
    link.symlink_to(target)
    write_file(str(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_folder_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"/file/sub .*: not a directory"):
        create_folder(str(tmp_path / "file" / "sub"))


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConfigError, match=r"/taken .*: is a directory"):
        write_file(str(tmp_path / "taken"), b"content")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_a_new_file_is_its_owners_and_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new.md"
    write_new_file(str(path), b"content")
    assert (path.read_bytes(), mode(path)) == (b"content", 0o600)
    with pytest.raises(CrowError, match=r"/new\.md ") as failure:
        write_new_file(str(path), b"other")
    assert failure.value.remedy == "Choose another name, or move it away."
    assert path.read_bytes() == b"content"


def test_a_new_file_for_which_the_disk_has_no_room_is_named_and_not_left_by_halves(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(b"x" * 100_000)
    fill_up(small_disk / "filler")
    (small_disk / "other").unlink()
    with pytest.raises(CrowError, match=r"/new\.md .*: no space left"):
        write_new_file(str(small_disk / "new.md"), b"x" * 200_000)
    assert [entry.name for entry in small_disk.iterdir()] == ["filler"]


def test_importing_and_reading_create_nothing(tmp_path: Path) -> None:
    code = (
        "import os; from crow.config.home import home; from crow.config.load import load_settings;"
        "import crow.config.discovery; load_settings(home(os.environ))"
    )
    environ = {"HOME": str(tmp_path), "CROW_HOME": str(tmp_path / "crow")}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
    assert list(tmp_path.iterdir()) == []
