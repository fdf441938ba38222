"""The modules and names that a Python model cannot do without: what it imports, uses and asks the server for.

An import, a use or a call of the server counts only if the source shows that it runs: at the top, in the methods that
the server calls, and in the functions that these call. It does not count under a condition that is open, or where its
failure is caught.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdk_triton.python_models.reader.backend_utils import MODULES
from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.names import bound_names, certain_statements
from cdk_triton.python_models.reader.uses import Used, evaluated, imported_modules

__all__ = ["Imported", "ServerCall", "may_leave", "needed", "statement_imports"]

_CALLED = ("__init__", "auto_complete_config", "initialize", "execute", "finalize")
"""The methods of a model that the server calls: python_backend, src/pb_stub.cc."""

_LOADING = ("__init__", "auto_complete_config", "initialize")

# Python's own errors that are none of an import or of a missing name, and that none of these is derived from.
_MISSING = (ImportError, NameError, AttributeError)
_OTHER_ERRORS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, BaseException)
    and not issubclass(value, _MISSING)
    and not any(issubclass(error, value) for error in _MISSING)
)

# Decorators that leave the function as it is, as far as its imports go.
_PLAIN = frozenset(
    {"staticmethod", "classmethod", "property", "functools.cache", "functools.lru_cache", "functools.cached_property"}
)
# Context managers that let every error through.
_TRANSPARENT = frozenset(
    {
        *("open", "warnings.catch_warnings", "contextlib.redirect_stdout", "contextlib.redirect_stderr"),
        *("torch.no_grad", "torch.inference_mode"),
    }
)
_REQUESTS = frozenset(f"{module}.InferenceRequest" for module in MODULES)
_OF_MODELS = frozenset({"load_model", "unload_model", "is_model_ready"})
# What runs the coroutines that it gets, and returns when they are done.
_RUNNING = frozenset({"asyncio.run", "asyncio.gather"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Imported:
    """A module that the source imports unconditionally.

    Attributes:
        line: the line of the import.
        level: how many dots are before the name: 0 for a module that is looked for in Python's path.
        module: the module, `helpers.text`, or "" for `from . import text`.
        names: what is imported from it; empty for `import helpers.text`.
    """

    line: int
    level: int
    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class ServerCall:
    """A call of the server that a model certainly makes while the server loads the model.

    Attributes:
        line: where.
        name: `exec` or `async_exec` of a request, `load_model`, `unload_model` or `is_model_ready`.
        method: the method of the model in which the call runs, directly or indirectly.
        in_coroutine: whether the call runs in a coroutine.
    """

    line: int
    name: str
    method: str
    in_coroutine: bool


def statement_imports(statement: ast.stmt) -> Iterator[Imported]:
    """The modules that an import statement names."""
    if isinstance(statement, ast.Import):
        yield from (Imported(statement.lineno, 0, alias.name) for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        names = tuple(alias.name for alias in statement.names)
        yield Imported(statement.lineno, statement.level, statement.module or "", names)


def needed(
    module: ast.Module, names: Mapping[str, str], model: str, *, lazy: bool
) -> tuple[tuple[Imported, ...], tuple[Used, ...], tuple[ServerCall, ...]]:
    """What a source certainly needs when the server loads it or calls its model: modules, names and the server itself.

    Args:
        module: the source.
        names: name → what an import at the top binds it to, such as `importlib.import_module`.
        model: the name of the model's class.
        lazy: whether Python does not evaluate annotations.
    """
    walk = _Walk(module, dict(names), model, lazy=lazy)
    return tuple(walk.found()), tuple(walk.used), tuple(sorted(walk.asked))


@dataclass(frozen=True)
class _Scope:
    """Where statements are, and when they run.

    Attributes:
        owner: the class around them, or "".
        arguments: the arguments of the function around them.
        local: the names that the function defines.
        is_function: whether they are in a function.
        is_loading: whether they run when the module is loaded.
        method: the method of the model that the server calls to run them; "" if they run at another time, or never.
        in_coroutine: whether a coroutine runs them.
        requests: the names that the function gives to requests for other models, and to nothing else.
    """

    owner: str = ""
    arguments: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    is_function: bool = False
    is_loading: bool = False
    method: str = ""
    in_coroutine: bool = False
    requests: frozenset[str] = frozenset()


class _Walk:
    """A walk from the top of a module through the functions that certainly run."""

    def __init__(self, module: ast.Module, names: dict[str, str], model: str, *, lazy: bool) -> None:
        self.used: list[Used] = []
        self.asked: set[ServerCall] = set()
        self._lazy = lazy
        self._modules = imported_modules(module)
        self._names = names
        self._module = module
        self._model = model
        self._functions = _once(each for each in module.body if isinstance(each, Function))
        self._classes = _once(each for each in module.body if isinstance(each, ast.ClassDef))
        self._pending: list[tuple[Function, _Scope]] = []
        self._seen: set[Function] = set()
        self._awaited: set[ast.expr] = set()

    def found(self) -> Iterator[Imported]:
        yield from self._body(self._module.body, _Scope(is_loading=True))
        yield from self._functions_found()
        for name in _CALLED:
            self._call_method(self._model, name, _Scope(self._model, method=name))
            yield from self._functions_found()

    def _functions_found(self) -> Iterator[Imported]:
        """Walk through the functions that are called, and those that these call."""
        while self._pending:
            function, scope = self._pending.pop(0)
            yield from self._body(function.body, scope)

    def _scope(self, function: Function, owner: str, caller: _Scope, call: ast.Call | None) -> _Scope:
        """The scope of a function that statements of another one call."""
        arguments = _arguments(function)
        around = _type_parameters(self._classes.get(owner)) | _type_parameters(function)
        is_coroutine = isinstance(function, ast.AsyncFunctionDef)
        local = arguments.union(around, *map(bound_names, function.body))
        scope = _Scope(owner, arguments, local, is_function=True, in_coroutine=is_coroutine or caller.in_coroutine)
        is_idle = is_coroutine and call not in self._awaited
        return replace(scope, method="" if is_idle else caller.method, requests=self._requests(function, scope))

    def _requests(self, function: Function, scope: _Scope) -> frozenset[str]:
        nodes = list(own_nodes(*function.body))
        set_to = {
            (node.targets[0], node.targets[0].id)
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if len(node.targets) == 1 and self._is_request(node.value, scope)
        }
        others = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and (node, node.id) not in set_to
        }
        return frozenset(name for _, name in set_to) - others - scope.arguments

    def _body(self, body: Sequence[ast.stmt], scope: _Scope) -> Iterator[Imported]:
        """The imports of statements that run one after the other."""
        for statement in certain_statements(body, self._names):
            for imported in statement_imports(statement):
                yield imported
                if not imported.level:
                    self._use_all(imported, scope)
            yield from self._expressions(statement, scope)
            for inner in self._inner(statement, scope.arguments):
                yield from self._body(inner, scope)
            if isinstance(statement, ast.ClassDef):
                local = scope.local.union(_type_parameters(statement), *map(bound_names, statement.body))
                yield from self._body(statement.body, _Scope(statement.name, local=local, is_loading=scope.is_loading))
            if isinstance(statement, ast.Raise) or (scope.is_function and may_leave(statement)):
                return

    def _use_all(self, imported: Imported, scope: _Scope) -> None:
        """Note the names that an import takes from a module."""
        self.used += (
            Used(imported.line, imported.module, name, is_import=True, is_loading=scope.is_loading)
            for name in imported.names
            if name != "*"
        )

    def _inner(self, statement: ast.stmt, arguments: frozenset[str]) -> Iterator[list[ast.stmt]]:
        """The blocks of a statement that run whenever it does, and whose errors are not caught."""
        match statement:
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                if not any(map(self._catches, handlers)):
                    yield body
                    yield orelse
                yield final
            case ast.With(items=items, body=body) if all(self._is_transparent(item.context_expr) for item in items):
                yield body
            case ast.For(iter=ast.Name(id=name), body=body) if name in arguments:  # the requests
                yield body
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(n))]), body=body) if (
                n > 0
            ):
                yield body

    def _catches(self, handler: ast.ExceptHandler) -> bool:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            name = None if kind is None else self._dotted(kind)
            if name not in _OTHER_ERRORS:  # a name that the module makes may stand for any error
                return True
        return False

    def _is_transparent(self, manager: ast.expr) -> bool:
        """Whether a context manager is known to let an error through."""
        return isinstance(manager, ast.Call) and self._dotted(manager.func) in _TRANSPARENT

    def _expressions(self, statement: ast.stmt, scope: _Scope) -> Iterator[Imported]:
        """The modules that calls in a statement import; the walk follows the called functions later."""
        for node in evaluated(statement, lazy=self._lazy, is_function=scope.is_function):
            self._awaited.update(self._run_by(node))
            if isinstance(node, ast.Call):
                self._ask(node, scope)
                yield from self._call(node, scope)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                self._use(node, scope)

    def _use(self, node: ast.Name | ast.Attribute, scope: _Scope) -> None:
        """Note a name that the function does not define, or an attribute of a module."""
        if isinstance(node, ast.Name):
            if node.id not in scope.local:
                self.used.append(Used(node.lineno, "", node.id, is_loading=scope.is_loading))
            return
        module = self._module_of(node.value, scope)
        if module:
            self.used.append(Used(node.lineno, module, node.attr, is_loading=scope.is_loading))

    def _module_of(self, node: ast.expr, scope: _Scope) -> str:
        """The whole name of the module that an expression names; "" for another expression."""
        if isinstance(node, ast.Name) and node.id not in scope.local:
            return self._modules.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self._module_of(node.value, scope)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def _run_by(self, node: ast.AST) -> Iterable[ast.expr]:
        """The coroutines that an expression runs to their end, if it is itself run."""
        match node:
            case ast.Await(value=value):
                return (value,)
            case ast.Call(func=ast.Attribute(attr="run_until_complete"), args=arguments):
                return arguments
            case ast.Call(func=function, args=arguments) if self._dotted(function) in _RUNNING:
                return arguments if node in self._awaited or self._dotted(function) == "asyncio.run" else ()
        return ()

    def _ask(self, call: ast.Call, scope: _Scope) -> None:
        """Note a call of the server."""
        match call.func:
            case ast.Attribute(value=value, attr="exec" | "async_exec" as name) if self._is_request(value, scope):
                is_asked = name == "exec" or call in self._awaited or not scope.in_coroutine
            case ast.Attribute(value=value, attr=name) if name in _OF_MODELS:
                is_asked = self._module_of(value, scope) in MODULES
            case _:
                return
        if is_asked and scope.method in _LOADING:
            self.asked.add(ServerCall(call.lineno, name, scope.method, scope.in_coroutine))

    def _is_request(self, node: ast.expr, scope: _Scope) -> bool:
        """Whether an expression is certainly a request for another model."""
        match node:
            case ast.Name(id=name):
                return name in scope.requests
            case ast.Call(func=ast.Attribute() as function):
                return self._module_of(function, scope) in _REQUESTS
        return False

    def _call(self, call: ast.Call, scope: _Scope) -> Iterator[Imported]:
        name = self._dotted(call.func)
        if name in ("importlib.import_module", "__import__", "builtins.__import__"):
            match call.args:
                case [ast.Constant(value=str(module)), *_] if module and not module.startswith("."):
                    yield Imported(call.lineno, 0, module)
        match call.func:
            case ast.Name(id=called):
                self._add(self._functions.get(called), "", scope, call)
                self._call_method(called, "__init__", scope)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=called):
                self._call_method(scope.owner, called, scope, call)
            case ast.Attribute(value=ast.Name(id=class_name), attr=called):
                self._call_method(class_name, called, scope, call, scope.owner if _gives_self(call) else "")

    def _call_method(
        self, class_name: str, name: str, caller: _Scope, call: ast.Call | None = None, owner: str = ""
    ) -> None:
        """Walk through a method later; `owner` is the class of the object, if that is another one."""
        found = self._classes.get(class_name)
        if isinstance(found, ast.ClassDef):
            methods = _once(each for each in found.body if isinstance(each, Function))
            self._add(methods.get(name), owner or class_name, caller, call)

    def _add(self, function: ast.stmt | None, owner: str, caller: _Scope, call: ast.Call | None) -> None:
        if isinstance(function, Function) and function not in self._seen:
            self._seen.add(function)
            decorators = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
            if all(self._dotted(each) in _PLAIN for each in decorators) and not _is_generator(function):
                self._pending.append((function, self._scope(function, owner, caller, call)))

    def _dotted(self, node: ast.expr) -> str | None:
        """The whole name in an expression, such as `importlib.import_module`; None for another expression."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=name):
                before = self._dotted(value)
                return None if before is None else f"{before}.{name}"
        return None


