"""Models: one interface, one adapter per provider's wire format, one retry layer around them.

- `base`: what the rest of Crow knows of a model. `catalog`: from a name to a model. `retry` and `text_calls` wrap a
  model, and are one; `text_call_syntaxes`: how families of models write calls as text, `text_call_readers`: reading it,
  `quotation`: where they are only shown.
- `wires/`: the wire formats, and the loop that they have in common, with a map of its own.
- `scripted` follows a `script`, for tests, demonstrations, and trying Crow without a key.
- `endpoint` and `network`: where a provider is, with which key, by which way; `key_command`: a key that a command
  prints. `http`: the HTTP library. `sse`: events out of what it receives.
- `faults`: a provider's failure as one of our errors; `complaint` finds what it said; `scrubbing` takes out the keys.
  `reply_faults`: what is raised of an answer that is no reply.
- `facts`: what is known of models, from the catalogue in `facts.json`; `families`: what a name suggests.
- `local_server`: what a server on this machine says of itself; `silent_losses`: what it does not say. `reply_limit` and
  `reply_guard`: how long a reply may get.
- `prices`: what a reply cost. `listing`: which models a provider has; `listings`: the lists that are kept for a day;
  `windows`: how large windows proved to be, kept for a week.
  `trial`: whether a model answers.
"""
