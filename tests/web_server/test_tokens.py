"""Links and tokens over days, and wrong ones in a row, with a clock of the test's own."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crow.errors import ConfigError
from crow.web_server import tokens as subject
from crow.web_server.tokens import FREE_MISTAKES, MOST_LINKS, MOST_TOKENS, MOST_WAITING, Links, Mistakes, Tokens

DAY = 24 * 3600


class Clock:
    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def __call__(self) -> float:
        return self.time


def test_a_link_is_good_for_ten_minutes_and_once():
    clock = Clock()
    links = Links(clock)
    first, second = links.make(), links.make()
    assert first != second
    clock.time += 599
    assert links.spend(first)
    assert not links.spend(first)
    clock.time += 2
    assert not links.spend(second)
    assert not links.spend("")


def test_a_link_is_good_again_if_whoever_opened_it_was_told_nothing():
    clock = Clock()
    links = Links(clock)
    link = links.make()
    assert links.spend(link)
    links.settle(link, is_used=False)
    assert links.spend(link)
    links.settle(link, is_used=True)
    links.settle(link, is_used=False)
    assert not links.spend(link)

    late, forgotten = links.make(), links.make()
    assert links.spend(late)
    assert links.spend(forgotten)
    clock.time += 601
    links.settle(late, is_used=False)
    assert not links.spend(late)
    links.forget()
    links.settle(forgotten, is_used=False)
    assert not links.spend(forgotten)


def test_few_links_are_open_at_a_time():
    links = Links()
    made = [links.make() for _ in range(MOST_LINKS + 1)]
    assert [links.spend(link) for link in made] == [False] + [True] * MOST_LINKS


def test_a_token_that_is_used_lives_on_and_one_that_is_not_ends(tmp_path: Path):
    clock = Clock()

    async def talk() -> None:
        tokens = Tokens(str(tmp_path), clock)
        used, _ = await tokens.make("used")
        unused, _ = await tokens.make("unused")
        for _ in range(3):
            clock.time += 20 * DAY
            assert await tokens.find(used) is not None
        assert await tokens.find(unused) is None
        again = Tokens(str(tmp_path), clock)
        assert [token.name for token in again.all] == ["used"]
        clock.time += 31 * DAY
        assert await Tokens(str(tmp_path), clock).find(used) is None

    asyncio.run(talk())


def test_only_hashes_are_stored_and_only_for_this_user(tmp_path: Path):
    async def talk() -> str:
        secret, _ = await Tokens(str(tmp_path)).make("a\x1b[31m name\nof two lines" + "x" * 200)
        return secret

    secret = asyncio.run(talk())
    path = tmp_path / "web-tokens.json"
    assert path.stat().st_mode & 0o777 == 0o600
    (stored,) = json.loads(path.read_text())["tokens"]
    assert secret not in path.read_text()
    assert len(secret) == 43, "256 bits"
    assert stored["name"].isprintable()
    assert len(stored["name"]) <= 100


def test_the_oldest_token_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()

    async def talk() -> None:
        tokens = Tokens(str(tmp_path), clock)
        first, _ = await tokens.make("first")
        monkeypatch.setattr(subject, "write_versioned", lambda path, content: None)  # which takes its time
        for number in range(MOST_TOKENS):
            clock.time += 1
            await tokens.make(str(number))
        assert len(tokens.all) == MOST_TOKENS
        assert await tokens.find(first) is None

    asyncio.run(talk())


@pytest.mark.parametrize("content", ["{", '{"version": 2, "tokens": []}', '{"version": 1, "tokens": 7}'])
def test_a_file_that_cannot_be_read_is_named(content: str, tmp_path: Path):
    (tmp_path / "web-tokens.json").write_text(content)

    async def talk() -> None:
        Tokens(str(tmp_path))

    with pytest.raises(ConfigError, match=r"web-tokens\.json"):
        asyncio.run(talk())


def test_a_full_disk_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(path: str, content: object) -> None:
        raise ConfigError(f"{path} cannot be written: no space left on device.")

    async def talk() -> None:
        tokens = Tokens(str(tmp_path))
        monkeypatch.setattr(subject, "write_versioned", fail)
        secret, _ = await tokens.make("page")
        assert await tokens.find(secret) is not None

    asyncio.run(talk())


def test_a_token_that_is_forgotten_while_it_is_stored_is_not_known(tmp_path: Path):
    """Whoever waits for the disk then has not been let in yet, so that there is no connection to end."""

    async def talk() -> None:
        tokens = Tokens(str(tmp_path))
        making = asyncio.create_task(tokens.make("page"))
        await asyncio.sleep(0)
        (gone,) = tokens.forget([token.id for token in tokens.all])
        _, made = await making
        assert made == gone
        assert not tokens.knows(made)
        await tokens.store()
        assert Tokens(str(tmp_path)).all == []

    asyncio.run(talk())


def test_nothing_is_proved_of_a_token_that_has_ended(tmp_path: Path):
    clock = Clock()

    async def talk() -> None:
        tokens = Tokens(str(tmp_path), clock)
        _, made = await tokens.make("page")
        assert tokens.prove(made.id, "challenge")
        clock.time += 31 * DAY
        assert tokens.prove(made.id, "challenge") == ""

    asyncio.run(talk())


def test_a_token_that_is_in_use_does_not_end(tmp_path: Path):
    """Also if it was used to connect long ago: else it would not be listed, and could not be forgotten."""
    clock = Clock()

    async def talk() -> None:
        tokens = Tokens(str(tmp_path), clock)
        _, connected = await tokens.make("connected")
        clock.time += 31 * DAY
        tokens.use([connected])
        assert tokens.all == [connected]

    asyncio.run(talk())


def counted(mistakes: int) -> tuple[list[bool], Callable[[], float]]:
    clock = Clock()

    async def talk() -> list[bool]:
        counter = Mistakes(clock)
        return list(await asyncio.gather(*(counter.add() for _ in range(mistakes))))

    return asyncio.run(talk()), clock


def test_many_mistakes_at_once_are_not_all_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subject, "PENALTY", 0.01)
    answers, _ = counted(FREE_MISTAKES + MOST_WAITING + 5)
    assert answers.count(False) == 5
    answers, _ = counted(FREE_MISTAKES)
    assert all(answers)
