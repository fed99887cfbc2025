"""Finds the place in a file that each edit means, exactly first and tolerantly next, and plans what the file becomes.

All edits of a call are matched against the text as it is, so their order means nothing; only one whose old text is not
there, or not unique, may mean what the edits before it made. An exact match comes first; line ends never matter, since
the model does not see them. Only if there is none, more is overlooked, step by step (`tolerant`), and then
the place must be the only one. What was found is fitted into its surroundings (`indents`) before anybody is
shown it.
"""

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from crow.errors import WorkspaceError
from crow.files.text import CRLF, with_line_feeds
from crow.tools.base import OF_A_SESSION, Advice
from crow.tools.editing import TextEdit
from crow.tools.editing.interpretations import with_line_ends_meant
from crow.tools.editing.refusals import (
    LARGEST_TOLERANT,
    MatchOptions,
    ambiguous,
    not_found,
    unclear,
)
from crow.tools.editing.replacements import (
    FileReplacement,
    PlainMatch,
    Source,
    apply,
    joined_with,
    occurrences,
    without_foreign_ends,
)
from crow.tools.editing.soundness import (
    check_classes,
    compiles,
    first_sound,
    has_functions,
    is_python,
    match_of_methods,
)
from crow.tools.editing.tolerant import (
    MOST_PLACES,
    TolerantMatches,
    corrected_matches,
    match_in_block,
    match_without_first,
    tolerant_matches,
)

MOST_REPLACED = 10_000
"""Places that the edits of one call may change."""
LARGEST_TEXT = 16 * 1024 * 1024
"""Characters of a file that is edited."""


class EditPlan(NamedTuple):
    replacements: list[FileReplacement]
    overlooked: tuple[str, ...] = ()
    """What had to be overlooked for a match, in words for the model."""


class _NoPlace(WorkspaceError):
    """An edit has no place in a text, or more than one."""

    def __init__(self, told: str, advice: str) -> None:
        super().__init__(told, advice=advice)


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
            f"The file is too large to edit: {len(text):,} characters, the limit is {LARGEST_TEXT:,}.",
            advice=advice.change_otherwise,
        )
    return _Planner(text, edits, MatchOptions(exactly, reveal, advice, path, len(edits) == 1)).plan()


class _Planner:
    def __init__(self, text: str, edits: Sequence[TextEdit], manner: MatchOptions) -> None:
        self._text = text
        self._source = Source(text)
        self._edits = [_with_ends_of_the_file(text, edit) for edit in edits]
        self._manner = manner
        self._found: list[FileReplacement] = []
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
            raise WorkspaceError(" ".join(self._notes), advice=self._manner.advice.read_again)
        return EditPlan(self._found, tuple(self._notes))

    def _add(self, number: int, edit: TextEdit, name: str) -> None:
        try:
            matches = self._matches(self._source, edit, name)
        except _NoPlace as error:
            if not self._follows_on(number, edit, name):
                raise WorkspaceError(error.message, advice=error.advice) from None
            return
        if len(self._found) + len(matches) > MOST_REPLACED:
            raise WorkspaceError(
                f"{name} is too much for one call: more than {MOST_REPLACED:,} places would change.",
                advice=self._manner.advice.change_otherwise,
            )
        self._found += [self._source.replacement(match, number) for match in matches]

    def _matches(self, source: Source, edit: TextEdit, name: str) -> list[PlainMatch]:
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
        late = [source.replacement(match, number) for match in matches]
        self._found = joined_with(self._text, self._found, late)
        self._notes.append(f"{name} was applied to what the edits before it made.")
        return True


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


# --- from exact to tolerant


