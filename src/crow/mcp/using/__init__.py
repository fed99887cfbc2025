"""Servers that a session uses, as tools of the model.

    hub ──▶ connection ──▶ stdio ──▶ program (a process under the keeper)
     │          │   └────▶ remote (streamable HTTP, SSE), login and tokens (OAuth)
     │          ├────────▶ inventory ──▶ pages
     │          └────────▶ answering ──▶ forms (what the server asks of us), addresses
     ├──▶ tool_list ──▶ tool ──▶ schemas ──▶ unions, references, keywords, argument_names
     │                    └────▶ changes;  content ──▶ structured;  digests
     └──▶ finding, resources, prompts

wanted.py          which servers, and who wants them
hub.py             all servers of a session: their tools, and which of them the model is told of
connection.py      the life of one server: started, used, lost, started again
expected.py        how long a prompt waits for a server
calls.py           the calls that run: what ends with them, and their clocks
addresses.py       pages that the person has to open before a call is answered
retries.py         how often, and after which pauses
failures.py        what goes wrong, in words
stderr_log.py      what a server writes to its standard error
inventory.py       what a server has, and that it changed
telling.py         what the person is told of a server
naming.py          what servers, tools and prompts are called, in rules too
message_guard.py   every message of a server passes here: floods are stopped, lists and results mended
long_messages.py   far too much in one message, cut before it is decoded
mending.py         messages that are nearly JSON
tool_list.py       the tools of one server, and what is odd about them
schemas.py         a tool's schema made fit for models and their providers
changes.py         what a call is about: its target, and the change to a file that it asks for
digests.py         what an answer of the person is bound to: a tool as it is described, and its server
server_address.py  the address of a server over HTTP, without the keys in it
library.py         the library's own log

Nothing here is loaded before a session has servers, but for `wanted.py`.
"""
