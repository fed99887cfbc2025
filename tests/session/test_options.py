"""The options of a session: what is on offer, what choosing does, and what comes back with a stored session."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from crow.config.settings import Limits
from crow.errors import ConfigError, OptionUnknown
from crow.events import Event, OptionChosen, OptionsChanged, SentText, UserSaid
from crow.messages import Text
from crow.model.base import ModelEvent, Said
from crow.policy.rule_policy import RulePolicy
from crow.session import options as options_module
from crow.session.journal import SessionJournal
from crow.session.models import SetupReader
from crow.session.options import Options
from crow.session.session_model import SessionModel
from crow.tools.base import Toolbox
from crow.turn.requests import ContextWindow, LiveSettings, Requests
from crow.turn.spending import Budgets
from tests.support.provider import Provider
from tests.support.recording import RecordingSink
from tests.support.store import MemoryLog

NO_SERVERS = {"CROW_LOCAL_SERVERS": ""}


def options_changed(event: Event) -> bool:
    return isinstance(event, OptionsChanged)


class Opened:
    """As much of a session as its options need."""

    def __init__(self, models: SetupReader, folder: Path) -> None:
        self._models = models
        self._folder = str(folder)
        self.told = RecordingSink()

    async def begin(self) -> "Opened":
        setup = await self._models.setup()
        journal = SessionJournal(MemoryLog())
        journal.append(UserSaid("t1-m1", (SentText("Hello"),), (Text("Hello"),)))
        journal.subscribe(self.told)
        self.live = LiveSettings(SessionModel(setup.first), Limits())
        self.policy = RulePolicy([self._folder], mode=setup.mode)
        self.requests = Requests(self.live, Toolbox([]), journal.history, lambda: "")
        self.options = Options(ContextWindow(self.requests, journal, Budgets()), self.policy, setup)
        return self

    def values(self) -> dict[str, str]:
        return {option.id: option.value for option in self.options.all()}

    def models(self) -> list[str]:
        return next(
            [choice.value for choice in option.choices] for option in self.options.all() if option.id == "model"
        )

    async def ask(self) -> list[ModelEvent]:
        async with aclosing(self.requests.send()) as events:
            return [event async for event in events]

    async def close(self) -> None:
        await self.options.close()


Story = Callable[[Opened], Awaitable[None]]


def play(folder: Path, config: str, story: Story, environ: Mapping[str, str] = NO_SERVERS) -> None:
    """A session with this configuration, from its beginning to its end."""

    async def whole() -> None:
        session = await Opened(models(folder, config, environ), folder).begin()
        try:
            await story(session)
        finally:
            await session.close()

    asyncio.run(whole())


def models(folder: Path, config: str, environ: Mapping[str, str] = NO_SERVERS) -> SetupReader:
    (folder / "config.toml").write_text(config)
    return SetupReader(str(folder), environ)


def provider_table(name: str, url: str, *names: str, more: str = "") -> str:
    tables = "".join(f'[providers.{name}.models."{model}"]\n' for model in names)
    return f'[providers.{name}]\ntype = "openai"\nbase_url = "{url}"\n{more}{tables}'


NOWHERE = "http://127.0.0.1:9/v1"
TWO = provider_table("one", NOWHERE, "plain", "gpt-5") + provider_table("two", NOWHERE, "o3")


def test_models_are_grouped_by_provider_where_there_is_more_than_one(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        mode, model = session.options.all()
        assert mode.value == "ask"
        assert [choice.value for choice in mode.choices] == ["ask", "edit", "plan", "auto"]
        assert model.value == "one/plain"
        assert [(choice.group, choice.name, choice.value) for choice in model.choices] == [
            ("one", "plain", "one/plain"),
            ("one", "gpt-5", "one/gpt-5"),
            ("two", "o3", "two/o3"),
        ]

    play(tmp_path, TWO, story)


def test_one_provider_needs_no_groups(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        assert [choice.group for choice in session.options.all()[1].choices] == ["", ""]

    play(tmp_path, provider_table("one", NOWHERE, "a", "b"), story)


def test_a_key_alone_offers_its_vendors_model_and_a_named_one_is_there_too(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        assert session.values()["model"] == "mistral/large"
        assert session.models() == ["mistral/large", "mistral/mistral-medium-latest", "xai/grok-4.5"]

    environ = NO_SERVERS | {"MISTRAL_API_KEY": "k", "XAI_API_KEY": "k", "CROW_MODEL": "mistral/large"}
    play(tmp_path, "", story, environ)


def test_the_thought_level_is_there_only_with_a_model_that_has_levels(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        assert set(session.values()) == {"mode", "model"}
        await session.options.choose("model", "one/gpt-5")
        level = session.options.all()[2]
        assert level.value == "default"
        assert [choice.name for choice in level.choices] == ["Default", "Minimal", "Low", "Medium", "High"]
        await session.options.choose("thought_level", "high")
        assert session.live.thought_level == "high"
        await session.options.choose("thought_level", "default")
        assert session.live.thought_level == ""

    play(tmp_path, TWO, story)


def test_what_is_chosen_is_recorded_and_told(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        await session.options.choose("mode", "edit")
        assert session.told.events == [OptionChosen("mode", "edit"), OptionsChanged(session.options.all())]
        assert session.policy.mode == "edit"

    play(tmp_path, TWO, story)


def test_a_level_that_the_next_model_lacks_is_given_up_and_that_is_recorded(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        for option, value in (("model", "one/gpt-5"), ("thought_level", "minimal"), ("model", "two/o3")):
            await session.options.choose(option, value)
        assert session.values() == {"mode": "ask", "model": "two/o3", "thought_level": "default"}
        chosen = [event for event in session.told.events if isinstance(event, OptionChosen)]
        assert chosen[-2:] == [OptionChosen("model", "two/o3"), OptionChosen("thought_level", "default")]

    play(tmp_path, TWO, story)


def test_a_level_that_the_next_model_has_too_is_kept(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        for option, value in (("model", "one/gpt-5"), ("thought_level", "low"), ("model", "two/o3")):
            await session.options.choose(option, value)
        assert session.values()["thought_level"] == "low"

    play(tmp_path, TWO, story)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("colour", "red", "Unknown option 'colour'. Available: mode, model."),
        ("thought_level", "high", "Unknown option 'thought_level'. Available: mode, model."),
        ("mode", "yolo", "Unknown mode 'yolo'. Available: ask, edit, plan, auto."),
        ("model", "two/o4", "Unknown model 'two/o4'. Available: one/plain, one/gpt-5, two/o3."),
        ("mode", "", "Unknown mode ''. Available: ask, edit, plan, auto."),
    ],
)
def test_what_is_not_on_offer_is_refused_with_what_is(tmp_path: Path, option: str, value: str, said: str) -> None:
    async def story(session: Opened) -> None:
        before = session.options.all()
        with pytest.raises(OptionUnknown) as caught:
            await session.options.choose(option, value)
        assert str(caught.value) == said
        assert session.options.all() == before
        assert session.told.events == []

    play(tmp_path, TWO, story)


def test_a_model_without_its_key_cannot_be_chosen_and_nothing_changes(tmp_path: Path) -> None:
    config = provider_table("one", NOWHERE, "a") + provider_table("two", NOWHERE, "b", more='api_key_env = "TWO_KEY"\n')

    async def story(session: Opened) -> None:
        with pytest.raises(ConfigError, match="TWO_KEY"):
            await session.options.choose("model", "two/b")
        assert session.values()["model"] == "one/a"
        assert session.told.events == []

    play(tmp_path, config, story)


# --- the model that is asked


def connections_to(port: int) -> int:
    """Of this process, as the kernel sees them."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_a_reply_ends_as_it_began_and_the_next_request_goes_to_the_new_model(tmp_path: Path) -> None:
    with Provider() as first, Provider() as second:
        first.openai.answer("A word and another.", pace=0.02)
        second.openai.answer("Hello from the second.")
        config = provider_table("one", first.openai.url, "a") + provider_table("two", second.openai.url, "gpt-5")

        async def story(session: Opened) -> None:
            async with aclosing(session.requests.send()) as reply:
                said = [await anext(reply)]
                await session.options.choose("model", "two/gpt-5")
                await session.options.choose("thought_level", "low")
                assert connections_to(first.port) == 1
                said += [event async for event in reply]
            assert "".join(event.text for event in said if isinstance(event, Said)) == "A word and another."
            assert connections_to(first.port) == 0
            await session.ask()
            assert second.openai.requests[0].body["model"] == "gpt-5"
            assert second.openai.requests[0].body["reasoning_effort"] == "low"
            assert len(first.openai.requests) == 1

        play(tmp_path, config, story)


