"""Characters in a server's words that cannot be seen: made visible, and named to the person."""

from crow.visible import hidden_in, one_line

JOINERS = "\u200c\u200d"
"""They belong to the writing of some languages, and to some pictures."""
MOST_NAMED = 5


def hidden_characters(text: str) -> list[str]:
    if text.isascii() and text.isprintable():  # as nearly all texts are
        return []
    return [character for character in dict.fromkeys(text) if character not in JOINERS and hidden_in(character)]


def made_visible(text: str) -> str:
    """Prose, with its line ends."""
    return text.translate({ord(character): one_line(character) for character in hidden_characters(text)})


def remark_on(characters: list[str]) -> str:
    """A sentence for the person; empty if there are none."""
    if not characters:
        return ""
    names = ", ".join(f"U+{ord(character):04X}" for character in characters[:MOST_NAMED])
    more = ", …" if len(characters) > MOST_NAMED else ""
    example = one_line(characters[0])
    return f"It used characters that cannot be seen ({names}{more}); they were made visible, like {example}."
