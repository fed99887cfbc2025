"""The process of an agent, as its client has it: started with pipes, ended whatever happens, and what it said last."""

import asyncio
import contextlib
import os
import signal
import weakref
from collections.abc import Mapping, Sequence

from crow.commands.processes import signal_name
from crow.errors import CrowError
from crow.timeouts import timeout

GRACE = 2.0
"""Seconds an agent has to end by itself once its input is closed, and again after SIGTERM."""
LAST_WORDS = 8 * 1024
"""Bytes that are kept of what the agent writes to its standard error."""
PIPE_SIZE = 256 * 1024
"""More than a pipe holds: one read empties it."""


class AgentGone(CrowError):
    """The agent could not be started, ended in the middle, or does not answer."""


class AgentProcess:
    """A child process with a pipe to its standard input and one from its standard output."""

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str] | None = None) -> "AgentProcess":
        with contextlib.ExitStack() as ours_on_failure, contextlib.ExitStack() as theirs:
            pipes = [os.pipe() for _ in range(3)]
            (stdin, to_agent), (from_agent, stdout), (errors, stderr) = pipes
            for descriptor in (stdin, stdout, stderr):
                theirs.callback(os.close, descriptor)
            for descriptor in (to_agent, from_agent, errors):
                ours_on_failure.callback(os.close, descriptor)
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=environment,
                    # Ctrl-C in a terminal goes to the whole foreground group. In a session of its own the agent
                    # does not get it, so that we can cancel the turn in the protocol's way instead.
                    start_new_session=True,
                )
            except OSError as error:
                raise AgentGone(f"The agent {command[0]} cannot be started: {error.strerror}.") from error
            ours_on_failure.pop_all()
        return cls(process, to_agent, from_agent, errors)

    def __init__(self, process: asyncio.subprocess.Process, to_agent: int, from_agent: int, errors: int) -> None:
        self.input = to_agent
        self.output = from_agent
        self._errors = errors
        self._process = process
        self._last_words = b""
        self._ended = False
        self._is_free = False
        os.set_blocking(errors, False)
        asyncio.get_running_loop().add_reader(errors, self._read_errors)
        # The last resort, if the event loop dies or the program exits before `end` could run.
        self._safety_net = weakref.finalize(self, _kill_group, process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def obituary(self) -> AgentGone:
        """What can be said of an agent that no longer talks."""
        try:
            async with timeout(GRACE):
                code = await self._process.wait()
        except TimeoutError:
            return AgentGone("The agent closed its output in the middle of the conversation.")
        self._read_errors()
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        said = self._last_words.decode("utf-8", "replace").strip()
        return AgentGone(f"The agent {how} in the middle of the conversation." + (f" It said: {said}" if said else ""))

    def kill(self) -> None:
        """At once, and whatever it started in its process group too."""
        if self._process.returncode is None:
            _kill_group(self._process.pid)

    def let_go(self) -> None:
        """From now on `end` does not insist on the agent's end."""
        self._is_free = True

    async def end(self) -> None:
        """Closes the agent's input, which tells it to end, and sees to it that it does."""
        if self._ended:
            return
        self._ended = True
        asyncio.get_running_loop().remove_reader(self._errors)
        # Its output goes too: nobody reads any more, and an agent must not wait for us while it writes.
        for descriptor in (self.input, self.output, self._errors):
            os.close(descriptor)
        if self._is_free:
            self._safety_net.detach()
            return
        try:
            if not await self._is_over():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await self._is_over()
        finally:
            self.kill()
            await self._process.wait()
            self._safety_net.detach()

    async def _is_over(self) -> bool:
        try:
            async with timeout(GRACE):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _read_errors(self) -> None:
        try:
            data = os.read(self._errors, PIPE_SIZE)
        except BlockingIOError:
            return
        if data:
            self._last_words = (self._last_words + data)[-LAST_WORDS:]
        else:
            asyncio.get_running_loop().remove_reader(self._errors)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
