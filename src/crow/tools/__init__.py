"""What the model may do, one file a tool, its prompt text beside it.

- `base`: what a tool is. `schemas`: what the model is told of its arguments.
- `toolbox`: the tools of a session, by name. `small_set`: those of a model with a small window.
- `read`, `find`, `search` look; `write` and `edit` change; `terminal` and `background` run commands; `plan` and `ask`
  talk to the person; `leave_plan` ends the plan mode; `task` sends a subagent.
- `web_fetch` and `web_search`; `web_redirects`: which redirects are followed unasked.
- `exit_codes`: those of commands that are answers, not failures.
- `seen`: what the model knows of each file. `changing`: how a change is shown before and told of after.
- `matching`: where an edit applies, by an exact match in the text (`places`) or, where there is none, by `tolerant`:
  `readings` are what the edit may have been meant to be, `forms` what is overlooked. `fitting`: what is put there.
  `following`: the same in a text that has changed meanwhile. `nearest`: what it may have meant, if it applies nowhere.
- `suggestions`: what may be meant by a path where nothing lies.
- `omissions`: placeholders for what a model left out, which are never written.
- `advice`: what the model is told to do next, in the names that the tools have where they are offered.
"""
