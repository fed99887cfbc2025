"""Names of arguments that providers refuse: the model is given plain ones, the server gets its own."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

LONGEST = 64
_PLAIN = re.compile(rf"[A-Za-z0-9_.-]{{1,{LONGEST}}}")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.-]")


def is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """With a short hash: no other argument has it, so that it can be known again wherever it stands."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NOT_PLAIN.sub('_', name)[: LONGEST - 9]}_{digest}"


def with_real_names(value: Any, real_names: Mapping[str, str]) -> Any:
    """Arguments as the server knows them."""
    if not real_names:
        return value
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return {real_names.get(name, name): with_real_names(one, real_names) for name, one in fields.items()}
        case list():
            return [with_real_names(one, real_names) for one in cast("list[Any]", value)]
        case _:
            return value
