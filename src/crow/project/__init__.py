"""What a folder says to the agent, and what the agent says of the folder to the model.

prompt.py          the system prompt
instructions.py    AGENTS.md: always read, as text
snapshot.py        the files that a folder brings for Crow, read once
watching.py        changes of files, as the kernel tells of them
prompt_files.py    the commands (custom.py) and skills (skills.py) among them; naming.py, frontmatter.py
project_config.py  a project's settings: what of them may count; servers.py: its MCP servers
offer.py           all that a project brings, as trust is about it; question.py: how the person is shown it
trust.py           what was trusted, remembered on the user's side
sources.py         what a session may use of all this: the user's own, and that of trusted projects
"""
