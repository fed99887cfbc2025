"""`crow mcp`: our own tools, for other programs. The same code as the built-in ones, behind another protocol.

server.py        the two requests that matter: which tools there are, and calling one
clients.py       what is kept for each client: what it has seen, what it can take back, where it may work
roots.py         the folders that a client lets us work in
workspace.py     files in those folders and nowhere else; every change is remembered
edits.py         what each edit replaced
file_editor.py   the tool `file_editor`; `insert.py` and `undo.py` have parts of it
advice.py        what our tools tell the model to do next, in the names that they have here
calling.py       one call: judged, run, its progress told
answers.py       a tool's result as the protocol has it
stdio.py http.py how a client reaches us
open_requests.py what is still to be answered when a client's input ends
refusals.py      what a line on stdio gets that cannot be read
farewells.py     when a client over HTTP has left
"""
