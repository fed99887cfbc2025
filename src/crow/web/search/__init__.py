"""Search services: `base.py` says what one is, `choosing.py` which one is asked; the others are one service each."""
