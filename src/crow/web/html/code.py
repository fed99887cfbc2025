"""The text of a piece of code in a page, and its language."""

import re

from bs4 import Tag

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
_LINES = frozenset({"div", "p", "li", "ol", "ul", "table", "tbody", "tr", "pre"})
"""What stands on a line of its own, even within code: some pages write each line as one of these."""
_LINE_CLASSES = frozenset({"line", "code-line", "view-line"})
"""Of elements that are lines by the style of the page only."""


def code_text(element: Tag) -> str:
    """With its blanks and empty lines."""
    code = _Code()
    code.add(element)
    return "".join(code.pieces).strip("\n")


class _Code:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._at_start = True
        """Of a line."""
        self._after_element = False
        """Whether an element for a line has just ended."""
        self._in_open_line = False
        """Whether what has just ended is a line by its style only, and has no end of a line in it."""

    def add(self, element: Tag) -> None:
        for node in element.contents:
            if isinstance(node, Tag):
                self._add_tag(node)
            else:
                # Between two elements that are lines already, the end of a line is only the layout of the source.
                self._write(str(node).removeprefix("\n") if self._after_element else str(node))

    def _add_tag(self, element: Tag) -> None:
        if element.name == "br":
            self._write("\n")
        elif element.name in _LINES:
            self._write("" if self._at_start else "\n")
            self.add(element)
            self._write("" if self._at_start and element.contents else "\n")
            self._after_element = True
        elif _is_styled_as_line(element):
            self._add_styled_line(element)
        else:
            self.add(element)

    def _add_styled_line(self, element: Tag) -> None:
        """Two of them with nothing in between are two lines; most pages write the end of the line as well."""
        if self._in_open_line:
            self._write("\n")
        before = len(self.pieces)
        self.add(element)
        self._in_open_line = len(self.pieces) == before or not self._at_start

    def _write(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self._at_start = text.endswith("\n")
            self._in_open_line = False
        self._after_element = False


def _is_styled_as_line(element: Tag) -> bool:
    if not element.attrs:
        return False
    style = str(element.get("style", "")).replace(" ", "").lower()
    return "display:block" in style or not _LINE_CLASSES.isdisjoint(element.get_attribute_list("class"))


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
    if element.name in ("code", "pre") or "highlight" in names:
        return next((name for name in names if name in _LANGUAGES), "")
    return ""


def _plain(name: str) -> str:
    return name.strip().lower()[:30] if re.fullmatch(r"\s*[\w+#.-]+\s*", name) else ""
