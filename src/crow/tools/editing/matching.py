"""Finding the text that an edit means, and what the file becomes.

All edits of a call are matched against the text as it is, so their order means nothing; only one whose old text is not
there, or not unique, may mean what the edits before it made. An exact match comes first; line ends never matter, since
the model does not see them. Only if there is none, more is overlooked, step by step (`tolerant`), and then
the place must be the only one. What was found is fitted into its surroundings (`fitting`) before anybody is
shown it.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

import msgspec

from crow.diff import Change, common_beginning, compare_lines, split_lines
from crow.errors import WorkspaceError
from crow.tools.advice import OF_A_SESSION, Advice
from crow.tools.editing import TextEdit
from crow.tools.editing.line_ends import without_foreign_ends
from crow.tools.editing.methods import check_classes, has_functions, match_of_methods
from crow.tools.editing.nearest import LONGEST_LINE, describe_nearest
from crow.tools.editing.omissions import left_out
from crow.tools.editing.places import Match, Replacement, Source, occurrences, only_place
from crow.tools.editing.readings import numbers_of, with_line_ends_meant
from crow.tools.editing.soundness import compiles, first_sound, is_python
from crow.tools.editing.tolerant import (
    MOST_PLACES,
    Found,
    corrected_matches,
    match_in_block,
    match_without_first,
    tolerant_matches,
)
from crow.workspace.text import CRLF, with_line_feeds

MOST_PLACES_NAMED = 20
MOST_PLACES_SHOWN = 3
"""Places of an ambiguous text that are quoted with their surroundings."""
MOST_REPLACED = 10_000
"""Places that the edits of one call may change."""
LARGEST_TEXT = 16 * 1024 * 1024
"""Characters of a file that is edited."""
LARGEST_TOLERANT = 4 * 1024 * 1024
"""Characters of a file in which anything is overlooked, or the nearest place looked for: that takes many times its size
in memory, and calls during which nothing else goes on."""
SURELY_MEANT = 12
"""Characters of a new text that is taken for an edit that was made already, if the file has it."""


class EditPlan(NamedTuple):
    replacements: list[Replacement]
    overlooked: tuple[str, ...] = ()
    """What had to be overlooked for a match, in words for the model."""


class _NoPlace(WorkspaceError):
    """An edit has no place in a text, or more than one."""


def plan_edits(
    text: str,
    edits: Sequence[TextEdit],
    *,
    exactly: bool = False,
    reveal: bool = True,
    advice: Advice = OF_A_SESSION,
    path: str = "",
) -> EditPlan:
    """Where each edit applies. WorkspaceError, in words for the model, if one does not, or not clearly.

    `reveal`: whether the words may quote the file, which the model has perhaps never been shown.
    """
    if len(text) > LARGEST_TEXT:
        raise WorkspaceError(
            f"The file is too large to be edited: it has {len(text):,} characters, and {LARGEST_TEXT:,} are the most.",
            remedy=advice.change_otherwise,
        )
    return _Planner(text, edits, _Manner(exactly, reveal, advice, path, len(edits) == 1)).plan()


class _Manner(NamedTuple):
    """How edits are looked for, and how a failure is put into words."""

    exactly: bool
    reveal: bool
    advice: Advice
    path: str
    alone: bool
    """Whether there is but one edit: others could make more of what one of them makes."""


class _Planner:
    def __init__(self, text: str, edits: Sequence[TextEdit], manner: _Manner) -> None:
        self._text = text
        self._source = Source(text)
        self._edits = [_with_ends_of_the_file(text, edit) for edit in edits]
        self._manner = manner
        self._found: list[Replacement] = []
        self._notes: list[str] = []

    def plan(self) -> EditPlan:
        for number, edit in enumerate(self._edits, 1):
            name = f"Edit {number}" if len(self._edits) > 1 else "The edit"
            if edit in self._edits[: number - 1]:
                self._notes.append(f"{name} is the same as edit {self._edits.index(edit) + 1}.")
            elif edit.old == edit.new:
                self._notes.append(f"{name} changes nothing: its old and its new text are the same.")
            else:
                self._add(number, edit, name)
        if not self._found:
            raise WorkspaceError(" ".join(self._notes), remedy=self._manner.advice.read_again)
        return EditPlan(self._found, tuple(self._notes))

    def _add(self, number: int, edit: TextEdit, name: str) -> None:
        try:
            matches = self._matches(self._source, edit, name)
        except _NoPlace as error:
            if not self._follows_on(number, edit, name) and not self._is_done(edit, name):
                raise WorkspaceError(error.message, remedy=error.remedy) from None
            return
        if len(self._found) + len(matches) > MOST_REPLACED:
            raise WorkspaceError(
                f"{name} is too much for one call: more than {MOST_REPLACED:,} places would change.",
                remedy=self._manner.advice.change_otherwise,
            )
        self._found += [self._source.replacement(match, number) for match in matches]

    def _matches(self, source: Source, edit: TextEdit, name: str) -> list[Match]:
        times = self._edits.count(edit)
        matches, notes = _match(source, edit, name, self._manner, times=times)
        self._notes += notes
        return matches

    def _follows_on(self, number: int, edit: TextEdit, name: str) -> bool:
        """Whether an edit means what the edits before it made: then it is joined with these."""
        if not self._found:
            return False
        after = apply(self._text, self._found)
        source = Source(after)
        try:
            matches = self._matches(source, edit, name)
        except WorkspaceError:
            return False
        joined = [source.replacement(match, number) for match in matches]
        self._found = _joined(self._text, self._found, joined)
        self._notes.append(f"{name} was applied to what the edits before it made.")
        return True

    def _is_done(self, edit: TextEdit, name: str) -> bool:
        """Whether an edit among others was made before: its new text is there."""
        new = with_line_feeds(edit.new)
        if len(self._edits) == 1 or len(new.strip()) < SURELY_MEANT or not self._manner.reveal:
            return False
        place = only_place(self._source.plain, new)
        if place is not None:
            line = self._source.line_of(place)
            self._notes.append(f"{name} was made already: its new text is at line {line}, its old text nowhere.")
        return place is not None


def _joined(text: str, first: Sequence[Replacement], then: Sequence[Replacement]) -> list[Replacement]:
    """One list of replacements for two that follow each other: the second is about what the first made."""
    joined = _cores(text, first)
    for late in sorted(then, key=lambda replacement: replacement.start, reverse=True):
        joined = _with_late(text, joined, late)
    return joined


def _with_late(text: str, cores: Sequence[Replacement], late: Replacement) -> list[Replacement]:
    """`late` is about the text with the cores replaced: those that it touches become one with it."""
    before: list[Replacement] = []
    touched: list[Replacement] = []
    after: list[Replacement] = []
    grown = start_shift = end_shift = 0
    head = tail = ""
    for core in cores:
        start = core.start + grown
        end = start + len(core.new)
        grown += len(core.new) - (core.end - core.start)
        if end < late.start or (end == late.start and start < late.start):
            before.append(core)
            start_shift = end_shift = grown
        elif start > late.end or (start == late.end and late.start < late.end):
            after.append(core)
        else:
            touched.append(core)
            head = core.new[: max(0, late.start - start)] if len(touched) == 1 else head
            tail = core.new[max(0, late.end - start) :] if late.end < end else ""
            end_shift = grown
    start = min([late.start - start_shift, *(core.start for core in touched)])
    end = max([late.end - end_shift, *(core.end for core in touched)])
    return [*before, Replacement(start, end, head + late.new + tail, late.edit), *after]


def _with_ends_of_the_file(text: str, edit: TextEdit) -> TextEdit:
    """Who writes LF in the old text and CR LF in the new one means it; else a file of LF alone gets no CR LF."""
    if "\r" in edit.old.replace(CRLF, "") and "\r" not in text:  # its line ends are those of nobody
        return msgspec.structs.replace(edit, new=with_line_feeds(edit.new))
    if "\n" in edit.old and CRLF not in edit.old:
        return edit
    return msgspec.structs.replace(edit, new=without_foreign_ends(text, edit.new))


def occurs_several_times(text: str, edit: TextEdit) -> bool:
    """Whether an edit that means one place could have meant another in this text."""
    places = occurrences(with_line_feeds(text), with_line_feeds(edit.old))
    return not edit.all and next(places, None) is not None and next(places, None) is not None


def apply(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with everything replaced. Edits may share surroundings, but not what they change."""
    pieces: list[str] = []
    position = 0
    for core in _cores(text, replacements):
        pieces += [text[position : core.start], core.new]
        position = core.end
    return "".join([*pieces, text[position:]])


