"""A subagent: a turn of its own, with its own history and tools, in the session of the turn that sent it.

tools/task ──▶ subagents ──▶ run ──▶ journal ──▶ the session's journal
                                        └────▶ steps ──▶ the call that it works for
"""
