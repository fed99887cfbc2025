"""One conversation's life: its journal, its one running turn, what it was set up with, what was chosen in it.

- `open` puts a session together from its `surroundings`, `toolset` its tools; `session` is one, `running` its turn;
  `journal` is where all that happens is written.
- `models`, `known_models`, `options`: which model it talks to, which others there are, what was chosen. `late_model`:
  the model, from its first request on.
- `commands` finds slash commands; `builtins` are Crow's own, `file_commands` those that are files.
- `preparations`: what a turn begins with: `trusting` asks about what a project brings (`trusted` puts it into
  effect), `servers` waits for MCP servers. `server_prompts` and `server_questions`: what those bring and ask.
- `replay`, `mending`, `title`: what is shown of a stored session, the ends of what was cut off, what it is called.
- `undo`, `export`, `archive`, `unstored`: taking back, writing out, and reading the past, stored or not.
- `web_tools`: which host a redirect may lead to.
"""
