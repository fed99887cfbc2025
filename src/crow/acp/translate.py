"""Translates events, questions and content into ACP v1's types, and the blocks of a client's prompt into ours. Pure: no
state, no time, no connection.

A token's way: `events.TextDelta` → `crow.acp.sink` (which merges what comes too fast) → a chunk made here.
`translate_session` is the same for a session as a whole and for what happened in it before. A second protocol version
is a second set of these files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from crow import events
from crow.acp import wire
from crow.actions import Form, Link, PermissionQuestion, Question
from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.messages import has_too_many_values
from crow.results import (
    CommandEnd,
    DiffBlock,
    DisplayBlock,
    HiddenOutput,
    ImageBlock,
    Location,
    TerminalBlock,
    TextBlock,
    ToolResult,
)
from crow.rpc.jsonrpc import invalid_params
from crow.visible import call_title, fence, one_line, title_line, warning_about_change

MANY_BLOCKS = 100
"""Blocks of a prompt. In one that has more, no text is a command with words of its own beside it."""
LONGEST_CHUNK = 1024 * 1024
"""Characters: some clients take no line over 10 MiB, and a character may need six bytes of it."""
LARGEST_RAW = 64 * 1024
LONG_TEXT = 2048
LONGEST_BEFORE_BRIEF, LONGEST_BRIEF = 200, 80
"""Characters of a title, and of what it says of the call's result."""
LARGE_DIFF = 64 * 1024
CLEAR = "\x1b[0m\x1b[H\x1b[2J\x1b[3J"
"""What empties a terminal, and what has scrolled off in it."""
DEEPEST_RAW = 32
"""Levels of nesting in raw input; clients' parsers give up at about a hundred, and with them on the whole message."""


# --- from the client


def sent_by(prompt: Sequence[wire.ContentBlock]) -> list[Sent]:
    """What the person sent. A block that is meant for the person alone is not for the model and left out."""
    blocks = (block for block in prompt if _is_for_the_model(block.annotations))
    return [_sent(block) for block in blocks] if len(prompt) <= MANY_BLOCKS else list(_joined(blocks))


def _joined(blocks: Iterable[wire.ContentBlock]) -> Iterator[Sent]:
    """Neighbouring texts as one: it reads the same, and a hundred thousand words cost no more than one long text."""
    for kind, neighbours in groupby(blocks, type):
        if kind is wire.TextContent:
            yield SentText("".join([block.text for block in neighbours if isinstance(block, wire.TextContent)]))
        else:
            yield from map(_sent, neighbours)


def _is_for_the_model(annotations: wire.Annotations | None) -> bool:
    return annotations is None or not annotations.audience or "assistant" in annotations.audience


def _sent(block: wire.ContentBlock) -> Sent:
    match block:
        case wire.TextContent():
            return SentText(block.text)
        case wire.ImageContent():
            return SentMedia("image", block.data, block.mime_type, block.uri or "")
        case wire.AudioContent():
            return SentMedia("audio", block.data, block.mime_type)
        case wire.ResourceLink():
            return SentLink(
                block.uri, block.name, block.mime_type or "", block.title or "", block.description or "", block.size
            )
        case wire.EmbeddedResource(resource=resource):
            if resource.text is None and resource.blob is None:
                raise invalid_params("a resource needs `text` or `blob`")
            return SentResource(resource.uri, resource.text, resource.blob, resource.mime_type or "")


# --- to the client


def text_chunk(event: events.TextDelta | events.ThoughtDelta, text: str) -> wire.Update:
    """A piece of a message; `text` may be that of several deltas."""
    content = wire.TextContent(text=text)
    if isinstance(event, events.TextDelta):
        return wire.AgentMessageChunk(content=content, message_id=event.message_id)
    return wire.AgentThoughtChunk(content=content, message_id=event.message_id)


def pieces(text: str) -> Iterator[str]:
    """A text as it is, or in parts if it is too long for one message."""
    for start in range(0, len(text), LONGEST_CHUNK):
        yield text[start : start + LONGEST_CHUNK]


def message(
    kind: type[wire.AgentMessageChunk] | type[wire.AgentThoughtChunk], message_id: str, text: str
) -> Iterator[wire.Update]:
    for piece in pieces(text):
        yield kind(content=wire.TextContent(text=piece), message_id=message_id)


