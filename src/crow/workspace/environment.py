"""What commands see of our environment."""

import os
from collections.abc import Collection, Mapping

CHANGE_MEANING = frozenset({"BASH_ENV", "ENV", "CDPATH"})
"""Variables that make a shell do something else than its line says, which is what was judged and approved."""
NAME_A_REPOSITORY = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
"""Left over from a hook that started the editor, they would lead git to another repository than the workspace's."""
_FOUND_FROM_FOLDER = frozenset({"RIPGREP_CONFIG_PATH"})
"""Files of options that name programs to run: a relative path would be a file of whatever folder a command runs in."""

_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def seen_by_commands(environ: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """`secrets` are the names of the variables that hold keys of ours."""
    withheld = CHANGE_MEANING | NAME_A_REPOSITORY | frozenset(secrets)
    withheld |= {name for name in _FOUND_FROM_FOLDER if not os.path.isabs(environ.get(name, "/"))}
    seen = {name: value for name, value in environ.items() if name not in withheld}
    return seen | {"PATH": search_path(environ)} | git_settings(environ)


def given_to_terminals(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a client's terminal is given besides its own environment, which is like ours."""
    path = search_path(environ)
    return git_settings(environ) | ({} if environ.get("PATH", path) == path else {"PATH": path})


def search_path(environ: Mapping[str, str]) -> str:
    """PATH without what is not absolute: `.` or an empty entry is a folder of whatever project a command runs in.

    Without a PATH some shells look there too, so that there always is one.
    """
    home = environ.get("HOME", "")
    entries = environ.get("PATH", "").split(os.pathsep)
    # Shells read the `~` as the home, other programs as a folder of this name.
    spelled = (home + entry[1:] if entry == "~" or entry.startswith("~/") else entry for entry in entries)
    return os.pathsep.join(entry for entry in spelled if os.path.isabs(entry)) or _USUAL_PATH


def git_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables by which git obeys no bare repository that it comes across, beside the settings that are there.

    Any folder of a project can look like one, and its configuration names programs to run. All of the settings are
    given: a client's environment may lack some, and git refuses to work if one that was counted is missing.
    """
    settings = [*_settings_in(environ), ("safe.bareRepository", "explicit")]
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return numbered


def _settings_in(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    count = environ.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdecimal() and len(count) < 5 else 0
    names = ((f"GIT_CONFIG_KEY_{at}", f"GIT_CONFIG_VALUE_{at}") for at in range(number))
    return [(environ[key], environ[value]) for key, value in names if key in environ and value in environ]
