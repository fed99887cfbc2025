"""The protocol edge: the only room that knows a wire type. It has both sides of the protocol: the agent that editors
start, and the small client behind `crow run` and `crow demo`.
"""
