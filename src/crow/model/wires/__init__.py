"""The wire formats: how a request is written and a reply is read, one adapter each.

Where is …?
- which of OpenAI's two APIs is spoken: `openai.py` (`EitherWire`)
- what a chunk of a provider's stream means: `chat_reply.py`, `responses_reply.py`, `anthropic_reply.py` (one for each
  API), on `stream_parsing.py` (what they share)
- how thoughts between tags such as `<think>` are told from the answer: `stream_parsing.py` (`THOUGHT_TAGS`,
  `TaggedThoughts`)
- what a model that cannot see gets for a picture: `encoding.py` (`placeholder_for`)
- what a vendor's chat completions want that others do not: `dialects.py` (what is known before)
- what a refusal of one detail of a request teaches: `http_model.py` (sends it again without), `openai.py`,
  `responses.py`, `anthropic.py` (each API's table of refusals)
"""