def test_a_model_that_rests_is_let_go_of_at_once(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.openai.answer("Hello.")

        async def story(session: Opened) -> None:
            await session.ask()
            assert connections_to(provider.port) == 1
            await session.options.choose("model", "one/b")
            assert connections_to(provider.port) == 0

        play(tmp_path, provider_table("one", provider.openai.url, "a", "b"), story)


def test_choosing_the_same_model_again_leaves_it_as_it_is(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        model = session.live.model
        await session.options.choose("model", "one/plain")
        assert session.live.model is model
        assert session.told.events[0] == OptionChosen("model", "one/plain")

    play(tmp_path, TWO, story)


def test_a_request_that_was_made_just_before_still_gets_its_answer(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.openai.answer("First.")
        provider.openai.answer("Second.")

        async def story(session: Opened) -> None:
            await session.ask()
            async with aclosing(session.requests.send()) as reply:
                await session.options.choose("model", "one/b")
                said = [event.text async for event in reply if isinstance(event, Said)]
            assert "".join(said) == "Second."
            assert connections_to(provider.port) == 0

        play(tmp_path, provider_table("one", provider.openai.url, "a", "b"), story)


# --- a stored session


def test_what_was_chosen_last_comes_back(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        past = [
            OptionChosen("mode", "auto"),
            OptionChosen("model", "two/o3"),
            OptionChosen("thought_level", "low"),
            OptionChosen("mode", "plan"),
            OptionChosen("colour", "red"),
        ]
        assert session.options.restore(past) == []
        assert session.values() == {"mode": "plan", "model": "two/o3", "thought_level": "low"}
        assert session.told.events == []

    play(tmp_path, TWO, story)


@pytest.mark.parametrize("gone", ["one/old", "elsewhere/m", "nonsense", "three/b"])
def test_a_model_that_is_gone_gives_way_to_the_configured_one_and_is_named(tmp_path: Path, gone: str) -> None:
    async def story(session: Opened) -> None:
        [notice] = session.options.restore([OptionChosen("model", gone), OptionChosen("thought_level", "high")])
        assert notice.title == f"{gone}, which this session used, is no longer available. Continuing with one/plain."
        assert session.values() == {"mode": "ask", "model": "one/plain"}
        assert session.live.thought_level == ""

    play(tmp_path, TWO + provider_table("three", NOWHERE, "b", more='api_key_env = "THREE_KEY"\n'), story)


def test_a_model_comes_back_before_its_provider_has_listed_it(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        assert session.options.restore([OptionChosen("model", "open/listed-once")]) == []
        assert session.options.restore([OptionChosen("model", "mine/of-this-machine")]) == []
        assert session.values()["model"] == "mine/of-this-machine"

    environ = {"CROW_LOCAL_SERVERS": "mine=9"}
    play(tmp_path, TWO + provider_table("open", NOWHERE), story, environ)


def test_a_mode_that_no_longer_exists_is_passed_over(tmp_path: Path) -> None:
    async def story(session: Opened) -> None:
        assert session.options.restore([OptionChosen("mode", "yolo")]) == []
        assert session.values()["mode"] == "ask"

    play(tmp_path, TWO, story)


# --- completing the list


@pytest.fixture(autouse=True)
def _no_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_module, "QUIET", 0)


async def at_once() -> None:
    pass


def listing(*names: str) -> dict[str, list[dict[str, str]]]:
    return {"data": [{"id": name} for name in names]}


def test_what_providers_list_is_added_once_for_all_sessions(tmp_path: Path) -> None:
    async def story() -> None:
        with Provider() as provider:
            provider.openai.models = listing("big", "text-embedding-3", "small")
            shared = models(tmp_path, TWO + provider_table("open", provider.openai.url))
            first = await Opened(shared, tmp_path).begin()
            assert "open/big" not in first.models()
            first.options.look_for_models(at_once)
            await first.told.until(options_changed)
            assert first.models() == ["one/plain", "one/gpt-5", "two/o3", "open/big", "open/small"]
            assert first.told.events == [OptionsChanged(first.options.all())]
            await first.options.choose("model", "open/small")
            await first.close()

            second = await Opened(shared, tmp_path).begin()
            assert "open/small" in second.models()
            await second.options.look_for_models(at_once)
            assert second.told.events == []
            assert [request.path for request in provider.openai.looks] == ["/v1/models"]
            await second.close()

    asyncio.run(story())


def test_servers_on_this_machine_join_the_list(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.openai.models = listing("qwen3", "nomic-embed-text")

        async def story(session: Opened) -> None:
            session.options.look_for_models(at_once)
            await session.told.until(options_changed)
            assert session.models() == ["one/plain", "one/gpt-5", "two/o3", "mine/qwen3"]
            await session.options.choose("model", "mine/qwen3")
            provider.openai.answer("Hello.")
            await session.ask()
            assert provider.openai.requests[-1].body["model"] == "qwen3"

        play(tmp_path, TWO, story, {"CROW_LOCAL_SERVERS": f"mine={provider.port}"})


def test_a_provider_that_fails_costs_nothing_but_its_models(tmp_path: Path) -> None:
    with Provider(key="secret") as provider:
        provider.openai.models = listing("big")

        async def story(session: Opened) -> None:
            for _ in range(2):
                await session.options.look_for_models(at_once)
            assert session.told.events == []
            assert len(provider.openai.looks) == 1

        play(tmp_path, TWO + provider_table("open", provider.openai.url, more='api_key = "wrong"\n'), story)


def test_providers_with_models_in_the_configuration_are_not_asked(tmp_path: Path) -> None:
    with Provider() as provider:

        async def story(session: Opened) -> None:
            await session.options.look_for_models(at_once)
            assert provider.connections == 0

        play(tmp_path, provider_table("one", provider.openai.url, "a"), story)


def test_the_search_ends_with_the_session(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"

        async def story(session: Opened) -> None:
            session.options.look_for_models(at_once)
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                await session.close()
                assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

        play(tmp_path, TWO + provider_table("open", url), story)


def test_nobody_is_asked_while_the_session_is_busy(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.openai.models = listing("big")

        async def story(session: Opened) -> None:
            asked, over = asyncio.Event(), asyncio.Event()

            async def at_rest() -> None:
                asked.set()
                await over.wait()

            session.options.look_for_models(at_rest)
            await asked.wait()
            assert provider.connections == 0
            over.set()
            await session.told.until(options_changed)
            assert "open/big" in session.models()

        play(tmp_path, TWO + provider_table("open", provider.openai.url), story)
