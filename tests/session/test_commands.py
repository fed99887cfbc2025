"""Which prompts are commands, and what is passed on to them."""

import asyncio

import pytest

from crow.events import CommandInfo, SentLink, SentText
from crow.session.commands import Command, CommandSource, SlashCommands, blocks_after_command


def fake(name):
    async def run(arguments, rest, ids):
        return ""

    return Command(CommandInfo(name, ""), run)


class Files(CommandSource):
    """Commands that come and go."""

    def __init__(self):
        self.names = []
        self.looks = 0

    async def refresh(self):
        self.looks += 1

    def watch(self, tell):
        self.tell = tell

    def close(self):
        del self.tell

    def commands(self):
        return [fake(name) for name in self.names]


@pytest.mark.rule("R128")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/help", ("help", "")),
        ("/help ", ("help", "")),
        ("/help me please", ("help", "me please")),
        ("/help\nme\n please\n", ("help", "me\n please")),
        ("/git:re-view_2 x", ("git:re-view_2", "x")),
        (" /help", None),
        ("help", None),
        ("please /help", None),
        ("/", None),
        ("/ help", None),
        ("//help", None),
        ("/unknown x", None),
        ("/help/me", None),
        ("/usr/bin/env is missing", None),
        ("/HELP", None),
        ("/help.", None),
        ("", None),
    ],
)
def test_a_command_stands_at_the_very_beginning_of_the_text(text, found):
    commands = SlashCommands([fake("help"), fake("git:re-view_2")])
    command = commands.find([SentText(text)])
    assert (command and (command[0].info.name, command[1])) == found


@pytest.mark.rule("R128")
def test_only_the_first_text_counts_and_the_other_blocks_are_passed_on():
    link, more = SentLink("file:///a", "a"), SentText("/help too")
    commands = SlashCommands([fake("help")])
    assert commands.find([SentText("no"), SentText("/help")]) is None
    sent = [link, SentText("/help me"), more]
    assert commands.find(sent) is not None
    assert blocks_after_command(sent) == (link, more)
    assert commands.find([link]) is None


def names(commands):
    """The names that are told; None if nothing is."""
    told = asyncio.run(commands.changed())
    return told and [info.name for info in told.commands]


def test_commands_are_told_again_only_when_they_have_changed():
    files = Files()
    commands = SlashCommands([fake("help")], [files])
    assert names(commands) == ["help"]
    assert names(commands) is None
    files.names = ["mine"]
    assert names(commands) == ["help", "mine"]
    assert names(commands) is None
    files.names = []
    assert names(commands) == ["help"]
    assert files.looks == 5


def test_another_look_is_due_when_a_source_tells_of_a_change(monkeypatch):
    monkeypatch.setattr("crow.session.commands.SETTLED", 0.0)

    async def told() -> None:
        files = Files()
        commands = SlashCommands([], [files])
        commands.watch()
        due = asyncio.create_task(commands.due())
        await asyncio.sleep(0)
        assert not due.done()
        files.tell()
        await due

    asyncio.run(told())


def test_another_look_is_due_from_time_to_time_where_nobody_tells_of_changes(monkeypatch):
    monkeypatch.setattr("crow.session.commands.SETTLED", 0.0)
    monkeypatch.setattr("crow.session.commands.POLL_INTERVAL", 0.01)

    async def first_due(*sources: Files) -> list[bool]:
        looks = [asyncio.create_task(SlashCommands([], [source]).due()) for source in sources]
        await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        return [look.done() for look in looks]

    watched, unwatched = Files(), Files()
    unwatched.is_watched = False
    assert asyncio.run(first_due(watched, unwatched)) == [False, True]


def test_a_built_in_command_comes_before_a_file():
    files = Files()
    files.names = ["help", "mine"]
    built_in = fake("help")
    commands = SlashCommands([built_in], [files])
    assert commands.find([SentText("/help")]) == (built_in, "")
    assert commands.find([SentText("/mine x")]) is not None
