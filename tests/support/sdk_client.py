"""A client made with the protocol's own SDK, as a program: `sdk_client.py NAME AGENT-COMMAND…`.

It is told what to do on its standard input, a JSON object a line. `{"id": 1, "call": "load_session", "with": {…}}` is
a call of the SDK's connection; `{"answer": "once", "always": false}` chooses an option in all questions that are
open, or also in those that come. On its standard output it tells what the SDK hands to a client (`update`, `asked`,
`result`), and what the SDK keeps to itself (`withdrawn`). It ends with its input.
"""

import asyncio
import json
import os
import sys
import threading
from typing import Any

import acp
from acp import schema

Json = dict[str, Any]


def tell(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def plain(model: Any) -> Json:
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


class Client:
    def __init__(self) -> None:
        self._open: list[asyncio.Future[str]] = []
        self._option = ""

    def on_connect(self, connection: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        tell(update=plain(update))

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **meta: Any) -> Any:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open += [] if self._option else [answer]
        tell(asked=plain(tool_call))
        if self._option:
            answer.set_result(self._option)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=await answer)
        return schema.RequestPermissionResponse(outcome=outcome)

    def answer(self, option: str, *, always: bool) -> None:
        self._option = option if always else ""
        for question in self._open:
            question.set_result(option)
        self._open.clear()

    def observe(self, event: Any) -> None:
        if event.direction == "incoming" and event.message.get("method") == "$/cancel_request":
            tell(withdrawn=event.message["params"]["requestId"])


async def call(connection: Any, id: int, method: str, arguments: Json) -> None:
    try:
        tell(id=id, result=plain(await getattr(connection, method)(**arguments)))
    except acp.RequestError as error:
        tell(id=id, error=str(error))
    except ConnectionError as error:
        tell(id=id, error=f"the agent is gone: {error}")


def read_into(orders: "asyncio.Queue[Json | None]", loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(orders.put_nowait, json.loads(line))
    loop.call_soon_threadsafe(orders.put_nowait, None)


async def main(name: str, *agent: str) -> None:
    client, orders, calls = Client(), asyncio.Queue[Json | None](), set[asyncio.Task[None]]()
    reader = threading.Thread(target=read_into, args=(orders, asyncio.get_running_loop()), daemon=True)
    environment = dict(os.environ)
    spawned = acp.spawn_agent_process(client, *agent, env=environment, observers=[client.observe])  # pyright: ignore[reportArgumentType]
    async with spawned as (connection, _):
        info = schema.Implementation(name=name, version="1")
        await connection.initialize(protocol_version=1, client_info=info)
        reader.start()
        while (order := await orders.get()) is not None:
            if "answer" in order:
                client.answer(order["answer"], always=order["always"])
            else:
                calls.add(asyncio.create_task(call(connection, order["id"], order["call"], order["with"])))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
