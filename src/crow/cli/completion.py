"""`crow completion SHELL`: prints a script for bash, zsh or fish that completes Crow's commands and options, made from
the parsers.
"""

import argparse
import shlex
from collections.abc import Iterator

from crow.cli.editors import COMMAND_NAMES, EDITORS
from crow.cli.parsing import Option, Words

EXAMPLES = """\
where it goes:
  bash   crow completion bash > ~/.local/share/bash-completion/completions/crow
  zsh    crow completion zsh > "${fpath[1]}/_crow"
  fish   crow completion fish > ~/.config/fish/completions/crow.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=", ".join(SCRIPTS))


def main(arguments: argparse.Namespace) -> int:
    from crow.__main__ import COMMANDS, build_parser

    words = build_parser(list(COMMANDS)).words()
    words.commands["setup"][1].values += EDITORS
    print("\n".join(SCRIPTS[arguments.shell](words)))
    return 0


def _walk(words: Words, path: str = "crow") -> Iterator[tuple[str, Words]]:
    """Every command and sub-command, by its words."""
    yield path, words
    for name, (_, further) in words.commands.items():
        yield from _walk(further, f"{path} {name}")


def _quoted(words: list[str]) -> str:
    return shlex.quote(" ".join(words))


# --- bash, and zsh in bash's manner: both walk the words typed so far and look up what may follow


def _bash(words: Words) -> Iterator[str]:
    yield "# Completion of crow for bash."
    yield "_crow() {"
    yield "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} place=crow i"
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield '    case "$place ${COMP_WORDS[i]}" in'
    yield f'      {_places(words)}) place="$place ${{COMP_WORDS[i]}}" ;;'
    yield "    esac"
    yield "  done"
    yield '  case "$place $prev" in'
    for place, option, one in _with_values(words):
        yield f"    {shlex.quote(f'{place} {option}')}) {_bash_value(one)}; return ;;"
    yield "  esac"
    yield '  case "$place" in'
    for place, one in _walk(words):
        yield f'    {shlex.quote(place)}) COMPREPLY=($(compgen -W {_quoted(_following(one))} -- "$cur")) ;;'
    yield "  esac"
    yield "}"
    yield f"complete -o default -F _crow {' '.join(COMMAND_NAMES)}"


def _bash_value(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W {_quoted(option.choices)} -- "$cur"))'
    return 'COMPREPLY=($(compgen -d -- "$cur"))' if option.kind == "folder" else "COMPREPLY=()"


def _zsh(words: Words) -> Iterator[str]:
    yield f"#compdef {' '.join(COMMAND_NAMES)}"
    yield "# Completion of crow for zsh."
    yield "_crow() {"
    yield "  local place=crow prev=${words[CURRENT-1]} i"
    yield "  for ((i = 2; i < CURRENT; i++)); do"
    yield '    case "$place ${words[i]}" in'
    yield f'      ({_places(words)}) place="$place ${{words[i]}}" ;;'
    yield "    esac"
    yield "  done"
    yield '  case "$place $prev" in'
    for place, option, one in _with_values(words):
        yield f"    ({shlex.quote(f'{place} {option}')}) {_zsh_value(one)}; return ;;"
    yield "  esac"
    yield '  case "$place" in'
    for place, one in _walk(words):
        yield f"    ({shlex.quote(place)}) compadd -- {shlex.join(_following(one))} ;;"
    yield "  esac"
    yield "  _files"
    yield "}"
    yield f'if [ "$funcstack[1]" = "_crow" ]; then _crow "$@"; else compdef _crow {" ".join(COMMAND_NAMES)}; fi'


def _zsh_value(option: Option) -> str:
    if option.choices:
        return f"compadd -- {shlex.join(option.choices)}"
    return "_files -/" if option.kind == "folder" else "_files"


def _places(words: Words) -> str:
    return "|".join(shlex.quote(place) for place, _ in _walk(words) if " " in place)


def _with_values(words: Words) -> Iterator[tuple[str, str, Option]]:
    for place, one in _walk(words):
        for option, about in one.options.items():
            if about.takes_value:
                yield place, option, about


def _following(words: Words) -> list[str]:
    long_options = [option for option in words.options if option.startswith("--")]
    return [*words.commands, *words.values, *long_options]


# --- fish, where each completion is a line with a condition


def _fish(words: Words) -> Iterator[str]:
    yield "# Completion of crow for fish."
    for place, one in _walk(words):
        _, *called = place.split()
        further = list(one.commands)
        seen = " ".join(f"; and __fish_seen_subcommand_from {name}" for name in called).removeprefix("; and ")
        unseen = f"not __fish_seen_subcommand_from {' '.join(further)}" if further else ""
        condition = shlex.quote("; and ".join(filter(None, (seen, unseen))) or "true")
        for name, (summary, _) in one.commands.items():
            yield f"complete -c crow -f -n {condition} -a {shlex.quote(name)} -d {shlex.quote(summary)}"
        if one.values:
            yield f"complete -c crow -f -n {condition} -a {_quoted(one.values)}"
        for option, about in one.options.items():
            yield f"complete -c crow -n {condition} {_fish_option(option, about)} -d {shlex.quote(about.help)}"
    for other in COMMAND_NAMES[1:]:
        yield f"complete -c {other} -w crow"


def _fish_option(option: str, about: Option) -> str:
    flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
    if about.choices:
        return f"{flag} -x -a {_quoted(about.choices)}"
    return f"{flag} -r" if about.takes_value else flag


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
