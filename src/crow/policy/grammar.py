"""Parses any shell line with tree-sitter-bash into its simple commands, however deep: in substitutions, loops and
functions too.

For rules that tighten, a command inside a substitution, a loop or a function counts as much as any other. A word that
is known only when the line runs is marked as such, never guessed.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from crow.policy.base import names
from crow.policy.plain_lines import LONGEST_LINE

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MOST_MARKS = 400
"""Of the characters that shell syntax is made of. The parser's time grows with their square where they are nonsense;
measured, this bound keeps it below 20 ms."""
_MARKS = re.compile(r"[|&;<>(){}\[\]$`\"'=!]")
_MISREAD = re.compile(r"(?<!\\)[\n;|&<>]")
"""No word has these in it. The grammar takes a line end before a backslash for a part of one: `ls⏎\\rm x`."""
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_CONTINUED_ODDLY = re.compile(r"(?<![ \t\\])(?:\\\\)*\\\n|\\\\\\\n")
_KEEPS_CONTINUATIONS = re.compile(r"['#`]|<<")
"""Where these are, a backslash at a line's end may mean itself: in single quotes, comments and here-documents."""
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""The same as in `policy/plain_lines.py`, on purpose: the two readers of a line share nothing, not even a mistake."""


class Word(msgspec.Struct, frozen=True):
    text: str
    known: bool = True
    """False: what it will be is decided when the line runs, and it may become any number of words."""


UNKNOWN = Word("", known=False)
Words = tuple[Word, ...]


class ParsedLine(msgspec.Struct, frozen=True):
    commands: tuple[Words, ...]
    complete: bool
    """False: the line could not be parsed, or not all of it; there may be commands that are not listed."""
    plain: bool = False
    """Nothing but simple commands with literal words, separators and redirections."""


def joined(line: str) -> str | None:
    """The line as the shell reads it: one that a backslash continues is joined to the next, even within a word.

    None if that cannot be told. The grammar would split `r\\⏎m` in two.
    """
    if "\\\n" not in line:
        return line
    if not _KEEPS_CONTINUATIONS.search(line):
        whole = _CONTINUED.sub(r"\1", line)
        return None if "<<" in whole else whole
    # Between words it makes no difference, unless a comment or a here-document ends with that line.
    return None if "#" in line or "<<" in line or "`" in line or _CONTINUED_ODDLY.search(line) else line


def read_all(line: str) -> ParsedLine:
    whole = joined(line)
    if whole is None:
        return msgspec.structs.replace(_read(line), complete=False, plain=False)
    return _read(whole)


def _read(line: str) -> ParsedLine:
    source = line.encode("utf-8", "surrogatepass")
    if len(source) > LONGEST_LINE or _UNREADABLE.search(line) or len(_MARKS.findall(line)) > MOST_MARKS:
        return ParsedLine((), complete=False)
    tree = _parser().parse(source)
    root = tree.root_node
    commands: list[tuple[int, Words]] = []
    plain, complete = True, not root.has_error
    waiting = [root]
    while waiting:  # not recursive: a line can nest deeper than Python likes to call
        node = waiting.pop()
        plain = plain and node.type in _PLAIN
        if node.type in _COMMANDS:
            commands.append((node.start_byte, _words(node, source)))
        elif node.type == "word" and _MISREAD.search(_text(node, source)):
            complete = False
        waiting.extend(node.children)
    return ParsedLine(tuple(words for _, words in sorted(commands, key=_position)), complete, plain and complete)


@cache
def _parser() -> "Parser":
    """Loaded when the first line is judged: most sessions' start does not need it."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _position(entry: tuple[int, Words]) -> int:
    return entry[0]


_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_PLAIN = names(
    """
    program list pipeline command redirected_statement command_name word number string string_content raw_string
    concatenation file_redirect file_descriptor && || ; | " > >> < >& &> &>>
    """
) | {"\n"}
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_NOT_A_WORD = frozenset({"file_descriptor", "heredoc_start", "heredoc_body", "heredoc_end", "variable_assignment"})