def _cores(text: str, replacements: Sequence[Replacement]) -> list[Replacement]:
    """What the replacements really change, in order. WorkspaceError if two of them change the same."""
    cores: list[Replacement] = []
    for group in _overlapping(replacements):
        cores += [_core(text, group[0])] if len(group) == 1 else _merged(text, group)
    for one, other in pairwise(cores):
        if other.start == one.end == one.start and not _may_follow(text, one, other):
            raise _overlap(text, one, other)
    return cores


def _overlapping(replacements: Sequence[Replacement]) -> list[list[Replacement]]:
    """The replacements in order, those together that have a part of the text in common."""
    groups: list[list[Replacement]] = []
    end = -1
    for replacement in sorted(replacements, key=lambda one: (one.start, one.end)):
        if replacement.start < end:
            groups[-1].append(replacement)
        else:
            groups.append([replacement])
        end = max(end, replacement.end)
    return groups


def _merged(text: str, group: Sequence[Replacement]) -> list[Replacement]:
    """For replacements that overlap: the lines that each of them changes. Two may change a line only in the same way.

    Merged by lines and never by characters: what two edits make of one line is what neither of them says.
    """
    start, end = group[0].start, max(one.end for one in group)
    lines = split_lines(text[start:end])
    offsets = [start, *(start + length for length in accumulate(map(len, lines)))]
    found: list[Replacement] = []
    for one in group:
        new = split_lines(text[start : one.start] + one.new + text[one.end : end])
        for change in _line_by_line(compare_lines(lines, new)):
            made = "".join(new[change.new_start : change.new_end])
            found.append(Replacement(offsets[change.old_start], offsets[change.old_end], made, one.edit))
    merged: list[Replacement] = []
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        last = merged[-1] if merged else None
        if last is not None and one[:3] == last[:3]:
            continue
        inserted = last is not None and one.start == one.end == last.start
        if last is not None and (one.start < last.end or (inserted and not _may_follow(text, last, one))):
            raise _overlap(text, last, one)
        merged.append(one)
    return merged