def updates(event: events.PlanChanged | events.CrowSaid | events.CommandsChanged) -> Iterator[wire.Update]:
    """What the client is told of an event of which it is always told the same."""
    match event:
        case events.PlanChanged():
            yield wire.Plan(
                entries=[
                    wire.PlanEntry(
                        content=title_line(entry.content, LONG_TEXT), priority=entry.priority, status=entry.status
                    )
                    for entry in event.entries
                ]
            )
        case events.CrowSaid():
            yield from message(wire.AgentMessageChunk, event.message_id, event.text)
        case events.CommandsChanged():
            facts = wire.CommandFacts(untrusted=list(event.untrusted))
            yield wire.AvailableCommandsUpdate(
                available_commands=[_command(command) for command in event.commands],
                meta=wire.CrowMeta(crow=facts) if event.untrusted else None,
            )
        case _:
            assert_never(event)


def preview(event: events.CallPreviewed) -> wire.Update:
    """What is new of a call whose arguments are arriving."""
    return wire.ToolCallUpdate(
        tool_call_id=event.call_id,
        title=call_title(event.title) or None,
        locations=locations(event.locations),
        content=tool_content(event.display) or None,
    )


def settled(
    call_id: str, result: ToolResult, known_title: str, *, with_content: bool = True, with_changes: bool = False
) -> wire.Update:
    """The end of a call; without its content the client keeps what it has. `with_changes`: see `changes_in`."""
    return wire.ToolCallUpdate(
        tool_call_id=call_id,
        title=title_at_end(known_title, result) if result.brief else None,
        status="completed" if result.ok else "failed",
        content=result_content(result, with_changes=with_changes) if with_content else None,
        locations=locations(result.locations),
        raw_output=raw_output(result),
    )


def call_seconds(seconds: float | None) -> wire.CallMeta | None:
    """How long a call took, for clients that have asked."""
    return None if seconds is None else wire.CallMeta(crow=wire.CallFacts(seconds=seconds))


# --- a terminal that shows what a command of Crow's own writes: its id is the call's


def terminal_announced(call_id: str, cwd: str) -> wire.CallMeta:
    """For the report of a call, since clients make such a terminal of nothing else."""
    return wire.CallMeta(terminal_info=wire.DisplayTerminal(terminal_id=call_id, cwd=cwd))


def terminal_begun(event: events.OutputGrew, beside: Sequence[DisplayBlock]) -> wire.Update:
    return wire.ToolCallUpdate(
        tool_call_id=event.call_id,
        content=tool_content((TerminalBlock(event.call_id), *beside)),
        meta=_growth(event) if event.data else None,
    )


def terminal_growth(event: events.OutputGrew) -> wire.Update:
    shown = msgspec.structs.replace(event, data=CLEAR + event.data) if event.anew else event
    return wire.ToolCallUpdate(tool_call_id=event.call_id, meta=_growth(shown))


def _growth(event: events.OutputGrew) -> wire.CallMeta:
    return wire.CallMeta(terminal_output=wire.DisplayTerminalOutput(terminal_id=event.call_id, data=event.data))


def settled_terminal(call_id: str, result: ToolResult, known_title: str) -> wire.Update:
    """The end of a call whose terminal shows what its command wrote: the text of it is not sent as well."""
    beside = tuple(block for block in result.display if not isinstance(block, TextBlock) or block.prose)
    if not result.display and result.message:
        beside = (TextBlock(result.message, prose=True),)
    end = result.command or CommandEnd(0)
    ended = wire.DisplayTerminalExit(terminal_id=call_id, exit_code=end.code, signal=end.signal)
    return wire.ToolCallUpdate(
        tool_call_id=call_id,
        title=title_at_end(known_title, result) if result.brief else None,
        status="completed" if result.ok else "failed",
        content=tool_content((TerminalBlock(call_id), *beside)) if beside else None,
        raw_output=raw_output(result),
        meta=None if result.background else wire.CallMeta(terminal_exit=ended),
    )


def title_at_end(text: str, result: ToolResult) -> str:
    """A call's title with what came of it, which is to be seen however long the rest is."""
    if not result.brief:
        return call_title(text)
    apart = " " if result.brief.startswith("+") else " · "
    return f"{call_title(text, LONGEST_BEFORE_BRIEF)}{apart}{one_line(result.brief, LONGEST_BRIEF)}"


