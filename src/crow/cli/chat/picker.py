"""The list from which a session is picked for `--resume`, drawn in the last rows: arrows choose, letters search, Enter
picks, Esc gives up.
"""

import sys
from collections.abc import Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window

from crow.cli.chat.inline import InlineOutput
from crow.cli.render_screen import cut

ROWS = 10


class Picker:
    def __init__(self, choices: Sequence[str]) -> None:
        self._choices = choices
        self._output = InlineOutput(sys.stdout)
        self._search = Buffer(multiline=False, on_text_changed=lambda _: self._start_over())
        self._chosen = 0

    def run(self) -> int | None:
        """The number of the choice that was picked; None if none was."""
        search = Window(
            BufferControl(self._search), height=1, get_line_prefix=lambda line, wrapped: [("bold", "search: ")]
        )
        rows = HSplit([Window(FormattedTextControl(self._rows), dont_extend_height=True), search])
        app: Application[int | None] = Application(
            Layout(rows, focused_element=search),
            key_bindings=self._keys(),
            output=self._output,
            erase_when_done=True,
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = 0.2
        return app.run(handle_sigint=False)

    def _found(self) -> list[int]:
        """Those that have every word that was typed."""
        words = self._search.text.casefold().split()
        texts = ((number, choice.casefold()) for number, choice in enumerate(self._choices))
        return [number for number, text in texts if all(word in text for word in words)]

    def _rows(self) -> StyleAndTextTuples:
        found = self._found()
        width = self._output.get_size().columns - 1
        height = min(ROWS, max(self._output.get_size().rows - 3, 3))
        first = max(0, min(self._chosen - height // 2, len(found) - height))
        rows: StyleAndTextTuples = []
        for place, number in list(enumerate(found))[first : first + height]:
            is_chosen = place == self._chosen
            text = cut(f"{'> ' if is_chosen else '  '}{self._choices[number]}", width)
            rows.append(("reverse" if is_chosen else "", f"{text}\n"))
        left = len(found) - height
        summary = f"  … {left} more" if left > 0 else ""
        return [*rows, ("dim", cut(summary if found else "  none has these words", width))]

    def _start_over(self) -> None:
        self._chosen = 0

    def _move(self, step: int) -> None:
        self._chosen = min(max(self._chosen + step, 0), max(len(self._found()) - 1, 0))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for names, step in ((("up", "c-p"), -1), (("down", "c-n"), 1), (("pageup",), -ROWS), (("pagedown",), ROWS)):
            for name in names:

                @keys.add(name)
                def _(event: KeyPressEvent, step: int = step) -> None:
                    self._move(step)

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            if found := self._found():
                event.app.exit(result=found[self._chosen])

        for name in ("escape", "c-c", "c-d"):

            @keys.add(name)
            def _(event: KeyPressEvent) -> None:
                event.app.exit(result=None)

        return keys


def pick(choices: Sequence[str]) -> int | None:
    return Picker(choices).run()
