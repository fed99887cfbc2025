"""Our tools' advice in the names that they have here: those for files are commands of one tool."""

from crow.tools.advice import Advice

ADVICE = Advice(
    read_first="View it first.",
    read_again="View it again.",
    read_all="View the whole of it first, or change a part of it with `str_replace`.",
    change_a_part="Change it with `str_replace`.",
    make_a_file="To make a new file use `create`.",
    make_it_unique="Add lines around it until it is unique.",
    go_on="go on with view_range [{line}, -1]",
    fetch_no_files="For files use `file_editor`.",
    search_no_files="Not for files.",
)
