"""The parser of the command line: its usage errors, with the word that was probably meant and a way on."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, cast

import msgspec

from crow.config.toml import nearest


class Parser(argparse.ArgumentParser):
    """Sub-commands get the same class, so each of them complains of its own arguments."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # pyright: ignore[reportIncompatibleMethodOverride] -- its overloads say the same
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._complain(unknown)
        return known, unknown

    def _complain(self, unknown: Sequence[str]) -> NoReturn:
        option = next((word for word in unknown if word.startswith("-")), "")
        if not option:
            self.error(f"unexpected argument {unknown[0]!r}")
        name = option.partition("=")[0]
        hint = did_you_mean(name, self._option_string_actions)
        if any(action.dest == "prompt" for action in self._actions) and not hint:
            hint = ' (put "--" before a prompt that begins with "-")'
        self.error(f"unknown option {name}{hint}")

    def words(self) -> "Words":
        """What may stand behind this command, for completion in a shell."""
        words = Words()
        for action in self._actions:
            by_name = cast("object", action.choices)
            if isinstance(by_name, dict):  # so it is for sub-commands alone
                parsers = cast("dict[str, Parser]", by_name)
                helps = {pseudo.dest: pseudo.help or "" for pseudo in cast("Any", action)._get_subactions()}  # noqa: SLF001 -- no other way
                words.commands = {name: (helps.get(name, ""), parser.words()) for name, parser in parsers.items()}
                continue
            choices = [str(choice) for choice in action.choices or ()]
            kind = _kind_of(action)
            if not action.option_strings:
                words.values += choices
            for option in action.option_strings:
                words.options[option] = Option(action.help or "", action.nargs != 0, choices, kind)
        return words


class Option(msgspec.Struct):
    help: str
    takes_value: bool
    choices: list[str]
    kind: Literal["", "file", "folder"]


class Words(msgspec.Struct):
    """A command's sub-commands with their help, its options, and the fixed words that it takes."""

    commands: dict[str, "tuple[str, Words]"] = {}
    options: dict[str, Option] = {}
    values: list[str] = []


def _kind_of(action: argparse.Action) -> Literal["", "file", "folder"]:
    match action.metavar:
        case "FILE":
            return "file"
        case "D" | "DIR":
            return "folder"
        case _:
            return ""


def a_folder(text: str) -> str:
    """For an argument: an empty one is a variable that a script has not set, and means no folder, not this one."""
    if not text:
        raise argparse.ArgumentTypeError("expected a folder")
    return text


def a_file(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expected a file")
    return text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, in brackets; empty if none is near."""
    meant = nearest(word, known)
    return f" (did you mean {meant}?)" if meant else ""
