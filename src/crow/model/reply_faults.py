"""What is said of an answer that is no reply, or not a whole one: the errors that all wires raise."""

import msgspec

from crow.errors import ModelError, ModelRejected, ReplyBroken
from crow.model import complaint
from crow.model.endpoint import Endpoint
from crow.model.sse import WHOLE, ServerEvent

LONGEST_EXCERPT = 80


class ReplyFaults:
    """Errors about the answers of one endpoint, without its secrets."""

    endpoint: Endpoint

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def unreadable(self, what: str, quoted: bytes | str = "") -> ReplyBroken:
        """The error for a reply that is not whole, or not understood; another attempt may succeed."""
        provider = self.endpoint.provider
        excerpt = f": {self._excerpt(quoted)}" if quoted else ""
        return ReplyBroken(
            f"{provider} sent {what}{excerpt}.",
            provider=provider,
            remedy="Try again; if it stays, base_url or the server is at fault.",
        )

    def ended_oddly(self, reason: str) -> str:
        """A sentence for the person about a reply that is whole and ended for a reason that nobody knows."""
        return f"{self.endpoint.provider} ended its reply for a reason unknown to Crow: {self._excerpt(reason)}."

    def complained(self, body: bytes) -> ModelError:
        """The error for a complaint that came where a reply should be."""
        said = complaint.read(body, self.endpoint.scrub)
        return complaint.in_stream(self.endpoint.provider, said, self.endpoint.key_name)

    def no_reply(self, body: bytes) -> ModelError:
        """The error for a whole document that is none; only what it complains of may be gone another time."""
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self.unreadable("something that is no part of a reply", body)
        said = complaint.read(body, self.endpoint.scrub)
        if said.understood:
            return complaint.in_stream(self.endpoint.provider, said, self.endpoint.key_name)
        return self.wrong_place("something that is no reply", body)

    def quoted(self, said: str) -> str:
        """What the provider said, fit to be shown to a person."""
        return complaint.shortened(said, self.endpoint.scrub)

    def no_event(self, arrived: ServerEvent) -> ModelError:
        """The error for an event that cannot be read."""
        if arrived.name == b"error":
            return self.complained(arrived.data)
        if arrived.name == WHOLE:
            return self.no_reply(arrived.data)
        return self.unreadable("something that is no part of a reply", arrived.data)

    def _excerpt(self, quoted: bytes | str) -> str:
        """The beginning of something unreadable, to give an idea of it."""
        text = quoted[: complaint.LONGEST]
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        return complaint.shortened(text, self.endpoint.scrub, LONGEST_EXCERPT)

    def wrong_place(self, what: str, quoted: bytes = b"") -> ModelRejected:
        """The error for an answer that no address of such an API gives."""
        excerpt = f": {self._excerpt(quoted)}" if quoted else ""
        return ModelRejected(
            f"{self.endpoint.provider} answered with {what} at {self.endpoint.shown_url}{excerpt}.",
            provider=self.endpoint.provider,
            remedy="Check base_url: it should end in the version of the API, such as /v1.",
        )
