"""The stand-in for ripgrep where that is not installed: a program of its own that looks for a regular expression in
files.

It is run as a program of its own, never imported by the agent: Python's `re` can take for ever on some patterns and
holds the interpreter meanwhile, and a process can be ended. It answers in ripgrep's words, `--json` or `--count`,
so that one reader understands both. It imports little, since it is started anew for every search.

    python ripgrep_stand_in.py lines|count MOST CONTEXT PATTERN PATH...
"""

import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterator

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def main(arguments: list[str]) -> None:
    mode, most, context, pattern, *paths = arguments
    expression = re.compile(pattern)
    for path in paths:
        lines = _lines(path)
        if mode == "lines":
            _write_lines(path, lines, expression, int(most), int(context))
        else:
            _write_count(path, lines, expression, int(most))
        sys.stdout.flush()


def _lines(path: str) -> list[str]:
    """The lines without their ends. Null bytes end lines too, as in ripgrep: what is binary is sorted out later."""
    try:
        fd = _open(path)
        with open(fd, "rb") as file:
            content = file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return []
    if content.startswith(_UTF16_MARKS):
        text = content.decode("utf-16", "replace")
    else:
        text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"\n").decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _open(path: str) -> int:
    """Over no symbolic link: one that has appeared since the file was chosen may lead anywhere. An open file that was
    handed down to us is what it is.
    """
    if path.startswith("/dev/fd/"):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    folder = os.open("/", _FOLDER)
    names = path.strip("/").split("/")
    try:
        for name in names[:-1]:
            below = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(names[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _write_count(path: str, lines: list[str], expression: re.Pattern[str], most: int) -> None:
    count = 0
    for line in lines:
        if expression.search(line):
            count += 1
            if count == most:
                break
    if count:
        sys.stdout.buffer.write(b"%b\0%d\n" % (os.fsencode(path), count))


def _write_lines(path: str, lines: list[str], expression: re.Pattern[str], most: int, context: int) -> None:
    for number, start in _with_context(lines, expression, most, context):
        kind = "context" if start is None else "match"
        line = lines[number]
        places = [] if start is None else [{"start": len(os.fsencode(line[:start]))}]
        data = {"path": _said(path), "lines": _said(line), "line_number": number + 1, "submatches": places}
        sys.stdout.write(json.dumps({"type": kind, "data": data}) + "\n")


def _with_context(
    lines: list[str], expression: re.Pattern[str], most: int, context: int
) -> Iterator[tuple[int, int | None]]:
    """The numbers of matching lines, with where the match begins, and of those around them, with None."""
    before: deque[int] = deque(maxlen=context)
    after = found = 0
    for number, line in enumerate(lines):
        match = expression.search(line) if found < most else None
        if match:
            yield from ((earlier, None) for earlier in before)
            before.clear()
            yield number, match.start()
            found += 1
            after = context
        elif after:
            yield number, None
            after -= 1
        elif found == most:
            return
        else:
            before.append(number)


def _said(text: str) -> dict[str, str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        import base64

        return {"bytes": base64.b64encode(os.fsencode(text)).decode()}
    return {"text": text}


if __name__ == "__main__":
    main(sys.argv[1:])
