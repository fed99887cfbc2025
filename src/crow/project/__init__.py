"""What a folder says to the agent, and what the agent says of the folder to the model.

Instructions (AGENTS.md) are always read, as text. Everything else that a project brings needs trust
(`needs_trust.py`): it has no effect before the person trusts it (`trusted_sources.py`).

Where is …?
- what the model is told of itself and the project; where `AGENTS.md` is looked for and read: `prompt.py`
- what a project brings, and what the person is shown of it: `needs_trust.py`
- which of a project's settings count: `needs_trust.py` (`ProjectConfig`)
- how a project is trusted: `session/trust.py` (asks, and puts it into effect), `trusted_sources.py` (remembers)
- which files of a project an MCP server runs: `server_programs.py`, `program_names.toml` (by which names)
- which links are followed to commands and skills, and how much of them is read: `folder_files.py` (`OF_PROJECT`:
  none, `OF_USER`: all)
- how a custom command or a skill becomes a prompt: `folder_files.py` (`CustomCommand`, `Skill`)
- how new commands are noticed while nothing happens: `watching.py` (told by the kernel), `session/commands.py`
  (`due`)
"""
