"""What a folder says to the agent, and what the agent says of the folder to the model."""