def _words(node: "Node", source: bytes) -> Words:
    if node.type != "command":
        # `export A=$(x)`, `[ -f x ]`: the name is the shell's own word, and the order of the others matters little.
        return (Word(_text(node.children[0], source)), *_strings_below(node, source), UNKNOWN)
    words = [
        _word(child, source)
        for child in node.named_children
        if child.type not in _REDIRECTS and child.type not in _NOT_A_WORD
    ]
    for redirect in _redirects(node):
        words.extend(_behind(redirect, source))
    return tuple(words)


def _strings_below(node: "Node", source: bytes) -> list[Word]:
    found: list[Word] = []
    waiting = list(node.named_children)
    while waiting:
        inner = waiting.pop()
        if inner.type in ("word", "string", "raw_string", "ansi_c_string", "concatenation"):
            found.append(_word(inner, source))
        else:
            waiting.extend(inner.named_children)
    return found


def _redirects(command: "Node") -> "list[Node]":
    """Those of the command, and those of the statements that it is the end of."""
    found = [child for child in command.children if child.type in _REDIRECTS]
    node, parent = command, command.parent
    while parent is not None and parent.type in ("redirected_statement", "list", "pipeline"):
        if parent.type == "redirected_statement":
            found.extend(child for child in parent.children if child.type in _REDIRECTS)
        elif node.end_byte != parent.end_byte:
            break
        node, parent = parent, parent.parent
    return found


def _behind(redirect: "Node", source: bytes) -> list[Word]:
    """In `git > out push`, the grammar takes `push` for a part of the redirection; the shell does not."""
    words = [child for child in redirect.named_children if child.type not in _NOT_A_WORD]
    skip = 0 if redirect.type == "heredoc_redirect" else 1
    return [_word(child, source) for child in words[skip:] if child.type not in _REDIRECTS]


# --- unquoting

_GLOB = re.compile(r"(?<!\\)[*?\[\]{}]")
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPE_IN_DOUBLE = re.compile(r'\\(["\\$`\n])')
_ESCAPE_IN_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _text(node: "Node", source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")


def _word(node: "Node", source: bytes) -> Word:
    text = _text(node, source)
    match node.type:
        case "command_name":
            return _word(node.children[0], source) if node.children else Word(text)
        case "word" | "number" | "variable_name" | "test_operator" | "special_variable_name":
            return UNKNOWN if _GLOB.search(text) else Word(_ESCAPE.sub(_escaped, text))
        case "raw_string":
            return Word(text[1:-1])
        case "ansi_c_string":
            return Word(_ESCAPE_IN_ANSI.sub(_ansi, text[2:-1]))
        case "string" | "translated_string":
            inner = text.removeprefix("$")[1:-1]
            return Word(_ESCAPE_IN_DOUBLE.sub(_escaped, inner)) if _is_literal(node) else UNKNOWN
        case "concatenation":
            return _joined([_word(child, source) for child in node.children], node)
        case _:
            return UNKNOWN


def _is_literal(node: "Node") -> bool:
    return all(child.type in ("string_content", '"', "$", "string") and _is_literal(child) for child in node.children)


def _joined(parts: list[Word], node: "Node") -> Word:
    covered = sum(child.end_byte - child.start_byte for child in node.children)
    if covered != node.end_byte - node.start_byte or not all(part.known for part in parts):
        return UNKNOWN
    return Word("".join(part.text for part in parts))


def _escaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _ansi(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return _character(int(code[1:], 16))
    if code[0] in "01234567":
        return _character(int(code, 8) & 0xFF)
    if code[0] == "c":
        return _character(ord(code[1]) & 0x1F)
    return _ANSI.get(code, code)


def _character(number: int) -> str:
    return chr(number) if 0 < number < 0x110000 else ""
