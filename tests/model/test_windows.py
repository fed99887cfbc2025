"""The windows that servers and refusals told of: kept for other processes, and forgotten after a while."""

import asyncio
import time
from pathlib import Path

import pytest

from crow.model.base import ModelInfo
from crow.model.facts import KEPT_FOR, RENEWED_AFTER, WINDOWS_FILE, Windows

HERE = ModelInfo("local", "m", host="127.0.0.1:8080")
OTHERS = [
    ModelInfo("other", "m", host="127.0.0.1:8080"),
    ModelInfo("local", "n", host="127.0.0.1:8080"),
    ModelInfo("local", "m", host="127.0.0.1:8081"),
]


def saved(windows: Windows) -> Windows:
    """What another process has of them."""
    asyncio.run(windows.save())
    return read(Path(windows._home))


def read(home: Path) -> Windows:
    windows = Windows(str(home))
    windows.read()
    return windows


def test_what_was_learned_is_there_in_the_next_process_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = read(home)
    first.refuse(HERE, 8192, None)
    second = saved(first)
    assert second.get(HERE) == 8192
    assert [second.get(other) for other in OTHERS] == [None, None, None]
    assert (home / WINDOWS_FILE).stat().st_mode & 0o777 == 0o600


def test_a_refusal_wins_over_a_report_until_the_server_says_something_else(tmp_path: Path) -> None:
    first = read(tmp_path)
    first.report(HERE, 32_768)
    first.refuse(HERE, 8192, 32_768)
    second = saved(first)
    second.report(HERE, 32_768)
    assert second.get(HERE) == 8192
    second.report(HERE, 16_384)
    third = saved(second)
    assert third.get(HERE) == 16_384
    third.report(HERE, 32_768)
    assert third.get(HERE) == 32_768


def test_a_bound_stays_one_until_a_number_is_named(tmp_path: Path) -> None:
    first = read(tmp_path)
    first.bound(HERE, 8000, None)
    second = saved(first)
    assert second.get(HERE) == 6000
    assert saved(second).bound(HERE, 6000, 6000) == 4500
    second.refuse(HERE, 8192, None)
    third = saved(second)
    assert third.get(HERE) == 8192
    assert third.bound(HERE, 8000, 8192) is None


def test_two_processes_lose_nothing_of_each_other_and_the_later_word_counts(tmp_path: Path) -> None:
    first, second = read(tmp_path), read(tmp_path)
    first.report(HERE, 1000)
    second.report(OTHERS[0], 2000)
    saved(first)
    both = saved(second)
    assert (both.get(HERE), both.get(OTHERS[0])) == (1000, 2000)
    second.read()
    assert second.get(HERE) == 1000
    second.report(HERE, 3000)
    first.read()  # before the other one has stored it
    assert (first.get(HERE), saved(second).get(HERE)) == (1000, 3000)
    first.read()
    assert first.get(HERE) == 3000


@pytest.mark.parametrize(
    "damage",
    [b"{", b"", b"\xff\xfe", b'{"version": 9, "windows": {}}', b'{"version": 1, "windows": {"x": {"tokens": -1}}}'],
)
def test_a_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / WINDOWS_FILE).write_bytes(damage)
    windows = read(tmp_path)
    assert windows.get(HERE) is None
    windows.report(HERE, 4096)
    assert saved(windows).get(HERE) == 4096


def test_a_window_is_forgotten_after_a_week_unless_the_server_says_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(tmp_path)
    first.report(HERE, 4096)
    first.refuse(OTHERS[0], 4096, None)
    saved(first)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + RENEWED_AFTER + 1)
    first.report(HERE, 4096)
    saved(first)
    monkeypatch.setattr(time, "time", lambda: now + KEPT_FOR + 1)
    later = read(tmp_path)
    assert (later.get(HERE), later.get(OTHERS[0])) == (4096, None)


def test_nothing_is_written_again_that_is_known_nor_for_a_script(tmp_path: Path) -> None:
    windows = read(tmp_path)
    windows.report(ModelInfo("scripted", "demo"), 4096)
    assert saved(windows).get(ModelInfo("scripted", "demo")) is None
    assert not (tmp_path / WINDOWS_FILE).exists()
    windows.report(HERE, 4096)
    saved(windows)
    (tmp_path / WINDOWS_FILE).unlink()
    windows.report(HERE, 4096)
    saved(windows)
    assert not (tmp_path / WINDOWS_FILE).exists()


def test_a_home_that_cannot_be_written_holds_up_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    windows = read(tmp_path / "file")
    windows.report(HERE, 4096)
    saved(windows)
    assert windows.get(HERE) == 4096
