"""What a provider's refusals teach of a model: a request that was refused for one detail is sent again without it.

The providers that are documented have their habits in a table; everybody else's are learned here, by one refusal each.
"""

import re
from collections.abc import Sequence

import msgspec

from crow.errors import ContextOverflow, ModelRejected
from crow.model.endpoint import Endpoint

LEARNED: dict[tuple[str, str], set[str]] = {}
"""By address and model, for as long as the process lives: what one session has learned, no other has to."""


class RefusalPattern(msgspec.Struct, frozen=True):
    """How servers word it that they do not take a detail of a request."""

    name: str
    """What an adapter asks for before it writes a request: `name in learned`."""
    words: str
    """A regular expression, compiled by the first refusal; it is searched for without regard to case."""
    notice: str = ""
    """A sentence for the person if they lose something by it; it may name {provider}, {model} and {level}."""
    of_level: bool = False
    """It is about the chosen thought level alone, and remembered as `name level`."""
    statuses: tuple[int, ...] = (400, 422)


def without_projector(name: str) -> RefusalPattern:
    """How llama.cpp refuses a picture, with a status of 500, when it was started without the part that sees."""
    notice = "{provider} takes no images for {model}: they are left out. llama-server sees with --mmproj FILE."
    return RefusalPattern(name, r"image.{0,80}\bmmproj\b", notice, statuses=(400, 500))


class Learned:
    """What is known of one model of one provider, shared by all sessions of the process."""

    def __init__(self, place: Endpoint, model: str) -> None:
        self._provider = place.provider
        self._model = model
        self._names = LEARNED.setdefault((place.url, model), set())

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def learn(self, error: ModelRejected, table: Sequence[RefusalPattern], level: str = "") -> str | None:
        """Remembers the first refusal of the table that the error's words match and that was not known yet.

        Returns the notice for the person, which may be empty; None if there was nothing to learn: then the error is to
        be raised, as the same request would be refused again.
        """
        if isinstance(error, ContextOverflow):
            return None
        for pattern in table:
            name = f"{pattern.name} {level}" if pattern.of_level else pattern.name
            if (
                error.status in pattern.statuses
                and name not in self._names
                and re.search(pattern.words, error.said, re.IGNORECASE)
            ):
                self._names.add(name)
                notice = pattern.notice.format(provider=self._provider, model=self._model, level=level)
                return notice if level or not pattern.of_level else ""
        return None
