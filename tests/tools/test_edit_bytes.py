"""An edit changes the bytes that are meant and no other: every kind of file, through every kind of workspace."""

import asyncio
import random
from pathlib import Path

import pytest

from crow.errors import WorkspaceError
from tests.support.buffers import FLAVOURS, opened
from tests.support.file_cases import CASES
from tests.tools.calling import Hand


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_table(tmp_path: Path, flavour: str):
    """More than a hundred files in one test, since each takes a millisecond; the names of those that fail are shown."""
    wrong: dict[str, object] = {}

    async def run() -> None:
        async with opened(tmp_path, flavour) as workspace:
            for number, (name, case) in enumerate(CASES.items()):
                path = tmp_path / f"{number}.txt"
                path.write_bytes(case.content)
                path.chmod(0o640)
                try:
                    await Hand(workspace).edit(path.name, case.old, case.new)
                except WorkspaceError as error:
                    wrong[name] = error
                else:
                    if path.read_bytes() != case.expected:
                        wrong[name] = path.read_bytes()[:200]
                    assert path.stat().st_mode & 0o777 == 0o640

    asyncio.run(run())
    assert not wrong
    assert len(CASES) >= 60
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".txt")]


WORDS = ("alpha", "beta", "größe", "λ", "\U0001f426", "x = 1", "", "    ", "\tfoo()", "# “note”", "\x0c", "a\u2028b")
ENDS = ("\n", "\r\n", "\r")


def random_text(choice: random.Random) -> str:
    ends = choice.choices(ENDS, k=choice.randint(1, 3))
    lines = [choice.choice(WORDS) + choice.choice(WORDS) + choice.choice(ends) for _ in range(choice.randint(1, 30))]
    return "".join(lines).removesuffix("\n") if choice.random() < 0.3 else "".join(lines)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_random_edits_of_random_files(tmp_path: Path, flavour: str, seed: int):
    """Unique marks are put into a random file; each is replaced, and everything around them must stay."""
    choice = random.Random(seed)

    async def run() -> None:
        async with opened(tmp_path, flavour) as workspace:
            for number in range(40):
                text = random_text(choice)
                spots = sorted(choice.randint(0, len(text)) for _ in range(choice.randint(1, 4)))
                spots = [spot for spot in spots if text[spot - 1 : spot + 1] != "\r\n"]
                pieces = [text[start:end] for start, end in zip([0, *spots], [*spots, len(text)], strict=True)]
                before = "".join(f"{piece}<{n}>" for n, piece in enumerate(pieces))
                after = "".join(f"{piece}[{n}!]" for n, piece in enumerate(pieces))
                codec = choice.choice(("utf-8", "utf-8-sig", "utf-16"))
                path = tmp_path / f"{number}.txt"
                path.write_bytes(before.encode(codec))
                edits = [{"old": f"<{n}>", "new": f"[{n}!]"} for n in range(len(pieces))]
                choice.shuffle(edits)
                await Hand(workspace).call("edit", path=path.name, edits=edits)
                assert path.read_bytes() == after.encode(codec), (seed, number)

    asyncio.run(run())
