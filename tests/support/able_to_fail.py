"""Finds tests that cannot fail, and tests that fail because a machine is slow, by reading their source.

A test can fail if it raises, or calls what raises, on a path that is run: a function of its own file, one that it
imports from `tests`, or a method of `METHODS`. Names are resolved: a helper called `read` says nothing about
`path.read()`.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

Function = ast.FunctionDef | ast.AsyncFunctionDef

PYTEST_CHECKS = {"raises", "warns", "fail"}
METHODS = {"check", "wait_for_rows", "wait_until"}
"""The helpers' methods that raise when what they wait for does not come, under names that no library has."""

SWALLOWED = {"AssertionError", "Exception", "BaseException"}
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time", "time"}
DEADLINES = {"DEADLINE", "deadline", "end"}
"""What a clock may be compared with: whoever waits for what never comes has to stop at last."""

ALWAYS_TRUE = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.Lambda, ast.GeneratorExp)


@dataclass(frozen=True)
class Module:
    """One file of tests or helpers: its functions, and where the names that it imports come from."""

    path: str
    tree: ast.Module
    functions: dict[str, Function]
    methods: list[Function]
    imported: dict[str, tuple[str, str]]

    @classmethod
    def read(cls, path: str, tree: ast.Module) -> "Module":
        classes = [statement for statement in tree.body if isinstance(statement, ast.ClassDef)]
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        return cls(
            path,
            tree,
            {function.name: function for function in _functions(tree.body)},
            [method for one in classes for method in _functions(one.body)],
            {
                alias.asname or alias.name: (node.module or "", alias.name)
                for node in imports
                for alias in node.names
                if (node.module or "").startswith("tests")
            },
        )

    @property
    def tests(self) -> list[Function]:
        if not PurePosixPath(self.path).name.startswith("test_"):
            return []
        return [one for one in (*self.functions.values(), *self.methods) if one.name.startswith("test_")]


@dataclass(frozen=True)
class Scope:
    """Where names are looked up: in a file, and before it among the functions inside of a function."""

    module: Module
    inner: dict[str, Function] = field(default_factory=dict[str, Function])


@dataclass(frozen=True)
class Resolved:
    """The function that a name stands for, and where the function's own names are looked up."""

    function: Function
    scope: Scope


