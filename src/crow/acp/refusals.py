"""What a client's error means: it would not do what it was asked for, or it could not. A refusal is the person's, and
stands; where a client only could not, Crow may help itself.
"""

import re
from typing import Any, cast

from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.visible import one_line

_NO = re.compile(r"permission|denie|deny|refus|reject|declin|not allowed|forbid|unauthori|cancel", re.IGNORECASE)


def is_refusal(error: RpcError) -> bool:
    """Whether the error's code or words say no."""
    if error.code == ErrorCode.REQUEST_CANCELLED:
        return True
    return any(_NO.search(words) for words in (error.message, reason_of(error)))


def reason_of(error: RpcError) -> str:
    """What the client said. The protocol's libraries put it into the data, beside a message that is always the same."""
    details: object = error.data
    if isinstance(details, dict):
        data = cast("dict[str, Any]", details)
        details = next((data[key] for key in ("details", "message", "reason") if data.get(key)), "")
    said = details if isinstance(details, str) and details else error.message
    return one_line(said, 200)
