"""Lists of names, written as text so that they can be read."""


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def phrases(text: str) -> frozenset[tuple[str, ...]]:
    """Names of one or more words, these joined by a `+`: `rm git+push`."""
    return frozenset(tuple(phrase.split("+")) for phrase in text.split())
