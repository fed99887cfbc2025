"""What the person was shown in `crow chat`, so that a session that is loaded again is drawn where that ends."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from crow.acp import wire
from crow.cli.render import ENDED


class Shown:
    """What the person was shown of a conversation."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}
        """Of each message's text, without the blank lines before it."""
        self._ended: set[str] = set()
        """The calls whose end was shown."""
        self._words: Counter[str] = Counter()
        """Notices, and what was typed here: neither has an id."""

    def take(self, update: wire.Update) -> None:
        if isinstance(update, wire.MessageChunk) and update.message_id is not None:
            length = self._lengths.get(update.message_id, 0)
            text = _text_of(update)
            self._lengths[update.message_id] = length + len(text if length else text.lstrip())
        elif isinstance(update, wire.Notice):
            self.add(f"{update.title}\n{update.description or ''}")
        elif isinstance(update, wire.ToolCall | wire.ToolCallUpdate) and update.status in ENDED:
            self._ended.add(update.tool_call_id)

    def add(self, words: str) -> None:
        self._words[_plain(words)] += 1

    def rest_of(self, updates: Iterable[wire.Update]) -> Iterator[wire.Update]:
        """What of these is news; from then on it is shown."""
        loaded, skipped = Shown(), set[str]()
        for update in updates:
            rest: wire.Update | None = update
            if isinstance(update, wire.MessageChunk) and update.message_id is not None:
                id, text = update.message_id, _text_of(update)
                if id not in loaded._lengths and id not in self._lengths and self._words[_plain(text)] > 0:
                    self._words[_plain(text)] -= 1
                    skipped.add(id)
                begun = loaded._lengths.get(id, 0)
                text = text if begun else text.lstrip()
                known = max(0, self._lengths.get(id, 0) - begun)
                if known and isinstance(update.content, wire.TextContent):
                    rest = replace(update, content=wire.TextContent(text=text[known:])) if text[known:] else None
                if id in skipped:
                    rest = None
            elif isinstance(update, wire.ToolCall | wire.ToolCallUpdate) and update.tool_call_id in self._ended:
                rest = None
            loaded.take(update)
            if rest is not None:
                yield rest
        self._lengths |= {id: max(length, self._lengths.get(id, 0)) for id, length in loaded._lengths.items()}
        self._ended |= loaded._ended


def _text_of(chunk: wire.MessageChunk) -> str:
    return chunk.content.text if isinstance(chunk.content, wire.TextContent) else ""


def _plain(words: str) -> str:
    """The words of a notice, which is a quotation among the messages of a past."""
    return " ".join(words.replace("> ", " ").replace(">", " ").split())
