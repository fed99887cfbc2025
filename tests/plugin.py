"""Registered by pyproject: the project's own pytest additions."""

import json
import shutil
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.editor import Editor


@pytest.fixture
def open_editor(tmp_path: Path) -> "Iterator[Callable[..., Editor]]":
    """Starts editors, each with a `crow acp` of its own; closing them is part of every test that opens one."""
    from tests.support.editor import Editor

    editors: list[Editor] = []

    def start(kind: type[Editor] = Editor, *, folder: Path | None = None, **options: Any) -> Editor:
        """`folder` is that of another editor: its home, its configuration and its sessions."""
        editor = kind(folder or tmp_path / f"editor-{len(editors)}", **options)
        editors.append(editor)
        return editor

    try:
        yield start
        for editor in editors:
            editor.close()
    finally:
        for editor in editors:
            editor.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    from tests.support.disks import mounted

    with mounted(tmp_path / "small") as place:
        yield place


@pytest.fixture
def hung_disk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], AbstractContextManager[Path]]:
    """Mounts a file system over a folder that does not answer, while the context is open."""
    from tests.support.disks import hung

    with hung(tmp_path_factory.mktemp("trial")):  # a test may mount it in a thread, where nothing can be skipped
        pass
    return hung


# --- where the tests have their folders


class OwnFolder:
    """A folder for this run alone. Those of pytest lie in one that each run closes to other users, whom tests play."""

    def __init__(self, config: pytest.Config) -> None:
        self._folder = config.option.basetemp = tempfile.mkdtemp(prefix="crow-tests-")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            shutil.rmtree(self._folder, ignore_errors=True)


# --- how the run ended, for `make alone`


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if (cache := getattr(session.config, "cache", None)) is not None:  # none with `-p no:cacheprovider`
        cache.set("crow/ended", int(exitstatus))


# --- which rules were shown, for the conformance report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", default="1", help="how many tests to run at once; auto: as this machine has cores")
    parser.addoption("--rules-to", help="write the outcome of every test that shows a rule to this file")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # What is started from here is to be told to end by signals, also where the tests themselves run below nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.option.basetemp:
        config.pluginmanager.register(OwnFolder(config))
    path = config.getoption("--rules-to")
    if path:
        config.pluginmanager.register(RuleOutcomes(Path(path)))
    if (processes := str(config.getoption("--processes"))) != "1":
        from tests.side_by_side import SideBySide

        config.pluginmanager.register(SideBySide(processes))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in an order that mixes the rooms: whole rooms only wait, and others only compute.

    A test's rules go with the reports of it, also from one process to another.
    """
    items.sort(key=lambda item: zlib.crc32(item.path.name.encode()))
    for item in items:
        rules = [str(id) for mark in item.iter_markers("rule") for id in mark.args]
        if rules:
            item.user_properties.append(("rules", rules))


class RuleOutcomes:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        rules = dict(report.user_properties).get("rules")
        if rules is None:
            return
        test = self._tests.setdefault(report.nodeid, {"rules": rules, "outcome": "not run"})
        if test["outcome"] != "failed" and (report.when == "call" or not report.passed):
            test["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._tests))
