"""Search services: `base.py` says what one is, `choosing.py` which one is asked, `asking.py` makes the request;
`brave.py`, `duckduckgo.py`, `kagi.py`, `searxng.py`, `serper.py` and `tavily.py` are one service each."""
