"""The built files of the page, as they lie in the package, and the headers that go with every answer.

They are read once and served from memory, by their exact names: no path of a request ever reaches the disk.
"""

import secrets
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from crow.errors import CrowError

INDEX = "index.html"
NONCE = b"@NONCE@"
"""What stands in the index in the place of the nonce."""
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
"""What is served besides the index."""
MISSING = "The page is missing from this Crow: its files have not been built."
REMEDY = "In a checkout run `make page`; else install Crow again from a release."

Headers = list[tuple[bytes, bytes]]


class BuiltFile(NamedTuple):
    content: bytes
    type: str


class BuiltFiles:
    """The index may be missing, as in a checkout in which nothing was built."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self._index = found.get(INDEX)
        self._others = {
            f"/{name}": BuiltFile(content, TYPES[extension])
            for name, content in found.items()
            if (extension := f".{name.rpartition('.')[2]}") in TYPES
        }

    @property
    def is_complete(self) -> bool:
        return self._index is not None

    def answer(self, path: str) -> tuple[int, Headers, bytes]:
        """Status, headers and body for a path."""
        if path == "/":
            return self._answer_index()
        file = self._others.get(path)
        if file is None:
            return refusal(404, "There is no such file.")
        return 200, [(b"content-type", file.type.encode()), *security_headers()], file.content

    def _answer_index(self) -> tuple[int, Headers, bytes]:
        if self._index is None:
            return refusal(503, f"{MISSING} {REMEDY}")
        nonce = secrets.token_urlsafe(16)
        headers = [(b"content-type", b"text/html; charset=utf-8"), *security_headers(nonce)]
        return 200, headers, self._index.replace(NONCE, nonce.encode())


def find_built_files() -> BuiltFiles:
    folder = built_folder()
    try:
        return BuiltFiles({entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()})
    except FileNotFoundError:
        return BuiltFiles({})
    except OSError as error:
        raise CrowError(f"The page's files cannot be read: {error.strerror}.", remedy="Install Crow again.") from error


def built_folder() -> Traversable:
    return files(__package__ or "") / "built"


def refusal(status: int, reason: str) -> tuple[int, Headers, bytes]:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *security_headers()]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    if status == 426:
        headers.append((b"upgrade", b"websocket"))
    return status, headers, reason.encode() + b"\n"


def security_headers(nonce: str = "") -> Headers:
    """No header here lets another origin read anything: there are none for CORS, and no cookie."""
    style = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src {style}; img-src 'self' data: blob:; font-src 'self'; "
        "manifest-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]
