"""`crow acp`: serves the agent on standard input and output, which is what editors start."""

import gc
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse  # only for the types: an editor that starts us does not wait for it

HINT = "crow acp speaks the Agent Client Protocol on standard input and output: editors start it. Try `crow demo`."


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    pass


def main(arguments: "argparse.Namespace | None") -> int:
    gc.disable()  # nothing that is imported is garbage, and looking for some costs 7 % of the start; `Agent` enables it
    from crow.cli.process import take_streams_for

    streams = take_streams_for("crow acp", HINT)
    return 1 if streams is None else _run(*streams)


def _run(reader: int, writer: int) -> int:
    # Only now: whatever prints while it is imported can no longer reach the client.
    import asyncio
    import logging

    from crow.acp.agent import Agent, LazyHost
    from crow.cli.process import log_to_file, output_failed, report, serve_until_shutdown
    from crow.config.home import home

    async def serve_and_leave() -> int:
        host = LazyHost(folder, os.environ)
        host.uses_web = True
        agent = Agent(host)
        connection = agent.connect(reader, writer)

        async def close() -> None:
            await agent.close()
            await host.end()
            await connection.close()

        status = await serve_until_shutdown(connection.run(), close, lambda: host.finish(agent))
        if connection.failure is not None:
            status = report(output_failed(connection.failure))
        # Not by returning: the interpreter would wait for threads that may hang in a file or a name look-up.
        logging.shutdown()
        os._exit(status)

    folder = home(os.environ)
    log_to_file(folder)
    return asyncio.run(serve_and_leave())
