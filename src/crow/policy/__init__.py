"""May this action run? Pure decisions from rules, modes and paths.

- `base`: the three answers, and what a policy is. `rules`: the policy of a session.
- `judging`: from a deed to verdicts, by `rulebook` (what the person wrote) and `modes` (where that says nothing).
- `paths`: secrets and protected paths; `hooks`: those that git's configuration names. `globs`: the paths of rules.
- `shell` and `commands`: whether rules cover a command line. `plain` and `grammar` are two readers of it that must
  agree; `hazards`, `programs`, `places`, `repositories` and `submodules` find what a rule does not cover
  (`option_table` and `tables` are their data); `reveal` finds every command in it, for the rules that
  refuse, and `refusing` compares them.
- `scopes` and `grants`: what an "always" is offered for, and where it is kept. `explaining`: why it was decided so.
- `unattended`: what `crow mcp` refuses, where nobody can be asked.
"""
