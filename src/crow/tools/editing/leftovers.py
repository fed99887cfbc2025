"""What a model copies along with a text and that nobody means to be in the file: numbers, fences, markers, tags.

Each is known by what the file, and the text that an edit replaces, have nothing of.
"""

import re
from itertools import pairwise

from crow.errors import WorkspaceError
from crow.tools.editing.readings import AS_READ, inside_fence, numbered_rests, numbers_of
from crow.tools.editing.soundness import ending_of, is_code

_MARKUP = ("md", "markdown", "mdx", "rmd", "qmd", "rst", "html", "htm", "xml", "svg", "vue", "diff", "patch", "txt", "")
_FOOTER = re.compile(r"\n\(\d[\d,]* more lines?\b[^\n]*\)\s*\Z|\n\(?\[?\d+ more lines?[:.,][^\n]*offset[^\n]*\Z")
_FENCE = re.compile(r"(?m)^(?:`{3,}|~{3,})[\w+.#-]*[ \t]*$")
_DIFF = re.compile(r"\A\s*(?:diff --git |--- [^\n]*\n\+\+\+ |@@ -\d|\*\*\* Begin Patch)")
_MARKERS = re.compile(r"(?m)^(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED))\s*$")
_TAG = re.compile(
    r"(</(?:parameter|invoke|function|function_calls?|tool_calls?|tool_use|arguments|antml:\w+)>|<\|[\w\u2581|-]+\|>)\s*\Z"
)
_ENTITIES = re.compile(r"&amp;&amp;|\w &[lg]t;=? \w|=&gt;")


_CDATA = re.compile(r"<!\[CDATA\[\n?((?:(?!\]\]>|<!\[CDATA\[).)*)\]\]>\s*", re.DOTALL)


def inside_cdata(path: str, text: str) -> str | None:
    """What `<![CDATA[` and `]]>` around the whole of a text of code hold; None if they are not there."""
    found = _CDATA.fullmatch(text) if text.startswith("<![CDATA[") and is_code(path) else None
    return None if found is None else found[1]


def check_no_leftovers(path: str, before: str, text: str, name: str, part: str, *, old: str = "") -> None:
    """WorkspaceError, in words for the model, if something was copied into a text that is no part of it."""
    if (found := _leftover(path, before + "\n" + old, text, old)) is not None:
        what, remedy = found
        raise WorkspaceError(f"{name} has {what} in its {part}. Nothing was changed.", remedy=remedy)


def _leftover(path: str, known: str, text: str, old: str) -> tuple[str, str] | None:
    """What is left over, and the remedy; None if there is nothing. What the old text has too is taken from both."""
    found = _MARKERS.search(text)
    if found and not _MARKERS.search(known) and ending_of(path) not in ("md", "markdown", "rst"):
        return f"the marker `{found[0].strip()}`", "Write only the text as it is to stand in the file."
    if ending_of(path) in _MARKUP:
        return None
    if (found := _TAG.search(text)) and found[1] not in known:
        return f"`{found[1]}`, the end of a call,", "Leave it out: the text ends before it."
    if _DIFF.match(text) and not _DIFF.match(known) and not _DIFF.match(old):
        return "a diff", "Write the lines as they are to be, without those that go and without the marks."
    if (found := _FOOTER.search(text)) and found[0].strip() not in known:
        return f"`{found[0].strip()[:60]}`, which `read` says below a part of a file,", "Leave it out."
    if not is_code(path):
        return None
    return _leftover_of_code(known, text, old)


def _leftover_of_code(known: str, text: str, old: str) -> tuple[str, str] | None:
    if not numbers_of(old) and _has_numbers(known, text):
        return "line numbers", "Leave out the numbers and what stands between them and the text."
    if "```" not in known and "~~~" not in known and _has_loose_fence(text, is_edit=bool(old)):
        return "a code fence", "Leave out the line with the fence, and what is said around the code."
    if text.startswith("<![CDATA[") and "<![CDATA[" not in known:
        return "`<![CDATA[`", "Leave out `<![CDATA[` and `]]>`."
    if _ENTITIES.search(text) and "<" not in text and "&&" not in text and not _ENTITIES.search(known):
        return "entities of HTML (`&lt;`, `&amp;`)", "Write the characters themselves."
    lines = [line for line in text.split("\n") if line.strip()]
    if old and lines and all(line.startswith("+") for line in lines) and not re.search(r"\n[+@-]", "\n" + known):
        return "the marks of a diff", "Leave out the `+` that the lines begin with."
    return None


def _has_numbers(known: str, text: str) -> bool:
    if AS_READ.search(known):
        return False
    as_read = [int(number) for number in AS_READ.findall(text)]
    if any(other - one == 1 for one, other in pairwise(as_read)):
        return True
    numbers = numbers_of(text)
    if len(numbers) < 2 or any(other - one > 3 for one, other in pairwise(numbers)):
        return False
    lines = {line.strip() for line in known.split("\n")} - {""}
    rests = [rest.strip() for rest in numbered_rests(text)]
    return any(rest in lines for rest in rests) or (numbers[0] == 1 and len(numbers) > 2 and "|" in text[:12])


def _has_loose_fence(text: str, *, is_edit: bool) -> bool:
    """Whether a fence begins or ends a text, and not both with nothing else: that is what `inside_fence` is for."""
    fences = _FENCE.findall(text)
    if not fences or inside_fence(text) is not None:
        return False
    lines = text.strip().split("\n")
    at_edge = _FENCE.fullmatch(lines[0]) or _FENCE.fullmatch(lines[-1])
    return bool(at_edge) and (len(fences) % 2 == 1 or not is_edit)
