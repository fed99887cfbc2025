"""Models: one interface, one adapter per provider's wire format (`wires/`), one retry layer around them.

Where is …?
- what a reply cost, and a session; what stops a turn whose budget is used up: `base.py` (`cost_of` a reply),
  `turn/spending.py` (sums and budgets), `store/records.py` (the day's sum)
- where a provider is, and with which key and headers: `endpoint.py`
- a key that a command prints; where keys are taken out of what is shown: `credentials.py` (`printed_key`, `scrub`)
- which error a provider's answer becomes: too long, wrong key, rate limit; by which wording it is known:
  `error_kinds.py`
- where the provider's own words are found in an error's body; a reply that is malformed: `error_bodies.py`
- where a failed request is sent again; how a reply goes on that broke off: `retries.py`, `turn/cut_replies.py`;
  `pauses.py` (how long they wait, out of one budget)
- what is said of a connection that fails or falls silent; who shares connections, and when they are closed: `http.py`
  (the words), `streaming.py` (notices silence); `connections.py`
- how calls that a model wrote as text become calls: `text_calls.py` (follows the stream), `text_call_syntaxes.py`
  (how models write them), `text_call_readers.py` (parses them)
- how long a model is told to think: `facts.py` (what it can), `wires/anthropic_request.py` (budgets),
  `wires/dialects.py` (fields of chat completions)
- what is known of a model, and from where: `catalog.py` (which source wins), `listing.py` (the provider's list),
  `facts.py` (the catalogue, made by `scripts/catalogue.py`), `stored_facts.py` (what was stored)
- what a local model server says of itself, and how its small window is worked with: `local_server.py` (asks it),
  `session/lazy_model.py` (uses what it says), `tools/base.py` (`small_set` of tools), `replies.py` (room for the
  reply)
"""
