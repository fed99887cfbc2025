"""What a second `crow web` asks of the one that runs, on that one's unix socket and nowhere else: a link, a token, the
list of tokens.

Who asks may be a command that a Crow runs. Once there can be one, links and tokens are shown in the terminal of the
`crow web` that runs, and nowhere else: the answers leave them out.
"""

from crow.acp.wire import Wire
from crow.web_server.tokens import StoredToken


class GivenLink(Wire, frozen=True, omit_defaults=False):
    link: str
    """The address that a person opens; good once. Empty if there is no page, or if it was shown elsewhere."""
    origin: str
    has_page: bool
    is_behind: bool
    """Whether a proxy offers the page to other machines."""


class GivenToken(Wire, frozen=True):
    origin: str
    token: str = ""
    """Empty if it was shown elsewhere."""
    id: str = ""


class Forget(Wire, frozen=True):
    ids: list[str]
    links: bool = False
    """Links that nobody has opened yet are forgotten too."""


class KnownTokens(Wire, frozen=True, omit_defaults=False):
    tokens: list[StoredToken]
