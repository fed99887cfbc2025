"""One turn: ask the model, run what it calls for, until it has no more to ask.

- `loop`: the turn itself. `conversation`: the few things that it may know.
- `prompt`: from what the person sent to what the model gets. `reply`: one reply of the model, as events.
- `calls`: its tool calls, allowed, run, settled; `permission`: by whom. `arriving`: one whose arguments still arrive.
- `history`: the model's view of the journal. `growing`: the reply in it that is not over yet. `refusals`: sending it
  again where a provider will not take it; `simplifying`: without what.
- `budget`: how full the model's window is. `output_room`: what an output may take of it. `compaction`: making room
  in it. `summary`: what stands for a beginning afterwards, made from its `transcript`; `essentials`: what no summary
  may lose.
- `subagent`: a turn of its own within a call, with a map of its own.
- `spending`: what was spent, and the budgets that a turn pauses at.
- `guard`: a model that goes round in circles. `waits`: naming what is waited for.
"""
