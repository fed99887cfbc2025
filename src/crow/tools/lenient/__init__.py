"""Calls that are not written as they should be, and what was meant by them. Loaded only for such calls.

What has one meaning is read, and the model is told how; what has none, or two, is refused, with all that is wrong at
once, what arrived, and a call that would do.

    reading.py          a call's text -> arguments in the shape of a schema, or the words of a refusal
    json_repair.py      what is nearly JSON
    shapes.py           wrappers, other names, and what single tools have of their own
    argument_names.py   the tables of other names
    values.py           single values: numbers in quotes, JSON in strings, other words for a choice
    misfits.py          what is wrong with values, and examples of right ones
    tool_names.py       the tool that is meant by a name that no tool has
    several.py          tools of others that stand for several of ours, or for none
"""
