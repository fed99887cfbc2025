"""The tests themselves: each can fail, and none because the machine is slow."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKS = {"raises", "warns", "fail"}
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
DEADLINES = {"DEADLINE", "deadline", "end"}
"""What a clock may be compared with: whoever waits for what never comes has to stop at last."""


def names_in(node: ast.AST) -> set[str]:
    """Every name and attribute that is read in it."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def functions_in(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def checks_something(node: ast.AST, helpers: frozenset[str]) -> bool:
    return any(isinstance(part, ast.Assert | ast.Raise) for part in ast.walk(node)) or bool(
        names_in(node) & (CHECKS | helpers)
    )


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(HERE)): ast.parse(path.read_text()) for path in sorted(HERE.rglob("*.py"))}


def checkers(tree: ast.Module, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The functions that fail by themselves, of these and those that are known; one here hides one from elsewhere."""
    own = [function for function in functions_in(tree) if not function.name.startswith("test_")]
    found = known - {function.name for function in own}
    while more := {function.name for function in own if checks_something(function, found)} - found:
        found |= more
    return found


@functools.cache
def shared() -> frozenset[str]:
    """The helpers of many tests that fail by themselves."""
    modules = [tree for name, tree in trees().items() if not Path(name).name.startswith("test_")]
    return checkers(ast.Module([statement for tree in modules for statement in tree.body], []))


def faults(name: str, tree: ast.Module) -> list[str]:
    helpers = checkers(tree, shared())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Call)]
    return [f"{name}:{node.lineno} {fault}" for node in nodes if (fault := _fault(node, helpers))]


def _fault(node: ast.AST, helpers: frozenset[str]) -> str:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
            return "" if checks_something(node, helpers) else "cannot fail"
        case ast.Assert(test=ast.Tuple() | ast.Constant()):
            return "asserts what is always true"
        case ast.Assert(test=test) if names_in(test) & CLOCKS and not names_in(test) & DEADLINES:
            return "asserts seconds: count something, wait for an event, or measure it in the bench"
        case ast.Call() if "suppress" in names_in(node.func) and "AssertionError" in names_in(node):
            return "suppresses an assertion"
        case _:
            return ""


def test_each_test_can_fail_and_none_for_the_machine_s_speed() -> None:
    assert [fault for name, tree in trees().items() for fault in faults(name, tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "def test_it():\n    look()",
        "def test_it():\n    with suppress(CrowError):\n        look()",
        "def test_it():\n    assert (look(), 'it is there')",
        "def test_it():\n    assert 'it is there'",
        "def test_it():\n    assert time.monotonic() - began < 2",
        "def test_it():\n    with contextlib.suppress(AssertionError):\n        assert look()",
    ],
)
def test_a_planted_fault_is_found(text: str) -> None:
    assert len(faults("planted.py", ast.parse(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def test_it():\n    assert look()",
        "def test_it():\n    with pytest.raises(CrowError):\n        look()",
        "def test_it():\n    eventually(look)",
        "def test_it():\n    assert time.monotonic() < deadline",
    ],
)
def test_a_sound_one_is_not(text: str) -> None:
    assert faults("sound.py", ast.parse(text)) == []
