"""Settings: read once, validated, handed down; and Crow's own folder, in which they and all that is stored lie.

Where is …?
- which settings there are, with their defaults: `settings.py`
- what is wrong with a config file: `load.py` (what a key may hold), `toml.py` (how a mistake is said)
- which vendors are known, with their addresses and keys: `vendors.json` (the table), `settings.py` (`Vendor`)
- which model a session begins with where none is configured, and which model servers are looked for: `discovery.py`
- what a variable such as `CROW_MODE` may hold: `discovery.py`
- which proxy and which certificates are used: `hosts.py` (`proxy_for`, `tls_for`)
- how an address is shown without its secrets; what counts as nearby: `hosts.py` (`shown_address`, `is_nearby`)
- how `crow login` changes config.toml without losing comments: `edit.py`
- where Crow's files are, and how they are written and locked: `home.py`
"""
