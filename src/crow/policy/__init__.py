"""May this action run? Pure decisions from rules, modes and paths."""