def _match(
    source: Source, edit: TextEdit, name: str, manner: MatchOptions, *, times: int
) -> tuple[list[PlainMatch], tuple[str, ...]]:
    """The places that an edit means, and what must be said of how they were found."""
    old = with_line_feeds(edit.old)
    if edit.all and (places := list(islice(occurrences(source.plain, old, step=len(old)), MOST_REPLACED + 1))):
        return [PlainMatch(start, start + len(old), edit.new) for start in places], ()
    places = list(islice(occurrences(source.plain, old), MOST_PLACES))
    if len(places) == 1 or (places and len(places) == times):
        around = (source.plain[: places[0]], source.plain[places[0] + len(old) :])
        meant = with_line_ends_meant(manner.path, edit.new, around) if "\\n" not in edit.old else None
        if meant is not None:
            matches, notes = _exact_matches(source, msgspec.structs.replace(edit, new=meant), places, name, manner)
            return matches, (*notes, f"{name}: `\\n` in its new text was read as line ends.")
        return _exact_matches(source, edit, places, name, manner)
    if places:
        raise _NoPlace(*ambiguous(source, places, name, manner))
    if not manner.exactly and old.strip() and len(source.text) <= LARGEST_TOLERANT:
        for found in tolerant_matches(source, old, with_line_feeds(edit.new), every=edit.all, path=manner.path):
            matches = _meant(source, found, edit)
            if not matches:
                raise _NoPlace(*unclear(source, found, name, manner))
            if found.problem:
                raise WorkspaceError(
                    f"{name} is unclear: its old text is there without {found.what}, but {found.problem}.",
                    advice="Write both texts as they stand in the file, without line numbers and escaped no more than "
                    "JSON needs it.",
                )
            places = [match.start for match in matches]
            note = f"{name} matched at line {source.line_of(places[0])} by overlooking {found.what}."
            if found.exact is not None:
                meant = msgspec.structs.replace(edit, old=found.exact.old, new=found.exact.new)
                matches, notes = _exact_matches(source, meant, places, name, manner)
                return matches, (note, *notes)
            _check_classes(source, matches[0], edit, name, manner, is_shifted=True)
            return matches, (note,)
    raise _NoPlace(*not_found(source, edit, name, manner))


def _meant(source: Source, found: TolerantMatches, edit: TextEdit) -> list[PlainMatch]:
    """Those of the places that the edit can mean; none if that is unclear."""
    if len(found.matches) == 1 or (edit.all and all(one.end <= other.start for one, other in pairwise(found.matches))):
        return found.matches
    here = [match for match in found.matches if source.line_of(match.start) == found.line]
    return here if len(here) == 1 else []


def _exact_matches(
    source: Source, edit: TextEdit, places: Sequence[int], name: str, manner: MatchOptions
) -> tuple[list[PlainMatch], tuple[str, ...]]:
    """The new text as it is, unless that surely breaks the file: one that takes the place of whole lines does not run
    into the line after them, and a usual slip is taken back where the file is sound without it."""
    old, new = with_line_feeds(edit.old), with_line_feeds(edit.new)
    ends = [place + len(old) for place in places]
    lost = old.endswith("\n") and new.strip() and not new.endswith("\n") and old[:-1] != new
    if lost and any(source.plain[end : end + 1] not in ("", "\n") for end in ends):
        note = f"{name}: the line end after the new text was kept, so that it does not run into the next line."
        return [PlainMatch(place, end, new + "\n") for place, end in zip(places, ends, strict=True)], (note,)
    if len(places) == 1 and (found := _corrected(source, places[0], old, new, manner)):
        what, match = found
        _check_classes(source, match, edit, name, manner, is_shifted=True)
        return [match], (f"{name} matched at line {source.line_of(match.start)} by overlooking {what}.",)
    if manner.alone and len(places) == 1:
        _check_classes(source, PlainMatch(places[0], ends[0], new), edit, name, manner, is_shifted=False)
    return [PlainMatch(place, end, edit.new) for place, end in zip(places, ends, strict=True)], ()


def _check_classes(
    source: Source, match: PlainMatch, edit: TextEdit, name: str, manner: MatchOptions, *, is_shifted: bool
) -> None:
    if has_functions(manner.path, edit.old, edit.new):
        check_classes(source.plain, match, name, is_shifted=is_shifted)


def _corrected(source: Source, place: int, old: str, new: str, manner: MatchOptions) -> tuple[str, PlainMatch] | None:
    literal = PlainMatch(place, place + len(old), new)
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
