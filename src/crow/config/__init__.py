"""Settings: read once, validated, handed down.

- `settings`: all that can be configured. `load` reads the user's file, `explain` says which key of it is wrong, `edit`
  changes it and keeps its layout. `toml`, `hosts` and `amounts`: how values are written. `doubts`: what
  cannot work, although it may be written.
- `discovery`: what can be used without a file: keys of the known `vendors`, and servers that `probe` finds on this
  machine. `variables`: what goes before the file. `key_variables`: the variables with keys, which no command
  gets to see.
- `home`: Crow's own folder. `locking` and `versioned_json`: the files in it that several processes share.
"""
