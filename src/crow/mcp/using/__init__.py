"""Servers that a session uses, as tools of the model.

    hub ──▶ connection ──▶ stdio ──▶ program (a process under the keeper)
     │          │   └────▶ remote (streamable HTTP, SSE), login and tokens (OAuth)
     │          └────────▶ inventory; answering (what the server asks of us), addresses
     └──▶ tool ──▶ content;  finding, resources, prompts

wanted.py       which servers, and who wants them
hub.py          all servers of a session: their tools, what is offered to the model, what the person is told
connection.py   the life of one server: started, used, lost, started again
expected.py     how long a prompt waits for a server
calls.py        the calls that run: what ends with them, and their clocks
addresses.py    pages that the person has to open before a call is answered
retries.py      how often, and after which pauses
inventory.py    what a server has, and that it changed
failures.py     what goes wrong, in words
stderr_log.py   what a server writes to its standard error
telling.py      what the person is told of a server
naming.py       what servers, tools and prompts are called, in rules too
tapped.py       every message of a server passes here: floods are stopped, lists mended
schemas.py      a tool's schema made fit for models
hidden.py       characters that cannot be seen, made visible
approvals.py    whether a tool is still the one that was allowed

Nothing here is loaded before a session has servers, but for `wanted.py`.
"""
