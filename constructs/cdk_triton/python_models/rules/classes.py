"""CT142 to CT144, CT162, CT163 and CT177: whether the server can use the class of a Python model.

The source is compiled, never executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile
from cdk_triton.checks.derived.configured import completes
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.registry import Problem, rules_about
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.modules import (
    Module,
    PythonModel,
    model_modules,
    python_sources,
    source_rule,
)
from cdk_triton.python_models.reader.calls import Method
from cdk_triton.python_models.reader.model_class import ModelClass
from cdk_triton.triton.findings import Severity

_STUB = "src/pb_stub.cc"
_NO_LOAD, _NO_ANSWER = "would not load the model", "would answer every request with an error"

# How the server calls the methods: their names, how many arguments it gives, and what a call of another kind would do.
_CALLS = (
    ("__new__", 0, _NO_LOAD),
    ("__init__", 0, _NO_LOAD),
    ("auto_complete_config", 1, _NO_LOAD),
    ("initialize", 1, _NO_LOAD),
    ("execute", 1, _NO_ANSWER),
)

# Types that the method `execute` may return by mistake.
_RESPONSE = "c_python_backend_utils.InferenceResponse"
_LIST_OF = "list of "
# From this release on, a model that is not decoupled may send its responses itself: python_backend, r24.06.
_SENDS_SINCE = "24.06"
_SUSPENDED = frozenset({"async_generator", "coroutine", "generator"})
_NO_LISTS = frozenset({"bool", "bytes", "dict", "float", "int", "set", "str", "tuple", _RESPONSE})


class _Class(NamedTuple):
    """A model whose file has the class, and that class."""

    file: BackendFile
    model: ModelClass


@per_check
def _classes(context: CheckContext) -> Iterator[_Class]:
    for each, source in python_sources(context):
        if source.model is not None:
            yield _Class(each, source.model)


_class_rule = rules_about(_classes)


@source_rule(
    "CT142",
    Severity.ERROR,
    "a Python model defines no class TritonPythonModel",
    source=backend("python_backend", _STUB, 563, 577),
)
def no_class(each: PythonModel) -> Iterator[Problem]:
    """The server looks for a class with exactly this name, and does not load a model without this class.

    The server imports the file as a module. So a class below `if __name__ == "__main__":` or `if TYPE_CHECKING:` does
    not exist for the server.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class Model:
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    module = model_modules(each.file.context)[each.file.version]
    if not each.source.may_have_model and isinstance(module, Module):
        yield each.file.unloadable(
            "the file defines no class TritonPythonModel",
            f"module '{module.name}' has no attribute 'TritonPythonModel'",
            "define the class TritonPythonModel in this file, or import it there",
        )


@_class_rule(
    "CT143",
    Severity.ERROR,
    "a Python model has no method execute",
    source=backend("python_backend", _STUB, 697, 702),
)
def no_execute(each: _Class) -> Iterator[Problem]:
    """`TritonPythonModel` has no method `execute`, so the server returns an error for every request.

    The server loads the model, and reports it as ready.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def predict(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule assumes that the method exists if the class inherits from a class in another file, has a metaclass or
        an unknown decorator, or is passed to other code.
    """
    file, model = each
    if model.is_complete and not {"execute"} & {*model.methods, *model.values} and not model.failure:
        yield file.problem(
            f"the class TritonPythonModel in line {model.line} has no method execute; the server would load "
            f"{file.model.name!r}, and answer every request with an error: Python model {file.path} does not implement "
            "`execute` method.",
            "define execute(self, requests), which returns one response for each request",
            line=model.line,
        )


