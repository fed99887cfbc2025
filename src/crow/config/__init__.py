"""Settings: read once, validated, handed down; and Crow's own folder, in which they and all that is stored lie.

Where is …?
- which proxy and which certificates are used: `network.py`
- which settings there are, and what is wrong with a file: `settings.py` (names, defaults), `load.py` (mistakes)
"""
