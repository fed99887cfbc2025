"""What the model may do, one file a tool, its prompt text beside it."""
