"""What the model may do, one file for a tool or two of a kind, with the prompt text beside it.

`base` says what a tool is. `editing/` finds where an edit applies in a text; `lenient/` finds what is meant by a call
that is not written as it should be.
"""
