"""The tests themselves: each can fail, and none because the machine is slow."""

import ast
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.able_to_fail import METHODS, Reader

HERE = Path(__file__).parent
RELIES_ON_HELPERS = 0.25
"""The most of the tests, as a part of all, that fail through what a helper checks and not by themselves."""


@functools.cache
def sources() -> dict[str, str]:
    return {str(path.relative_to(HERE)): path.read_text() for path in sorted(HERE.rglob("*.py"))}


@functools.cache
def reader(change: Callable[[str, ast.Module], ast.Module] = lambda _, tree: tree) -> Reader:
    return Reader({path: change(path, ast.parse(text)) for path, text in sources().items()})


def planted(text: str) -> list[str]:
    """The faults of a file beside the real ones."""
    helper = ast.parse("def eventually(condition):\n    assert condition()\n\ndef read(path):\n    assert path\n")
    patience = {"support/patience.py": helper}
    found = Reader({"test_planted.py": ast.parse(text), **patience})
    return found.faults_of(found.modules["tests.test_planted"])


def test_each_test_can_fail_and_none_for_the_machine_s_speed() -> None:
    assert reader().faults() == []
    assert reader().failing_methods() == METHODS  # what counts as a check is one


# --- the reader itself, with every check of ours taken away


class Stripped(ast.NodeTransformer):
    """The same code without its checks; what a check evaluates is evaluated still."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Expr(node.test), node)

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "pytest":
            return ast.copy_location(ast.Name("nothing", ast.Load()), node)
        return node


def stripped(_: str, tree: ast.Module) -> ast.Module:
    return Stripped().visit(tree)


def stripped_tests(path: str, tree: ast.Module) -> ast.Module:
    return stripped(path, tree) if Path(path).name.startswith("test_") else tree


@pytest.mark.slow
def test_without_any_check_no_test_is_taken_for_one_that_can_fail() -> None:
    assert reader(stripped).able_to_fail() == []


@pytest.mark.slow
def test_few_tests_fail_by_the_checks_of_helpers_alone() -> None:
    found = reader(stripped_tests)
    tests = sum(len(module.tests) for module in found.modules.values())
    assert 0 < len(found.able_to_fail()) < tests * RELIES_ON_HELPERS


@pytest.mark.parametrize(
    "body",
    [
        "look()",
        "path.read()",
        "from tests.support.patience import read\n    path.read()",
        "from tests.support.patience import eventually\n    eventually",
        "return\n    assert look()",
        "if look():\n        return\n        assert look()",
        "if False:\n        assert look()",
        "def check():\n        assert look()",
        "def check():\n        assert look()\n    look(check)",
        "async def check():\n        assert look()\n    check()",
        "def check():\n        assert look()\n        yield\n    check()",
        "look(lambda: check())\n\ndef check():\n    assert look()",
        "(check(one) for one in look())\n\ndef check(one):\n    assert look()",
        "with suppress(CrowError):\n        look()",
    ],
)
def test_a_planted_test_that_cannot_fail_is_found(body: str) -> None:
    assert planted(f"def test_it():\n    {body}") == ["test_planted.py:1 cannot fail"]


@pytest.mark.parametrize(
    "body",
    [
        "assert (look(), 'it is there')",
        "assert 'it is there'",
        "assert f'{look()}'",
        "assert look() or True",
        "assert [look()]",
        "assert {'it': look()}",
        "assert {look()}",
        "assert (lambda: look())",
        "assert (one for one in look())",
        "assert check()\n\nasync def check():\n    return look()",
        "assert check()\n\ndef check():\n    yield look()",
        "with contextlib.suppress(AssertionError):\n        assert look()",
        "with suppress(Exception):\n        assert look()",
        "try:\n        assert look()\n    except AssertionError:\n        pass",
        "try:\n        assert look()\n    except (OSError, Exception):\n        pass",
        "try:\n        assert look()\n    except:\n        pass",
        "assert time.monotonic() - began < 2",
        "took = monotonic() - began\n    assert took < 2",
        "began = time.time()\n    look()\n    assert time.time() < began + 2",
        "now = loop.time()\n    later = now + 1\n    assert later < look()",
        "took = monotonic() - began\n    assert 0.1 < took",
    ],
)
def test_a_planted_assertion_that_says_nothing_or_seconds_is_found(body: str) -> None:
    found = planted(f"def test_it():\n    {body}\n\ndef test_another():\n    assert look()")
    assert [fault for fault in found if "cannot fail" not in fault]


@pytest.mark.parametrize(
    "body",
    [
        "assert look()",
        "with pytest.raises(CrowError):\n        look()",
        "from tests.support.patience import eventually\n    eventually(look)",
        "from tests.support import patience\n    patience.eventually(look)",
        "def check():\n        assert look()\n    check()",
        "async def check():\n        assert look()\n    asyncio.run(check())",
        "def story(stage):\n        assert look()\n    play(story)\n\ndef play(story):\n    story(1)",
        "try:\n        assert look()\n    except Exception:\n        print(1)\n        raise",
        "for one in look():\n        match one:\n            case 1:\n                assert look()",
        "assert time.monotonic() < deadline",
        "took = monotonic() - began\n    assert len(shown) <= took * 20 + 2",
    ],
)
def test_a_sound_one_is_not(body: str) -> None:
    assert planted(f"def test_it():\n    {body}") == []
