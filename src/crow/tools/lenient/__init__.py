"""Calls that are not written as they should be, and what was meant by them. Loaded only for such calls.

What has one meaning is read, and the model is told how; what has none, or two, is refused, with all that is wrong at
once, what arrived, and a call that would do. `call_parsing` is where it begins.

Where is …?
- what is made of a call that is not written as it should be: `call_parsing.py` (calls the others), `json_repair.py`
  (JSON that is nearly JSON), `arguments.py` (wrappers, other forms, other types), `names.py` (other names)
- what other agents call our tools and their arguments: `other_agents.toml`
"""
