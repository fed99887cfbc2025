"""The head of a Markdown file: `key: value` lines between two lines of `---`. Nothing more of YAML is understood."""

FENCE = "---"


def split_head(text: str) -> tuple[dict[str, str], str]:
    """The head's values by key, and the rest of the text. A head that is never closed is none."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text.removeprefix("\ufeff").strip()
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        return {}, text.strip()
    return _values(lines[1:end]), "\n".join(lines[end + 1 :]).strip()


def _values(lines: list[str]) -> dict[str, str]:
    """An indented line goes on with the value before it, as in a description of several lines."""
    values: dict[str, str] = {}
    key = ""
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1].isspace():
            if key and line.strip():
                values[key] = f"{values[key]} {line.strip()}".strip()
        elif colon and name.strip() and not name.startswith("#"):
            key = name.strip().lower()
            values[key] = _unquoted(value.strip())
        else:
            key = ""
    return values


def _unquoted(value: str) -> str:
    if value in (">", "|", ">-", "|-"):
        return ""  # the text follows on indented lines
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
