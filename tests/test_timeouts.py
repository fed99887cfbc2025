"""Time limits, with this interpreter's `asyncio.timeout` and with that of Python 3.11.2, which Debian 12 has."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crow.timeouts import timeout, timeout_at

FOREVER = 3600
AT_ONCE = 0.001


async def exit_as_in_3_11_2(self: Any, kind: type[BaseException] | None, *_: object) -> None:
    """`asyncio.Timeout.__aexit__` as it was until 3.11.3: no TimeoutError in a task with an older cancel."""
    if self._timeout_handler is not None:
        self._timeout_handler.cancel()
        self._timeout_handler = None
    if self._state.name == "EXPIRING":
        self._state = type(self._state).EXPIRED
        if self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError
    elif self._state.name == "ENTERED":
        self._state = type(self._state).EXITED


@pytest.fixture(autouse=True, params=["this Python", "3.11.2"])
def semantics(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "3.11.2":
        monkeypatch.setattr(asyncio.Timeout, "__aexit__", exit_as_in_3_11_2)
    return request.param


def run(work: Awaitable[object]) -> None:
    async def in_a_task() -> None:
        await work

    asyncio.run(in_a_task())


async def never() -> None:
    await asyncio.get_running_loop().create_future()


async def cancelled_then(clean_up: Callable[[], Awaitable[object]]) -> object:
    """What comes of a clean-up in a task that was cancelled."""
    begun, seen = asyncio.Event(), list[object]()

    async def work() -> None:
        try:
            begun.set()
            await never()
        finally:
            seen.append(await clean_up())

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    return seen[0]


async def how_a_limit_ends(seconds: float | None = AT_ONCE) -> str:
    try:
        async with timeout(seconds):
            await never()
    except TimeoutError:
        return "timed out"
    except asyncio.CancelledError:
        return "cancelled"
    return "done"


def test_the_fault_itself(semantics: str) -> None:
    """What this module is for, with asyncio's own: once no supported Python shows it, the module can go."""

    async def clean_up() -> str:
        try:
            async with asyncio.timeout(AT_ONCE):
                await never()
        except TimeoutError:
            return "timed out"
        except asyncio.CancelledError:
            return "cancelled"
        return "done"

    async def live() -> None:
        broken = semantics == "3.11.2" or sys.version_info < (3, 11, 4)
        assert await cancelled_then(clean_up) == ("cancelled" if broken else "timed out")

    run(live())


def test_a_limit_expires() -> None:
    async def live() -> None:
        limit = timeout(AT_ONCE)
        with pytest.raises(TimeoutError):
            async with limit:
                await never()
        assert limit.expired()
        task = asyncio.current_task()
        assert task
        assert task.cancelling() == 0

    run(live())


def test_a_limit_expires_in_the_clean_up_of_a_cancelled_task() -> None:
    async def live() -> None:
        assert await cancelled_then(how_a_limit_ends) == "timed out"

    run(live())


def test_a_clean_up_goes_on_after_its_limit_and_may_have_another() -> None:
    async def live() -> None:
        steps: list[str] = []

        async def clean_up() -> None:
            for _ in range(3):
                with contextlib.suppress(TimeoutError):
                    async with timeout(AT_ONCE):
                        await never()
                steps.append("ended")

        await cancelled_then(clean_up)
        assert steps == ["ended"] * 3

    run(live())


def test_limits_within_limits_in_a_cancelled_task() -> None:
    async def live() -> None:
        async def clean_up() -> str:
            try:
                async with timeout(AT_ONCE):
                    return await how_a_limit_ends(FOREVER)
            except TimeoutError:
                return "the outer one"

        # The inner limit has not expired: what it sees is a cancel.
        assert await cancelled_then(clean_up) == "cancelled"

    run(live())


def test_a_body_that_is_done_in_time_is_left_alone() -> None:
    async def live() -> None:
        async with timeout(FOREVER) as limit:
            await asyncio.sleep(0)
        assert not limit.expired()

    run(live())


def test_a_cancel_from_elsewhere_stays_a_cancel() -> None:
    async def live() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            async with timeout(FOREVER):
                begun.set()
                await never()

        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(live())


@pytest.mark.parametrize("before", [0, 1])
def test_a_cancel_that_comes_with_the_expiry_stays_a_cancel(before: int) -> None:
    """Whoever asks a task to stop must not be told that it went on, however close the two were."""

    async def live() -> None:
        async def expire_and_be_cancelled() -> str:
            task = asyncio.current_task()
            assert task
            try:
                async with timeout(FOREVER) as limit:
                    limit.reschedule(0)
                    asyncio.get_running_loop().call_soon(task.cancel)
                    await never()
            except TimeoutError:
                return "timed out"
            except asyncio.CancelledError:
                return "cancelled"
            return "done"

        if before:
            assert await cancelled_then(expire_and_be_cancelled) == "cancelled"
        else:
            assert await asyncio.create_task(expire_and_be_cancelled()) == "cancelled"

    run(live())


def test_another_error_passes_through_an_expired_limit() -> None:
    async def fail_late() -> None:
        async with timeout(AT_ONCE):
            try:
                await never()
            except asyncio.CancelledError:
                raise ZeroDivisionError from None

    with pytest.raises(ZeroDivisionError):
        run(fail_late())


def test_a_limit_can_be_moved() -> None:
    async def expire_at_once() -> None:
        async with timeout(None) as limit:
            limit.reschedule(asyncio.get_running_loop().time())
            await never()

    with pytest.raises(TimeoutError):
        run(expire_at_once())


def test_a_limit_can_be_taken_away() -> None:
    async def live() -> None:
        loop = asyncio.get_running_loop()
        async with timeout_at(loop.time() + AT_ONCE) as limit:
            limit.reschedule(None)
            passed = loop.create_future()
            loop.call_later(2 * AT_ONCE, passed.set_result, None)
            await passed
        assert not limit.expired()

    run(live())
