"""The Agent Client Protocol, both sides of it: the agent that editors start, and the small client behind `crow run`,
`crow chat` and `crow demo`. The only room that knows a wire type.

Where is …?
- what is answered to `initialize`, and which log-ins are offered: `agent.py`
- where a token becomes an update: `sink.py` (when it is sent, and what keeps messages apart),
  `translate.py` (what is sent)
- when a tool call is first shown, how long that is put off for its title, and what of it is told next:
  `shown_calls.py`
- which fields a message of the protocol has: `wire.py`
- the methods and fields that are Crow's own (`_crow/…`, `_meta.crow`): `extensions.py` (the methods),
  `wire_extensions.py` and `wire.py` (the fields), `crow_meta.py` (reads them) for authors of clients
- how some changes of an edit are accepted and others refused: `client_person.py` (reads the answer),
  `tools/file_changes.py` (makes the change smaller), `diff.py` (which change is which)
- where a session is opened, loaded, copied, listed, closed, deleted: `sessions.py` (the methods of one connection),
  `live/host.py` (the sessions of the process)
- how the person is asked in a client, and which answer is a yes: `client_person.py`
- whether the editor's files and terminal are used: `capabilities.py` (decides), `workspace.py` (files), `terminal.py`
  (terminals), `terminal_check.py` (whether its terminal can be trusted)
- how a session is reached that lives in another process, and what becomes of it when that ends: `relay.py` (passes
  messages on, opens it again), `owner_link.py` (connects to its process), `relayed_fields.py` (what it reads)
- what Crow's own programs tell each other in `_meta.crow`: `wire.py` (`ClientFacts`, `LoadFacts`, …: the fields),
  `crow_meta.py` (reads and writes them)
- what all living sessions do, in whichever process: `inbox.py`
- whether a buffer that differs from the disk is unsaved work: `workspace.py`
"""
