"""The wire formats: how a request is written and a reply is read, one adapter each.

exchange.py             one request and its reply: the loop of every wire
learning.py             what refusals teach: a request without the detail that was refused
oddities.py             events whose fields have other types than they should
encoding.py             what the requests of all wires have in common
arriving_text.py        text that arrives in pieces: torn characters, thoughts between tags

openai.py               which of OpenAI's two APIs is spoken
openai_usage.py         what replies of both say of tokens and cost
chat.py                 chat completions, and what their servers refuse
chat_request.py         a history as such a request
chat_reply.py           a stream as events
chat_chunks.py          a chunk of the stream, whatever its types are
dialects.py             what vendors' chat completions are known to want
responses.py            the Responses API, and what its servers refuse
responses_request.py    a history as such a request
responses_reply.py      a stream as events

anthropic.py            the messages API, and what its servers refuse
anthropic_request.py    a history as such a request
anthropic_thinking.py   how a Claude is told to think
anthropic_reply.py      a stream as events
"""
