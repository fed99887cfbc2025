"""One turn: ask the model, run what it calls for, until it has no more to ask. It begins in `loop`.

Where is …?
- where a turn is run, and why it stopped: `loop.py`
- where one call is judged, asked about, performed and settled: `call.py`; which calls of a reply run at the same time,
  and where a model that repeats a call is stopped: `call_batch.py`
- what is shown of a call while its arguments arrive, and how often: `partial_call.py`
- what the model is sent: `history.py` (which messages), `requests.py` (tools, system prompt, settings)
- what is left out, step by step, when a provider refuses the history: `loop.py` (`RefusalRecovery` decides),
  `message_building.py` (carries it out)
- how a turn goes on after a reply that broke off: `reply.py` (`CutReplies`)
- where a prompt's attachments are read: `prompt.py`
- what happens when the model's window fills up: `requests.py` (how full it is), `compaction.py` (decides, and makes
  room), `summary.py` (writes the summary)
- how a subagent works: `subagents.py` (one at work, its tools, how many at once); what a session sees of it:
  `subagent_journal.py`, `subagent_steps.py`
- what a session spends, and what stops it: `spending.py`; where a wait is named to the person: `waits.py`
"""
