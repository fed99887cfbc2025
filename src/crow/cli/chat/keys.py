"""The key bindings of `crow chat` (Enter, Tab, Esc, Ctrl-C and others), and the hint on them below the input line."""

import asyncio
import os
import time
from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completion
from prompt_toolkit.filters import Condition, Filter, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Window

from crow.cli.answer_keys import TYPING
from crow.cli.chat.completion import marked
from crow.cli.chat.conversation import TWICE, Conversation
from crow.cli.chat.messages import Message
from crow.cli.chat.questions import ChatQuestions
from crow.cli.chat.transcript import ChatRenderer
from crow.cli.chat.unfolding import Unfolding
from crow.cli.render import UNFOLD
from crow.visible import one_line


class ChatKeys:
    """`attached` are files that go with the next message."""

    def __init__(
        self,
        buffer: Buffer,
        conversation: Conversation,
        renderer: ChatRenderer,
        questions: ChatQuestions,
        unfolding: Unfolding,
        insert: Callable[[str], None],
        leave: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.attached: tuple[str, ...] = ()
        self._buffer = buffer
        self._conversation = conversation
        self._renderer = renderer
        self._questions = questions
        self._unfolding = unfolding
        self._insert = insert
        self._leave = leave
        self._changed = changed
        self._leaves_until = 0.0
        buffer.on_text_changed += self._on_text

    # --- which key does what

    def bindings(self, input_window: Window) -> KeyBindings:
        keys = KeyBindings()
        in_input = has_focus(input_window)
        is_empty = Condition(lambda: not self._buffer.text)
        has_menu = Condition(lambda: self._buffer.complete_state is not None)
        has_waiting = Condition(lambda: bool(self._conversation.outbox.waiting))
        _bind(keys, self._interrupt, "c-c", when=~is_searching)
        _bind(keys, self._escape, "escape", when=~is_searching)
        _bind(keys, self._buffer.cancel_completion, "escape", when=has_menu & in_input)
        _bind(keys, self._leave, "c-d", when=is_empty | ~in_input)
        _bind(keys, self._conversation.change_mode, "s-tab")
        _bind(keys, self._fold_or_unfold, "c-o")
        _bind(keys, _suspend, "c-z")
        _bind(keys, self._enter, "enter", when=in_input)
        _bind(keys, self._new_line, "escape", "enter", when=in_input)
        _bind(keys, self._new_line, "c-j", when=in_input)
        _bind(keys, self._tab, "tab", when=in_input)
        _bind(keys, self._take_back, "up", when=in_input & is_empty & has_waiting)

        @keys.add(Keys.BracketedPaste, filter=in_input)
        def _(event: KeyPressEvent) -> None:
            self._insert(self._conversation.as_mention(event.data) or event.data)

        return keys

    def question_bindings(self) -> KeyBindings:
        """While the input line is empty; else its own bindings hold, and no key answers."""
        keys = KeyBindings()
        has_waiting = Condition(lambda: bool(self._conversation.outbox.waiting))
        _bind(keys, self._confirm, "enter")
        _bind(keys, self._take_key_back, "backspace")
        _bind(keys, self._questions.begin_reason, "tab")
        _bind(keys, self._take_back, "up", when=has_waiting)

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self._questions.press(event.data)

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._questions.paste(event.data)

        return keys

    def unfolding_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        unfolding = self._unfolding
        _bind(keys, lambda: unfolding.scroll(-1), "up")
        _bind(keys, lambda: unfolding.scroll(1), "down")
        _bind(keys, lambda: unfolding.scroll_pages(-1), "pageup")
        _bind(keys, lambda: unfolding.scroll_pages(1), "pagedown")
        _bind(keys, lambda: unfolding.scroll_pages(1), " ")
        _bind(keys, unfolding.scroll_to_start, "home")
        _bind(keys, unfolding.scroll_to_end, "end")
        _bind(keys, lambda: unfolding.turn(-1), "left")
        _bind(keys, lambda: unfolding.turn(1), "right")
        _bind(keys, self._fold_or_unfold, "q")
        _bind(keys, self._print_unfolded, "enter")
        return keys

    # --- the input

    def _enter(self) -> None:
        buffer = self._buffer
        if (completion := self._offered) is not None:
            self._complete(completion)
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            self._new_line()
        elif self._questions.rejecting is not None:
            reason = buffer.text
            buffer.reset(append_to_history=True)
            self._questions.reject(reason)
        elif self._conversation.leaves(buffer.text):
            buffer.reset()
            self._leave()
        elif buffer.text.strip():
            self._send(self._conversation.submit)
        else:
            self._conversation.send_waiting()

    @property
    def _offered(self) -> Completion | None:
        """What Enter takes in the place of what was typed; not of a command whose name is typed to its end."""
        state = self._buffer.complete_state
        if state is None:
            return None
        is_whole = any(state.original_document.text == completion.text.rstrip() for completion in state.completions)
        return state.current_completion if is_whole or self._questions.rejecting is not None else marked(state)

    def _complete(self, completion: Completion) -> None:
        """A command that nothing can follow runs at once."""
        buffer = self._buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is None:
            buffer.apply_completion(completion)
        buffer.complete_state = None  # what was chosen stays
        if buffer.document.text_before_cursor.endswith("/"):
            buffer.start_completion()  # a folder: what is in it
        elif buffer.text == completion.text.rstrip() and self._questions.rejecting is None:
            self._send(self._conversation.submit)

    def _new_line(self) -> None:
        self._buffer.newline(copy_margin=False)

    def _tab(self) -> None:
        buffer = self._buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif self._conversation.is_running and buffer.text.strip() and self._questions.rejecting is None:
            self._send(self._conversation.queue)
        else:
            buffer.start_completion(insert_common_part=True)

    def _send(self, send: Callable[[Message], None]) -> None:
        typed, attached = self._buffer.text.strip("\n"), self.attached
        text = self._conversation.as_mention(typed).rstrip() or typed
        if self._conversation.refuses(text):
            return
        self._buffer.reset(append_to_history=True)
        self.attached = ()
        send(Message(text, attached))

    def _confirm(self) -> None:
        if not self._questions.confirm():
            self._conversation.send_waiting()

    def _take_key_back(self) -> None:
        self._questions.take_back()

    def _take_back(self) -> None:
        message = self._conversation.take_back()
        if message is not None:
            self._buffer.insert_text(message.text)
            self.attached += message.attached

    # --- what is folded

    def _fold_or_unfold(self) -> None:
        if self._unfolding.is_open:
            self._unfolding.close()
        elif self._renderer.folds:
            self._unfolding.open(self._renderer.folds)
        self._changed()

    def _print_unfolded(self) -> None:
        self._renderer.print_fold(self._unfolding.current)
        self._fold_or_unfold()

    # --- stopping and leaving

    def _escape(self) -> None:
        """As Ctrl-C, but it never leaves while something is typed: it clears that, once nothing runs any longer."""
        conversation = self._conversation
        is_busy = self._unfolding.is_open or (conversation.is_running and not conversation.is_stopping)
        if is_busy or not self._buffer.text:
            self._interrupt()
        elif not self._questions.take_back():
            self._buffer.reset(append_to_history=True)
            self._leaves_until = 0.0
            self._changed()

    def _interrupt(self) -> None:
        """Ends the smallest thing there is to end; when there is none, the second time leaves."""
        if self._unfolding.is_open:
            self._fold_or_unfold()
        elif self._questions.take_back():
            pass  # the question stays
        elif self._is_second() or (self._conversation.is_running and self._conversation.is_stopping):
            self._leave()
        else:
            if self._conversation.is_running:
                self._conversation.cancel()
            elif self._buffer.text:
                self._buffer.reset(append_to_history=True)
            self._leaves_until = time.monotonic() + TWICE
            asyncio.get_running_loop().call_later(TWICE, self._changed)
            self._changed()

    def _on_text(self, _: Buffer) -> None:
        self._leaves_until = 0.0  # whoever types does not mean to leave
        self._questions.text_changed()

    def _is_second(self) -> bool:
        return time.monotonic() < self._leaves_until

    def hint(self) -> str:
        conversation = self._conversation
        if self._is_second():
            return "again: leave" if not conversation.is_running else "stopping; again: leave"
        if self._questions.choices and self._unfolding.is_open:
            return f"{UNFOLD} folds it; then answer"
        if self._questions.choices:
            return self._hint_on_answering()
        if conversation.is_running and self._buffer.text.strip():
            return self._hint_on_sending(is_steering=conversation.steers(self._buffer.text))
        if conversation.outbox.waiting and not self._buffer.text:
            can_hurry = conversation.outbox.is_held or conversation.outbox.is_steering
            return f"{'Enter: send it now · ' if can_hurry else ''}↑: take it back"
        if self.attached:
            return "with " + ", ".join(one_line(os.path.basename(path)) for path in self.attached)
        return ""

    def _hint_on_answering(self) -> str:
        questions = self._questions
        if questions.rejecting is not None:
            return "Enter: rejects it with this reason · Esc: back to the choices"
        if self._buffer.text:
            keys = "/".join(choice.key for choice in questions.choices)
            sending = self._hint_on_sending(is_steering=self._conversation.steers(self._buffer.text))
            return f"{sending} · Ctrl-U, then {keys} answers"
        if questions.pressed is not None and questions.pressed.is_lasting:
            return questions.pressed.how_to_confirm
        return "" if questions.takes_keys else TYPING

    def _hint_on_sending(self, *, is_steering: bool) -> str:
        if self._offered is not None:
            return "Enter: takes what is marked · Tab: the next"
        if self._buffer.complete_state is not None:
            return f"Enter: {'into' if is_steering else 'after'} this turn · Tab: completes"
        return "Enter: into this turn · Tab: after it" if is_steering else "Enter, Tab: after this turn"


def _bind(keys: KeyBindings, action: Callable[[], None], *sequence: str, when: Filter | bool = True) -> None:
    @keys.add(*sequence, filter=when)
    def _(event: KeyPressEvent) -> None:
        action()


def _suspend() -> None:
    get_app().suspend_to_background()
