"""PDF files, written by hand: small ones, and such as were made to fill or hold up whoever reads them."""

import zlib
from collections.abc import Mapping

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
HELLO = b"BT /F1 24 Tf 72 700 Td (Hello crow) Tj ET\n"


def pdf(*pages: str, title: str = "") -> bytes:
    """One line of text on each page."""
    count = len(pages)
    kids = [4 + 2 * number for number in range(count)]
    objects = {1: CATALOG, 2: folder(*kids), 3: FONT}
    for kid, text in zip(kids, pages, strict=True):
        objects[kid] = leaf(kid + 1)
        objects[kid + 1] = stream(f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode())
    info = 4 + 2 * count
    objects[info] = f"<< /Title ({title}) >>".encode()
    return file_of(objects, more=f"/Info {info} 0 R")


def file_of(objects: Mapping[int, bytes], more: str = "") -> bytes:
    """The objects by their numbers, which begin with 1 and leave none out; `more` is for the trailer."""
    content = bytearray(b"%PDF-1.5\n")
    table = "0000000000 65535 f \n"
    for number, text in sorted(objects.items()):
        table += f"{len(content):010} 00000 n \n"
        content += f"{number} 0 obj\n".encode() + text + b"\nendobj\n"
    size = len(objects) + 1
    end = f"xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R {more} >>\n"
    return bytes(content) + f"{end}startxref\n{len(content)}\n%%EOF\n".encode()


def folder(*kids: int, count: int | None = None) -> bytes:
    """A node of the tree of pages; `count` is how many pages it says that it has."""
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    return f"<< /Type /Pages /Kids [{listed}] /Count {len(kids) if count is None else count} >>".encode()


def leaf(contents: int) -> bytes:
    """A page, with the number of the stream that draws it. The font is object 3."""
    resources = "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
    return f"<< /Type /Page /Parent 2 0 R {resources} /Contents {contents} 0 R >>".encode()


def stream(data: bytes, more: str = "") -> bytes:
    return f"<< /Length {len(data)} {more} >>\nstream\n".encode() + data + b"\nendstream"


def packed(beginning: bytes, filling: bytes, megabytes: int) -> bytes:
    """So many megabytes that begin like this, as `FlateDecode` unpacks them."""
    packer = zlib.compressobj(9)
    block = filling * (2**20 // len(filling))
    pieces = [packer.compress(beginning), *(packer.compress(block) for _ in range(megabytes)), packer.flush()]
    return b"".join(pieces)


# --- made to do harm


def huge_content(filling: bytes = b"\0", megabytes: int = 600) -> bytes:
    """One page, drawn by a stream that is a thousand times as large as the file."""
    drawn = stream(packed(b"", filling, megabytes), "/Filter /FlateDecode")
    return file_of({1: CATALOG, 2: folder(4), 3: FONT, 4: leaf(5), 5: drawn})


def packed_twice() -> bytes:
    drawn = stream(zlib.compress(packed(b"", b"\0", 600), 9), "/Filter [/FlateDecode /FlateDecode]")
    return file_of({1: CATALOG, 2: folder(4), 3: FONT, 4: leaf(5), 5: drawn})


def huge_object_stream() -> bytes:
    """The catalogue and the pages lie in a stream of objects that unpacks to hundreds of megabytes."""
    inner = {1: CATALOG, 2: folder(4), 3: FONT, 4: leaf(5)}
    places, text = "", b""
    for number, body in inner.items():
        places += f"{number} {len(text)} "
        text += body + b"\n"
    data = packed(places.encode() + text, b" ", 600)
    content = b"%PDF-1.5\n"
    rows = [(0, 0, 65535), *((2, 6, place) for place in range(len(inner)))]
    objects = stream(data, f"/Type /ObjStm /N {len(inner)} /First {len(places)} /Filter /FlateDecode")
    for number, body in ((5, stream(HELLO)), (6, objects)):
        rows.append((1, len(content), 0))
        content += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    start = len(content)
    rows.append((1, start, 0))
    table = b"".join(bytes([kind]) + place.to_bytes(4, "big") + last.to_bytes(2, "big") for kind, place, last in rows)
    content += b"7 0 obj\n" + stream(table, "/Type /XRef /Size 8 /W [1 4 2] /Root 1 0 R") + b"\nendobj\n"
    return content + f"startxref\n{start}\n%%EOF\n".encode()


def deep_tree(depth: int = 20_000) -> bytes:
    """One page, below thousands of nodes."""
    nodes = {number: folder(number + 1, count=1) for number in range(6, 6 + depth)}
    last = 6 + depth
    return file_of({1: CATALOG, 2: folder(6), 3: FONT, 4: b"null", 5: stream(HELLO), **nodes, last: leaf(5)})


def doubling_tree(depth: int = 40) -> bytes:
    """Each node names the next one twice: a few lines that stand for more pages than could be counted."""
    nodes = {number: folder(number + 1, number + 1, count=2) for number in range(6, 6 + depth)}
    last = 6 + depth
    return file_of({1: CATALOG, 2: folder(6, 6), 3: FONT, 4: b"null", 5: stream(HELLO), **nodes, last: leaf(5)})


def circular_tree() -> bytes:
    return file_of({1: CATALOG, 2: folder(4, 2), 3: FONT, 4: folder(2, 2)})


def slow_pages(count: int, megabytes: int = 8) -> bytes:
    """One page with a line of text, then some that take a second or so each."""
    slow = range(7, 7 + count)
    drawn = stream(packed(b"", b"BT /F1 24 Tf 72 700 Td ET\n", megabytes), "/Filter /FlateDecode")
    known = {1: CATALOG, 2: folder(6, *slow), 3: FONT, 4: stream(HELLO), 5: drawn, 6: leaf(4)}
    return file_of({**known, **dict.fromkeys(slow, leaf(5))})


def false_count() -> bytes:
    """One page that says it is two thousand million."""
    return file_of({1: CATALOG, 2: folder(4, count=2_000_000_000), 3: FONT, 4: leaf(5), 5: stream(HELLO)})
