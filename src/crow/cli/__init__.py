"""The command line: one file per sub-command, each imported only when it is called.

- `acp`, `completion`, `config`, `demo`, `doctor`, `login`, `logout`, `mcp`, `models`, `run`, `sessions`, `setup` and
  `status` are the sub-commands; what is below belongs to them.
- `parsing`: the parser of the arguments. `failure` and `log`: what is said and logged when a command fails. `terminal`:
  asking the person.
- `stdio` and `until_told`: how `acp` and `mcp` get standard input and output to themselves, serve, and end.
- `run_prompt`: what goes with the prompt of `crow run`. `demo_person`, `demo_project`: who and what is in the demo.
- `editors` and `jsonc`: the editors that `crow setup` knows, and their settings. `pick_provider` and `pick_model`:
  the choices of `crow login`.
- `mcp_offering`: the server that `crow mcp` is. `mcp_servers` and `mcp_login`: trying, and logging in to, those in use.
- `health`: what a check of `crow doctor` is; the checks are in `health_machine`, `health_mcp`, `health_models`,
  `health_store` and `health_web`.
- `render_conversation` shows a conversation with an agent: `render` makes lines of its updates, `render_screen` writes
  them. `render_answer`: the model's words alone, for programs and files.
- `render_content`, `render_diff`, `render_plan`, `render_prose`, `render_question`, `render_running`, `render_table`:
  what each kind of update looks like. `render_text`: strangers' text made safe to print, and measured.
"""