def _line_by_line(changes: Sequence[Change]) -> Iterator[Change]:
    """Changes of as many lines into as many, each line by itself."""
    for change in changes:
        count = change.old_end - change.old_start
        if count != change.new_end - change.new_start:
            yield change
            continue
        for number in range(count):
            old, new = change.old_start + number, change.new_start + number
            yield Change(old, old + 1, new, new + 1)


def _overlap(text: str, one: Replacement, other: Replacement) -> WorkspaceError:
    line = text.count("\n", 0, max(one.start, other.start)) + 1
    first, second = sorted((one.edit, other.edit))
    return WorkspaceError(
        f"Edits {first} and {second} overlap at line {line}, and each makes something else of it. "
        "Nothing was changed. Make one edit of them."
    )


# --- from exact to tolerant


def _match(
    source: Source, edit: TextEdit, name: str, manner: _Manner, *, times: int
) -> tuple[list[Match], tuple[str, ...]]:
    """The places that an edit means, and what must be said of how they were found."""
    old = with_line_feeds(edit.old)
    if edit.all and (places := list(islice(occurrences(source.plain, old, step=len(old)), MOST_REPLACED + 1))):
        _check_expected(source, edit, places, name)
        return [Match(start, start + len(old), edit.new) for start in places], ()
    places = list(islice(occurrences(source.plain, old), MOST_PLACES))
    if len(places) == 1 or (places and len(places) == times):
        around = (source.plain[: places[0]], source.plain[places[0] + len(old) :])
        meant = with_line_ends_meant(manner.path, edit.new, around) if "\\n" not in edit.old else None
        if meant is not None:
            matches, notes = _exact_matches(source, msgspec.structs.replace(edit, new=meant), places, name, manner)
            return matches, (*notes, f"{name}: `\\n` in its new text was read as line ends.")
        return _exact_matches(source, edit, places, name, manner)
    if places:
        raise _NoPlace(_ambiguous(source, places, name, manner))
    if not manner.exactly and old.strip() and len(source.text) <= LARGEST_TOLERANT:
        for found in tolerant_matches(source, old, with_line_feeds(edit.new), every=edit.all, path=manner.path):
            matches = _meant(source, found, edit)
            if not matches:
                raise _NoPlace(_unclear(source, found, name, manner))
            if found.problem:
                raise WorkspaceError(
                    f"{name} is unclear: its old text is there without {found.what}, but {found.problem}.",
                    remedy="Write both texts as they stand in the file, escaped no more than JSON needs it.",
                )
            _check_expected(source, edit, [match.start for match in matches], name)
            _check_classes(source, matches[0], edit, name, manner, is_shifted=True)
            where = source.line_of(matches[0].start)
            return matches, (f"{name} matched at line {where} by overlooking {found.what}.",)
    raise _NoPlace(_not_found(source, edit, name, manner))