class Reader:
    """Reads files of tests and helpers that call each other's functions."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        modules = [Module.read(path, tree) for path, tree in trees.items()]
        self.modules = {"tests." + one.path.removesuffix(".py").replace("/", "."): one for one in modules}
        self._known: dict[int, bool] = {}
        self._methods: set[str] | None = None

    def faults(self) -> list[str]:
        return [fault for module in self.modules.values() for fault in self.faults_of(module)]

    def faults_of(self, module: Module) -> list[str]:
        found = [
            (test.lineno, "cannot fail") for test in module.tests if not self._can_fail(Resolved(test, Scope(module)))
        ]
        for node in ast.walk(module.tree):
            found += self._faults_at(node, module)
        return [f"{module.path}:{line} {fault}" for line, fault in sorted(set(found))]

    def able_to_fail(self) -> list[str]:
        return [
            f"{module.path}:{test.lineno}"
            for module in self.modules.values()
            for test in module.tests
            if self._can_fail(Resolved(test, Scope(module)))
        ]

    def failing_methods(self) -> set[str]:
        """Those of `METHODS` that can fail."""
        if self._methods is None:
            self._methods = set()  # a method that fails by calling another of them counts by that one
            found = [(one, module) for module in self.modules.values() for one in module.methods if one.name in METHODS]
            self._methods = {one.name for one, module in found if self._can_fail(Resolved(one, Scope(module)))}
        return self._methods

    def _faults_at(self, node: ast.AST, module: Module) -> Iterator[tuple[int, str]]:
        match node:
            case ast.Assert(test=test) if always_true(test) or self._coroutine(test, Scope(module)):
                yield node.lineno, "asserts what is always true"
            case ast.Try(body=body, handlers=handlers) if any(_swallows(handler) for handler in handlers):
                yield from ((one.lineno, "suppresses an assertion") for one in _asserts(body))
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                if any(_suppresses(item.context_expr) for item in items):
                    yield from ((one.lineno, "suppresses an assertion") for one in _asserts(body))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for line in seconds_asserted(node):
                    yield line, "asserts seconds: count something, wait for an event, or measure it in the bench"
            case _:
                pass

    # --- whether a function can fail

    def _can_fail(self, function: Resolved) -> bool:
        """Whether a call of the function may raise because of a check."""
        key = id(function.function)
        if key not in self._known:
            self._known[key] = False  # one that calls itself needs another reason
            self._known[key] = self._checks(function)
        return self._known[key]

    def _checks(self, function: Resolved) -> bool:
        node = function.function
        if _is_generator(node) and not node.decorator_list:
            return False  # its body is run by whoever iterates, if anybody does
        inner = {one.name: one for one in _functions(_all(node.body))}
        scope = Scope(function.scope.module, function.scope.inner | inner)
        unawaited = set[int]()
        for part in run(node.body):
            if isinstance(part, ast.Expr) and self._coroutine(part.value, scope):
                unawaited.add(id(part.value))
            elif id(part) not in unawaited and self._is_check(part, scope):
                return True
        return False

    def _is_check(self, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Assert(test=test):
                return not always_true(test) and not self._coroutine(test, scope)
            case ast.Raise():
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="pytest"), attr=name)):
                return name in PYTEST_CHECKS
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                own = [method for method in scope.module.methods if method.name == name]
                return any(self._can_fail(Resolved(method, Scope(scope.module))) for method in own)
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                return name in self.failing_methods()
            case ast.Call(func=called):
                found = self._resolve(called, scope)
                return found is not None and (self._call_fails(found) or self._runs_a_check(node, found, scope))
            case _:
                return False

    def _call_fails(self, found: Resolved) -> bool:
        if any("fixture" in _names(decorator) for decorator in found.function.decorator_list):
            # A test calls what its fixture gave it.
            inner = {one.name: one for one in _functions(_all(found.function.body))}
            scope = Scope(found.scope.module, inner)
            return any(self._can_fail(Resolved(one, scope)) for one in inner.values())
        return self._can_fail(found)

    def _runs_a_check(self, call: ast.Call, found: Resolved, scope: Scope) -> bool:
        """Whether a function that is handed over to a helper is run by it, and can fail."""
        handed = [
            function
            for name, value in _arguments(call, found.function)
            if isinstance(value, ast.Name | ast.Call) and self._runs(found, name, 3)
            if (function := self._resolve(value.func if isinstance(value, ast.Call) else value, scope))
        ]
        return any(self._can_fail(function) for function in handed)

    def _runs(self, function: Resolved, parameter: str, depth: int) -> bool:
        """Whether a function calls or awaits what it is given as a parameter, itself or through a helper."""
        for node in ast.walk(function.function):
            match node:
                case ast.Call(func=ast.Name(id=name)) | ast.Await(value=ast.Name(id=name)) if name == parameter:
                    return True
                case ast.Call() if depth and (found := self._resolve(node.func, function.scope)):
                    for name, value in _arguments(node, found.function):
                        if isinstance(value, ast.Name) and value.id == parameter and self._runs(found, name, depth - 1):
                            return True
                case _:
                    pass
        return False

    def _resolve(self, called: ast.expr, scope: Scope) -> Resolved | None:
        match called:
            case ast.Name(id=name) if name in scope.inner:
                return Resolved(scope.inner[name], scope)
            case ast.Name(id=name) if name in scope.module.functions:
                return Resolved(scope.module.functions[name], Scope(scope.module))
            case ast.Name(id=name) if name in scope.module.imported:
                return self._elsewhere(*scope.module.imported[name])
            case ast.Attribute(value=ast.Name(id=part), attr=name) if part in scope.module.imported:
                return self._elsewhere(".".join(scope.module.imported[part]), name)
            case _:
                return None

    def _elsewhere(self, module: str, name: str) -> Resolved | None:
        found = self.modules.get(module)
        if found is None:
            return None
        if name in found.functions:
            return Resolved(found.functions[name], Scope(found))
        return self._elsewhere(*found.imported[name]) if name in found.imported else None

    def _coroutine(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression makes a coroutine that nobody awaits, or a generator that nobody iterates."""
        if not isinstance(node, ast.Call):
            return False
        found = self._resolve(node.func, scope)
        if found is None or found.function.decorator_list:
            return False
        return isinstance(found.function, ast.AsyncFunctionDef) or _is_generator(found.function)


