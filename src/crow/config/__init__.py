"""Settings: read once, validated, handed down."""
