"""The client's side of the protocol, for `crow run`, `crow chat` and `crow demo`: starts an agent and talks to it, as
an editor does.

    async with start_agent(["crow", "acp"], client) as agent:
        session = await agent.new_session("/path/to/project")
        stop_reason = await agent.prompt(session, "Explain this repository.")

While `prompt` waits, `client` is told what happens (`update`) and asked what may happen (`permit`).
However the block is left, the agent's process has ended afterwards.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from crow import __version__
from crow.acp import crow_meta
from crow.acp.agent_process import AgentGone, AgentProcess
from crow.acp.wire import (
    PROTOCOL_VERSION,
    AnswerFacts,
    ClientCapabilities,
    ClientFacts,
    ClientSessionCapabilities,
    ConfigOption,
    ContentBlock,
    ContentToolContent,
    Empty,
    FormRequest,
    FormResponse,
    InitializeRequest,
    LeftOver,
    LoadSessionRequest,
    LoadSessionResponse,
    NewSessionRequest,
    NewSessionResponse,
    PermissionOption,
    PermissionOutcome,
    PromptMeta,
    PromptRequest,
    PromptRequestFacts,
    PromptResponse,
    ReleasedNotification,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionCapabilities,
    SessionNotification,
    SessionRequest,
    SetConfigOptionRequest,
    SetConfigOptionResponse,
    StateNotification,
    SteeringResponse,
    TextContent,
    ToolCallFields,
    Update,
    Wire,
)
from crow.errors import CrowError
from crow.rpc.connection import Connection, ConnectionLost, PendingRequest, Route
from crow.rpc.jsonrpc import ErrorCode, RpcError
from crow.timeouts import timeout

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT = 30.0
"""Seconds an agent may take for what should be done at once: starting, making a session."""

Result = TypeVar("Result")


class AgentFailed(CrowError):
    """The agent answered a request with an error; `code` is JSON-RPC's."""

    def __init__(self, error: RpcError) -> None:
        # ACP agents put the sentence for the person into `data.details`; `message` may be just a category.
        data: object = error.data
        details = data.get("details") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- JSON
        super().__init__(details if isinstance(details, str) and details else error.message)
        self.code = error.code
        self.left_over = _left_over_in(error.data)
        """The ids of messages that the failed turn had accepted, and did not take in."""


class Rejection(NamedTuple):
    """An option that rejects, with the person's words on why."""

    option_id: str
    reason: str


class Client(Protocol):
    """What an agent tells its client and asks of it. What is raised in here ends the request that is waiting."""

    def update(self, update: Update) -> None:
        """Something happened in the session: text, a thought, a tool call, a plan, a notice."""
        ...

    async def permit(self, request: RequestPermissionRequest) -> str | Rejection | None:
        """The id of the option that was chosen, or None if none was. A reason may be given where the question takes
        one, see QuestionFacts. Cancelled together with the turn, and when somebody else has answered."""
        ...


@contextlib.asynccontextmanager
async def start_agent(
    command: Sequence[str],
    client: Client,
    *,
    environment: Mapping[str, str] | None = None,
    record: Callable[[bytes], None] | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    choices: bool = False,
    reasons: bool = False,
    unattended: bool = False,
    name: str = "crow-run",
    on_state: Callable[[StateNotification], None] | None = None,
    on_released: Callable[[ReleasedNotification], None] | None = None,
) -> AsyncGenerator["RemoteAgent"]:
    """`record` gets the parameters of all that the agent sends, and a prompt's result, as they came: JSON, one line.

    `choices`: there is a person who can choose among words, which are shown to them as the options of a permission are.
    `reasons`: they can say why they reject something.
    `unattended`: there is nobody, so that others who watch the session are asked in our place.
    `name` is who the client says it is. `on_state` is told how the session's state changes, whoever changes it, and
    `on_released` when the process that ran the session has ended: it is to be loaded again.
    """
    process = await AgentProcess.start(command, environment)
    try:
        agent = RemoteAgent(
            process,
            client,
            record,
            request_timeout,
            choices=choices,
            reasons=reasons,
            unattended=unattended,
            on_state=on_state,
            on_released=on_released,
        )
        try:
            await agent.initialize(name)
            yield agent
        finally:
            await agent.hang_up()
    finally:
        await process.end()


