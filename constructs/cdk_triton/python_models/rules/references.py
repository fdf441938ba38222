"""CT183, CT185 and CT186: whether the files, attributes and parameters are there that a Python model names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, below, repository_files
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import needed_sources, python_sources
from cdk_triton.triton.findings import Severity


@rule(
    "CT183",
    Severity.WARNING,
    "a Python model opens a file of the repository by a relative path",
    source=backend("python_backend", "src/stub_launcher.cc", 450, 462),
)
def relative_path(context: CheckContext) -> Iterator[Problem]:
    """A Python model opens a file as if the model's directory were the working directory.

    The process of a Python model runs in the server's working directory, which contains no model. So the line fails
    with `FileNotFoundError`. Make the path relative to the source file with `Path(__file__).parent`.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/vocabulary.txt
        cat dog
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                with open("vocabulary.txt") as file:
                    self.words = file.read().split()

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        from pathlib import Path

        class TritonPythonModel:
            def initialize(self, args):
                with open(Path(__file__).parent / "vocabulary.txt") as file:
                    self.words = file.read().split()

            def execute(self, requests):
                return []

    Limits:
        The rule checks only literal paths in a call of `open` or of a method of `Path`, and only if the file is in the
        repository. The rule skips a model that changes the working directory.
    """
    files = repository_files(context)
    for each, sources in needed_sources(context):
        if any(source.references.changes_directory for source in sources.values()):
            continue
        for path, source in sources.items():
            for opened in source.references.files:
                found = next((place for place in _places(each, path, opened.name) if files.has(place)), None)
                if found is not None:
                    yield in_line(
                        path,
                        opened.line,
                        f"opens the relative path {opened.name!r}, which Python looks up in the server's working "
                        f"directory, so {each.model.name!r} does not find {found}: FileNotFoundError",
                        "make the path relative to the source file: Path(__file__).parent",
                    )


def _places(each: BackendFile, source: PurePosixPath, name: str) -> Iterator[PurePosixPath]:
    """The places that the author may have meant by a relative path."""
    for directory in (source.parent, each.version, each.model.directory, PurePosixPath()):
        yield below(directory, name)


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
