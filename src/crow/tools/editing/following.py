"""Replacements in a text that somebody has changed meanwhile: carried along, or given up."""

import bisect
from collections.abc import Sequence
from itertools import accumulate, pairwise

from crow.diff import compare_lines, split_lines
from crow.tools.editing.places import Replacement, only_place


def follow(replacements: Sequence[Replacement], before: str, now: str) -> list[Replacement] | None:
    """The same replacements in the text as it is now; None if one of the replaced texts was touched.

    A text that was the only one of its kind must still be. One of several is found by its lines: they must be
    unchanged, wherever they are by now.
    """
    tracks = _Tracks(before, now)
    moved: list[Replacement] = []
    only_places: dict[str, tuple[int | None, int | None]] = {}  # `all` means the same text many times over
    for replacement in replacements:
        old = before[replacement.start : replacement.end]
        if old not in only_places:
            only_places[old] = (only_place(before, old), only_place(now, old))
        was_at, is_at = only_places[old]
        start = is_at if was_at is not None else tracks.follow(replacement.start, replacement.end)
        if start is None:
            return None
        moved.append(replacement._replace(start=start, end=start + len(old)))
    return moved if _in_same_order(replacements, moved) else None


class _Tracks:
    """Where the lines of a text have gone to."""

    def __init__(self, before: str, now: str) -> None:
        before_lines, now_lines = split_lines(before), split_lines(now)
        self._changes = compare_lines(before_lines, now_lines)
        self._ends = [change.old_end for change in self._changes]
        self._before = [0, *accumulate(map(len, before_lines))]
        self._now = [0, *accumulate(map(len, now_lines))]

    def follow(self, start: int, end: int) -> int | None:
        """Where a text begins now, if its lines are unchanged."""
        first = bisect.bisect_right(self._before, start) - 1
        last = bisect.bisect_left(self._before, end) - 1
        passed = bisect.bisect_right(self._ends, first)
        if passed < len(self._changes) and self._changes[passed].old_start <= last:
            return None
        shift = self._changes[passed - 1].new_end - self._changes[passed - 1].old_end if passed else 0
        return self._now[first + shift] + start - self._before[first]


def _in_same_order(before: Sequence[Replacement], now: Sequence[Replacement]) -> bool:
    order = sorted(range(len(before)), key=lambda number: before[number][:2])
    return all(now[one].start <= now[other].start for one, other in pairwise(order))
