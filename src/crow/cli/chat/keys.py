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

from crow.cli.answer_keys import TYPING, AnswerKeys
from crow.cli.chat.completion import marked
from crow.cli.chat.conversation import TWICE, Conversation
from crow.cli.chat.messages import Message
from crow.cli.chat.transcript import Unfolding
from crow.cli.render import UNFOLD
from crow.visible import one_line


class ChatKeys:
    """`attached` are files that go with the next message."""

    def __init__(
        self,
        buffer: Buffer,
        conversation: Conversation,
        questions: AnswerKeys,
        insert: Callable[[str], None],
        leave: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.attached: tuple[str, ...] = ()
        self.conversation = conversation
        self.questions = questions
        self.unfolding = Unfolding()
        self._buffer = buffer
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
        has_waiting = Condition(lambda: bool(self.conversation.outbox.waiting))
        _bind(keys, self._interrupt, "c-c", when=~is_searching)
        _bind(keys, self._escape, "escape", when=~is_searching)
        _bind(keys, self._buffer.cancel_completion, "escape", when=has_menu & in_input)
        _bind(keys, self._leave, "c-d", when=is_empty | ~in_input)
        _bind(keys, self.conversation.change_mode, "s-tab")
        _bind(keys, self._fold_or_unfold, "c-o")
        _bind(keys, _suspend, "c-z")
        _bind(keys, self._enter, "enter", when=in_input)
        _bind(keys, self._new_line, "escape", "enter", when=in_input)
        _bind(keys, self._new_line, "c-j", when=in_input)
        _bind(keys, self._tab, "tab", when=in_input)
        _bind(keys, self._take_back, "up", when=in_input & is_empty & has_waiting)

        @keys.add(Keys.BracketedPaste, filter=in_input)
        def _(event: KeyPressEvent) -> None:
            self._insert(self.conversation.as_mention(event.data) or event.data)

        return keys

    def question_bindings(self) -> KeyBindings:
        """While the input line is empty; else its own bindings hold, and no key answers."""
        keys = KeyBindings()
        has_waiting = Condition(lambda: bool(self.conversation.outbox.waiting))
        _bind(keys, self._confirm, "enter")
        _bind(keys, self.questions.take_back, "backspace")
        _bind(keys, self.questions.begin_reason, "tab")
        _bind(keys, self._take_back, "up", when=has_waiting)

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self.questions.press(event.data)

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self.questions.type(event.data)

        return keys

    def unfolding_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        unfolding = self.unfolding
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
        elif self.questions.rejecting is not None:
            reason = buffer.text
            buffer.reset(append_to_history=True)
            self.questions.reject(reason)
        elif self.conversation.leaves(buffer.text):
            buffer.reset()
            self._leave()
        elif buffer.text.strip():
            self._send(self.conversation.submit)
        else:
            self.conversation.send_waiting()

    @property
    def _offered(self) -> Completion | None:
        """What Enter takes in the place of what was typed; not of a command whose name is typed to its end."""
        state = self._buffer.complete_state
        if state is None:
            return None
        is_whole = any(state.original_document.text == completion.text.rstrip() for completion in state.completions)
        return state.current_completion if is_whole or self.questions.rejecting is not None else marked(state)

    def _complete(self, completion: Completion) -> None:
        """A command that nothing can follow runs at once."""
        buffer = self._buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is None:
            buffer.apply_completion(completion)
        buffer.complete_state = None  # what was chosen stays
        if buffer.document.text_before_cursor.endswith("/"):
            buffer.start_completion()  # a folder: what is in it
        elif buffer.text == completion.text.rstrip() and self.questions.rejecting is None:
            self._send(self.conversation.submit)

    def _new_line(self) -> None:
        self._buffer.newline(copy_margin=False)

    def _tab(self) -> None:
        buffer = self._buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif self.conversation.is_running and buffer.text.strip() and self.questions.rejecting is None:
            self._send(self.conversation.queue)
        else:
            buffer.start_completion(insert_common_part=True)

    def _send(self, send: Callable[[Message], None]) -> None:
        typed, attached = self._buffer.text.strip("\n"), self.attached
        text = self.conversation.as_mention(typed).rstrip() or typed
        if self.conversation.refuses(text):
            return
        self._buffer.reset(append_to_history=True)
        self.attached = ()
        send(Message(text, attached))

    def _confirm(self) -> None:
        if not self.questions.confirm():
            self.conversation.send_waiting()

    def _take_back(self) -> None:
        message = self.conversation.take_back()
        if message is not None:
            self._buffer.insert_text(message.text)
            self.attached += message.attached

    # --- what is folded

    def _fold_or_unfold(self) -> None:
        if self.unfolding.is_open:
            self.unfolding.close()
        elif self.conversation.renderer.folds:
            self.unfolding.open(self.conversation.renderer.folds)
        self._changed()

    def _print_unfolded(self) -> None:
        self.conversation.renderer.print_fold(self.unfolding.current)
        self._fold_or_unfold()

    # --- stopping and leaving

    def _escape(self) -> None:
        """As Ctrl-C, but it never leaves while something is typed: it clears that, once nothing runs any longer."""
        conversation = self.conversation
        is_busy = self.unfolding.is_open or (conversation.is_running and not conversation.is_stopping)
        if is_busy or not self._buffer.text:
            self._interrupt()
        elif not self.questions.take_back():
            self._buffer.reset(append_to_history=True)
            self._leaves_until = 0.0
            self._changed()

    def _interrupt(self) -> None:
        """Ends the smallest thing there is to end; when there is none, the second time leaves."""
        if self.unfolding.is_open:
            self._fold_or_unfold()
        elif self.questions.take_back():
            pass  # the question stays
        elif self._is_second() or (self.conversation.is_running and self.conversation.is_stopping):
            self._leave()
        else:
            if self.conversation.is_running:
                self.conversation.cancel()
            elif self._buffer.text:
                self._buffer.reset(append_to_history=True)
            self._leaves_until = time.monotonic() + TWICE
            asyncio.get_running_loop().call_later(TWICE, self._changed)
            self._changed()

    def _on_text(self, _: Buffer) -> None:
        self._leaves_until = 0.0  # whoever types does not mean to leave
        self.questions.open_when_quiet()

    def _is_second(self) -> bool:
        return time.monotonic() < self._leaves_until

    def hint(self) -> str:
        conversation = self.conversation
        if self._is_second():
            return "Press again to quit" if not conversation.is_running else "Stopping. Press again to quit"
        if self.questions.choices and self.unfolding.is_open:
            return f"{UNFOLD} closes this; then answer"
        if self.questions.choices:
            return self._hint_on_answering()
        if conversation.is_running and self._buffer.text.strip():
            return self._hint_on_sending(is_steering=conversation.steers(self._buffer.text))
        if conversation.outbox.waiting and not self._buffer.text:
            can_hurry = conversation.outbox.is_held or conversation.outbox.is_steering
            return f"{'Enter: send now · ' if can_hurry else ''}↑: edit"
        if self.attached:
            return "with " + ", ".join(one_line(os.path.basename(path)) for path in self.attached)
        return ""

    def _hint_on_answering(self) -> str:
        questions = self.questions
        if questions.rejecting is not None:
            return "Enter: reject with this reason · Esc: back"
        if self._buffer.text:
            keys = "/".join(choice.key for choice in questions.choices)
            sending = self._hint_on_sending(is_steering=self.conversation.steers(self._buffer.text))
            return f"{sending} · To answer: Ctrl-U, then {keys}"
        if questions.pressed is not None and questions.pressed.is_lasting:
            return questions.pressed.how_to_confirm
        return "" if questions.takes_keys else TYPING

    def _hint_on_sending(self, *, is_steering: bool) -> str:
        if self._offered is not None:
            return "Enter: accept · Tab: next"
        if self._buffer.complete_state is not None:
            return f"Enter: {'add to this turn' if is_steering else 'queue'} · Tab: complete"
        return "Enter: add to this turn · Tab: queue" if is_steering else "Enter or Tab: queue"


def _bind(keys: KeyBindings, action: Callable[[], object], *sequence: str, when: Filter | bool = True) -> None:
    @keys.add(*sequence, filter=when)
    def _(event: KeyPressEvent) -> None:
        action()


def _suspend() -> None:
    get_app().suspend_to_background()
