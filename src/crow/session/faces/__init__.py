"""The faces of a live session: any number of clients that watch it, are asked, and take part. Begin with `faces.py`."""
