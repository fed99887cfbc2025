"""What `crow chat` is made of, part by part: status line, messages and their files, history, what is printed."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from crow.acp.wire import (
    AvailableCommand,
    CommandInput,
    ConfigChoice,
    ConfigOption,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    ResourceLink,
    UsageUpdate,
)
from crow.cli.chat import completion as history_module
from crow.cli.chat.application import attention_sequence
from crow.cli.chat.completion import ChatCompleter, ProjectHistory
from crow.cli.chat.inline import breaks_lines_anew
from crow.cli.chat.messages import Message, Outbox, mentioned, missing, picture_mention
from crow.cli.chat.status_line import Status
from crow.cli.chat.transcript import LineBuffer, Unfolding
from crow.config.settings import ChatSettings

# --- the status line


def status(*, model: str = "local/qwen3-coder-30b", level: str = "high") -> Status:
    found = Status()
    found.starting = ""
    modes = [ConfigChoice(name=mode, value=mode) for mode in ("ask", "edit", "plan", "auto")]
    options = [
        ConfigOption(id="mode", name="Mode", current_value="ask", options=modes),
        ConfigOption(id="model", name="Model", current_value=model, options=[]),
    ]
    if level:
        options.append(ConfigOption(id="thought_level", name="Thinking", current_value=level, options=[]))
    found.take(ConfigOptionUpdate(config_options=options))
    found.take(UsageUpdate(used=30_000, size=200_000, cost=Cost(amount=0.42, currency="USD")))
    return found


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (80, "ask · local/qwen3-coder-30b · thinking high · 15% of 200k tokens · 0.42 USD"),
        (72, "ask · qwen3-coder-30b · thinking high · 15% of 200k tokens · 0.42 USD"),
        (60, "ask · qwen3-coder-30b · thinking high · 15% · 0.42 USD"),
        (52, "ask · qwen3-coder… · thinking high · 15% · 0.42 USD"),
        (40, "ask · qwen3-coder… · 15% · 0.42 USD"),
        (25, "ask · 15% · 0.42 USD"),
        (10, "ask · 15%…"),
    ],
)
def test_the_status_line_fits(width: int, text: str) -> None:
    assert status().text(width) == text
    assert len(text) <= width


def test_the_status_line_follows_the_session() -> None:
    found = status(level="")
    found.take(CurrentModeUpdate(current_mode_id="plan"))
    assert found.text(80).startswith("plan · ")
    assert found.mode_after("plan") == "auto"
    assert found.mode_after("auto") == "ask"
    assert found.mode_after("unheard of") == ""
    found.next_mode = "auto"
    found.elsewhere = "running in Zed"
    assert found.text(100).startswith("running in Zed · plan → auto · local/")
    assert Status().text(80) == "starting"


# --- messages


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("nest.py", "a b.txt", "src/egg.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see @nest.py", ["nest.py"]),
        ("@nest.py, please", ["nest.py"]),
        ("(@src/)? or @src/egg.py.", ["src", "src/egg.py"]),
        ('both @"a b.txt" and @nest.py', ["a b.txt", "nest.py"]),
        ("@nest.py#L3-7", ["nest.py#L3-7"]),
        ("me@nest.py @nobody @ @pytest.fixture", []),
        ("@nest.py and @nest.py", ["nest.py"]),
        ('see @"a b.txt', ["a b.txt"]),
        ('@"a b.txt\n@nest.py', ["a b.txt", "nest.py"]),
        ('@"a b.txt and what follows', []),
    ],
)
def test_files_that_a_text_names(project: Path, text: str, names: list[str]) -> None:
    found = [link.uri for link in Message(text).attachments(str(project)) if isinstance(link, ResourceLink)]
    assert found == [f"file://{project}/{name}".replace(" ", "%20") for name in names]


def test_a_name_may_look_like_one_with_lines(project: Path) -> None:
    (project / "issue#L3").write_text("x\n")
    assert [link.uri for link in mentioned("@issue#L3 @nest.py#L1", str(project))] == [
        f"file://{project}/issue%23L3",
        f"file://{project}/nest.py#L1",
    ]


def test_a_file_is_found_by_its_whole_path_and_from_home(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    assert len(mentioned(f"@{project}/nest.py @~/nest.py", "/")) == 2


def test_what_is_attached_is_shown_and_comes_first(project: Path) -> None:
    message = Message("look at @nest.py", (str(project / "a b.txt"), str(project / "nest.py")))
    assert message.shown == "look at @nest.py [a b.txt] [nest.py]"
    assert [getattr(link, "name", "") for link in message.attachments(str(project))] == ["a b.txt", "nest.py"]


def test_the_outbox_keeps_the_order_and_holds_what_it_should() -> None:
    changes: list[int] = []
    outbox = Outbox(lambda: changes.append(1))
    first, second = outbox.add(Message("first")), outbox.add(Message("second"))
    outbox.put_first(Message("before"))
    outbox.is_held = True
    assert outbox.next() is None
    outbox.is_held = False
    assert outbox.next() == Message("before")
    assert outbox.take_back() == Message("second")
    assert not outbox.remove(second)
    assert outbox.remove(first)
    assert outbox.take_back() is None
    assert len(changes) == 6


# --- completion


def completions(completer: ChatCompleter, text: str) -> list[str]:
    """What each completion makes of the text; the cursor is at its `|`, or at its end."""
    before, _, after = text.partition("|")

    async def collect() -> list[str]:
        document = Document(before + after, len(before))
        found = [one async for one in completer.get_completions_async(document, CompleteEvent())]
        return [before[: len(before) + one.start_position] + one.text + after for one in found]

    return asyncio.run(collect())


def test_commands_are_offered_at_the_beginning_alone(project: Path) -> None:
    completer = ChatCompleter(str(project))
    completer.commands = [
        AvailableCommand(name="init", description="x"),
        AvailableCommand(name="unit", description="y", input=CommandInput(hint="z")),
    ]
    assert completions(completer, "/") == ["/init", "/unit "]
    assert completions(completer, "/NI") == ["/init", "/unit "]
    assert completions(completer, "/in") == ["/init"]
    assert completions(completer, "a /in") == completions(completer, "/init x") == []


def test_files_are_offered_wherever_they_are_meant(project: Path) -> None:
    (project / "evil\nname").write_text("")
    (project / 'quo"te').write_text("")
    completer = ChatCompleter(str(project))
    assert completions(completer, "@") == ['@"a b.txt" ', "@nest.py ", "@src/"]
    assert completions(completer, 'x @"a ') == ['x @"a b.txt" ']
    assert completions(completer, "x @EGG") == ["x @src/egg.py "]
    assert completions(completer, "@src/e") == ["@src/egg.py "]
    assert completions(completer, "me@ne") == completions(completer, "@nest.py ") == []


def test_folders_elsewhere_are_completed_step_by_step(project: Path) -> None:
    completer = ChatCompleter(str(project / "src"))
    assert completions(completer, "@..") == ["@../"]
    assert completions(completer, "@../n") == ["@../nest.py "]
    assert completions(completer, f"@{project}/s") == [f"@{project}/src/"]
    assert completions(completer, "@/no/such/place/") == []


def test_only_a_word_that_ends_at_the_cursor_is_completed(project: Path) -> None:
    completer = ChatCompleter(str(project))
    completer.commands = [AvailableCommand(name="unit", description="y", input=CommandInput(hint="z"))]
    assert completions(completer, "/un|it") == completions(completer, "see @ne|st.py") == []
    assert completions(completer, "/un| all") == ["/unit all"]
    assert completions(completer, "see @ne| and go") == ["see @nest.py and go"]
    assert completions(completer, "(see @ne|\nand go") == ["(see @nest.py\nand go"]
    assert completions(completer, "(@ne") == ["(@nest.py "]


def test_a_name_between_quotation_marks_is_completed(project: Path) -> None:
    (project / "my docs").mkdir()
    (project / "my docs" / "screen\u202fshot.png").write_text("x")
    (project / "wide\u3000name.txt").write_text("x")
    completer = ChatCompleter(str(project))
    assert completions(completer, '@"a b|"') == ['@"a b.txt"']
    assert completions(completer, '@"ne') == ["@nest.py "]
    assert completions(completer, "@my")[:1] == ['@"my docs/']
    assert completions(completer, '@"my docs/') == ['@"my docs/screen\u202fshot.png" ']
    assert completions(completer, '@"my docs/|" and') == ['@"my docs/screen\u202fshot.png" and']
    assert completions(completer, "@wide") == ['@"wide\u3000name.txt" ']
    assert len(mentioned('@"wide\u3000name.txt"', str(project))) == 1


def test_links_and_what_is_ignored_are_offered_once_they_are_written(project: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".gitignore").write_text("built\n")
    (project / "built").mkdir()
    (project / "built" / "nest.bin").write_text("x")
    (project / "away").symlink_to(tmp_path)
    (project / "link.txt").symlink_to(project / "nest.py")
    (project / "broken").symlink_to(project / "nowhere")
    os.mkfifo(project / "src" / "pipe")
    (project / os.fsdecode(b"bad\xff")).write_text("x")
    completer = ChatCompleter(str(project))
    assert completions(completer, "@") == ["@.gitignore ", '@"a b.txt" ', "@away/", "@link.txt ", "@nest.py ", "@src/"]
    assert completions(completer, "@away/sr") == ["@away/src/"]
    assert completions(completer, "@LI") == ["@link.txt "]
    assert completions(completer, "@built/") == ["@built/nest.bin "]
    assert completions(completer, "@./n") == ["@./nest.py "]
    assert completions(completer, "@bad") == completions(completer, "@./bad") == completions(completer, "@brok") == []


def test_a_huge_folder_and_one_that_may_not_be_read_are_no_obstacle(project: Path) -> None:
    for number in range(3000):
        (project / "src" / f"egg{number}").touch()
    (project / "shut").mkdir(mode=0)
    (project / "shut2").symlink_to(project / "shut" / "in")
    completer = ChatCompleter(str(project))
    assert len(completions(completer, "@src/")) == len(completions(completer, f"@{project}/src/")) == 50
    assert completions(completer, "@shut/") == completions(completer, "@" + "x" * 5000 + "/") == []


# --- history


def entries(home: Path, folder: Path) -> list[str]:
    return list(ProjectHistory(str(home), str(folder)).load_history_strings())


def test_the_newest_entries_come_first_and_keep_their_lines(tmp_path: Path) -> None:
    history = ProjectHistory(str(tmp_path / "home"), str(tmp_path))
    for text in ("one", "two\nlines", "drei ö"):
        history.append_string(text)
    assert entries(tmp_path / "home", tmp_path) == ["drei ö", "two\nlines", "one"]
    assert entries(tmp_path / "home", tmp_path / "home") == []


def test_a_history_stays_small_and_survives_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MOST_ENTRIES", 10)
    history = ProjectHistory(str(tmp_path), str(tmp_path))
    for number in range(25):
        history.store_string(f"entry {number}")
    history.store_string("x" * (history_module.LONGEST_ENTRY + 1))
    assert entries(tmp_path, tmp_path) == [f"entry {number}" for number in range(24, 14, -1)]
    (file,) = (tmp_path / "history").iterdir()
    assert len(file.read_bytes().splitlines()) == 10
    with file.open("ab") as damaged:
        damaged.write(b'"half an ent')
    assert entries(tmp_path, tmp_path)[0] == "entry 24"


def test_without_a_place_for_it_there_is_no_history_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    history = ProjectHistory(str(tmp_path / "home"), str(tmp_path))
    history.append_string("x")
    assert history.get_strings() == ["x"]
    assert entries(tmp_path / "home", tmp_path) == []


# --- what is printed


def test_lines_leave_the_buffer_when_they_are_whole_and_keep_their_style(tmp_path: Path) -> None:
    with (tmp_path / "terminal").open("w") as terminal:
        buffer = LineBuffer(terminal)
        buffer.write("plain\n\x1b[0;1mbold ")
        assert (buffer.take_lines(), buffer.rest) == ("plain\n", "\x1b[0;1mbold ")
        buffer.write("goes on\nover the end\x1b[0m")
        assert buffer.rest == "\x1b[0;1mover the end\x1b[0m"
        assert buffer.take_lines() == "\x1b[0;1mbold goes on\x1b[0m\n"
        assert buffer.rest == "\x1b[0;1mover the end\x1b[0m"
        assert buffer.take_lines() == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see @nope.py", "File not found: nope.py."),
        ("see @nope.py#L3-5, and @nope.py again", "File not found: nope.py."),
        ('@nest.py, (@src/b) and @"a file.txt".', "File not found: src/b, a file.txt."),
        ("@dataclass @app.route('/') @types/node @ada me@host.de @nest.py @src", ""),
    ],
)
def test_files_that_are_not_there_are_told_apart_from_other_words(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "nest.py").touch()
    assert missing(text, str(tmp_path)) == (told and f"{told} Your message is sent as it is.")


@pytest.mark.parametrize(
    ("environment", "anew"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "screen"}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default"}, True),
    ],
)
def test_which_terminals_break_lines_anew(environment: dict[str, str], anew: bool) -> None:
    assert breaks_lines_anew(environment) == anew


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "xterm"}, "\x1b]9;Crow asks: a⟨U+001B⟩b, c\x1b\\"),
        ({"TERM": "xterm", "VTE_VERSION": "7600"}, "\x1b]777;notify;Crow;Crow asks: a⟨U+001B⟩b, c\x1b\\"),
        ({"TERM": "tmux", "TMUX": "x"}, "\x1bPtmux;\x1b\x1b]9;Crow asks: a⟨U+001B⟩b, c\x1b\x1b\\\x1b\\\a"),
    ],
)
def test_a_notification_says_what_is_asked_and_nothing_else(environment: dict[str, str], sequence: str) -> None:
    words = "Crow asks: a\x1bb; c"
    assert attention_sequence(ChatSettings(notify="desktop"), words, environment) == sequence
    assert attention_sequence(ChatSettings(), words, environment) == "\a"
    assert attention_sequence(ChatSettings(notify="off"), words, environment) == ""


def test_what_is_unfolded_is_scrolled_and_turned() -> None:
    unfolding = Unfolding()
    unfolding.open([("first", [("x", "")]), ("second", [(f"line {number}", "") for number in range(100)])])
    texts = [text for _, text in unfolding.rows(80, 7)]
    assert texts[0] == "second"
    assert texts[1].startswith("1-5 of 100 · ")
    assert texts[2:] == [f"line {number}" for number in range(5)]
    unfolding.scroll_to_end()
    assert [text for _, text in unfolding.rows(80, 7)][-1] == "line 99"
    unfolding.scroll(10)
    unfolding.scroll_pages(-1)
    assert [text for _, text in unfolding.rows(80, 7)][-1] == "line 95"
    unfolding.turn(-5)
    assert [text for _, text in unfolding.rows(80, 7)][2:] == ["x"]
    unfolding.turn(1)
    assert [text for _, text in unfolding.rows(4, 4)][2:] == ["line", " 0"]


@pytest.mark.parametrize("width", [79, 39])
def test_what_is_unfolded_is_named_and_its_keys_too_however_long_its_title_is(width: int) -> None:
    unfolding = Unfolding()
    command = "find . -name '*.py' -not -path './.venv/*' -print0 | xargs -0 grep -n 'what was folded' | sort | uniq -c"
    unfolding.open([("first", [("x", "")]), (command, [(f"line {number}", "") for number in range(100)])])
    title, keys, *lines = (text for _, text in unfolding.rows(width, 8))
    assert title.endswith("…")
    assert command.startswith(title[:-1])
    assert keys.startswith("1-6 of 100 · ")
    assert "←→ 2 of 2" in keys
    assert keys.endswith("Ctrl-O: close")
    assert lines == [f"line {number}" for number in range(6)]


@pytest.mark.parametrize(
    ("pasted", "mention"),
    [
        ("'{}/pic one.png'", '@"{}/pic one.png" '),
        ('"{}/pic one.png" ', '@"{}/pic one.png" '),
        (r"{}/pic\ one.png", '@"{}/pic one.png" '),
        ("{}/two.JPG\n", "@{}/two.JPG "),
        ("{}/none.png", ""),
        ("{}/nest.py", ""),
        ("look at {}/two.JPG", ""),
        ("{0}/two.JPG\n{0}/two.JPG", ""),
        ("it's a nest", ""),
        ("/" + "x" * 4_000_000 + ".png", ""),
        ("", ""),
    ],
)
def test_a_picture_that_is_dropped_on_the_terminal_is_mentioned(tmp_path: Path, pasted: str, mention: str) -> None:
    for name in ("pic one.png", "two.JPG", "nest.py"):
        (tmp_path / name).touch()
    assert picture_mention(pasted.format(tmp_path), "/") == mention.format(tmp_path)
