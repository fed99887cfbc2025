"""Registered by pyproject: the project's own pytest additions."""
