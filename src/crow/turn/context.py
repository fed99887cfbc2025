"""`TurnContext`: everything that a turn may know, handed to it when it begins."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from crow.actions import Person
from crow.events import Journal, Remark, TurnIds
from crow.files.base import Workspace
from crow.model.base import Model
from crow.policy.base import Policy
from crow.tools.base import Toolbox
from crow.turn.history import History
from crow.turn.requests import ContextWindow, Requests
from crow.turn.spending import Budgets
from crow.turn.steering import Steering
from crow.turn.waits import PATIENCE, Wait


class TurnContext(msgspec.Struct, frozen=True):
    """Everything that a turn may know, handed to it whole when it begins.

    Its parts are not exchanged while the turn runs. What changes inside of them meanwhile:
    - by the person: the model and the thought level in `requests.live`, the mode of the policy, and what waits in
      `steering`;
    - by a project that is trusted as the turn begins: tighter limits in `requests.live`, rules of the policy, budgets;
    - by the turn itself: the history (by way of the journal), what `budgets` has spent, and `remarks_shown`.
    """

    requests: Requests
    workspace: Workspace
    policy: Policy
    person: Person
    journal: Journal
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    """What was spent and may be: the session's and its subagents'."""
    dialog: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held while the person is being asked: one question at a time, the others queue behind it."""
    steering: Steering = msgspec.field(default_factory=Steering)
    """What the person says while the turn runs. Nobody speaks to a subagent, whose own stays empty."""
    prepare: Callable[[TurnIds], Awaitable[None]] | None = None
    """Done after the prompt was taken and before the model is asked, such as asking for trust. Whoever does it names
    the wait."""
    news: Callable[[], list[str]] = list
    """What has happened between the turns that the model should know, such as the end of a command: told once, with
    the prompt."""
    choose_model: Callable[[str], Awaitable[Model]] | None = None
    """Chooses another model for the session."""
    remarks_shown: set[str] = msgspec.field(default_factory=set[str])
    """The titles of the remarks that the person need not read twice in a session."""
    patience: float = PATIENCE
    """Seconds after which a wait is named to the person."""

    @property
    def model(self) -> Model:
        return self.requests.model

    @property
    def tools(self) -> Toolbox:
        return self.requests.tools

    @property
    def history(self) -> History:
        return self.requests.history

    @property
    def window(self) -> ContextWindow:
        return ContextWindow(self.requests, self.journal, self.budgets)

    def waiting(self, what: str, call_id: str = "") -> Wait:
        """`what` ends a sentence that begins with "Waiting for"."""
        return Wait(self.journal, what, call_id, self.patience, self.dialog.locked)

    def tell_once(self, remark: Remark) -> None:
        """Tells the person something about the model or its server, unless they were told before in this session."""
        if remark.title not in self.remarks_shown:
            self.remarks_shown.add(remark.title)
            self.journal.append(remark)

    async def change_model(self, name: str) -> None:
        """Another model takes over from the next request on."""
        if self.choose_model is not None:
            self.requests.live.model = await self.choose_model(name)
