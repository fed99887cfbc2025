"""The protocol edge: the only room that knows a wire type."""
