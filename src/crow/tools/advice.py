"""What a model is told to do first, next or instead, in the names of the tools that it has."""

import msgspec


class Advice(msgspec.Struct, frozen=True):
    """The defaults name a session's tools. Whoever offers the tools under other names has other words."""

    read_first: str = "Read it first."
    read_again: str = "Read it again."
    read_all: str = "Read the whole of it first, or change a part of it with `edit`."
    change_a_part: str = "Change it with `edit`."
    make_a_file: str = "To make a new file use `write`."
    look_for_it: str = "Look for it by its name with `find`."
    make_it_unique: str = "Add lines around it until it is unique, or set `all` to replace every one."
    go_on: str = "go on with offset {line}"
    fetch_no_files: str = "For files of the project use `read`."
    fetch_otherwise: str = "Download it with a command if it is needed."
    change_otherwise: str = "Do it by a command."
    run_no_files: str = "Not for reading, searching or changing files: there are tools for that."
    search_no_files: str = "Not for the project's own files: use `search` for these."


OF_A_SESSION = Advice()
