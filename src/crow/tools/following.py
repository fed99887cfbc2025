"""Replacements in a text that somebody has changed meanwhile: carried along, or given up."""

import bisect
from collections.abc import Sequence
from itertools import accumulate, pairwise

from crow.diff import compare_lines, split_lines
from crow.tools.matching import Replacement


def follow(replacements: Sequence[Replacement], before: str, now: str) -> list[Replacement] | None:
    """The same replacements in the text as it is now; None if one of the replaced texts was touched.

    A text that was the only one of its kind must still be. One of several is found by its lines: they must be
    unchanged, wherever they are by now.
    """
    tracks = _Tracks(before, now)
    moved: list[Replacement] = []
    for replacement in replacements:
        old = before[replacement.start : replacement.end]
        is_unique = _only_place(before, old) is not None
        start = _only_place(now, old) if is_unique else tracks.follow(replacement.start, replacement.end)
        if start is None:
            return None
        moved.append(replacement._replace(start=start, end=start + len(old)))
    return moved if _in_same_order(replacements, moved) else None


class _Tracks:
    """Where the lines of a text have gone to."""

    def __init__(self, before: str, now: str) -> None:
        before_lines, now_lines = split_lines(before), split_lines(now)
        self._changes = compare_lines(before_lines, now_lines)
        self._before = [0, *accumulate(map(len, before_lines))]
        self._now = [0, *accumulate(map(len, now_lines))]

    def follow(self, start: int, end: int) -> int | None:
        """Where a text begins now, if its lines are unchanged."""
        first = bisect.bisect_right(self._before, start) - 1
        last = bisect.bisect_left(self._before, end) - 1
        shift = 0
        for change in self._changes:
            if change.old_end <= first:
                shift = change.new_end - change.old_end
            elif change.old_start <= last:
                return None
        return self._now[first + shift] + start - self._before[first]


def _only_place(text: str, wanted: str) -> int | None:
    place = text.find(wanted)
    return place if place >= 0 and text.find(wanted, place + 1) < 0 else None


def _in_same_order(before: Sequence[Replacement], now: Sequence[Replacement]) -> bool:
    order = sorted(range(len(before)), key=lambda number: before[number][:2])
    return all(now[one].start <= now[other].start for one, other in pairwise(order))
