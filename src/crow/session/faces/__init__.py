"""The faces of a live session: any number of clients that watch it, are asked, and take part. Begin with `faces.py`.

Where is …?
- who is there, who leads, joining and leaving: `faces.py`
- a client that does not read; the place between what was and what comes: `feed.py`
- how one question reaches all clients, and whose answer counts: `questions.py`
- whose buffers and whose terminal are used if there are several: `files.py` (buffers), `commands.py` (terminals)
"""
