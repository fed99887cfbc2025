"""One turn: ask the model, run what it calls for, until it has no more to ask. It begins in `loop`.

Where is …?
- what is shown of a call while its arguments arrive, and how often: `partial_call.py`
- where a wait is named to the person: `waits.py` (when, and how often), `acp/sink.py` (shows it)
- where a turn is run, and why it stopped: `loop.py`
- where one call is judged, asked about, performed and settled, whoever makes it; what stays to be seen of one that
  was rejected or interrupted, such as its diff: `call.py`
- which calls of a reply run at the same time, and what settles the rest of them: `call_batch.py` (`CallBatch`)
- where a model that repeats itself is stopped: `call_batch.py` (`LoopGuard`: the same call), `model/replies.py`
  (`ReplyGuard`: the same text)
- what the model is sent: `history.py` (which messages), `requests.py` (tools, system prompt, settings),
  `model/wires/chat_request.py`, `model/wires/responses.py`, `model/wires/anthropic.py` (the JSON of each API)
- what is left out, step by step, when a provider refuses the history: `loop.py` (`RefusalRecovery` decides),
  `message_building.py` (carries it out)
- where a prompt's attachments are read: `prompt.py`
- what happens when the model's window fills up: `requests.py` (how full it is), `compaction.py` (decides, and makes
  room), `summary.py` (writes the summary)
- where the output of a tool is cut so that it fits into the model's window: `requests.py` (`fitted_output`)
"""
