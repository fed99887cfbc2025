"""The session behind `crow chat`: its agent, sending and steering, cancelling, changing the mode, and what other
clients of the session do.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from crow.acp.agent_process import AgentGone
from crow.acp.client import AgentFailed, Rejection, RemoteAgent, ids_of, start_agent
from crow.acp.wire import (
    AvailableCommandsUpdate,
    Notice,
    ReleasedNotification,
    RequestPermissionRequest,
    StateNotification,
    TurnEnd,
    Update,
)
from crow.cli.answer_keys import Answerer, Choice
from crow.cli.chat.messages import LEAVING, Commands, Message, Outbox, Waiting, missing, picture_mention
from crow.cli.chat.shown import Shown
from crow.cli.chat.status_line import MODE, Status
from crow.cli.chat.transcript import Replay
from crow.cli.interactive_client import AGENT, RenderingClient
from crow.cli.opening import Opening
from crow.cli.render import STOPPING, Renderer
from crow.cli.render_screen import DIM, WARNING
from crow.rpc.jsonrpc import ErrorCode
from crow.timeouts import timeout
from crow.visible import one_line, plain_title

if TYPE_CHECKING:
    from crow.cli.chat.application import Chat

NAME = "crow-chat"
TWICE = 2.0
"""Seconds in which a second press of the key that stops a turn leaves the chat."""
NOT_TAKEN = (ErrorCode.INVALID_REQUEST, ErrorCode.RESOURCE_NOT_FOUND)
"""The errors that say that a prompt was not taken: another turn runs, or the session is moving to another process."""
DELETED = "This session was deleted. Start a new one: crow chat"
STEERING_DELAY = 1.5
"""Seconds in which a message for the running turn can be taken back: once the agent has it, the model may have it."""
MODE_DELAY = 0.4
"""Seconds after the last Shift-Tab before the mode is changed: on the way to another one none is put into effect."""


class Conversation(RenderingClient):
    """What the person does in the session, and what they are shown of it."""

    def __init__(self, opening: Opening, renderer: Renderer, answerer: Answerer, view: "Chat") -> None:
        super().__init__(renderer, answerer)
        self.status = Status()
        self.outbox = Outbox(view.changed)
        self.commands = Commands()
        self.session = ""
        """Its id, once there is one."""
        self.has_happened = False
        """Whether there is something in the session to go on with."""
        self._opening = opening
        self._view = view
        self._agent: RemoteAgent | None = None
        self._turn: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()
        self._is_stopping = False
        self._state: StateNotification | None = None
        """As it was told last."""
        self._has_company = False
        """Whether other clients watch the session, which then goes on when we leave."""
        self._replay: Replay | None = None
        self._shown = Shown()
        self._is_loading_again = False
        self._mode_change: asyncio.Task[None] | None = None
        self._said: dict[str, Message] = {}
        """What we said into the turn that runs, by the ids that the agent gave."""
        self._left_over: list[str] = []
        """The ids of what that turn did not take in, whoever said it."""
        self._failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    # --- the session

    async def run(self) -> None:
        """Opens the session and serves it until it is cancelled. CrowError if the agent fails, or ends by itself."""
        async with start_agent(
            AGENT,
            self,
            environment=self._opening.environment,
            choices=True,
            reasons=True,
            name=NAME,
            on_state=self._state_changed,
            on_released=self._released,
        ) as agent:
            self._agent = agent
            try:
                await self._open(agent)
                self.status.starting = ""
                self._is_ready.set()
                self._send_next()
                self._view.changed()
                raise await self._end_of(agent)
            finally:
                if self._has_company:
                    agent.let_go()

    async def _end_of(self, agent: RemoteAgent) -> BaseException:
        """Why there is nothing more to be served: the agent has gone, or something of ours has failed."""
        gone = asyncio.create_task(agent.gone())
        try:
            await asyncio.wait([gone, self._failure], return_when=asyncio.FIRST_COMPLETED)
            return self._failure.result() if self._failure.done() else gone.result()
        finally:
            gone.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Does something beside the rest; what nobody foresaw ends the conversation."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._look_for_failure)
        return task

    def _look_for_failure(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failure.done():
            self._failure.set_result(error)

    async def _open(self, agent: RemoteAgent) -> None:
        session, cwd = self._opening.session, self._opening.cwd
        if session is None:
            opened = await agent.new_session(cwd)
            self.session = opened.session_id
            self.status.set_options(opened.config_options, opened.modes)
        else:
            self.session, self.has_happened, self._replay = session.id, True, Replay()
            self.status.starting = "loading the session"
            self._view.changed()
            loaded = await agent.load_session(session.id, cwd)
            self.status.set_options(loaded.config_options, loaded.modes)
            replay, self._replay = self._replay, None
            replay.draw(self.renderer, session.id)
            self.renderer.pause()  # calls that are open go on: somebody's turn may be running
            self.renderer.mark("i", f"Continuing: {session.shown_title}", DIM)
            for name, value in self._opening.options.items():
                self.status.set_options(await agent.set_option(session.id, name, value))

    def _released(self, told: ReleasedNotification) -> None:
        """The process that ran the session has ended: it is loaded again, which shows what was missed."""
        if self._turn is None:  # else its prompt is answered with the same
            self.renderer.mark("!", told.reason, WARNING)
        self._is_ready.clear()
        self._is_loading_again = True
        self._replay = Replay()
        self._start(self._load_again(dict(self._said), self._turn))

    async def _load_again(self, said: dict[str, Message], turn: "asyncio.Task[None] | None") -> None:
        """`said` was put into the turn that was cut off: what that did not take in waits again."""
        if turn is not None:
            await asyncio.wait([turn])
        if self._agent is None:
            return
        try:
            loaded = await self._agent.load_session(self.session, self._opening.cwd)
        except AgentGone:
            return  # `run` says it
        except AgentFailed as error:
            self._replay = None
            self._show_failure(str(error))
        else:
            replay, self._replay = self._replay or Replay(), None
            self.status.set_options(loaded.config_options, loaded.modes)
            replay.draw_rest(self.renderer, self._shown)
            self.renderer.pause()
            for message in reversed([message for id, message in said.items() if not replay.has(id)]):
                self.outbox.put_first(message)
                self.outbox.is_held = True
        self._is_loading_again = False
        self._is_ready.set()
        if self._state is not None:
            self._state_changed(self._state)
        self._send_next()
        self._view.changed()

    # --- what the person does

    @property
    def is_ready(self) -> bool:
        return self._is_ready.is_set()

    @property
    def is_running(self) -> bool:
        """Whether a turn runs, whoever began it."""
        return self._turn is not None or bool(self.status.elsewhere)

    @property
    def goes_on_elsewhere(self) -> bool:
        """Whether a turn runs that others watch: it does not end when we leave."""
        return self.is_running and self._has_company

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    def steers(self, text: str) -> bool:
        """Whether a message would be put into the running turn. A command would be no more than words there."""
        can_steer = self._agent is not None and self._agent.can_steer and not self._is_stopping
        return self.is_running and can_steer and not self.commands.has(text)

    def as_mention(self, text: str) -> str:
        """The mention of a picture whose path is all of the text; empty if it is none."""
        return picture_mention(text, self._opening.cwd)

    def leaves(self, text: str) -> bool:
        """Whether the person wants to leave, and says it as in other programs."""
        return text.strip() in LEAVING and not self.commands.has(text.strip())

    def refuses(self, text: str) -> bool:
        """Whether a text is kept from the model, as it looks like a command that there is not; the person is told."""
        refusal = self.commands.refusal(text)
        if refusal:
            self.renderer.mark("!", refusal, WARNING)
        return bool(refusal)

    def submit(self, message: Message) -> None:
        """Sends a message now: as a prompt, or into the turn that runs; where neither can be, it is queued."""
        if self.steers(message.text):
            entry = self.outbox.add(message)
            entry.steering = self._start(self._steer(entry))
        elif (self.is_ready or self._is_loading_again) and not self.is_running:
            self._play(message)
        else:
            self.queue(message)

    def queue(self, message: Message) -> None:
        """Sends a message when its time has come: after the turn that runs, and those that wait already."""
        self.outbox.add(message)
        self._send_next()

    def send_waiting(self) -> None:
        """What waits for the person to change it, or was held, is sent now."""
        self.outbox.is_held = False
        self.outbox.hurry()
        self._send_next()
        self._view.changed()

    def take_back(self) -> Message | None:
        """The newest message that waits, for the person to change; None if none does."""
        message = self.outbox.take_back()
        self._send_next()  # what waited for it to be taken in
        return message

    def cancel(self) -> None:
        """Asks for the end of the running turn."""
        if self._agent is not None and self.is_running:
            self._is_stopping = True
            self.renderer.wait(STOPPING)
            # Behind a prompt that is on its way: one that came after the cancel would not be cancelled by it.
            asyncio.get_running_loop().call_soon(self._agent.cancel, self.session)

    def change_mode(self) -> None:
        """To the next one, once the person has stopped choosing."""
        mode = self.status.mode_after(self.status.next_mode or self.status.value(MODE))
        if not mode:
            return
        self.status.next_mode = mode
        if self._mode_change is not None:
            self._mode_change.cancel()
        self._mode_change = self._start(self._change_mode(MODE_DELAY))
        self._view.changed()

    async def _change_mode(self, delay: float = 0) -> None:
        await asyncio.sleep(delay)
        mode, self.status.next_mode = self.status.next_mode, ""
        if self._agent is not None and mode and mode != self.status.value(MODE):
            try:
                self.status.set_options(await self._agent.set_option(self.session, MODE, mode))
            except AgentFailed as error:
                self.renderer.mark("!", str(error), WARNING)
            except AgentGone:
                return  # `run` says it
        self._view.changed()

    # --- turns

    def _send_next(self) -> None:
        if self.is_ready and not self.is_running and (message := self.outbox.next()) is not None:
            self._play(message)

    def _play(self, message: Message) -> None:
        self._left_over.clear()
        self.outbox.begin_turn()
        self._turn = self._start(self._prompt(message))
        self._view.changed()

    async def _prompt(self, message: Message) -> None:
        if self._agent is None:
            return
        if self.status.next_mode:  # chosen before the prompt, so it counts for it
            if self._mode_change is not None:
                self._mode_change.cancel()
            await self._change_mode()
        await self._is_ready.wait()
        if self._is_stopping:  # before it was sent: the agent knows of no turn that it could cancel
            self._turn = None
            self.outbox.put_first(message)
            self.outbox.is_held = True
            self._end_turn()
            return
        await self.commands.known_for(message.text)
        if self.refuses(message.text):  # it was typed before the session was there
            self._turn = None
            self._view.give_back(message)
            self._end_turn()
            return
        self.has_happened = True
        self._show_said(message)
        self.renderer.begin_turn()
        is_refused = False
        try:
            further = message.attachments(self._opening.cwd)
            reason = await self._agent.prompt(self.session, message.text, further, columns=self.renderer.output_columns)
        except AgentGone:
            return  # `run` says it
        except AgentFailed as error:
            if error.code == ErrorCode.RESOURCE_NOT_FOUND and not await self._agent.knows(self.session):
                self._is_deleted(message)
            else:
                is_refused = error.code in NOT_TAKEN
                self._failed(message, error)
        else:
            self._left_over += self._agent.left_over
            if self._agent.was_command and reason == "end_turn":
                self.renderer.close()  # what the command says is all there is to say
            else:
                self._show_stop(reason, self._agent.left_open)
        self._turn = None
        self._end_turn()
        if is_refused and self._state is not None:  # another client's prompt may have come first
            self._state_changed(self._state)

    def _is_deleted(self, message: Message) -> None:
        """There is nothing to go on with: what was typed is for another session."""
        self.has_happened = False
        self._show_failure(DELETED)
        self._view.give_back(message)

    def _failed(self, message: Message, error: AgentFailed) -> None:
        if error.code in NOT_TAKEN:
            self.outbox.put_first(message)
        self._left_over += error.left_over
        self._show_failure(str(error))

    def _show_stop(self, reason: str, left_open: str) -> None:
        self.renderer.stop(reason, left_open)
        if reason != "end_turn" or left_open:  # what waits was written for a turn that ended well
            self.outbox.is_held = True
        self._view.attention(f"Crow: {reason}" if reason != "end_turn" else "Crow is done.")

    def _show_failure(self, message: str) -> None:
        self.outbox.is_held = True
        self.renderer.fail(message)
        self._view.attention("Crow failed.")

    def _put_back(self) -> None:
        """What we said into a turn that did not take it in waits again. What others said there is theirs to send."""
        ours = [self._said.pop(id) for id in self._left_over if id in self._said]
        for message in reversed(ours):
            self.outbox.put_first(message)
            self.outbox.is_held = True

    def _end_turn(self) -> None:
        self._put_back()
        self._said.clear()
        self._is_stopping = False
        self.outbox.hurry()
        self._send_next()
        self._view.changed()

    async def _steer(self, entry: Waiting) -> None:
        if self._agent is None:
            return
        message = entry.message
        with contextlib.suppress(TimeoutError):
            async with timeout(STEERING_DELAY):
                await entry.is_due.wait()
        try:
            further = message.attachments(self._opening.cwd)
            taken_as = await self._agent.steer(self.session, message.text, further)
        except AgentGone:
            return  # `run` says it
        except AgentFailed as error:
            self.renderer.mark("!", str(error), WARNING)
            taken_as = None
        if taken_as is not None and self.outbox.remove(entry):
            self._show_said(message)
            self._said[taken_as] = message
            if not self.is_running:  # another client's turn, whose end was told before this
                self._put_back()
        entry.steering = None  # else it waits like any other
        self._send_next()
        self._view.changed()

    def _show_said(self, message: Message) -> None:
        self.renderer.prompt(message.shown)
        self._shown.add(message.text)
        if words := missing(message.text, self._opening.cwd):
            self.renderer.mark("!", words, WARNING)

    # --- what the agent says

    def update(self, update: Update) -> None:
        if isinstance(update, AvailableCommandsUpdate):
            self.commands.take(update)
            self._view.changed()
        self.status.take(update)
        if isinstance(update, Notice) and update.meta is not None:
            self._left_over += ids_of(update.meta.steering)
        if self._replay is not None:
            self._replay.take(update)
            if not self._is_loading_again:
                self._shown.take(update)
        else:
            self._shown.take(update)
            super().update(update)

    async def permit(self, request: RequestPermissionRequest) -> str | Rejection | None:
        await self._is_ready.wait()  # what led to it is drawn first
        return await super().permit(request)

    def show_question(self, request: RequestPermissionRequest, choices: Sequence[Choice]) -> None:
        self._view.takes_reason(request.meta is not None and request.meta.crow.reason)
        super().show_question(request, choices)
        self._view.attention(f"Crow asks: {one_line(plain_title(request.tool_call.title or 'may it go on?'))}")

    def why_withdrawn(self) -> str:
        """It may have been answered elsewhere, which a notice says; or its turn has ended, with the owner or not."""
        return "cancelled" if self._is_stopping else "no longer needed"

    def _state_changed(self, state: StateNotification) -> None:
        self._state = state
        self._has_company = len(state.faces or ()) > 1
        was_elsewhere = self.status.elsewhere
        is_ours = self._turn is not None
        runs = state.state in ("running", "asks")
        self.status.elsewhere = (
            f"running in {one_line(state.by or '') or 'another client'}" if runs and not is_ours else ""
        )
        if self.status.elsewhere and not was_elsewhere:
            self._left_over.clear()
            self.outbox.begin_turn()
            self.renderer.begin_turn()
        elif was_elsewhere and not self.status.elsewhere and not is_ours:
            self._show_end_elsewhere(state.ended)
            self._end_turn()
        self._view.changed()

    def _show_end_elsewhere(self, ended: TurnEnd | None) -> None:
        if ended is not None and ended.stop_reason:
            self._show_stop(ended.stop_reason, ended.left_open or "")
        elif ended is not None and ended.error:
            self._show_failure(ended.error)
        else:
            self.renderer.close()
