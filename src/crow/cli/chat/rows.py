"""The rows below the printed lines of `crow chat`: the unfinished line, activity, waiting messages, a question, the
input and the completions.
"""

from collections.abc import Callable, Sequence

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, fragment_list_to_text, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    SearchBufferControl,
    Window,
)
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor

from crow.cli.chat.completion import marked
from crow.cli.chat.inline import InlineOutput
from crow.cli.chat.keys import ChatKeys
from crow.cli.chat.messages import Waiting
from crow.cli.chat.transcript import ChatScreen
from crow.cli.render_screen import BAD, BOLD, CODE, DIM, GOOD, PLAIN, cells, cut, cut_start, folded
from crow.visible import one_line

PROMPT = "▸ "
WHY = "reason ▸ "
INDENT = "  "
PLACEHOLDER = "/ for commands, @ for files, Ctrl-D to quit"
MENU_ROWS = 7
MESSAGE_ROWS = 5
"""Rows of messages that wait: a question below them is to be seen."""
OTHER_QUESTION_ROWS = 4
"""Rows that a question's choices leave for the rest; where there are fewer, the choices are in one row."""
OTHER_ROWS = 6
"""Rows that are kept for the rest when something is unfolded."""
STYLES = {PLAIN: "", BOLD: "bold", DIM: "dim", GOOD: "ansigreen", BAD: "ansired", CODE: "ansicyan"}
QUESTION = "bold ansimagenta"

Rows = Callable[[], StyleAndTextTuples]


