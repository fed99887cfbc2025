"""How a command fails: one line for the person; what nobody foresaw goes into the log in full."""

import os
import sys
import time

from crow.config.home import LOG_FLAGS, create_folder, home, log_path, reason
from crow.errors import CrowError


def report(error: Exception) -> int:
    """Says what went wrong and returns the exit code."""
    if isinstance(error, BrokenPipeError):
        _give_up_output()
        return 1
    if isinstance(error, OSError) and not _output_works():
        _give_up_output()
        error = output_failed(error)
    if isinstance(error, FileNotFoundError) and not in_a_folder():
        error = CrowError("The folder that you are in was deleted.", remedy="Go to another with cd.")
    print(f"crow: {_one_line(_describe(error))}", file=sys.stderr)
    return 1


def output_failed(error: OSError) -> CrowError:
    return CrowError(f"Standard output cannot be written: {reason(error)}.")


def in_a_folder() -> bool:
    """Whether the folder that the program was started in still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _output_works() -> bool:
    """Whether what was printed so far could be written."""
    try:
        print(end="", flush=True)
    except OSError:
        return False
    return True


def _give_up_output() -> None:
    """Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _describe(error: Exception) -> str:
    if isinstance(error, CrowError):
        return str(error)
    said = f"unexpected {type(error).__name__}: {error}" if str(error) else f"unexpected {type(error).__name__}"
    try:
        return f"{said} (details in {log_crash(error)})"
    except (OSError, CrowError) as trouble:
        return f"{said} (and the log cannot be written: {_one_line(str(trouble))})"


def log_crash(error: Exception) -> str:
    """Appends the traceback to the log and returns the log's path."""
    import traceback

    path = log_path(home(os.environ))
    create_folder(os.path.dirname(path))
    text = "".join(traceback.format_exception(error))
    descriptor = os.open(path, LOG_FLAGS, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} crow {' '.join(sys.argv[1:2])} failed\n{text}")
    return path


def _one_line(text: str) -> str:
    return " ".join(text.split())
