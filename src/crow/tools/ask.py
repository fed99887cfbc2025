"""`ask`: a question to the person, in whatever way their client can put it."""

from typing import Annotated, Any

import msgspec

from crow.actions import Deed, Person, Question
from crow.errors import TurnCancelled
from crow.events import Journal
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import ArgumentReader
from crow.visible import one_line, prose, warning, warning_about_prose
from crow.workspace.base import Workspace

MOST_OPTIONS = 6

DESCRIPTION = (
    "Ask the user when you cannot go on without their decision. Give short options where there are some. "
    "Not for permission (that is asked for by itself), and not for what you can find out."
)
WAITING = "The question was shown to the user. Their answer is the next message: stop here."

UNANSWERED = "not answered yet"


class AskArguments(msgspec.Struct, frozen=True):
    question: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    options: Annotated[list[str], msgspec.Meta(max_length=MOST_OPTIONS)] = []


_reader = ArgumentReader(AskArguments)


class Ask:
    kind = ToolKind.OTHER

    def __init__(self, person: Person) -> None:
        self.spec = ToolSpec("ask", DESCRIPTION, _reader.schema())
        self._person = person

    @property
    def is_said_in_chat(self) -> bool:
        """The question is the end of the turn's text then; a call that repeats it, and is over, would mislead."""
        return not self._person.has_dialogs

    def title(self, arguments: dict[str, Any]) -> str:
        question = arguments.get("question")
        return question if isinstance(question, str) and question else "Question"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "AskAction":
        arguments, _ = _reader.read(call)
        # The answer is what the person saw, not what hid behind it.
        options = tuple(dict.fromkeys(one_line(option.strip()) for option in arguments.options if option.strip()))
        remark = warning(*arguments.options) or warning_about_prose(arguments.question)
        text = prose(arguments.question) + (f"\n\n{remark}" if remark else "")
        return AskAction(self._person, Question(call.id, text, options))


class AskAction:
    waits_for = None
    """A wait for the person is theirs: they are not told of it."""

    def __init__(self, person: Person, question: Question) -> None:
        self._person = person
        self._question = question
        self.title = question.text
        self.deed = Deed("ask", ToolKind.OTHER)
        self.locations: tuple[Location, ...] = ()
        self.display: tuple[DisplayBlock, ...] = ()

    async def perform(self, journal: Journal) -> ToolResult:
        answer = await self._person.ask(self._question)
        if answer is None:
            return ToolResult(ok=True, text=WAITING, message=UNANSWERED, says=self._in_words(), brief=UNANSWERED)
        if answer.cancelled:
            raise TurnCancelled
        if not answer.text:
            return ToolResult.failed("The user did not answer the question.", "not answered")
        return ToolResult(
            ok=True, text=f"The user answered: {answer.text}", message=answer.text, display=(TextBlock(answer.text),)
        )

    def _in_words(self) -> str:
        options = "".join(f"\n- {option}" for option in self._question.options)
        return f"{self._question.text}{options}"
