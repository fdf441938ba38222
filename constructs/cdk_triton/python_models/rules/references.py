"""CT185 and CT186: whether the attributes and parameters are there that a Python model names."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import needed_sources, python_sources
from cdk_triton.python_models.reader.backend_utils import READ_THROUGH, request_methods
from cdk_triton.python_models.reader.names import Reference
from cdk_triton.python_models.reader.signatures import OF_TENSOR
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import is_at_least


@rule(
    "CT185",
    Severity.WARNING,
    "a Python model reads an attribute of its own that nothing sets",
    source=backend("python_backend", "src/pb_stub.cc", 786, 850),
)
def unset_attribute(context: CheckContext) -> Iterator[Problem]:
    """A method reads an attribute of `self` that the class never sets, and no method has the attribute's name.

    If `initialize` reads the attribute, the server does not load the model. Otherwise, the server loads the model, and
    a request fails when this line runs. Correct the name, or set the attribute in `initialize`.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                self.version = args["model_version"]

            def execute(self, requests):
                print(self.verison)
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                self.version = args["model_version"]

            def execute(self, requests):
                print(self.version)
                return []

    Limits:
        The rule checks a class only if all its bases are in the same file, and no method passes `self` to a function.
        The rule skips a file that handles `AttributeError`.
    """
    suggestions = Suggestions()
    for each, source in python_sources(context):
        if source.model is None:
            continue
        names = sorted(source.attributes.union(source.model.methods))
        for unset in source.model.unset:
            close = suggestions.closest(unset.name, names)
            yield in_line(
                each.path,
                unset.line,
                f"reads self.{unset.name}, which the class never sets, so {each.model.name!r} fails in this line: "
                f"AttributeError: 'TritonPythonModel' object has no attribute '{unset.name}'",
                f"did you mean {close!r}?"
                if close is not None
                else f"set self.{unset.name} in initialize, or define the method {unset.name}",
            )


@rule(
    "CT186",
    Severity.WARNING,
    "a Python model uses the server's classes in a way that they do not support",
    source=backend("python_backend", "src/resources/triton_python_backend_utils.py", 375, 590),
)
def unknown_parameter(context: CheckContext) -> Iterator[Problem]:
    """A call passes a parameter that `InferenceResponse`, `InferenceRequest` or `Tensor` does not have.

    The call fails. The rule also reports methods that the argument of `auto_complete_config` does not have, and
    properties that `add_input` and `add_output` reject.

    The rule also reports a method that the requests of `execute` do not have, at least not in the given release. For
    example, only a tensor has `as_numpy`, and a request has `is_cancelled` from 23.10 on. The parameters of requests
    and responses depend on the release too: `exec(decoupled=True)` came with 23.03.

    `InferenceRequest` requires `inputs`, `requested_output_names` and `model_name`.

    `Tensor` takes two arguments by position: a name and a numpy array. It accepts neither a list nor another tensor, so
    take the array of a tensor with `as_numpy()`.

    The rule also reports other uses that Python or python_backend certainly rejects:

    * an argument of a wrong type, such as a name in place of a list of names, a numpy array in place of a `Tensor`, or
      a message in place of a `TritonError`;
    * `raise` with a `TritonError`, which is not an exception: raise a `TritonModelException`;
    * a method that the response of another model does not have, such as `as_numpy`;
    * `async_exec` in an `execute` that is not a coroutine, `await` with `exec`, and `asyncio.run` in a coroutine.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [pb_utils.InferenceResponse(outputs=[]) for request in requests]

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [pb_utils.InferenceResponse(output_tensors=[]) for request in requests]

    Limits:
        The rule knows a value that is written in the call, or in a variable that the function sets once. It checks the
        methods only of the requests that a loop in `execute` takes from its parameter, or an index such as
        `requests[0]`. It skips their methods below a condition or in a `try`, and those that only a release after 26.07
        may have.
    """
    suggestions = Suggestions()
    for each, sources in needed_sources(context):
        for path, source in sources.items():
            for read in source.references.of_requests:
                if (fault := _fault_of_request(read, context.release, suggestions)) is not None:
                    found, fix = fault
                    yield in_line(
                        path,
                        read.line,
                        f"uses `{read.name}` of a request, which {found}, so {each.model.name!r} fails in this line: "
                        f"AttributeError: 'c_python_backend_utils.InferenceRequest' object has no attribute "
                        f"'{read.name}'",
                        fix,
                    )
            for misuse in source.references.misused:
                since = misuse.since
                if since and (context.release is None or is_at_least(context.release, since)):
                    continue
                support = f"has from {since} on" if since else "does not support"
                yield in_line(
                    path,
                    misuse.use.line,
                    f"uses `{misuse.use.name}`{misuse.where}, which python_backend {support}, so "
                    f"{each.model.name!r} fails in this line: {misuse.said}",
                    misuse.fix,
                )


def _fault_of_request(read: Reference, release: str | None, suggestions: Suggestions) -> tuple[str, str] | None:
    """What is wrong with a method of a request, and the fix; None if the request has it, or may have it."""
    methods = request_methods()
    since = methods.get(read.name)
    if since is not None:
        if release is None or is_at_least(release, since):
            return None
        return f"python_backend has from {since} on", f"serve with release {since} or newer, or remove this call"
    if read.name.startswith("__") or (release is not None and not is_at_least(READ_THROUGH, release)):
        return None
    if read.name in OF_TENSOR:
        return (
            "only a tensor has",
            "take a tensor first, such as pb_utils.get_input_tensor_by_name(request, name).as_numpy()",
        )
    close = suggestions.closest(read.name, sorted(methods))
    fix = f"use a method of InferenceRequest: {listed(sorted(methods), shown=20)}"
    return "python_backend does not have", fix if close is None else f"did you mean {close!r}?"
