"""Text that arrives in pieces which are no text by themselves, put right on the way from a reader to its caller.

Both classes take the events of a reply in the order they come, and give back what can be shown by now.
"""

from typing import Protocol

from msgspec.structs import replace

from crow.model.base import CallBegan, CallGrew, ModelEvent, Said, Thinking

THOUGHT_TAGS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning", "seed:think")},
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
}
"""What models begin their thoughts with, and what ends them."""


class Filter(Protocol):
    def take(self, events: list[ModelEvent]) -> list[ModelEvent]: ...


class Halves:
    """Joins the halves of characters that were torn apart, as escaped surrogates in two deltas.

    A piece that ends with the first half waits for the next one of its kind; a half that stays alone becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._spoken: Said | Thinking | None = None
        """The half that ended the last piece of text or thought."""
        self._calls: dict[int, str] = {}

    def take(self, events: list[ModelEvent]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        for event in events:
            match event:
                case Said() | Thinking():
                    self._speak(event, out)
                case CallGrew():
                    before = self._calls.pop(event.index, "")
                    text, half = _split(event.fragment if event.anew else before + event.fragment)
                    if half:
                        self._calls[event.index] = half
                    if text:
                        out.append(CallGrew(event.index, text, event.anew))
                case CallBegan():
                    self._end_text(out)
                    out.append(CallBegan(event.index, _joined(event.name)))
                case _:
                    self._end_text(out)
                    out.append(event)
        return out

    def _speak(self, event: Said | Thinking, out: list[ModelEvent]) -> None:
        text = event.text
        if self._spoken is not None and type(self._spoken) is type(event):
            text = self._spoken.text + text
            self._spoken = None
        else:
            self._end_text(out)
        text, half = _split(text)
        if text:
            out.append(replace(event, text=text))
        if half:
            self._spoken = replace(event, text=half)

    def _end_text(self, out: list[ModelEvent]) -> None:
        if self._spoken is not None:
            out.append(replace(self._spoken, text=_joined(self._spoken.text)))
            self._spoken = None


def _split(text: str) -> tuple[str, str]:
    """The text, mended, and the first half of a character that it ends with, if it does."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return _joined(text.removesuffix(half) if half else text), half


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TaggedThoughts:
    """Local models write their thoughts into the text, between tags; only at the very beginning are these believed.

    `settled` is set once nothing is left to look for: from then on every event would pass as it is.
    """

    def __init__(self) -> None:
        self.settled = False
        self._tag = ""
        """The one that the thought began with."""
        self._inside = False
        self._blank = True
        """Nothing but space so far, which the tags and the text behind them are set apart with."""
        self._closed = False
        self._held = ""

    def take(self, events: list[ModelEvent]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        for event in events:
            if self.settled:
                out.append(event)
            elif isinstance(event, Said):
                self._read(event.text, out)
            else:
                self._settle(out)
                out.append(event)
        return out

    def _read(self, text: str, out: list[ModelEvent]) -> None:
        self._held += text
        if not self._inside and not self._closed:
            start = self._held.lstrip()
            self._tag = next((tag for tag in THOUGHT_TAGS if start.startswith(tag)), "")
            if self._tag:
                self._inside, self._held = True, start.removeprefix(self._tag)
            elif not any(tag.startswith(start) for tag in THOUGHT_TAGS):
                self._settle(out)
                return
            else:
                return
        if self._inside:
            self._read_thought(out)
        if self._closed:
            self._held = self._held.lstrip()
            if self._held:
                self._settle(out)

    def _read_thought(self, out: list[ModelEvent]) -> None:
        if self._blank:
            self._held = self._held.lstrip()
        thought, tag, rest = self._held.partition(THOUGHT_TAGS[self._tag])
        if tag:
            self._inside, self._closed, self._held = False, True, rest
        else:
            kept = _possible_start(thought, THOUGHT_TAGS[self._tag])
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            self._blank = False
            out.append(Thinking(thought, self._tag))

    def _settle(self, out: list[ModelEvent]) -> None:
        """What was held back is shown as what it turned out to be."""
        if self._held and not (self._closed and self._held.isspace()):
            out.append(Thinking(self._held, self._tag) if self._inside else Said(self._held))
        self._held = ""
        self.settled = True


def _possible_start(text: str, closing: str) -> int:
    """How many characters at the end of the text may be the beginning of the closing tag."""
    return next((size for size in range(len(closing) - 1, 0, -1) if text.endswith(closing[:size])), 0)
