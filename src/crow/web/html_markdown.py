"""From a cleaned part of a page to Markdown."""

import re

from bs4 import Tag
from markdownify import MarkdownConverter

from crow.markdown import fence
from crow.web.html_shapes import number

_PREFIXES = ("language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "brush:", "sourcecode-")
_NO_LANGUAGE = frozenset({"none", "default", "text", "plain", "plaintext", "nohighlight"})
_LANGUAGES = frozenset(
    {
        *("bash", "c", "console", "cpp", "csharp", "css", "diff", "dockerfile", "elixir", "erlang", "go", "graphql"),
        *("haskell", "html", "http", "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "lua", "makefile"),
        *("markdown", "nix", "objectivec", "ocaml", "perl", "php", "powershell", "protobuf", "py", "python", "r"),
        *("ruby", "rust", "scala", "scss", "sh", "shell", "sql", "swift", "toml", "ts", "tsx", "typescript", "vim"),
        *("xml", "yaml", "zig"),
    }
)
"""What a class may name without any prefix."""
_FENCE = re.compile(r"[\s>:-]*(?:\d+\.\s+)?(`{3,})")
_BLANKS = re.compile(r"\s+")


class Markdown(MarkdownConverter):
    """Its options; code in fences that hold it, with its language; cells that stay in their row."""

    def __init__(self) -> None:
        super().__init__(
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            escape_misc=False,
        )

    def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        if not text.strip():
            return ""
        if parent_tags & {"td", "th"}:
            return f" `{' '.join(text.split())}` "
        code = text.strip("\n")
        return f"\n\n{fence(code, language(element))}\n\n"

    def convert_td(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_th(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_sup(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """`x^2` is another number than `x2`."""
        text = text.strip()
        if not text or parent_tags & {"pre", "code"}:
            return text
        return f"^{text}" if text.isalnum() or text.startswith("[") else f"^({text})"


def without_blank_runs(text: str) -> str:
    """At most one empty line in a row, and nothing at the end of a line; code stays as it is."""
    lines: list[str] = []
    marks = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening is not None and not marks:
            marks = opening[1]
        elif marks and line.strip(" >\t") == marks:
            marks = ""
        elif marks:
            lines.append(line)
            continue
        kept = line.rstrip()
        if kept or (lines and lines[-1].strip(" >")):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def language(element: Tag) -> str:
    """Of a piece of code: from a class such as `language-python` on it, within it or around it, or a plain one."""
    around = element.parent
    for candidate in (element.find("code"), element, around, around.parent if around is not None else None):
        if isinstance(candidate, Tag) and (found := _named_by(candidate)):
            return "" if found in _NO_LANGUAGE else found
    return ""


def _named_by(element: Tag) -> str:
    for attribute in ("data-lang", "data-language"):
        if found := str(element.get(attribute, "")):
            return _plain(found)
    names = [str(name).lower() for name in element.get_attribute_list("class") if name]
    for name in names:
        for prefix in _PREFIXES:
            if name.startswith(prefix) and (found := _plain(name.removeprefix(prefix))):
                return found
    if element.name in ("code", "pre"):
        return next((name for name in names if name in _LANGUAGES), "")
    return ""


def _plain(name: str) -> str:
    return name.strip().lower()[:30] if re.fullmatch(r"\s*[\w+#.-]+\s*", name) else ""


def _cell(element: Tag, text: str) -> str:
    """In one line, and with no bar that would end it; one that spans columns takes as many."""
    line = _BLANKS.sub(" ", text.strip()).replace("|", "\\|")
    return f" {line} |" + " |" * (number(element, "colspan") - 1)
