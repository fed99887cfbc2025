"""The built files of the page, as they lie in the package.

They are read once and served from memory, by their exact names: no path of a request ever reaches the disk.
"""

import secrets
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import msgspec

from crow.errors import CrowError
from crow.web_server.gate import HttpAnswer, content, refusal

INDEX = "index.html"
MANIFEST = "manifest.json"
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
MISSING = "The page is missing: its files have not been built."
REMEDY = "In a checkout, run `make page`; otherwise reinstall Crow."


class BuiltFile(NamedTuple):
    content: bytes
    type: str


class BuiltFiles:
    """The index may be missing, as in a checkout in which nothing was built."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self._index = found.get(INDEX)
        self.build = _build_in(found.get(MANIFEST, b"{}"))
        """Names what the page was built from; empty if that is not known."""
        self._others = {
            f"/{name}": BuiltFile(content, TYPES[extension])
            for name, content in found.items()
            if (extension := f".{name.rpartition('.')[2]}") in TYPES
        }

    @property
    def is_complete(self) -> bool:
        return self._index is not None

    def answer(self, path: str) -> HttpAnswer:
        if path == "/":
            return self._answer_index()
        file = self._others.get(path)
        if file is None:
            return refusal(404, "File not found.")
        return content(file.type, file.content)

    def _answer_index(self) -> HttpAnswer:
        if self._index is None:
            return refusal(503, f"{MISSING} {REMEDY}")
        nonce = secrets.token_urlsafe(16)
        return content("text/html; charset=utf-8", self._index.replace(NONCE, nonce.encode()), nonce)


class _Manifest(msgspec.Struct, frozen=True):
    build: str = ""


def _build_in(manifest: bytes) -> str:
    try:
        return msgspec.json.decode(manifest, type=_Manifest).build
    except msgspec.MsgspecError:
        return ""


def find_built_files() -> BuiltFiles:
    folder = built_folder()
    try:
        return BuiltFiles({entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()})
    except FileNotFoundError:
        return BuiltFiles({})
    except OSError as error:
        raise CrowError(f"The page's files cannot be read: {error.strerror}.", remedy="Reinstall Crow.") from error


def built_folder() -> Traversable:
    return files(__package__ or "") / "built"