@_class_rule(
    "CT144",
    Severity.ERROR,
    "a method of a Python model does not accept the server's call",
    source=backend("python_backend", _STUB, 520, 600),
)
def wrong_signature(each: _Class) -> Iterator[Problem]:
    """The server calls `initialize`, `execute` and `auto_complete_config` with one argument each.

    `initialize` receives a dictionary, `execute` receives the requests, and `auto_complete_config` receives the
    configuration. The server calls the class itself without arguments. If `execute` does not accept the call, the
    server returns an error for every request. If another method does not accept the call, the server does not load the
    model.

    The server calls `auto_complete_config` on the class, so define it as a static method. `execute` may be a coroutine.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule skips a class whose methods other code may change. Such a class inherits from a class in another file,
        has a metaclass or an unknown decorator, or is passed to other code.
    """
    for name, count, consequence in _CALLS if not each.model.failure else ():
        method = each.model.methods.get(name)
        if method is not None and not method.takes(count) and _is_called(each.file.context, name):
            given = "with one argument" if count else "without an argument"
            static = name == "auto_complete_config"
            first = [] if static else ["cls" if name == "__new__" else "self"]
            signature = f"{name}({', '.join(first + ['argument'] * count)})"
            yield each.file.problem(
                f"the server calls {name} {given}, but the definition in line {method.line} does not accept this call; "
                f"the server {consequence}: TypeError",
                f"define {signature}{' as a @staticmethod' * static}",
                line=method.line,
            )


def _is_called(context: CheckContext, method: str) -> bool:
    return method != "auto_complete_config" or completes(context)


@_class_rule(
    "CT162",
    Severity.ERROR,
    "auto_complete_config of a Python model returns no configuration",
    source=backend("python_backend", _STUB, 544, 559),
)
def no_configuration(each: _Class) -> Iterator[Problem]:
    """`auto_complete_config` must return the object that it receives; otherwise, the server does not load the model.

    `add_input`, `add_output` and the methods whose names begin with `set_` change this object and return `None`.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            @staticmethod
            def auto_complete_config(auto_complete_model_config):
                auto_complete_model_config.set_max_batch_size(8)

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            @staticmethod
            def auto_complete_config(auto_complete_model_config):
                auto_complete_model_config.set_max_batch_size(8)
                return auto_complete_model_config

            def execute(self, requests):
                return []

    Limits:
        The rule skips a method that returns the object only in some cases, and a method of a class that other code may
        change.
    """
    method, name = each.model.methods.get("auto_complete_config"), each.file.model.name
    if method is not None and method.returns and method.takes(1) and _is_called(each.file.context, method.name):
        yield each.file.unloadable(
            f"auto_complete_config in line {method.line} returns a value of type {' or '.join(method.returns)}",
            f"auto_complete_config function in model '{name}' must return a valid pb.ModelConfig object.",
            "let auto_complete_config return its argument"
            + ", without async or yield" * bool(_SUSPENDED & set(method.returns)),
            line=method.line,
        )


@_class_rule(
    "CT177",
    Severity.ERROR,
    "execute of a Python model returns no list",
    source=backend("python_backend", _STUB, 786, 850),
)
def no_responses(each: _Class) -> Iterator[Problem]:
    """The method `execute` of a model that is not decoupled must return a list with one response for each request.

    The method `execute` of a decoupled model sends its responses itself, and must return `None`.

    If a model is not decoupled and `execute` returns `None`, releases from 24.06 on never respond to the requests,
    because the model could still send responses. Older releases return an error, even if the model sends its responses
    itself: before 24.06, `get_response_sender` works in decoupled models only. In many cases, `return responses` is
    missing at the end of the method. If the method returns any other wrong value, the server returns an error for every
    request.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    responses.append(pb_utils.InferenceResponse([]))

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    responses.append(pb_utils.InferenceResponse([]))
                return responses

    Limits:
        The rule reports a method that returns `None` only if the method creates responses, does not use
        `get_response_sender`, and does not pass its requests to other code. If the given release is older than 24.06,
        it reports every method that always returns `None`. The rule skips a model with
        `auto_complete_config`, because this method may make the model decoupled. The rule does not check the length of
        the list.
    """
    file, model = each
    method = model.methods.get("execute")
    is_open = "auto_complete_config" in model.methods
    if method is None or is_open or model.failure or not model.is_complete or not method.takes(1):
        return
    effect = _effect_of_returns(method, file)
    if effect is not None:
        fix = "return a list with one pb_utils.InferenceResponse for each request"
        fix += ", without yield" * (method.returns == ("generator",))
        if file.config.model_transaction_policy.decoupled:
            sender = "request.get_response_sender().send(...)"
            fix = f"send each response with {sender}, or remove `decoupled` from config.pbtxt"
        elif method.returns == ("NoneType",) and not method.keeps_responses:
            fix += (
                f"; if the model sends its responses itself, serve with release {_SENDS_SINCE} or newer, or, if it "
                "sends several to a request, write model_transaction_policy { decoupled: true } in config.pbtxt"
            )
        yield file.problem(
            f"execute in line {method.line} returns a value of type {' or '.join(method.returns)}, so the server would "
            f"{effect}",
            fix,
            line=method.line,
        )


