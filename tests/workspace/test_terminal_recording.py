"""What is recorded of a command, where the order of things matters."""

import asyncio
import os
from pathlib import Path

from crow.workspace.terminal_recording import Recording
from crow.workspace.terminals import OutputFolder
from tests.support.patience import DEADLINE


def test_what_is_there_is_drained_while_another_process_holds_the_pipe_open(tmp_path: Path):
    async def story() -> None:
        recording = Recording(OutputFolder(str(tmp_path)), "a.txt", 1000, lambda: None)
        another = os.dup(recording.writer)  # as a command has that was left running
        os.write(another, b"served\n")
        draining = asyncio.create_task(recording.drain())
        await asyncio.sleep(0)
        recording.start()  # output and order are both there at its first look
        async with asyncio.timeout(DEADLINE):
            await draining
        assert (await recording.excerpt(0)).text == "served\n"
        recording.stop()
        os.close(another)

    asyncio.run(story())
