"""The Agent Client Protocol, both sides of it: the agent that editors start, and the small client behind `crow run`,
`crow chat` and `crow demo`. The only room that knows a wire type.
"""