class RemoteAgent:
    """The agent as its client sees it: the few requests of a conversation."""

    def __init__(
        self,
        process: AgentProcess,
        client: Client,
        record: Callable[[bytes], None] | None,
        request_timeout: float,
        *,
        choices: bool = False,
        reasons: bool = False,
        unattended: bool = False,
        on_state: Callable[[StateNotification], None] | None = None,
        on_released: Callable[[ReleasedNotification], None] | None = None,
    ) -> None:
        self._choices = choices
        self._reasons = reasons
        self._unattended = unattended
        self._on_state = on_state
        self._on_released = on_released
        self._process = process
        self._client = client
        self._record = record
        self._request_timeout = request_timeout
        self._capabilities = _Capabilities()
        self.left_open = ""
        """What the last turn ended with, if it is for the person to go on; see PromptFacts."""
        self.was_command = False
        """Whether the last turn was a command that the agent has answered by itself."""
        self.left_over: list[str] = []
        """The ids of messages that the last turn had accepted, and ended without having taken them in."""
        self._questions: set[asyncio.Task[str | Rejection | None]] = set()
        self._client_failure: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        # Parameters are taken as raw JSON: an update of a kind that we do not know yet must not look like an error.
        self._connection = Connection(
            process.output,
            process.input,
            requests={
                "session/request_permission": Route(msgspec.Raw, self._permit),
                "elicitation/create": Route(FormRequest, self._choose),
            },
            notifications={
                "session/update": Route(msgspec.Raw, self._update),
                "_crow/state": Route(StateNotification, self._state),
                "_crow/released": Route(ReleasedNotification, self._released),
            },
        )
        self._serving = asyncio.create_task(self._connection.run())

    async def initialize(self, name: str = "crow-run") -> None:
        """The first request of every connection: both sides say what they can do."""
        follows = self._on_state is not None
        facts = ClientFacts(
            choices=self._choices,
            reasons=self._reasons,
            unattended=self._unattended,
            state=follows,
            brief=not follows,
        )
        hello = InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            # No file system and no terminal of ours: the agent does that work itself. Waits and retries reach
            # the person as notices.
            client_capabilities=ClientCapabilities(session=ClientSessionCapabilities(notices={})),
            client_info={"name": name, "version": __version__},
            meta=crow_meta.written(facts),
        )
        answer = await self._request_soon("initialize", hello, _Initialized)
        if answer.protocol_version != PROTOCOL_VERSION:
            raise AgentGone(
                f"The agent speaks version {answer.protocol_version} of the protocol, this client {PROTOCOL_VERSION}."
            )
        self._capabilities = answer.agent_capabilities or self._capabilities

    async def new_session(self, cwd: str) -> NewSessionResponse:
        request = NewSessionRequest(cwd=cwd, mcp_servers=[])
        return await self._request_soon("session/new", request, NewSessionResponse)

    async def load_session(self, session_id: str, cwd: str) -> LoadSessionResponse:
        """Opens a stored session: what happened in it comes as updates before this returns."""
        request = LoadSessionRequest(session_id=session_id, cwd=cwd, mcp_servers=[])
        return await self._request("session/load", request, LoadSessionResponse)

    async def resume_session(self, session_id: str, cwd: str) -> LoadSessionResponse:
        """Opens a stored session without being told again what happened in it."""
        request = LoadSessionRequest(session_id=session_id, cwd=cwd, mcp_servers=[])
        return await self._request("session/resume", request, LoadSessionResponse)

    async def set_option(self, session_id: str, option: str, value: str) -> list[ConfigOption]:
        """Chooses a value, and returns all options as they are then."""
        request = SetConfigOptionRequest(session_id=session_id, config_id=option, value=value)
        answer = await self._request_soon("session/set_config_option", request, SetConfigOptionResponse)
        return answer.config_options

    async def prompt(self, session_id: str, text: str, further: Sequence[ContentBlock] = (), columns: int = 0) -> str:
        """Plays one turn and returns why it stopped. `further` is what goes with the text, such as attachments;
        `columns` is how wide the output of commands is shown, if that is known."""
        prompt = [TextContent(text=text), *further]
        meta = crow_meta.written(PromptRequestFacts(columns=columns))
        request = PromptRequest(session_id=session_id, prompt=prompt, meta=meta)
        result = await self._request("session/prompt", request, msgspec.Raw)
        try:
            response = msgspec.json.decode(result, type=PromptResponse)
        except msgspec.MsgspecError as error:
            raise AgentGone(f"The agent ended the turn with something unusable: {error}") from None
        if self._record is not None:
            self._record(bytes(result))
        meta = response.meta or PromptMeta()
        self.left_open = meta.crow.left_open
        self.was_command = meta.crow.command
        self.left_over = ids_of(meta.steering)
        return response.stop_reason

    def cancel(self, session_id: str) -> None:
        """Asks for the end of the running turn: its `prompt` then returns "cancelled"."""
        self._connection.notify("session/cancel", SessionRequest(session_id=session_id))
        for question in self._questions:  # the protocol wants them answered, with the outcome "cancelled"
            question.cancel()

    async def knows(self, session_id: str) -> bool:
        """False if the agent says that there is no such session: it was deleted."""
        if self._capabilities.session_capabilities.status is None:
            return True
        try:
            await self._request_soon("session/status", SessionRequest(session_id=session_id), msgspec.Raw)
        except AgentFailed as error:
            return error.code != ErrorCode.RESOURCE_NOT_FOUND
        return True

    async def close_session(self, session_id: str) -> None:
        if self._capabilities.session_capabilities.close is not None:
            await self._request_soon("session/close", SessionRequest(session_id=session_id), Empty)

    @property
    def can_steer(self) -> bool:
        """Whether a message can be put into a turn that runs."""
        return self._capabilities.meta.steering.supported

    async def steer(self, session_id: str, text: str, further: Sequence[ContentBlock] = ()) -> str | None:
        """Puts a message into the running turn, and gives its id, empty where the agent tells none. None if no turn
        takes it: then it is to be sent as a prompt.

        Cancelling the wait takes the message back, if the agent has not answered yet.
        """
        request = PromptRequest(session_id=session_id, prompt=[TextContent(text=text), *further])
        answer = await self._request("_session/steering", request, SteeringResponse)
        if answer.outcome != "injected":
            return None
        return (answer.meta.steering.message_id or "") if answer.meta is not None else ""

    async def gone(self) -> AgentGone:
        """Waits until the agent is no longer there, and says what can be said of it."""
        await asyncio.wait([self._serving])
        return await self._process.obituary()

    def let_go(self) -> None:
        """When we leave, the agent may go on for others who watch the session: it is not ended."""
        self._process.let_go()

    def kill(self) -> None:
        """Ends the agent at once, for a person who will not wait."""
        self._process.kill()

    async def hang_up(self) -> None:
        self._serving.cancel()
        await self._connection.close()

    # --- what the agent sends

    def _update(self, params: msgspec.Raw) -> None:
        self._keep(params)
        try:
            self._client.update(msgspec.json.decode(params, type=SessionNotification).update)
        except msgspec.MsgspecError as error:
            logger.debug("skipped an update: %s", error)  # agents may be newer than we are
        except Exception as error:  # noqa: BLE001 -- the client's trouble, raised where it waits
            self._fail(error)

    def _state(self, state: StateNotification) -> None:
        try:
            if self._on_state is not None:
                self._on_state(state)
        except Exception as error:  # noqa: BLE001 -- as in `_update`
            self._fail(error)

    def _released(self, told: ReleasedNotification) -> None:
        if self._on_released is not None:
            self._on_released(told)

    async def _permit(self, params: msgspec.Raw, pending: PendingRequest) -> RequestPermissionResponse:
        self._keep(params)
        try:
            request = msgspec.json.decode(params, type=RequestPermissionRequest)
        except msgspec.MsgspecError as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: {error}") from None
        answer = await self._put(request)
        if answer is None:
            return RequestPermissionResponse(outcome=PermissionOutcome(outcome="cancelled"))
        option, reason = answer if isinstance(answer, Rejection) else (answer, "")
        return RequestPermissionResponse(
            outcome=PermissionOutcome(outcome="selected", option_id=option),
            meta=crow_meta.written(AnswerFacts(reason=reason)) if reason else None,
        )

    async def _choose(self, form: FormRequest, pending: PendingRequest) -> FormResponse:
        """A form that is one choice among words; the last of them is the one to take where nothing is chosen."""
        words = _choices_in(form)
        if not self._choices or not words:
            raise RpcError(ErrorCode.METHOD_NOT_FOUND, "Only choices among a few words are shown here.")
        text = ContentToolContent(content=TextContent(text=form.message))
        about = ToolCallFields(tool_call_id="choice", title=form.message, kind="other", content=[text])
        kinds = ("allow_once",) * (len(words) - 1) + ("reject_once",)
        options = [
            PermissionOption(option_id=word, name=word, kind=kind) for word, kind in zip(words, kinds, strict=True)
        ]
        request = RequestPermissionRequest(session_id=form.session_id, tool_call=about, options=options)
        word = await self._put(request)
        if not isinstance(word, str):
            return FormResponse(action="cancel")
        return FormResponse(action="accept", content={"answer": word})

    async def _put(self, request: RequestPermissionRequest) -> str | Rejection | None:
        """Puts a question to the person, until the turn is cancelled."""
        await asyncio.sleep(0)  # one that was withdrawn in the same breath is never shown
        question = asyncio.create_task(self._client.permit(request))
        self._questions.add(question)
        try:
            await asyncio.wait([question])
        finally:
            question.cancel()
            self._questions.discard(question)
        return None if question.cancelled() else self._answer(question)

    def _answer(self, question: asyncio.Task[str | Rejection | None]) -> str | Rejection | None:
        error = question.exception()
        if isinstance(error, Exception):
            self._fail(error)
            return None
        return question.result()

    def _keep(self, raw: msgspec.Raw) -> None:
        if self._record is not None:
            try:
                self._record(bytes(raw))
            except Exception as error:  # noqa: BLE001 -- as in `_update`
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._client_failure.done():
            self._client_failure.set_result(error)

    # --- what we ask of it

    async def _request_soon(self, method: str, params: object, result: type[Result]) -> Result:
        try:
            async with timeout(self._request_timeout):
                return await self._request(method, params, result)
        except TimeoutError:
            raise AgentGone(f"The agent did not answer {method} within {self._request_timeout:g} s.") from None

    async def _request(self, method: str, params: object, result: type[Result]) -> Result:
        """The answer, or the first thing that makes waiting for it pointless."""
        answer = asyncio.create_task(self._connection.request(method, params, result))
        try:
            await asyncio.wait([answer, self._client_failure], return_when=asyncio.FIRST_COMPLETED)
            if self._client_failure.done():
                raise self._client_failure.result()
            return answer.result()
        except ConnectionLost:
            raise await self._process.obituary() from None
        except RpcError as error:
            raise AgentFailed(error) from None
        finally:
            answer.cancel()


def _choices_in(form: FormRequest) -> list[str]:
    match form.requested_schema:
        case {"properties": {"answer": {"enum": [*words]}}}:
            return [word for word in words if isinstance(word, str)]
        case _:
            return []


class _Steering(Wire, frozen=True):
    supported: bool = False


class _CapabilitiesMeta(Wire, frozen=True):
    steering: _Steering = _Steering()


class _Capabilities(Wire, frozen=True):
    session_capabilities: SessionCapabilities = SessionCapabilities()
    meta: _CapabilitiesMeta = msgspec.field(name="_meta", default=_CapabilitiesMeta())


class _Initialized(Wire, frozen=True):
    """What we need of the answer; agents leave out the rest in many ways."""

    protocol_version: int
    agent_capabilities: _Capabilities | None = None


class _FailureData(Wire, frozen=True):
    steering: LeftOver | None = None


def ids_of(left: LeftOver | None) -> list[str]:
    return [message.message_id for message in left.left_over] if left is not None else []


def _left_over_in(data: object) -> list[str]:
    try:
        return ids_of(msgspec.convert(data, _FailureData).steering)
    except msgspec.ValidationError:
        return []
