"""The protocol edge: the only room that knows a wire type.

- `transport`, `jsonrpc`, `connection`: from bytes to calls, and back.
- `agent` and `session_methods`: the protocol's methods. `sessions`: the sessions behind them, and the store.
- `wire`: the protocol's types. `translate` and `failures`: our words and errors as the protocol's; `translate_past` is
  for a session that is loaded, `translate_session` for what can be chosen in one. `sink`: when they are sent;
  `shown_calls`: what the client knows of the calls that are open.
- `offers`: what the client offers, and so what a session gets: `person` asks through it, `workspace` and `buffers`
  read and write there, `terminal` runs commands there, once `terminal_check` has found that it runs what it is sent;
  `refusals` tells what a client would not do from what it could not.
- `client`: the other side of the protocol, for `crow run` and `crow demo`.
"""