def is_never_shown(*, quiet: bool, requested: bool, result: ToolResult | None) -> bool:
    """Whether a call is not shown as one: a quiet call that went well, or that never got its arguments."""
    return quiet and (not requested or (result is not None and result.ok))


def is_large(display: Iterable[DisplayBlock]) -> bool:
    """Whether it would cost too much to send it a second time."""
    sizes = (len(block.old_text) + len(block.new_text) for block in display if isinstance(block, DiffBlock))
    return sum(sizes) > LARGE_DIFF


def notice(event: events.Notice) -> wire.Update:
    match event:
        case events.Retrying():
            return _notice(event, wire.NoticeMeta(crow=wire.NoticeFacts(retry_in=event.seconds)))
        case events.SteeringLeftOver():
            return _notice(event, wire.NoticeMeta(steering=left_over([event])))
        case _:
            return _notice(event)


def prompt_meta(
    left_open: str, messages: Sequence[events.SteeringLeftOver], *, is_command: bool = False
) -> wire.PromptMeta | None:
    """What a program can use of how a turn ended; None if there is nothing."""
    meta = wire.PromptMeta(steering=left_over(messages) if messages else None)
    if left_open or is_command:
        return replace(meta, crow=wire.PromptFacts(left_open=left_open, command=is_command))
    return meta if messages else None


def left_over(messages: Iterable[events.SteeringLeftOver]) -> wire.LeftOver:
    """The messages that a turn did not take in, so that a client can offer them again."""
    return wire.LeftOver(
        left_over=[
            wire.LeftOverMessage(message_id=message.message_id, text=message.description) for message in messages
        ]
    )


def _notice(event: events.Notice, meta: wire.NoticeMeta | None = None) -> wire.Update:
    return wire.Notice(severity=event.severity, title=event.title, description=event.description or None, meta=meta)


def notice_as_message(event: events.Notice, message_id: str, gap: str) -> wire.Update:
    """For clients that know no notices: a message of its own. `gap` keeps it apart from the text before it."""
    text = gap + quoted(event.text)
    return wire.AgentMessageChunk(content=wire.TextContent(text=text), message_id=message_id)


def quoted(words: str) -> str:
    """Crow's own words among the model's: a quotation, so that they can be told apart."""
    return "\n".join(f"> {line}".rstrip() for line in words.split("\n")) + "\n\n"


def wait(event: events.StillWaiting) -> wire.Update:
    return _notice(events.Notice("info", _waiting(event)), wire.NoticeMeta(crow=wire.NoticeFacts(is_wait=True)))


def wait_in_call(event: events.StillWaiting) -> DisplayBlock:
    """The same for a client without notices, in the call that waits."""
    return TextBlock(f"{_waiting(event)}…", prose=True)


def _waiting(event: events.StillWaiting) -> str:
    return f"Waiting for {event.what} ({event.seconds} s)"


def usage(event: events.UsageReported, window: int, spent: Mapping[str, float]) -> wire.Update:
    """`spent` is what the whole session has cost, by currency; the one that was added to last is told."""
    cost = None
    if spent:
        currency, amount = list(spent.items())[-1]
        cost = wire.Cost(amount=round(amount, 6), currency=currency)
    return wire.UsageUpdate(used=event.input_tokens + event.output_tokens, size=window, cost=cost)


def compaction(event: events.CompactionStarted | events.CompactionEnded) -> wire.Update:
    if isinstance(event, events.CompactionStarted):
        return wire.CompactionUpdate(compaction_id=event.compaction_id, status="in_progress")
    completed, failed = event.status == "completed", event.status == "failed"
    return wire.CompactionUpdate(
        compaction_id=event.compaction_id,
        status=event.status,
        summary=[wire.TextContent(text=event.summary)] if completed and event.summary else None,
        error=(event.error or None) if failed else None,
    )


def compaction_as_notice(event: events.CompactionStarted | events.CompactionEnded) -> events.Notice:
    """For clients that know no compactions."""
    if isinstance(event, events.CompactionStarted):
        return events.Notice("info", f"Summarising the conversation: {event.reason}")
    match event.status:
        case "completed":
            return events.Notice("info", "The model continues with a summary of the conversation so far.")
        case "cancelled":
            return events.Notice("info", "The summary was cancelled.")
        case "failed":
            return events.Notice("warning", f"Could not summarise the conversation: {event.error}")


