"""What the model may do, one file a tool, its prompt text beside it.

- `base`: what a tool is. `schemas`: what the model is told of its arguments.
- `toolbox`: the tools of a session, by name. `small_set`: those of a model with a small window.
- `read`, `find`, `search` look; `write` and `edit` change; `terminal` and `background` run commands; `plan` and `ask`
  talk to the person; `leave_plan` ends the plan mode; `task` sends a subagent.
- `web_fetch` and `web_search`; `web_redirects`: which redirects are followed unasked.
- `exit_codes`: those of commands that are answers, not failures.
- `seen`: what the model knows of each file. `changing`: how a change is shown before and told of after.
- `editing/`: where an edit applies in a text, and what is put there. `lenient/`: what is meant by a call that is not
  written as it should be. Both have maps.
- `paths_meant`: the file that a path means which is not written as it should be. `suggestions`: what may be meant
  where nothing lies.
- `advice`: what the model is told to do next, in the names that the tools have where they are offered.
"""
