"""Models: one interface, and one adapter per provider's wire format (`wires/`).

Where is …?
- what a reply cost, and a session; what stops a turn whose budget is used up: `base.py` (`cost_of` a reply),
  `turn/spending.py` (sums and budgets), `store/records.py` (the day's sum)
- where a provider is, and with which key and headers: `endpoint.py`
- a key that a command prints; where keys are taken out of what is shown: `credentials.py` (`printed_key`, `scrub`)
- which error a provider's answer becomes (too long, wrong key, rate limit), and where its own words are found:
  `provider_errors.py`
- where a failed request is sent again, and for how long; how a reply goes on that broke off:
  `session/session_model.py`, `base.py` (`ReplyRetries`, the pauses), `turn/reply.py`
- what is said of a connection that fails or falls silent; who shares connections, and when they are closed: `http.py`
  (the words), `connections.py`
- how calls that a model wrote as text become calls: `text_calls.py` (follows the stream), `text_call_syntaxes.py`
  (how models write them), `text_call_readers.py` (parses them)
- how long a model is told to think: `facts.py` (what it can), `wires/anthropic.py` (budgets), `wires/dialects.py`
  (fields of chat completions)
- what is known of a model, and from where: `catalog.py` (which source wins), `listing.py` (what providers and servers
  say), `facts.py` (the catalogue, and what was stored)
- how the small window of a local model is worked with: `session/session_model.py`, `tools/base.py` (`small_set` of
  tools), `replies.py` (room for the reply)
"""