def _command(command: events.CommandInfo) -> wire.AvailableCommand:
    hint = wire.CommandInput(hint=command.hint) if command.hint else None
    return wire.AvailableCommand(name=command.name, description=command.description, input=hint)


# --- questions to the person


def permission_request(
    session_id: str,
    question: PermissionQuestion,
    *,
    one_of_each_kind: bool = False,
    with_changes: bool = False,
    takes_reason: bool = False,
) -> wire.RequestPermissionRequest:
    """The question with everything in it that is needed to answer: some clients show nothing else of the call.

    `one_of_each_kind`: the client shows no labels of ours, so that of two options that look the same only the narrower
    is offered. `takes_reason`: the client can send a reason with a rejection.
    """
    options = [wire.PermissionOption(option_id="once", name=one_line(question.yes), kind="allow_once")]
    if question.session_scope:
        label = one_line(question.session_scope)  # never cut: what is too long is not on offer
        options.append(wire.PermissionOption(option_id="session", name=label, kind="allow_always"))
    alike = question.session_scope and (one_of_each_kind or question.session_scope == question.project_scope)
    if question.project_scope and not alike:
        label = one_line(question.project_scope)
        options.append(wire.PermissionOption(option_id="project", name=label, kind="allow_always"))
    options.append(wire.PermissionOption(option_id="reject", name="Reject", kind="reject_once"))
    remarks = [one_line(question.reason, 1000)] if question.reason else []
    changes = (block for block in question.display if isinstance(block, DiffBlock))
    remarks += dict.fromkeys(filter(None, (warning_about_change(block.new_text) for block in changes)))
    notes = [wire.ContentToolContent(content=wire.TextContent(text=remark)) for remark in remarks]
    content = tool_content(question.display, with_changes=with_changes)
    facts = wire.QuestionFacts(partial=question.is_divisible and count_changes(content) > 1, reason=takes_reason)
    return wire.RequestPermissionRequest(
        session_id=session_id,
        meta=wire.CrowMeta(crow=facts) if facts.partial or facts.reason else None,
        tool_call=wire.ToolCallFields(
            tool_call_id=question.call_id,
            title=call_title(question.title),
            kind=question.kind,
            status="pending",
            locations=locations(question.locations),
            content=[*content, *notes],
        ),
        options=options,
    )


def count_changes(content: Iterable[wire.ToolContent]) -> int:
    """How many changes the client was told of."""
    diffs = (item.meta for item in content if isinstance(item, wire.DiffToolContent))
    return sum(len(meta.crow.diff.changes) for meta in diffs if meta is not None)


def question_as_form(session_id: str, question: Question) -> wire.FormRequest:
    answer: dict[str, Any] = {"type": "string", "title": "Answer"}
    if question.options:
        answer["enum"] = list(question.options)
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return form_request(session_id, Form(question.call_id, question.text, schema))


def reason_form(session_id: str, question: PermissionQuestion) -> wire.FormRequest:
    """For a person who has just said no: what the model should do instead, if they want to say it."""
    reason = {"type": "string", "title": "Reason", "description": "Optional: the model is told what you write."}
    told = f"Rejected: {one_line(question.title)}. Why, or what instead?"
    return form_request(session_id, Form(question.call_id, told, {"type": "object", "properties": {"reason": reason}}))


def form_request(session_id: str, form: Form) -> wire.FormRequest:
    return wire.FormRequest(
        session_id=session_id,
        tool_call_id=form.call_id or None,
        mode="form",
        message=form.text,
        requested_schema=form.schema,
    )


def link_request(session_id: str, link: Link) -> wire.LinkRequest:
    return wire.LinkRequest(
        session_id=session_id,
        tool_call_id=link.call_id or None,
        mode="url",
        message=link.text,
        url=link.url,
        elicitation_id=link.id,
    )


def tool_content(display: Iterable[DisplayBlock], *, with_changes: bool = False) -> list[wire.ToolContent]:
    shown = (block_content(block, with_changes=with_changes) for block in display)
    return [content for content in shown if content is not None]


