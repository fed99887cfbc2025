"""Characters in a server's words that cannot be seen: named to the person."""

from crow.visible import one_line

MOST_NAMED = 5


def remark_on(characters: list[str]) -> str:
    """A sentence for the person; empty if there are none."""
    if not characters:
        return ""
    names = ", ".join(f"U+{ord(character):04X}" for character in characters[:MOST_NAMED])
    more = ", …" if len(characters) > MOST_NAMED else ""
    example = one_line(characters[0])
    return f"It used characters that cannot be seen ({names}{more}); they were made visible, like {example}."
