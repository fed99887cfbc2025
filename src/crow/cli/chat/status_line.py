"""The status line of `crow chat`: the session's mode, model and thought level, how full the model's window is, and what
was spent.
"""

from collections.abc import Iterator, Sequence

from crow.acp.wire import (
    ConfigChoice,
    ConfigOption,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionModes,
    Update,
    UsageUpdate,
)
from crow.cli.render_screen import cells, cut
from crow.config.settings import shown_amount
from crow.visible import one_line

MODE, MODEL, THOUGHT_LEVEL = "mode", "model", "thought_level"
SEPARATOR = " · "


class Status:
    """What is known of the session's options and its use."""

    def __init__(self) -> None:
        self._options: dict[str, ConfigOption] = {}
        self._usage: UsageUpdate | None = None
        self.next_mode = ""
        """The mode that the person has asked for, until the agent says that it is so."""
        self.starting = "starting"
        """What is being done before the session is open."""
        self.elsewhere = ""
        """The client whose turn is running, if it is not ours."""

    def set_options(self, options: Sequence[ConfigOption] | None, modes: SessionModes | None = None) -> None:
        self._options = {option.id: option for option in options or ()}
        if modes is not None and MODE not in self._options:
            choices = [ConfigChoice(name=mode.name, value=mode.id) for mode in modes.available_modes]
            self._options[MODE] = ConfigOption(
                id=MODE, name="Mode", current_value=modes.current_mode_id, options=choices
            )

    def take(self, update: Update) -> None:
        match update:
            case ConfigOptionUpdate():
                self.set_options(update.config_options)
            case CurrentModeUpdate() if MODE in self._options:
                option = self._options[MODE]
                self._options[MODE] = ConfigOption(
                    id=option.id, name=option.name, current_value=update.current_mode_id, options=option.options
                )
            case UsageUpdate():
                self._usage = update
            case _:
                pass

    def value(self, option: str) -> str:
        return self._options[option].current_value if option in self._options else ""

    def mode_after(self, mode: str) -> str:
        """The mode that Shift-Tab leads to from this one; empty if there is none."""
        option = self._options.get(MODE)
        values = [choice.value for choice in option.options if choice.value] if option else []
        return values[(values.index(mode) + 1) % len(values)] if mode in values else ""

    def text(self, width: int) -> str:
        """As much as fits: what can be left out is shortened first, then left out."""
        if self.starting:
            return self.starting
        forms = list(self._forms())
        return next((form for form in forms if cells(form) <= width), cut(forms[-1], width))

    def _forms(self) -> Iterator[str]:
        mode, model, level = self._mode(), one_line(self.value(MODEL)), self._level()
        window, short_window, money = *self._window(), self._money()
        name = model.rpartition("/")[2]
        yield _joined(self.elsewhere, mode, model, level, window, money)
        yield _joined(self.elsewhere, mode, name, level, window, money)
        yield _joined(self.elsewhere, mode, name, level, short_window, money)
        yield _joined(self.elsewhere, mode, cut(name, 12), level, short_window, money)
        yield _joined(mode, cut(name, 12), short_window, money)
        yield _joined(mode, short_window, money)

    def _mode(self) -> str:
        mode = one_line(self.value(MODE))
        return f"{mode} → {self.next_mode}" if self.next_mode and self.next_mode != mode else mode

    def _level(self) -> str:
        level = one_line(self.value(THOUGHT_LEVEL))
        return f"thinking {level}" if level else ""

    def _window(self) -> tuple[str, str]:
        if self._usage is None or not self._usage.size:
            return "", ""
        share = f"{100 * self._usage.used / self._usage.size:.0f}%"
        return f"{share} of {_in_thousands(self._usage.size)} tokens", share

    def _money(self) -> str:
        cost = self._usage.cost if self._usage else None
        return shown_amount(cost.amount, one_line(cost.currency, 8)) if cost else ""


def _joined(*facts: str) -> str:
    return SEPARATOR.join(filter(None, facts))


def _in_thousands(number: int) -> str:
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M".replace(".0M", "M")
