"""What commands see of our environment."""

from collections.abc import Collection, Mapping

CHANGE_MEANING = frozenset({"BASH_ENV", "ENV", "CDPATH"})
"""Variables that make a shell do something else than its line says, which is what was judged and approved."""


def seen_by_commands(environ: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """`secrets` are the names of the variables that hold keys of ours."""
    return {name: value for name, value in environ.items() if name not in CHANGE_MEANING and name not in secrets}
