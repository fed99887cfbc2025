"""The wire formats: how a request is written and a reply is read, one adapter each."""
