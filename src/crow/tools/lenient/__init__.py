"""Calls that are not written as they should be, and what was meant by them. Loaded only for such calls.

What has one meaning is read, and the model is told how; what has none, or two, is refused, with all that is wrong at
once, what arrived, and a call that would do. `call_parsing` is where it begins.
"""
