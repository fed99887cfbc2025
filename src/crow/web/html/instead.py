"""What can be said of a page with next to nothing on it: it leads on, is put together of others, or needs scripts."""

from crow.web.html.about import About
from crow.web.html.links import absolute

NEXT_TO_NOTHING = 200
"""Characters."""


def instead(page: About, text: str, url: str) -> tuple[str, str]:
    """The text with what the page says of itself, and a remark of our own; both are for the model."""
    if len(text) >= NEXT_TO_NOTHING:
        return text, ""
    if (target := absolute(page.refresh, url)) and target != url:
        return text, f"the page leads on to {target}: fetch that"
    if frames := [frame for frame in (absolute(source, url) for source in page.frames) if frame]:
        return text, f"the page is made of frames: fetch {' or '.join(frames)}"
    if not page.has_scripts or (text and not (page.without_scripts and page.description)):
        return text, ""  # a short page may well be meant to be short
    pieces = [text]
    if page.description:
        pieces.append(f"Its description says: {page.description}")
    if page.without_scripts:
        pieces.append(f"It says to those without scripts: {page.without_scripts}")
    return "\n\n".join(piece for piece in pieces if piece), "the page is built by scripts, which Crow does not run"
