"""What is recorded of a command, where the order of things matters."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crow.commands.pty import Channel, open_channel
from crow.commands.terminal_recording import Recording
from crow.files.output_folder import OutputFolder
from tests.support.patience import DEADLINE


def a_pipe() -> Channel:
    reader, writer = os.pipe()
    return Channel(reader, (writer,))


@pytest.mark.parametrize("opened", [open_channel, a_pipe])
def test_what_is_there_is_drained_while_another_process_holds_the_other_end_open(
    tmp_path: Path, opened: Callable[[], Channel]
):
    async def story() -> None:
        channel = opened()
        recording = Recording(channel, OutputFolder(str(tmp_path)), "a.txt", 1000, lambda: None)
        another = os.dup(channel.given[0])  # as a command has that was left running
        channel.start()
        os.write(another, b"served\n")
        draining = asyncio.create_task(recording.drain())
        await asyncio.sleep(0)
        recording.start()  # output and order are both there at its first look
        async with asyncio.timeout(DEADLINE):
            await draining
        assert (await recording.excerpt(0)).text == "served\n"
        recording.stop()
        channel.close()
        os.close(another)

    asyncio.run(story())
