"""The sessions that live in this process, and their faces: any number of clients that watch a session, are asked, and
take part. Begin with `host.py`.

Where is …?
- which sessions live here; joining, leaving, ending and deleting one: `host.py`
- a session that lives, and what it has of this machine: `session.py`
- how a session is opened, loaded or copied for a client, and whether its folders are there: `opening.py`
- who watches a session, who leads, who is trusted, and who is shown codes: `faces.py`, `face.py` (one of them)
- a client that does not read; the place between what was and what comes: `feed.py`
- how one question reaches all clients, and whose answer counts: `questions.py`
- whose buffers and whose terminal are used if there are several: `files.py` (buffers), `commands.py` (terminals)
- how other processes reach a session that lives here, and who may connect: `attach_socket.py`
- what becomes of the sessions when their process ends: `ownership.py` (hands them over)
"""