def block_content(block: DisplayBlock, *, with_changes: bool = False) -> wire.ToolContent | None:
    """`with_changes`: the client has asked which lines of a diff are changed."""
    match block:
        case TextBlock():
            text = block.text if block.prose else fence(block.text, block.language or "text")
            return wire.ContentToolContent(content=wire.TextContent(text=text))
        case ImageBlock(image=image):
            return wire.ContentToolContent(content=wire.ImageContent(data=image.data, mime_type=image.mime_type))
        case DiffBlock():
            old_text = None if block.operation == "add" else block.old_text
            meta = wire.CrowMeta(crow=wire.DiffFacts(diff=diff_lines(block))) if with_changes else None
            return wire.DiffToolContent(path=block.path, old_text=old_text, new_text=block.new_text, meta=meta)
        case TerminalBlock():
            return wire.TerminalToolContent(terminal_id=block.terminal_id)
        case HiddenOutput():
            return None
        case _:
            assert_never(block)


def diff_lines(block: DiffBlock) -> wire.DiffLines:
    from crow.diff import changes_in  # for the first client that asks

    changes = [
        (change.old_start, change.old_end - change.old_start, change.new_start, change.new_end - change.new_start)
        for change in changes_in(block)
    ]
    return wire.DiffLines(old_line=block.old_line, new_line=block.new_line, changes=changes)


def result_content(
    result: ToolResult, past: Callable[[DisplayBlock], DisplayBlock | None] | None = None, *, with_changes: bool = False
) -> list[wire.ToolContent]:
    """The blocks; with none to show, the message; nothing if the output is hidden on purpose. `past` is what a block is
    shown as in a replay."""
    display = result.display if past is None else filter(None, map(past, result.display))
    if content := tool_content(display, with_changes=with_changes):
        return content
    if _is_hidden(result) or not result.message:
        return []
    return [wire.ContentToolContent(content=wire.TextContent(text=result.message))]


def raw_output(result: ToolResult) -> object:
    """None if the output is hidden: a client may show this where there is no content (Zed does)."""
    if _is_hidden(result):
        return None
    told: dict[str, object] = {"ok": result.ok, "message": one_line(result.message, 1000)}
    if (end := result.command) is not None:
        told |= {"stdout": result.text[: end.printed][:LARGEST_RAW], "exitCode": end.code}
        if end.signal is not None:
            told["signal"] = end.signal
        if end.lines:
            told["lines"] = end.lines
    return told


def _is_hidden(result: ToolResult) -> bool:
    return bool(result.display) and all(isinstance(block, HiddenOutput) for block in result.display)


def locations(locations: tuple[Location, ...]) -> list[wire.ToolCallLocation] | None:
    return [wire.ToolCallLocation(path=location.path, line=location.line) for location in locations] or None


def raw_input(arguments: str) -> object:
    """The arguments as they will be used; as text if they are no JSON or nested absurdly; long texts cut."""
    if has_too_many_values(arguments):
        return {"text": arguments[:LONG_TEXT]}
    try:
        value = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"text": arguments[:LARGEST_RAW]}
    if not _is_shallow(value, DEEPEST_RAW):
        return {"text": arguments[:LARGEST_RAW]}
    if len(arguments) <= LONG_TEXT:
        return value
    shortened = _shortened(value)
    return shortened if len(msgspec.json.encode(shortened)) <= LARGEST_RAW else {"text": arguments[:LONG_TEXT]}


def _shortened(value: Any) -> Any:
    """A file's content in the arguments is shown as a diff; here its beginning and its length will do."""
    match value:
        case str() if len(value) > LONG_TEXT:
            return f"{value[:LONG_TEXT]}… ({len(value):,} characters)"
        case dict():
            return {key: _shortened(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON
        case list():
            return [_shortened(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType] -- JSON
        case _:
            return value


def _is_shallow(value: Any, levels: int) -> bool:
    match value:
        case dict():
            return levels > 0 and all(_is_shallow(inner, levels - 1) for inner in value.values())  # pyright: ignore[reportUnknownVariableType] -- JSON
        case list():
            return levels > 0 and all(_is_shallow(inner, levels - 1) for inner in value)  # pyright: ignore[reportUnknownVariableType] -- JSON
        case _:
            return True
