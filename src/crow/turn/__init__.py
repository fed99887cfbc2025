"""One turn: ask the model, run what it calls for, until it has no more to ask. It begins in `loop`."""
