"""A subagent: a turn of its own, with its own history and tools, in the session of the turn that sent it.

    tools/task ──▶ subagents ──▶ run ──▶ journal ──▶ the session's journal
                      │           │         └────▶ steps, progress ──▶ the call that it works for
                      └ places    └ tools, naming

- `subagents`: those of a session. `places`: the few that work at the same time, and on what.
- `run`: one at work, from its errand to its report. `tools`: which tools it has. `naming`: the person is told whose a
  question is.
- `journal`: what of its journal reaches the session's. `steps` and `progress`: what is shown of it, and when.
- `cut_off`: what one had done when Crow was stopped.
"""