def _check_expected(source: Source, edit: TextEdit, places: Sequence[int], name: str) -> None:
    """WorkspaceError if an edit of all places has another number of them than its call says."""
    if edit.expected_replacements not in (0, len(places)):
        raise WorkspaceError(
            f"{name} is said to have {edit.expected_replacements} places, and its old text occurs {_number(places)} "
            f"times, at lines {_said_lines(source, places)}. Nothing was changed.",
            remedy="Give the right number, or add lines around the old text until it is the place that is meant.",
        )


def _meant(source: Source, found: Found, edit: TextEdit) -> list[Match]:
    """Those of the places that the edit can mean; none if that is unclear."""
    if len(found.matches) == 1 or (edit.all and all(one.end <= other.start for one, other in pairwise(found.matches))):
        return found.matches
    here = [match for match in found.matches if source.line_of(match.start) == found.line]
    return here if len(here) == 1 else []


def _exact_matches(
    source: Source, edit: TextEdit, places: Sequence[int], name: str, manner: _Manner
) -> tuple[list[Match], tuple[str, ...]]:
    """The new text as it is, unless that surely breaks the file: one that takes the place of whole lines does not run
    into the line after them, and a usual slip is taken back where the file is sound without it."""
    old, new = with_line_feeds(edit.old), with_line_feeds(edit.new)
    ends = [place + len(old) for place in places]
    lost = old.endswith("\n") and new.strip() and not new.endswith("\n") and old[:-1] != new
    if lost and any(source.plain[end : end + 1] not in ("", "\n") for end in ends):
        note = f"{name}: the line end after the new text was kept, so that it does not run into the next line."
        return [Match(place, end, new + "\n") for place, end in zip(places, ends, strict=True)], (note,)
    if len(places) == 1 and (found := _corrected(source, places[0], old, new, manner)):
        what, match = found
        _check_classes(source, match, edit, name, manner, is_shifted=True)
        return [match], (f"{name} matched at line {source.line_of(match.start)} by overlooking {what}.",)
    if manner.alone and len(places) == 1:
        _check_classes(source, Match(places[0], ends[0], new), edit, name, manner, is_shifted=False)
    return [Match(place, end, edit.new) for place, end in zip(places, ends, strict=True)], ()


def _check_classes(
    source: Source, match: Match, edit: TextEdit, name: str, manner: _Manner, *, is_shifted: bool
) -> None:
    if has_functions(manner.path, edit.old, edit.new):
        check_classes(source.plain, match, name, is_shifted=is_shifted)


def _corrected(source: Source, place: int, old: str, new: str, manner: _Manner) -> tuple[str, Match] | None:
    literal = Match(place, place + len(old), new)
    match = match_without_first(source, place, old, new)
    if match is not None and "\n" in new.strip() and is_python(manner.path):
        # One line tells nothing of where it belongs; more that are sound are where they belong.
        match = None if compiles(source.plain[:place] + new + source.plain[literal.end :]) else match
    if match is None and has_functions(manner.path, old, new):
        match = match_of_methods(source.plain, place, old, new)
    if match is None and is_python(manner.path):
        match = match_in_block(source, place, old, new)
    if match is not None:
        return "indentation", match
    return first_sound(manner.path, source.plain, literal, corrected_matches(source, place, old, new))


# --- what the file becomes


