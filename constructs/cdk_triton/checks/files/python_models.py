"""CT140 to CT146: whether the Python backend can run a model's source. It is parsed, never executed."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files
from cdk_triton.checks.derived.releases import is_at_least, known_release
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.contents import Unreadable
from cdk_triton.triton.contents.python_source import PythonSource, SyntaxFault, python_source
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import releases
from cdk_triton.triton.repository import Model

_STUB = "src/pb_stub.cc"

# How the server calls the methods: their names, how many arguments it gives, and what a call of another kind would do.
_CALLS = (
    ("__init__", 0, "would not load it"),
    ("auto_complete_config", 1, "would not load it"),
    ("initialize", 1, "would not load it"),
    ("execute", 1, "would answer every request with an error"),
)


def python_models(context: CheckContext) -> Iterator[tuple[BackendFile, PythonSource | SyntaxFault | Unreadable]]:
    """The source of every Python model that the server would load, read for the Python of the release."""
    release = known_release(context.platform) or releases()[-1]
    major, _, minor = release.python.partition(".")
    read = python_source((int(major), int(minor)))
    for each in backend_files(context):
        if each.backend == "python" and each.file is not None and each.path.suffix == ".py":
            yield each, context.contents(read, each.file)


@rule(
    "CT140",
    Severity.ERROR,
    "a Python model has a syntax error",
    source=backend("python_backend", _STUB, 500, 525),
)
def syntax_error(context: CheckContext) -> Iterator[Problem]:
    """The file of a Python model is not valid Python.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests)
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        Where the Python that runs these checks is older than the container's, syntax that only the newer one knows is
        not judged.
    """
    for each, source in python_models(context):
        if isinstance(source, SyntaxFault) and source.in_every_version:
            yield Problem(
                each.path,
                f"line {source.line} is not valid Python ({source.reason}), and the server would not load "
                f"{each.model.name!r}: SyntaxError",
                "correct the line",
                line=source.line,
            )


@rule(
    "CT141",
    Severity.ERROR,
    "a Python model uses syntax that the container's Python does not know",
    source="https://github.com/triton-inference-server/python_backend#building-custom-python-backend-stub",
    applies=lambda platform: known_release(platform) is not None,
)
def newer_syntax(context: CheckContext) -> Iterator[Problem]:
    """Python models run with the Python of the image: 3.8 through 23.04, 3.10 from 23.05 on, 3.12 from 24.11 on.

    Example:
        $ cdk-triton validate . --platform 23.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                match len(requests):
                    case 0:
                        return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                if not requests:
                    return []

    Limits:
        The parser knows which statements are newer, but not every detail of them: nested quotes in f-strings (3.12)
        pass for 3.10.
    """
    release = known_release(context.platform)
    if release is None or "python" in release.assumed:
        return
    for each, source in python_models(context):
        if isinstance(source, SyntaxFault) and not source.in_every_version:
            yield Problem(
                each.path,
                f"line {source.line} is too new for Python {release.python}, which {release.release} has "
                f"({source.reason}), and the server would not load {each.model.name!r}: SyntaxError",
                "write it in an older way, or serve with a newer release",
                line=source.line,
            )


@rule(
    "CT142",
    Severity.ERROR,
    "a Python model defines no class TritonPythonModel",
    source=backend("python_backend", _STUB, 563, 577),
)
def no_class(context: CheckContext) -> Iterator[Problem]:
    """The server looks for a class of exactly this name.

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
    for each, source in python_models(context):
        if isinstance(source, PythonSource) and not source.may_have_model:
            yield Problem(
                each.path,
                f"the file defines no class TritonPythonModel, and the server would not load {each.model.name!r}: "
                f"module '{each.version.name}.{each.path.stem}' has no attribute 'TritonPythonModel'",
                "define the class TritonPythonModel in this file, or import it there",
            )


@rule(
    "CT143",
    Severity.ERROR,
    "a Python model has no method execute",
    source=backend("python_backend", _STUB, 697, 702),
)
def no_execute(context: CheckContext) -> Iterator[Problem]:
    """The server loads such a model, reports it as ready, and answers every request with an error.

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
        A class that inherits from another one is taken to have the method.
    """
    for each, source in python_models(context):
        model = source.model if isinstance(source, PythonSource) else None
        if model is not None and model.is_complete and "execute" not in model.methods:
            yield Problem(
                each.path,
                f"the class TritonPythonModel in line {model.line} has no method execute; the server would load it, "
                f"and answer every request with an error: Python model {each.path} does not implement `execute` "
                "method.",
                "define execute(self, requests), which returns one response for each request",
                line=model.line,
            )


