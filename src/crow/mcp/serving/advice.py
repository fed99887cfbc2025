"""Our tools' advice in the names that they have here: those for files are commands of one tool.

There need not be a tool that runs commands, and there is none that searches files: nobody is sent to these.
"""

from crow.tools.advice import Advice

ADVICE = Advice(
    read_first="View it first.",
    read_again="View it again.",
    read_all="View the whole of it first, or change a part of it with `str_replace`.",
    change_a_part="Change it with `str_replace`.",
    make_a_file="To make a new file use `create`.",
    look_for_it="View the folder to see what is there.",
    make_it_unique="Add lines around it until it is unique.",
    go_on="go on with view_range [{line}, -1]",
    fetch_no_files="For files use `file_editor`.",
    fetch_otherwise="",
    change_otherwise="",
    run_no_files="Not for viewing or changing files: use `file_editor`.",
    search_no_files="Not for files.",
)
