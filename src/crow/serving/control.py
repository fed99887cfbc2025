"""What a second `crow web` asks of the one that runs, on that one's unix socket and nowhere else: a link, a token, the
list of tokens.
"""

from crow.acp.wire import Wire
from crow.serving.tokens import StoredToken


class GivenLink(Wire, frozen=True, omit_defaults=False):
    link: str
    """The address that a person opens; good once. Empty if there is no page."""
    origin: str
    has_page: bool
    is_behind: bool
    """Whether a proxy offers the page to other machines."""


class GivenToken(Wire, frozen=True):
    token: str
    id: str
    origin: str


class Forget(Wire, frozen=True):
    ids: list[str]
    links: bool = False
    """Links that nobody has opened yet are forgotten too."""


class KnownTokens(Wire, frozen=True, omit_defaults=False):
    tokens: list[StoredToken]
