"""Prints the model's words alone, for pipes and files: each message as it comes, or only the last one."""

from typing import TextIO

from crow.acp.client import Rejection
from crow.acp.wire import AgentMessageChunk, RequestPermissionRequest, Update
from crow.cli.answer_keys import Answerer, Nobody, choices_of
from crow.cli.interactive_client import RenderingClient
from crow.cli.render import Renderer
from crow.cli.render_calls import in_words
from crow.cli.render_prose import prose
from crow.cli.render_screen import Screen, clean_answer


class PlainAnswer:
    """Writes messages as they were written, an empty line between two of them."""

    def __init__(self, stream: TextIO) -> None:
        self.screen = Screen(stream)
        self._message: str | None = None

    def take(self, chunk: AgentMessageChunk) -> None:
        text = clean_answer(in_words(chunk.content))
        if self._message is not None and chunk.message_id != self._message:
            text = ("\n\n" if self.screen.column else "\n") + text.lstrip("\n")
        if text:
            self._message = chunk.message_id
            self.screen.write(text)
            self.screen.flush()

    def end(self) -> None:
        self.screen.end_line()
        self.screen.flush()


class SplitClient(RenderingClient):
    """The model's messages go to `answer`, everything else to the renderer."""

    def __init__(self, renderer: Renderer, answerer: Answerer, answer: PlainAnswer) -> None:
        super().__init__(renderer, answerer)
        self._answer = answer

    def show(self, update: Update) -> None:
        if isinstance(update, AgentMessageChunk):
            self.renderer.pause()  # both streams may lead to one place
            self._answer.take(update)
            self.renderer.wait("writing")
        else:
            super().show(update)


class FinalText:
    """Keeps the last message."""

    def __init__(self) -> None:
        self._message: str | None = None
        self._pieces: list[str] = []

    def take(self, chunk: AgentMessageChunk) -> None:
        if chunk.message_id != self._message:
            self._message = chunk.message_id
            self._pieces.clear()
        self._pieces.append(in_words(chunk.content))

    def print_to(self, screen: Screen) -> None:
        """In a terminal its Markdown is styled; elsewhere it is the text as it was written."""
        text = "".join(self._pieces)
        if screen.width is None:
            screen.write(clean_answer(text.strip("\n")))
        else:
            shown = prose(screen)
            shown.feed(text.strip("\n"))
            shown.end()
        screen.end_line()
        screen.flush()


class QuietClient(RenderingClient):
    """Shows questions, and nothing else."""

    def __init__(self, stream: TextIO, answerer: Answerer, text: FinalText) -> None:
        super().__init__(Renderer(Screen(stream)), answerer)
        self._stream = stream
        self._text = text

    def show(self, update: Update) -> None:
        if isinstance(update, AgentMessageChunk):
            self._text.take(update)

    async def permit(self, request: RequestPermissionRequest) -> str | Rejection | None:
        if isinstance(self._answerer, Nobody):
            option = (await self._answerer.choose(choices_of(request.options))).option
            return option.option_id if option else None
        self.renderer = Renderer(Screen(self._stream))  # each question for itself: what led to it is not shown
        return await super().permit(request)
