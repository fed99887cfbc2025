"""Crow: a coding agent that speaks the Agent Client Protocol. Importing it prints and creates nothing."""

__version__ = "0.1.0"