def _effect_of_returns(method: Method, file: BackendFile) -> str | None:
    """The effect of the value that `execute` returns; None if the server accepts it, or if the value is not known."""
    error, first = "answer every request with an error", method.returns[0] if method.returns else ""
    if file.config.model_transaction_policy.decoupled:
        if not method.keeps_responses or not first or {"NoneType", *_SUSPENDED} & set(method.returns):
            return None
        return (
            f"{error}: Python model '{file.model.name}_0' is using the decoupled mode and the execute function must "
            "return None."
        )
    platform = file.context.platform
    if method.returns == ("NoneType",) and platform is not None and is_older(platform, _SENDS_SINCE):
        return f"{error}: Expected a list in the execute return, found type '<class 'NoneType'>'."
    if method.returns == ("NoneType",) and method.keeps_responses:
        return (
            "never answer a request (before 24.06, the server would answer with the error: Expected a list in the "
            "execute return)"
        )
    if len(method.returns) == 1 and first.startswith(_LIST_OF):
        return (
            f"{error}: Expected an 'InferenceResponse' object in the execute function return list, found type "
            f"'<class '{first.removeprefix(_LIST_OF)}'>'."
        )
    if method.returns == ("generator",):
        return f"{error}, because the server would run the generator as a coroutine"
    if first and set(method.returns) <= _NO_LISTS:
        return f"{error}: Expected a list in the execute return, found type '<class '{first}'>'."
    return None


@source_rule(
    "CT163",
    Severity.ERROR,
    "the server cannot use the class of a Python model",
    source=backend("python_backend", _STUB, 563, 600),
)
def unusable_class(each: PythonModel) -> Iterator[Problem]:
    """The server cannot create an object of `TritonPythonModel`, or cannot call one of the methods.

    The server cannot create an object if `TritonPythonModel` is not a class, or is an abstract class, a protocol or an
    enumeration. It cannot create an object either if the constructor is a coroutine or returns a value. The server
    cannot call a method if the class sets the method's name to a value that is not a function.

    The server does not load the model. If only `execute` is not a function, the server loads the model but returns an
    error for every request.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        from abc import ABC, abstractmethod

        class TritonPythonModel(ABC):
            @abstractmethod
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule reads only the file itself, and skips the same classes as CT144.
    """
    file, source = each
    model = source.model
    if source.instead:
        said = f"'{source.instead}' object is not callable"
        found = f"has the type {source.instead} and is not a class"
        yield _unusable(file, "TritonPythonModel", found, _NO_LOAD, said, "define TritonPythonModel as a class")
    elif model is not None and model.failure:
        found = "cannot be called without arguments"
        fix = "define a class TritonPythonModel that Python can call without arguments"
        yield _unusable(file, "the class", found, _NO_LOAD, model.failure, fix, model.line)
    elif model is not None:
        constructor = model.methods.get("__init__")
        wrong = [kind for kind in constructor.returns if kind != "NoneType"] if constructor is not None else []
        if constructor is not None and wrong and constructor.returns == tuple(wrong):
            said = f"__init__() should return None, not '{wrong[0]}'"
            fix = "define __init__ without a return value, async or yield"
            yield _unusable(file, "__init__", f"returns a {wrong[0]}", _NO_LOAD, said, fix, constructor.line)
        for name, _, consequence in _CALLS:
            value = model.values.get(name)
            if value is not None and _is_called(file.context, name):
                said = f"'{value.kind}' object is not callable"
                found = f"has the type {value.kind} and is not a function"
                fix = f"define {name} as a method of the class"
                yield _unusable(file, name, found, consequence, said, fix, value.line)


def _unusable(
    each: BackendFile, subject: str, found: str, consequence: str, said: str, fix: str, line: int | None = None
) -> Problem:
    where = "" if line is None else f" in line {line}"
    return each.problem(f"{subject}{where} {found}, so the server {consequence}: TypeError: {said}", fix, line=line)
