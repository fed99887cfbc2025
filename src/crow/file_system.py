"""What kind of file system the store lies on: SQLite's write-ahead log needs memory that processes share.

On a network file system two machines do not share it, and on some not even two processes of one machine: a log is then
damaged without a word. There the store is used with a rollback journal, which needs nothing but locks.
"""

import os
import re

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p", "ceph", "lustre", "gpfs", "beegfs"),
        *("ocfs2", "gfs2", "orangefs", "pvfs2", "vboxsf", "prl_fs", "vmhgfs", "davfs", "webdav", "afpfs", "panfs"),
    }
)
NETWORK_PROGRAMS = frozenset(
    {
        *("sshfs", "rclone", "s3fs", "gcsfuse", "goofys", "davfs", "davfs2", "glusterfs", "cephfs", "curlftpfs"),
        *("vmhgfs-fuse", "juicefs", "mfs", "nfs", "smbnetfs", "blobfuse", "blobfuse2"),
    }
)
"""File systems in user space have the name of their program."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


def network_file_system(folder: str, table: str = "/proc/self/mountinfo") -> str:
    """The name of the network file system that the folder lies on; empty if it is none, or nobody can tell."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            kind = _kind_at(os.path.realpath(folder), file.read())
    except OSError:
        return ""
    return kind if kind in NETWORK or kind.removeprefix("fuse.") in NETWORK_PROGRAMS else ""


def _kind_at(path: str, table: str) -> str:
    """The kind of the mount that the path lies on: the last one of those with the longest way in common with it."""
    found, longest = "", -1
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.partition(" ")[0]
        if len(fields) > 4:
            point = _ESCAPED.sub(lambda escape: chr(int(escape[1], 8)), fields[4])
            if len(point) >= longest and (path + "/").startswith(point.rstrip("/") + "/"):
                found, longest = kind, len(point)
    return found