class ChatRows:
    """Puts the rows together."""

    def __init__(self, output: InlineOutput, screen: ChatScreen, buffer: Buffer, keys: ChatKeys) -> None:
        self._output = output
        self._screen = screen
        self._buffer = buffer
        self._conversation = keys.conversation
        self._questions = keys.questions
        self._unfolding = keys.unfolding
        self._hint = keys.hint
        self._search = SearchBufferControl(Buffer(multiline=False))
        self.input = self._input_window()
        self.question = self._focusable(self._question, keys.question_bindings())
        self.unfolded = self._focusable(self._unfolded, keys.unfolding_bindings())

    def layout(self) -> Layout:
        is_asked = Condition(lambda: bool(self._questions.choices))
        shows_input = Condition(lambda: not self._questions.takes_keys or bool(self._buffer.text))
        is_unfolded = Condition(lambda: self._unfolding.is_open)
        rows: list[AnyContainer] = [
            self._rows(self._rest),
            Window(height=1),
            self._rows(self._activity),
            ConditionalContainer(self.unfolded, is_unfolded),
            self._rows(self._messages),
            ConditionalContainer(self.question, is_asked),
            ConditionalContainer(self.input, shows_input),
            ConditionalContainer(self._search_window(), is_searching),
            self._rows(self._menu),
            self._rows(lambda: self._text("dim", self._hint())),
            self._rows(lambda: self._text("dim", self._conversation.status.text(self._width))),
        ]
        return Layout(HSplit(rows), focused_element=self.input)

    def shape(self) -> object:
        """How many rows each part has, as far as that changes."""
        parts = (self._rest, self._activity, self._messages, self._question, self._menu)
        rows = [fragment_list_to_text(part()).count("\n") if part() else None for part in parts]
        return (*rows, self._buffer.document.line_count, self._unfolding.is_open, bool(self._hint()))

    # --- windows

    def _rows(self, rows: Rows) -> ConditionalContainer:
        """As many rows as there is text; none if there is none."""
        window = Window(FormattedTextControl(rows), dont_extend_height=True, wrap_lines=True)
        return ConditionalContainer(window, Condition(lambda: bool(rows())))

    def _focusable(self, rows: Rows, keys: KeyBindings) -> Window:
        control = FormattedTextControl(rows, focusable=True, show_cursor=False, key_bindings=keys)
        return Window(control, dont_extend_height=True, wrap_lines=True)

    def _input_window(self) -> Window:
        placeholder = AfterInput(lambda: self._text("dim", cut(PLACEHOLDER, self._width - cells(PROMPT))))
        is_empty = Condition(lambda: not self._buffer.text and self._questions.rejecting is None)
        return Window(
            BufferControl(
                self._buffer,
                [ConditionalProcessor(placeholder, is_empty & ~is_searching)],
                search_buffer_control=self._search,
                preview_search=True,
            ),
            height=lambda: Dimension(min=1, max=max(3, self._output.get_size().rows // 3)),
            get_line_prefix=self._line_prefix,
            dont_extend_height=True,
            wrap_lines=True,
        )

    def _search_window(self) -> Window:
        return Window(self._search, height=1, get_line_prefix=lambda line, wrapped: [("dim", "search history: ")])

    def _line_prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        start = WHY if self._questions.rejecting is not None else PROMPT
        return [("bold", self._screen.shown(start if line == wrapped == 0 else INDENT))]

    # --- what they show

    @property
    def _width(self) -> int:
        return self._output.get_size().columns - 1

    def _text(self, style: str, text: str) -> StyleAndTextTuples:
        """One line that fits."""
        return [(style, cut(self._screen.shown(text), self._width))] if text else []

    def _lines(self, lines: Sequence[tuple[str, str]]) -> StyleAndTextTuples:
        """Lines that fit, each of them a style and a text."""
        found: StyleAndTextTuples = []
        for style, text in lines:
            found += [("", "\n")] if found else []
            found += [(style, cut(self._screen.shown(text), self._width))]
        return found

    def _rest(self) -> StyleAndTextTuples:
        held = self._conversation.renderer.held
        line = self._screen.rest + (self._screen.shown(held) if held.strip() else "")
        fragments = to_formatted_text(ANSI(line))
        return fragments if fragment_list_to_text(fragments).strip() else []

    def _activity(self) -> StyleAndTextTuples:
        return self._lines([("dim", line) for line in self._screen.activity])

    def _messages(self) -> StyleAndTextTuples:
        """The newest, which can be taken back, and how many there are before them."""
        waiting = [_waits(entry) for entry in self._conversation.outbox.waiting]
        before = len(waiting) - MESSAGE_ROWS
        shown = [f"  … {before} more", *waiting[-MESSAGE_ROWS:]] if before > 1 else waiting
        return self._lines([("dim", text) for text in shown])

    def _question(self) -> StyleAndTextTuples:
        found: StyleAndTextTuples = []
        questions = self._questions
        takes_keys = questions.takes_keys and not self._unfolding.is_open
        if self._output.get_size().rows < len(questions.choices) + OTHER_QUESTION_ROWS:
            return self._question_in_one_row(takes_keys=takes_keys) if questions.choices else []
        for choice in questions.choices:
            found += [("", "\n")] if found else []
            start = f"  {choice.key}  "
            more = " · Tab: give a reason" if choice == questions.rejection else ""
            lines = folded(self._screen.shown(one_line(choice.option.name) + more), self._width - cells(start))
            words = [line.strip() for line in lines]
            is_begun = choice in (questions.pressed, questions.rejecting)
            mark = "reverse" if is_begun else "" if takes_keys else "dim"
            style = QUESTION if takes_keys or is_begun else "dim"
            found += [(style, start), (mark, f"\n{INDENT * 2} ".join(words))]
        return found

    def _question_in_one_row(self, *, takes_keys: bool) -> StyleAndTextTuples:
        """All keys, and as many words as there is room for: a choice that is not seen would not be known of."""
        choices = self._questions.choices
        keys = "/".join(choice.key for choice in choices)
        words = " · ".join(f"{choice.key} {one_line(choice.option.name)}" for choice in choices)
        text = cut(self._screen.shown(f"  {keys}: {words}"), self._width)
        return [(QUESTION if takes_keys else "dim", text)]

    def _unfolded(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        rows = self._unfolding.rows(self._width, max(size.rows - OTHER_ROWS, 3))
        return self._lines([(STYLES.get(style, ""), text) for style, text in rows])

    def _menu(self) -> StyleAndTextTuples:
        state = self._buffer.complete_state
        return self._lines(_menu_lines(state, self._width)) if state and state.completions else []


def _waits(entry: Waiting) -> str:
    how = "adding to this turn" if entry.steering is not None else "queued"
    return f"  {how}: {one_line(entry.message.text)}"


def _menu_lines(state: CompletionState, width: int) -> list[tuple[str, str]]:
    """The completions around the chosen one, with what is said of them in a column of its own."""
    taken, chosen = marked(state), state.complete_index or 0
    first = max(0, min(chosen - MENU_ROWS // 2, len(state.completions) - MENU_ROWS))
    shown = list(enumerate(state.completions))[first : first + MENU_ROWS]
    texts = [cut_start(completion.display_text, width - cells(INDENT)) for _, completion in shown]
    column = max(map(cells, texts))
    lines: list[tuple[str, str]] = []
    for (_, completion), text in zip(shown, texts, strict=True):
        about = f"  {completion.display_meta_text}" if completion.display_meta_text else ""
        style = "reverse" if completion is taken else ""
        lines.append((style, f"{INDENT}{text}{' ' * (column - cells(text))}{about}"))
    left = len(state.completions) - len(shown)
    return [*lines, ("dim", f"  … {left} more")] if left else lines