def _may_follow(text: str, one: Replacement, other: Replacement) -> bool:
    """Whether two texts that are inserted at one place can stand there one after the other: if both are whole lines."""
    begins = one.start == 0 or text[one.start - 1] == "\n"
    ends = one.start == len(text) or text[one.start] in "\r\n"
    return all(
        (begins and core.new.endswith("\n")) or (ends and core.new.startswith(("\n", "\r"))) for core in (one, other)
    )


def _core(text: str, replacement: Replacement) -> Replacement:
    """Without the beginning and the end that the old and the new text have in common."""
    old, new = text[replacement.start : replacement.end], replacement.new
    head = common_beginning(old, new)
    tail = common_beginning(old[head:][::-1], new[head:][::-1])
    return replacement._replace(
        start=replacement.start + head, end=replacement.end - tail, new=new[head : len(new) - tail]
    )


# --- in words


def _number(places: Sequence[int]) -> str:
    return str(len(places)) if len(places) < MOST_PLACES else f"{MOST_PLACES} or more"


def _said_lines(source: Source, places: Sequence[int]) -> str:
    lines = [str(source.line_of(place)) for place in places[:MOST_PLACES_NAMED]]
    more = f" and {len(places) - MOST_PLACES_NAMED} more" if len(places) > MOST_PLACES_NAMED else ""
    return ", ".join(lines) + more


def _ambiguous(source: Source, places: Sequence[int], name: str, manner: _Manner) -> str:
    return (
        f"{name} is ambiguous: its old text occurs {_number(places)} times, at lines {_said_lines(source, places)}. "
        f"{manner.advice.make_it_unique}{_surroundings(source, places, manner)}"
    )


def _unclear(source: Source, found: Found, name: str, manner: _Manner) -> str:
    places = [match.start for match in found.matches]
    return (
        f"{name} is ambiguous: its old text is not there exactly, and by overlooking {found.what} it could be "
        f"meant at lines {_said_lines(source, places)}. Copy it exactly, with enough around it to be unique."
        f"{_surroundings(source, places, manner)}"
    )


def _surroundings(source: Source, places: Sequence[int], manner: _Manner) -> str:
    """The first places with the lines around them, by which they can be told apart."""
    if not manner.reveal or len(source.text) > LARGEST_TOLERANT:
        return ""
    numbers = dict.fromkeys(source.line_of(place) for place in places[:MOST_PLACES_SHOWN])
    if len(numbers) < 2:
        return ""
    lines = source.text.removesuffix("\n").split("\n")
    around = sorted({at for number in numbers for at in range(number - 1, number + 2) if 0 < at <= len(lines)})
    told = ""
    for one, at in zip([0, *around], around, strict=False):
        told += "\n   ..." if 0 < one < at - 1 else ""
        told += f"\n{at:>6}\t{lines[at - 1][:LONGEST_LINE].rstrip()}"
    return told


def _not_found(source: Source, edit: TextEdit, name: str, manner: _Manner) -> str:
    told = f"{name} does not apply: its old text is not in the file."
    advice = manner.advice
    if (place := left_out(manner.path, source.text, edit.old)) is not None:
        return (
            f"{told} Line {place[0]} of it, `{place[1][:100]}`, stands for something that was left out: an old text "
            "must be in the file as it is. Copy all of it, or make one edit for each part that changes."
        )
    if not manner.reveal:
        return f"{told} {advice.read_first}"
    if (place := _made_place(source, edit)) is not None:
        return (
            f"{told} It seems to be made already: its new text is at line {source.line_of(place)}. Nothing was "
            f"changed. Go on, or look again if something else is meant: {advice.read_again}"
        )
    if numbers_of(edit.old):
        told += " It seems to contain line numbers: leave them out."
    if len(source.text) > LARGEST_TOLERANT:
        return f"{told} In a file of this size it must be copied exactly. {advice.read_again}"
    lines = [line.removesuffix("\r") for line in source.text.split("\n")]
    nearest = describe_nearest(lines, edit.old)
    return f"{told} {nearest}" if nearest else f"{told} Nothing there is like it. {advice.read_again}"


def _made_place(source: Source, edit: TextEdit) -> int | None:
    new = with_line_feeds(edit.new)
    return only_place(source.plain, new) if len(new.strip()) >= SURELY_MEANT else None
