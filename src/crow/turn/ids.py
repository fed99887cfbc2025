"""The ids of what happens in a turn."""


class TurnIds:
    """Ids that are unique in the session: the turn's own, and a counter for each kind."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._messages = 0
        self._calls = 0
        self._compactions = 0

    def message(self) -> str:
        self._messages += 1
        return f"{self.turn_id}-m{self._messages}"

    def call(self) -> str:
        self._calls += 1
        return f"{self.turn_id}-c{self._calls}"

    def compaction(self) -> str:
        self._compactions += 1
        return f"{self.turn_id}-k{self._compactions}"