@rule(
    "CT144",
    Severity.ERROR,
    "a method of a Python model does not take what the server gives",
    source=backend("python_backend", _STUB, 520, 600),
)
def wrong_signature(context: CheckContext) -> Iterator[Problem]:
    """The server calls `initialize` with the arguments, `execute` with the requests, and gives nothing else.

    `auto_complete_config` is called on the class, so that it has to be a static method. `execute` may be a coroutine.

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
    """
    for each, source in python_models(context):
        model = source.model if isinstance(source, PythonSource) else None
        for name, count, consequence in _CALLS:
            method = model.methods.get(name) if model is not None else None
            if method is not None and not method.takes(count):
                given = "one argument" if count else "no argument"
                static = name == "auto_complete_config"
                signature = f"{name}({', '.join(['self'] * (not static) + ['argument'] * count)})"
                yield Problem(
                    each.path,
                    f"{name} in line {method.line} cannot be called with {given}, as the server does, which "
                    f"{consequence}: TypeError",
                    f"define it as {'@staticmethod ' * static}{signature}",
                    line=method.line,
                )


@rule(
    "CT145",
    Severity.ERROR,
    "a Python model's name has a character that breaks its process",
    source=backend("python_backend", "src/stub_launcher.cc", 357, 372),
)
def unsafe_name(context: CheckContext) -> Iterator[Problem]:
    """The server starts a process for each Python model and puts the name into the command.

    Through 25.07 a shell reads the command, and a space or a parenthesis breaks it: the server then waits for the
    process for ever. From 25.08 on, characters that mean something to a shell are refused.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # text/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }
        ensemble_scheduling { step {
          model_name: "model[0]" model_version: -1
          input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "IDS" }
        } }
        # model[0]/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }

    Instead:
        # text/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }
        ensemble_scheduling { step {
          model_name: "model_0" model_version: -1
          input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "IDS" }
        } }
        # model[0]/config.pbtxt is removed
        # model_0/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "IDS" data_type: TYPE_INT32 dims: -1 }

    Limits:
        A name that the start script cannot take either is CT405's.
    """
    characters = _unsafe(context.platform)
    for model in context.loaded_models:
        wrong = next((character for character in model.name if character in characters), None)
        if model.backend_name != "python" or wrong is None or _is_other_rules(context, model):
            continue
        yield Problem(
            model.directory,
            f"the name {model.name!r} has the character {wrong!r}, which a shell takes for its own; from 25.08 on the "
            f"server would not load it: Invalid stub name: contains invalid characters; before, it would wait for ever",
            "rename the model with letters, digits, '_', '.' and '-'",
        )


def _is_other_rules(context: CheckContext, model: Model) -> bool:
    """Whether CT405 reports the name, or the server of 25.08 and newer knows the model by another one."""
    named = model is context.entry or model.name in context.additional_models
    if context.mode == "single":
        return named and (model.name == "*" or any(character in " \t\n" for character in model.name))
    return context.is_renamed(model) and (context.platform is None or is_at_least(context.platform, "25.08"))


def _unsafe(platform: ServingPlatform | None) -> str:
    refused_now, broken_before = ";|&$`<>()[]{}\\\"'*?~#!", ";|&$`<>()\\\"' \t"
    if platform is None or platform.release is None:
        return "".join(character for character in refused_now if character in broken_before)
    return refused_now if is_at_least(platform, "25.08") else broken_before


@rule(
    "CT146",
    Severity.ERROR,
    "a Python model's file cannot be imported under its name",
    source=backend("python_backend", _STUB, 2044, 2072),
)
def unimportable_file(context: CheckContext) -> Iterator[Problem]:
    """The server imports the file as a module: its name ends in `.py` and has no other dot.

    Example:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model.v2.py"
        # model/1/model.v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "model_v2.py"
        # model/1/model_v2.py
        class TritonPythonModel:
            def execute(self, requests):
                return []
    """
    for each in backend_files(context):
        name = each.path.name
        if each.backend != "python" or not each.is_there:
            continue
        if not name.endswith(".py"):
            said = f"Model name must end with '.py'. Model name is \"{name}\"."
        elif "." in each.path.stem:
            said = f"No module named '{each.version.name}.{each.path.stem.partition('.')[0]}'"
        elif each.version not in each.path.parents:
            said = "No module named"
        else:
            continue
        yield Problem(
            each.model.config_path,
            f"the file {each.path} cannot be imported as a module, and the server would not load {each.model.name!r}: "
            f"{said}",
            "give it a name with one dot, before py, in the version's directory",
            "default_model_filename",
        )