def _functions(nodes: Iterable[ast.AST]) -> list[Function]:
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _all(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in body for node in ast.walk(statement))


def _asserts(body: Iterable[ast.stmt]) -> list[ast.Assert]:
    return [node for node in run(body) if isinstance(node, ast.Assert)]


def _arguments(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call with the names of the parameters that they are for."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    yield from zip(names, call.args, strict=False)
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def _names(node: ast.AST) -> set[str]:
    """Every name and attribute that is read in it."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


# --- what is run of a function


def run(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """All that is run of statements: nothing after a return, in an inner function, or where failures are swallowed."""
    for statement in body:
        yield from _run_statement(statement)
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return


def _run_statement(statement: ast.stmt) -> Iterator[ast.AST]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return
        case ast.If(test=ast.Constant(value=value), body=body, orelse=other):
            yield from run(body if value else other)
        case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
            swallowed = any(_swallows(handler) for handler in handlers)
            for block in ([] if swallowed else body, *(handler.body for handler in handlers), other, last):
                yield from run(block)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            for item in items:
                yield from _run_parts(item.context_expr)
            yield from run([] if any(_suppresses(item.context_expr) for item in items) else body)
        case _:
            yield from _run_parts(statement)


def _run_parts(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Lambda | ast.GeneratorExp):
        return
    yield node
    for _, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        if parts and isinstance(parts[0], ast.stmt):
            yield from run(parts)
        else:
            for part in parts:
                if isinstance(part, ast.AST):
                    yield from _run_parts(part)


def _is_generator(function: Function) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in run(function.body))


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = {"BaseException"} if handler.type is None else _names(handler.type)
    return bool(caught & SWALLOWED) and not any(isinstance(node, ast.Raise | ast.Assert) for node in run(handler.body))


def _suppresses(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "suppress" in _names(node.func) and bool(_names(node) & SWALLOWED)


# --- assertions that say nothing, or the wrong thing


def always_true(test: ast.expr) -> bool:
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(always_true(value) for value in values)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(always_true(value) for value in values)
        case ast.NamedExpr(value=value):
            return always_true(value)
        case ast.Constant(value=value):
            return bool(value)
        case _:
            return isinstance(test, ALWAYS_TRUE)


def seconds_asserted(function: Function) -> Iterator[int]:
    """The lines of the assertions about what a clock showed, or about a name that was assigned from one."""
    clocked = set[str]()
    for node in _all(function.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _tells_time(value, clocked):
                clocked.add(name)
            case ast.Assert(test=test) if _tells_time(test, clocked):
                if not _names(test) & DEADLINES and not _is_rate(test, clocked):
                    yield node.lineno
            case _:
                pass


def _tells_time(node: ast.expr, clocked: set[str]) -> bool:
    for part in ast.walk(node):
        match part:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in CLOCKS:
                return True
            case ast.Name(id=name) if name in clocked:
                return True
            case _:
                pass
    return False


def _is_rate(test: ast.expr, clocked: set[str]) -> bool:
    """Whether something that is counted is at most so many a second: a slow machine makes that easier, not harder."""
    match test:
        case ast.Compare(left=left, ops=ops, comparators=[*others, _]) if not isinstance(ops[-1], ast.Gt | ast.GtE):
            counted = [left, *others]
            return not any(_tells_time(part, clocked) for part in counted) and any(
                isinstance(node, ast.Call) for part in counted for node in ast.walk(part)
            )
        case _:
            return False