def _gives_self(call: ast.Call) -> bool:
    """Whether a call passes on the object of the method around it: `Base.initialize(self, args)`."""
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == "self"


def _is_generator(function: Function) -> bool:
    """Whether a call of a function does not run its body yet."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(*function.body))


def _once(statements: Iterable[ast.stmt]) -> dict[str, ast.stmt]:
    """Name → the function or class, for names that are defined once."""
    found: dict[str, list[ast.stmt]] = {}
    for each in statements:
        assert isinstance(each, _SCOPES)
        found.setdefault(each.name, []).append(each)
    return {name: each[0] for name, each in found.items() if len(each) == 1}


def _arguments(function: Function) -> frozenset[str]:
    own = function.args
    several = (each for each in (own.vararg, own.kwarg) if each is not None)
    return frozenset(each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs, *several))


def _type_parameters(statement: ast.stmt | None) -> frozenset[str]:
    """The type parameters of a function or class, from Python 3.12 on: T for `def first[T](...)`."""
    return frozenset(each.name for each in getattr(statement, "type_params", ()))


def may_leave(statement: ast.AST, leaves: tuple[type[ast.stmt], ...] = (ast.Return, ast.Continue, ast.Break)) -> bool:
    """Whether a statement may end the function, or make the loop around it skip what follows."""
    if isinstance(statement, leaves):
        return True
    if isinstance(statement, (*_SCOPES, ast.Lambda)):
        return False
    inner = (ast.Return,) if isinstance(statement, ast.For | ast.AsyncFor | ast.While) else leaves
    return any(may_leave(node, inner) for node in ast.iter_child_nodes(statement))
