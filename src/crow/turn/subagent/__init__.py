"""A subagent: a turn of its own, with its own history and tools, in the session of the turn that sent it.

tools/task ──▶ subagents ──▶ run ──▶ journal ──▶ the session's journal
                                        └────▶ steps ──▶ the call that it works for

Where is …?
- how a subagent works: `run.py` (one at work, its tools), `subagents.py` (how many at once)
- what a session sees of a subagent; when one of its calls is shown by itself: `journal.py` (decides), `steps.py` (the
  steps in its call)
"""
