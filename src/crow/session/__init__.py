"""One conversation's life: its journal, its one running turn, what it was set up with, what was chosen in it."""
