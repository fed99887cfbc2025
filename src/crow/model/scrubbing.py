"""Keeps keys and passwords out of what is shown: providers quote what they were sent, in whatever form.

Always run on the whole text, before anything is cut from it: half a key is no longer recognised as one.
"""

import base64
import functools
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

import msgspec

MASK = "[secret]"

SHORTEST_PART = 8
"""Fewer characters of a key tell nothing: many are no more than the vendor's own prefix."""
TELLING_PART = 12
SHORTEST_SECRET = 4
"""Anything shorter protects nothing, and would tear holes into ordinary words."""

CUT = ("…", "...")


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, their usual encodings, and what is left of them where somebody cut them off."""
    for secret in secrets:
        for form in _forms(secret):
            text = _without_long(text, form) if len(form) > SHORTEST_PART else _without_short(text, form)
    return text


@functools.lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[str, ...]:
    """All that can stand for the secret, the longest first: one may hold another."""
    if len(secret) < SHORTEST_SECRET:
        return ()
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, quote(raw, safe=""), quote_plus(raw), _in_html(secret)}
    forms |= {base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
    forms.add(msgspec.json.encode(raw.decode("utf-8", "replace")).decode()[1:-1])
    return tuple(sorted(forms, key=len, reverse=True))


def _in_html(text: str) -> str:
    for sign, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(sign, f"&{name};")
    return text


def _without_short(text: str, form: str) -> str:
    """Only as a word of its own."""
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", MASK, text, flags=re.IGNORECASE)


def _without_long(text: str, form: str) -> str:
    kept: list[str] = []
    position = 0
    for found in re.finditer(re.escape(form[:SHORTEST_PART]), text, re.IGNORECASE):
        start, end = found.span()
        if start < position:
            continue
        while end < len(text) and end - start < len(form) and text[end].lower() == form[end - start].lower():
            end += 1
        size = end - start
        is_cut = end == len(text) or text.startswith(CUT, end)
        if size == len(form) or is_cut or size >= max(TELLING_PART, len(form) // 2):
            kept += [text[position:start], MASK]
            position = end
    return "".join([*kept, text[position:]])
