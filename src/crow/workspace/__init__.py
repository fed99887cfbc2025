"""The files (and, later, terminals) that a session works on: this machine's, or the editor's."""
