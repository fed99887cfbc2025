"""The file of what a server writes to standard error: its end is there, and it does not grow for ever."""

from crow.mcp.client.stdio import KEPT, StderrLog


def test_the_last_megabyte_is_always_there(tmp_path):
    path = tmp_path / "log" / "bakery.log"
    log = StderrLog(str(path))
    log.begin()
    written = b""
    for number in range(60):
        piece = f"{number:05}\n".encode() * 10_000
        log.add(piece)
        written = (written + piece)[-KEPT:]
        assert path.read_bytes().endswith(written)
        assert path.stat().st_size <= 2 * KEPT
    log.add(b"x" * (3 * KEPT))
    assert path.read_bytes() == b"x" * KEPT
    log.close()
    assert path.stat().st_mode & 0o777 == 0o600
