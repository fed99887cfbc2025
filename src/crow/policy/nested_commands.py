"""Finds every command that a shell line would run: behind `sudo`, `xargs` and `find -exec`, in the text of `bash -c`,
in substitutions. For the rules that refuse or ask.

Commands are looked for behind wrappers (`sudo`, `xargs`, `find -exec`), inside the text that a shell is given (`bash
-c`, `eval`, `trap`), in substitutions, loops and functions. Where it is not certain which word is the command, each
that may be one counts.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from crow.policy import programs
from crow.policy.grammar import UNKNOWN, Word, Words, read_all

DEEPEST = 8
MOST_WORDS = 10_000
"""Of all the commands together: each wrapper shows what it wraps once more."""
MOST_READ = 20_000
"""Characters of all the lines inside lines together."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_ASSIGNED = re.compile(r"(?<![^\s;&|(])[A-Za-z_]\w*\+?=((?:[^\s;&|'\"]|'[^']*'|\"[^\"]*\")+)")
_SUBSCRIPT = re.compile(r"\w\[")
"""`printf -v 'x[$(rm a)]'`: the shell looks for commands in the index of an array, even one that was quoted."""
_QUOTES = re.compile(r"['\"\\]")
_CUT = re.compile(r"[\n;|&(){}`<>]+")
_BLANK = re.compile(r"[\s=,:\[\]]+")
_MARKS = re.compile(r"[!@+]")
"""What begins a command in texts of programs: git's aliases and vim's lines (`!rm x`), recipes of make (`@rm x`)."""
_SED_RUNS = re.compile(r"(?:^|[;\n{}\d$/!])\s*e[ \t]+([^\n]+)")
_SED_RUNS_TEXT = re.compile(
    r"(?:^|[;\n{}\d$/!])\s*e\s*(?:\Z|[;\n}])|s(?P<mark>[^\w\s\\])(?:\\.|(?!(?P=mark))[^\\]){0,300}(?P=mark)"
    r"(?:\\.|(?!(?P=mark))[^\\]){0,300}(?P=mark)[gpIiMm\d]*e",
    re.DOTALL,
)
"""The text that is worked on is run: it is known only then."""
_LONGEST_SED = 2000
"""Characters of all its words that are looked at."""
_ENV_BLANK = re.compile(r"\\[_fnrtv]|\s")
_ENV_STOP = re.compile(r"\\c.*", re.DOTALL)
_ENV_READS = re.compile(r"\\(?![_fnrtv])|\$")
"""What `env -S` reads in a way of its own, beside the blanks."""
_REPLACES = re.compile(r"-[a-zA-Z0-9]*?[IiJ](.*)|--replace(?:=(.*))?", re.DOTALL)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _runs_in_subscript(text: str) -> bool:
    """Whether a substitution stands in an index, before the next closing bracket."""
    for part in text.split("]"):
        found = _SUBSCRIPT.search(part)
        if found is not None and ("$(" in part[found.end() :] or "`" in part[found.end() :]):
            return True
    return False


class FoundCommands(msgspec.Struct, frozen=True):
    commands: tuple[Words, ...]
    complete: bool
    """False: there may be more than is listed."""
    mentioned: tuple[tuple[str, ...], ...] = ()
    """Whatever words could be a command if quotes meant nothing: for wrappers that are not known, and for where the
    grammar and the shell may not agree."""
    assigned: tuple[str, ...] = ()
    """The values that the line gives to variables, as they are spelled."""


def find_commands(line: str) -> FoundCommands:
    revealed = _find_all(line)
    if not revealed.complete:
        return revealed  # it is asked about whatever it mentions
    texts = {line.replace("\\\n", "")}
    for words in revealed.commands:
        known = [word.text for word in words if word.known]
        texts.update(text for text in known if _CUT.search(text) or _BLANK.search(text))
        texts.add(" ".join(known))
    return msgspec.structs.replace(revealed, mentioned=_mentioned(texts), assigned=tuple(_ASSIGNED.findall(line)))


def _mentioned(texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Texts cut wherever a command could begin, without any regard to what is quoted."""
    pieces: dict[tuple[str, ...], None] = {}
    for text in texts:
        for piece in _CUT.split(_QUOTES.sub("", text)):
            for spelling in {piece, _MARKS.sub(" ", piece)}:
                if words := tuple(filter(None, _BLANK.split(spelling))):
                    pieces[words] = None
    return tuple(pieces)


def _find_all(line: str) -> FoundCommands:
    found: list[Words] = []
    complete = True
    lines: list[tuple[str, int]] = [(line, 0)]
    read = seen = 0
    while lines:
        text, depth = lines.pop()
        read += len(text)
        if depth > DEEPEST or read > MOST_READ:
            return FoundCommands(tuple(found), complete=False)
        reading = read_all(text)
        complete = complete and reading.complete and not _runs_in_subscript(_QUOTES.sub("", text))
        waiting = list(reading.commands)
        while waiting:
            words = waiting.pop()
            seen += len(words)
            if seen > MOST_WORDS:
                return FoundCommands(tuple(found), complete=False)
            if not words:
                continue
            found.append(words)
            complete = complete and not any(_runs_in_subscript(word.text) for word in words)
            inner = _inside(words)
            waiting.extend(inner.commands)
            lines.extend((code, depth + 1) for code in inner.lines)
            complete = complete and inner.complete
    return FoundCommands(tuple(found), complete)


class _Inner(msgspec.Struct):
    """What one command would run in turn."""

    commands: list[Words] = msgspec.field(default_factory=list[Words])
    lines: list[str] = msgspec.field(default_factory=list[str])
    complete: bool = True

    def add_code(self, words: Words) -> None:
        """The words, put together, are a shell line."""
        if all(word.known for word in words):
            self.lines.append(" ".join(word.text for word in words))
        else:
            self.complete = False


def _inside(words: Words) -> _Inner:
    inner = _Inner()
    if not words[0].known:
        return inner
    name, rest = programs.program(words[0].text), words[1:]
    if name in programs.WRAPPERS:
        added = (UNKNOWN,) if name in programs.FROM_INPUT else ()
        wrapped = _filled_in(rest) if name == "xargs" else rest
        inner.commands = [wrapped[start:] + added for start in _starts(wrapped, programs.WRAPPERS[name])]
    _add_runner(inner, name, rest)
    if name == "env":
        _add_env_string(inner, rest)
    elif name in programs.CODE_OPTIONS:
        _add_option_code(inner, rest, programs.CODE_OPTIONS[name])
    if name in programs.CODE_WORDS:
        _add_code_words(inner, name, rest)
    elif name in programs.SHELLS:
        _add_shell(inner, rest)
    else:
        _add_special(inner, name, rest)
    return inner


def _add_special(inner: _Inner, name: str, rest: Words) -> None:
    if name == "find":
        inner.commands = [rest[at + 1 :] for at, word in enumerate(rest) if word.text in _FIND_RUNS]
    elif name == "sed":
        inner.lines = [code for word in rest for code in _SED_RUNS.findall(word.text)]
        # Sed has escapes of its own (`r\\x6d`), and may run what it has put together.
        is_long = sum(len(word.text) for word in rest) > _LONGEST_SED
        runs_text = is_long or any(_SED_RUNS_TEXT.search(word.text) for word in rest)
        inner.complete = not runs_text and not any("\\" in code for code in inner.lines)
    elif name == "hash":
        inner.commands = [rest[at + 1 : at + 2] for at, word in enumerate(rest) if word.text.startswith("-")]
    elif name in ("source", "."):
        inner.complete = all(word.known for word in rest[:1])
    elif name == "trap":
        inner.add_code(tuple(word for word in rest if not word.text.startswith("-"))[:1])
    elif name == "alias":
        for word in rest:
            inner.add_code((msgspec.structs.replace(word, text=word.text.partition("=")[2]),))


def _add_runner(inner: _Inner, name: str, rest: Words) -> None:
    for phrase, plain_before in _BY_RUNNER.get(name, ()):
        behind = _behind(phrase, rest)
        inner.commands += [behind[start:] for start in _starts(behind, plain_before)]
    for phrase in _BY_TEXT.get(name, ()):
        inner.lines += [word.text for word in _behind(phrase, rest) if word.known and " " in word.text]


_BY_RUNNER: dict[str, list[tuple[tuple[str, ...], int]]] = {}
for _phrase, _plain_before in programs.RUNNERS.items():
    _BY_RUNNER.setdefault(_phrase[0], []).append((_phrase[1:], _plain_before))
_BY_TEXT: dict[str, list[tuple[str, ...]]] = {}
for _phrase in programs.CODE_TEXTS:
    _BY_TEXT.setdefault(_phrase[0], []).append(_phrase[1:])


def _behind(phrase: tuple[str, ...], rest: Words) -> Words:
    """The words behind a sub-command, wherever it is; none if it is not there."""
    for wanted in phrase:
        at = next((at for at, word in enumerate(rest) if word.known and word.text == wanted), len(rest))
        rest = rest[at + 1 :]
    return rest


def _starts(rest: Words, plain_before: int) -> Iterator[int]:
    """Where the wrapped command may begin: after options, of which it is not known whether they take a value."""
    after_option = False
    for at, word in enumerate(rest):
        if word.text.startswith(("-", "+")) and word.known:
            after_option = "=" not in word.text
            continue
        if word.known and _ASSIGNMENT.match(word.text):
            continue
        yield at
        if not after_option:
            if plain_before == 0:
                return
            plain_before -= 1
        after_option = False


def _add_option_code(inner: _Inner, rest: Words, letter: str) -> None:
    long = {"c": "--c", "C": "--command"}[letter]
    for at, word in enumerate(rest):
        if word.text.startswith(long):
            inner.add_code((Word(word.text.partition("=")[2], word.known), *rest[at + 1 :]))
        elif word.text.startswith("-") and not word.text.startswith("--") and letter in word.text:
            inner.add_code((Word(word.text.partition(letter)[2], word.known), *rest[at + 1 :]))


def _add_env_string(inner: _Inner, rest: Words) -> None:
    """`env -S 'A=b rm\\_x'`: the value is cut into further words of `env`, by rules that are not the shell's."""
    for at, word in enumerate(rest):
        if word.text.startswith("--s"):
            _, _, value = word.text.partition("=")
        elif word.text.startswith("-") and not word.text.startswith("--") and "S" in word.text:
            _, _, value = word.text.partition("S")
        else:
            continue
        words = (Word(value, word.known), *rest[at + 1 :])
        inner.complete = inner.complete and not any(_ENV_READS.search(word.text) for word in words)
        plain = [Word(_ENV_BLANK.sub(" ", _ENV_STOP.sub("", word.text)), word.known) for word in words]
        inner.add_code((Word("env"), *plain))
        return  # a further one is read as a word of that line


def _filled_in(rest: Words) -> Words:
    """`xargs -I X rX a`: words in which something is replaced by what is read are not known."""
    for at, word in enumerate(rest):
        if not word.known or not word.text.startswith("-"):
            continue
        if match := _REPLACES.fullmatch(word.text):
            given = match[1] or match[2]
            begin = at + 1 if given or word.text[-1] not in "IJ" else at + 2
            mark = given or ("{}" if begin == at + 1 else "".join(word.text for word in rest[at + 1 : begin])) or "{}"
            return rest[:begin] + tuple(UNKNOWN if mark in word.text else word for word in rest[begin:])
    return rest


def _add_code_words(inner: _Inner, name: str, rest: Words) -> None:
    if name == "eval":
        inner.add_code(rest)
        return
    # `ssh -p 22 host rm x`: the code begins behind the host, and which word that is cannot be told for sure.
    for start in _starts(rest, 1 if name in ("ssh", "mosh") else 0):
        inner.add_code(rest[start:])


def _add_shell(inner: _Inner, rest: Words) -> None:
    """`bash -c CODE` is read; `bash FILE` is a program like any other; `bash` alone does what it is sent."""
    is_value = False
    for at, word in enumerate(rest):
        if not word.known or word.text == "-s":
            break
        if is_value:
            is_value = False
        elif not word.text.startswith(("-", "+")):
            return
        elif not word.text.startswith("--") and "c" in word.text:
            for code in rest[at + 1 :]:
                if not code.text.startswith("-"):
                    inner.add_code((code,))
            return
        else:
            is_value = word.text in ("--rcfile", "--init-file") or (word.text[1:2] != "-" and "o" in word.text.lower())
    inner.complete = False
