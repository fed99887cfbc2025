"""Finding files and searching in them: which files there are, what git ignores, and what matches.

Where is …?
- how files are found and searched: `search.py` (runs the search), `search_matches.py` (what was found, also in what
  an editor has not saved), `listing.py` (which files, what git
  ignores, and paths to complete what is typed), `globs.py` (patterns)
"""
