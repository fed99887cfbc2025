"""Whether a new session of an editor is to live in the `crow web` of this home, where it outlives the editor."""

import logging
from collections.abc import Awaitable, Callable

from crow.commands.processes import is_command
from crow.disk import Disk
from crow.errors import CrowError, SessionElsewhere
from crow.session.models import SessionSetup
from crow.store.web_owner import find_web

logger = logging.getLogger(__name__)

DISK_TIMEOUT = 2.0
"""Seconds that the disk gets to say whether one runs, and the system whose process it is."""


async def web_home(home: str, set_up: Callable[[], Awaitable[SessionSetup]]) -> SessionElsewhere | None:
    """The `crow web` that runs, unless the configuration keeps sessions here. Where none runs, this is one look for a
    file."""
    try:
        web = await Disk(home).run(lambda: find_web(home), DISK_TIMEOUT)
        if web is None or not web.socket:
            return None
        if (await set_up()).settings.faces.home != "web":
            return None
        # Sessions in one that a command of Crow's has started would be in that command's hands.
        if await Disk("/proc").run(lambda: is_command(int(web.process)), DISK_TIMEOUT):
            logger.warning("the crow web of process %s was started by a command: it is not used", web.process)
            return None
    except CrowError:
        return None  # such as a disk that does not answer, which is said where the session is opened here
    return SessionElsewhere(web.owner, web.process, web.socket)
