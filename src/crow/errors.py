"""The tree of Crow's errors: everything that is raised on purpose.

CrowError                      a sentence for a person, and what to do about it
├── ConfigError                a setting is wrong: which file, which key, what was expected
├── SetupNeeded                there is no model to talk to yet
├── StorageFailed              what happens cannot be kept: a full disk, a damaged file
│   ├── BacklogLost            more happened than could wait for a disk that took nothing: the rest is gone
│   ├── StoreSilent            the disk that sessions are kept on does not answer: what waits is stored once it does
│   └── SessionTaken           the session is another process's now: what is written here no longer counts
├── SessionUnknown             there is no such session in the store
├── SessionBusy                a turn of it is running in another process
│   └── SessionElsewhere       it lives in another process, which can be attached to
├── TurnRunning                a turn of it is running here, and a session has only one at a time
├── NothingToSteer             no turn runs that would take a message now
├── NotTrusted                 the client may only watch the session, until its person has typed a code
├── OptionUnknown              there is no such option of a session, or it has no such value
├── BadCursor                  a place in a list that we never gave out
├── WebError                   a page or a search service cannot be used, said in words
│   └── NoText                 what came is no text: how else it can be had depends on who asks
├── WorkspaceError             a path that cannot be used, said in words
│   ├── ClientRefused          the editor will not show the file, so the disk is not read either
│   ├── StaleFile              it is no longer as it was when the change was made: nothing was written
│   └── FileSystemSilent       the disk that it lies on does not answer
└── ModelError                 the provider failed; knows provider, status and what was said
    ├── ModelRefusedKey        401, 403: the key is wrong, missing or not allowed
    ├── ModelRejected          the request itself is at fault: sending it again would change nothing
    │   ├── CallMalformed      the provider would not pass on a call that its own model wrote
    │   └── ContextOverflow    the conversation no longer fits the model's window
    ├── ModelUnavailable       worth another try: overload, rate limit, no connection
    └── ReplyBroken            the stream stopped or became unreadable in the middle

TurnCancelled                  no error: the person answered a question by ending the turn

What only one file raises and its neighbours catch lives there: `SupervisorKilled` (a WorkspaceError, in
commands/processes.py), `AgentGone` and `AgentFailed` (acp/client.py), `NoSession` (cli/sessions.py), `BadArguments`
(tools/base.py), `ServerFailed`, `LoginNeeded` and `SchemaUnfit` (mcp/client). The protocol's
errors, `RpcError` and its kind, are in rpc/jsonrpc.py: no other room knows of them.
"""

from typing import Required, TypedDict, Unpack


class CrowError(Exception):
    """Carries what went wrong and, apart from it, the remedy and advice for a model alone; `str()` gives all of it."""

    def __init__(self, message: str, *, remedy: str = "", advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.for_person} {self.advice}".strip()

    @property
    def for_person(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class ConfigError(CrowError):
    pass


class SetupNeeded(CrowError):
    pass


class StorageFailed(CrowError):
    pass


class IndexDamaged(StorageFailed):
    """The index for searching was thrown away: it can be made anew."""


class BacklogLost(StorageFailed):
    pass


class StoreSilent(StorageFailed):
    pass


class SessionTaken(StorageFailed):
    pass


class SessionUnknown(CrowError):
    pass


class SessionBusy(CrowError):
    pass


class SessionElsewhere(SessionBusy):
    """`owner` is the token of the process in which the session lives, `process` its number, `socket` where it can be
    attached to."""

    def __init__(self, owner: str, process: str, socket: str) -> None:
        super().__init__(f"This session lives in another Crow (process {process}).", remedy="Load it to join it.")
        self.owner = owner
        self.process = process
        self.socket = socket


class TurnRunning(CrowError):
    pass


class NothingToSteer(CrowError):
    pass


class NotTrusted(CrowError):
    pass


class OptionUnknown(CrowError):
    pass


class BadCursor(CrowError):
    pass


class WebError(CrowError):
    pass


class NoText(WebError):
    """What lies at an address is neither text nor an image, so that it cannot be shown."""


class WorkspaceError(CrowError):
    pass


class ClientRefused(WorkspaceError):
    pass


class StaleFile(WorkspaceError):
    pass


class FileSystemSilent(WorkspaceError):
    pass


class AnswerFields(TypedDict, total=False):
    """What is known of the answer that a ModelError is about: whose it was, with which status, in which words."""

    provider: Required[str]
    status: int | None
    said: str
    is_lasting: bool


class ModelError(CrowError):
    """`provider` and `status` name who failed and how; `said` is the provider's own wording, shortened. `is_lasting`:
    it rarely mends itself, so that a few attempts are enough."""

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        status: int | None = None,
        said: str = "",
        remedy: str = "",
        is_lasting: bool = False,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.provider = provider
        self.status = status
        self.said = said
        self.is_lasting = is_lasting


class ModelRefusedKey(ModelError):
    pass


class ModelRejected(ModelError):
    positions: tuple[int, ...] = ()
    """The messages of the request that the provider's words name."""


class CallMalformed(ModelRejected):
    """`written` is the call as the model wrote it: JSON, or any text."""

    def __init__(self, message: str, *, remedy: str = "", written: str = "", **fields: Unpack[AnswerFields]) -> None:
        super().__init__(message, remedy=remedy, **fields)
        self.written = written


class ContextOverflow(ModelRejected):
    """`window` is how many tokens the model takes, if the provider named it."""

    def __init__(
        self, message: str, *, remedy: str = "", window: int | None = None, **fields: Unpack[AnswerFields]
    ) -> None:
        super().__init__(message, remedy=remedy, **fields)
        self.window = window


class ModelUnavailable(ModelError):
    """`retry_after` is how long the provider asked us to wait, in seconds, if it did."""

    def __init__(
        self, message: str, *, remedy: str = "", retry_after: float | None = None, **fields: Unpack[AnswerFields]
    ) -> None:
        super().__init__(message, remedy=remedy, **fields)
        self.retry_after = retry_after


class ReplyBroken(ModelError):
    pass


class TurnCancelled(Exception):
    pass
