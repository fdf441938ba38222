"""CT185 and CT186: whether the attributes and parameters are there that a Python model names."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import needed_sources, python_sources
from cdk_triton.triton.findings import Severity


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

    `Tensor` takes two arguments by position: a name and a numpy array. It accepts neither a list nor another tensor, so
    take the array of a tensor with `as_numpy()`.

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
    """
    for each, sources in needed_sources(context):
        for path, source in sources.items():
            for misused, said in source.references.misused:
                is_tensor = misused.name.startswith("Tensor(")
                yield in_line(
                    path,
                    misused.line,
                    f"uses `{misused.name}`, which python_backend does not support, so {each.model.name!r} fails in "
                    f"this line: {said}",
                    "pass a name and a numpy array, such as Tensor(name, tensor.as_numpy())"
                    if is_tensor
                    else "use the names that python_backend's README lists",
                )
