"""Runs the tests in several processes at once: `pytest --processes 6`.

The tests are collected once, and only then are the processes forked that run them: what the tests import costs several
seconds of processor time, which each process would spend again. A process is told two tests, the one to run and the one
after it (pytest must know what the next one still needs), and one more whenever it has reported one. A process that
dies is a failure of the test that it was running; another one takes its place.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.support import warm

FORK = multiprocessing.get_context("fork")
PER_CORE = 5
"""Processes. Half of the tests mostly wait: with one process for each core the suite takes half as long again."""


class SideBySide:
    def __init__(self, wanted: str) -> None:
        self._count = (os.cpu_count() or 1) * PER_CORE if wanted == "auto" else int(wanted)
        self._waiting: deque[int] = deque()
        self._workers: dict[Connection, _Worker] = {}

    @pytest.hookimpl
    def pytest_sessionstart(self) -> None:
        warm.prepare()  # while the tests are collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own loop knows what to say
        self._waiting.extend(range(len(session.items)))
        folders: Any = session.config._tmp_path_factory  # pyright: ignore[reportAttributeAccessIssue]
        folders.getbasetemp()  # made once, for all
        gc.collect()
        gc.freeze()  # a collection would write to every page that the processes share
        try:
            for number in range(min(self._count, len(session.items))):
                self._start(session, number)
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._hear(session, self._workers[connection])  # pyright: ignore[reportArgumentType]
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
        finally:
            for worker in self._workers.values():
                worker.process.terminate()
            for worker in self._workers.values():
                worker.process.join()
        return True

    def _start(self, session: pytest.Session, number: int) -> None:
        worker = _Worker(session, number)
        self._workers[worker.connection] = worker
        worker.give(self._next())
        worker.give(self._next())

    def _next(self) -> int | None:
        return self._waiting.popleft() if self._waiting else None

    def _hear(self, session: pytest.Session, worker: "_Worker") -> None:
        hook = session.config.hook
        try:
            reports = worker.connection.recv()
        except (EOFError, ConnectionError):
            self._bury(session, worker)
            return
        worker.given.popleft()
        worker.give(self._next())
        for data in reports:
            report = hook.pytest_report_from_serializable(config=session.config, data=data)
            hook.pytest_runtest_logreport(report=report)

    def _bury(self, session: pytest.Session, worker: "_Worker") -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        died_in, *not_begun = [*(index for index in worker.given if index is not None), None]
        if died_in is None:
            return
        item = session.items[died_in]
        code = worker.process.exitcode or 0
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"The process that ran this test ended with {end}.", "call"
        )
        session.config.hook.pytest_runtest_logreport(report=report)
        self._waiting.extendleft(index for index in not_begun if index is not None)
        self._start(session, worker.number)


class _Worker:
    """One of the processes, as seen by the one that hands out the tests."""

    def __init__(self, session: pytest.Session, number: int) -> None:
        self.number = number
        self.given: deque[int | None] = deque()
        self.connection, theirs = FORK.Pipe()
        self.process = FORK.Process(target=_work, args=(session, number, theirs))
        self.process.start()
        theirs.close()

    def give(self, index: int | None) -> None:
        self.given.append(index)
        with contextlib.suppress(ConnectionError):  # it has died, which will be heard
            self.connection.send(index)


# --- in the processes


def _work(session: pytest.Session, number: int, connection: Connection) -> None:
    config = session.config
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:  # what it writes to was opened before the fork, and is one for all
        capture.stop_global_capturing()
        capture.start_global_capturing()
    folders: Any = config._tmp_path_factory  # pyright: ignore[reportAttributeAccessIssue]
    folders._basetemp = folders.getbasetemp() / f"process-{number}"
    folders._basetemp.mkdir(exist_ok=True)
    config.pluginmanager.register(_Reporting(connection))
    index = connection.recv()
    while index is not None:
        following = connection.recv()
        next_item = None if following is None else session.items[following]
        config.hook.pytest_runtest_protocol(item=session.items[index], nextitem=next_item)
        index = following


class _Reporting:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        reports: Iterable[pytest.TestReport] = runtestprotocol(item, log=False, nextitem=nextitem)
        as_data = item.config.hook.pytest_report_to_serializable
        self._connection.send([as_data(config=item.config, report=report) for report in reports])
        return True
