"""What a folder says to the agent, and what the agent says of the folder to the model.

Instructions (AGENTS.md) are always read, as text. Everything else that a project brings needs trust
(`needs_trust.py`): it has no effect before the person trusts it (`trusted_sources.py`).
"""
