"""Registered by pyproject: the project's own pytest additions."""

import json
from collections.abc import Callable, Iterator
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


# --- which rules were shown, for the conformance report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rules-to", help="write the outcome of every test that shows a rule to this file")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--rules-to"):
        config.pluginmanager.register(RuleOutcomes(Path(path)))


class RuleOutcomes:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            rules = [str(id) for mark in item.iter_markers("rule") for id in mark.args]
            if rules:
                self._tests[item.nodeid] = {"rules": rules, "outcome": "not run"}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests.get(report.nodeid)
        if test is not None and test["outcome"] != "failed" and (report.when == "call" or not report.passed):
            test["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._tests))
