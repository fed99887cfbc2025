"""Links of a page, written so that they lead there from anywhere."""

import re
from urllib.parse import quote, urljoin

_TO_ENCODE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\\<>\"]")
"""What ends an address in Markdown, or what `web_fetch` refuses in one."""


def absolute(reference: str, url: str) -> str:
    """Empty for what cannot be fetched: scripts, data, places in the same page."""
    reference = reference.strip()
    if not reference or reference.startswith("#"):
        return ""
    try:
        address = urljoin(url, reference)
    except ValueError:
        return ""
    if not address.startswith(("http://", "https://", "mailto:")):
        return ""
    return _TO_ENCODE.sub(lambda character: quote(character[0]), address)
