"""CT168: the method with which a Python model reports whether it is ready."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.modules import PythonModel, source_rule
from cdk_triton.python_models.reader.model_class import ModelClass
from cdk_triton.triton.findings import Severity

_ASKED_SINCE = "26.03"  # python_backend 65529b0, on the branch r26.03
_PING_SINCE = "26.04"  # core 53fc26e, on the branch r26.04: readiness of the server asks the models


@source_rule(
    "CT168",
    Severity.WARNING,
    "a Python model would never be ready",
    source=backend("python_backend", "src/pb_stub.cc", 1584, 1660),
    applies=lambda platform: is_at_least(platform, _ASKED_SINCE),
)
def never_ready(each: PythonModel) -> Iterator[Problem]:
    """From 26.03 on, the server calls `is_ready` without arguments, and the method must return `True` or `False`.

    If the method raises an exception or returns any other value, the server reports the model as not ready. From 26.04
    on, `/ping` then fails unless `ping_mode` is `live`. SageMaker does not put a container into service if its `/ping`
    fails.

    Example:
        $ cdk-triton validate . --platform 26.04/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def is_ready(self, timeout):
                return True

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def is_ready(self):
                return True

            def execute(self, requests):
                return []

    Limits:
        The rule skips a coroutine, a method whose result cannot be read from the source, and a method of a class that
        other code may change.
    """
    file, model = each.file, each.source.model
    found = _fault(model) if model is not None and not model.failure else None
    if found is None:
        return
    line, what, said = found
    effect = f" at /v2/models/{file.model.name}/ready"
    if file.context.platform is not None and is_at_least(file.context.platform, _PING_SINCE):
        effect = ", and /ping would fail unless ping_mode is 'live'"
    yield file.problem(
        f"is_ready in line {line} {what}, so the server would never report {file.model.name!r} as ready{effect}: "
        f"{said}",
        "let is_ready(self) return True or False, or rename the method if the server should not call it",
        line=line,
    )


def _fault(model: ModelClass) -> tuple[int, str, str] | None:
    """The place where each call of `is_ready` fails, how it fails, and the server's message."""
    method, value = model.methods.get("is_ready"), model.values.get("is_ready")
    if value is not None:
        return value.line, f"has the type {value.kind} and is not a function", f"'{value.kind}' object is not callable"
    if method is None:
        return None
    if not method.takes(0):
        return method.line, "needs an argument, but the server calls it without an argument", "TypeError"
    if method.returns and not {"bool", "coroutine"} & set(method.returns):
        returned = " or ".join(method.returns)
        return method.line, f"returns a value of type {returned}", "is_ready() must return a boolean value"
    return None
