"""Settings: read once, validated, handed down; and Crow's own folder, in which they and all that is stored lie."""
