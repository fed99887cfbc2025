"""Registered by pyproject: the project's own pytest additions."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.editor import Editor


@pytest.fixture
def open_editor(tmp_path: Path) -> "Iterator[Callable[..., Editor]]":
    """Starts editors, each with a `crow acp` of its own; closing them is part of every test that opens one."""
    from tests.support.editor import Editor

    editors: list[Editor] = []

    def start(**options: object) -> Editor:
        editor = Editor(tmp_path / f"editor-{len(editors)}", **options)  # pyright: ignore[reportArgumentType]
        editors.append(editor)
        return editor

    try:
        yield start
        for editor in editors:
            editor.close()
    finally:
        for editor in editors:
            editor.kill()
