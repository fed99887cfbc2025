"""Texts that are too long for their place."""


def without_middle(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long, with the number of characters between them."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[… {len(text) - longest:,} characters left out …]\n{text[len(text) - tail :]}"
