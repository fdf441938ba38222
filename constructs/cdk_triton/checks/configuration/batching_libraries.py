"""CT240 and CT241: the library with a batching strategy that a model names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_LIBRARY_PATH = "TRITON_BATCH_STRATEGY_PATH"
_UNPACKED = "/opt/ml/model"
_INSIDE_SINCE = "26.06"  # core dcb315d, on the branch r26.06: IsChildPathEscapingParentPath


@rule(
    "CT240",
    Severity.ERROR,
    "a batching library is set for a model of sequences",
    source=core("src/backend_model.cc", 185, 193),
)
def library_with_sequences(context: CheckContext) -> Iterator[Problem]:
    """A model has both `TRITON_BATCH_STRATEGY_PATH` and `sequence_batching`, so the server does not load the model.

    A custom batching strategy works only with the dynamic batcher.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
        parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/batch.so" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
    """
    for model, config in configured(context):
        if config.HasField("sequence_batching") and _LIBRARY_PATH in config.parameters and not model.is_ensemble:
            yield Problem(
                model.config_path,
                f"{_LIBRARY_PATH} is set together with sequence_batching, so the server would not load "
                f"{model.name!r}: {_LIBRARY_PATH} cannot be specified with sequence batcher, using default batching "
                "strategy",
                "remove the parameter",
                f'parameters["{_LIBRARY_PATH}"]',
            )


@rule("CT241", Severity.ERROR, "a batching library is missing", source=core("src/backend_model.cc", 194, 213))
def library_missing(context: CheckContext) -> Iterator[Problem]:
    """`TRITON_BATCH_STRATEGY_PATH` names a file that the server does not find, so the server does not load the model.

    A single-model container unpacks the archive in `/opt/ml/model`, so write an absolute path below this directory. On
    a multi-model endpoint SageMaker chooses the directory, so you cannot write this path in advance. On both kinds of
    endpoint, the server finds a library `batchstrategy.so` in the model's directory without the parameter. From 26.06
    on (core dcb315d) the library must be in the directory of its model.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { }
        parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "model/1/batch.so" } }
        # model/1/batch.so
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { }
        parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/1/batch.so" } }

    Limits:
        Before 26.06, or if no release is given, the rule accepts a path outside `/opt/ml`, because your own image may
        have a library there.
    """
    for model, config in configured(context):
        if _LIBRARY_PATH not in config.parameters or config.HasField("sequence_batching") or model.is_ensemble:
            continue  # an ensemble has no batcher, and looks for none
        path = config.parameters[_LIBRARY_PATH].string_value
        said = _refusal(context, model, path)
        if said:
            yield Problem(
                model.config_path,
                f"{_LIBRARY_PATH} is {path!r}, so the server would not load {model.name!r}: {said}",
                f"put batchstrategy.so into the directory {model.directory}, where the server finds the library, and "
                "remove the parameter",
                f'parameters["{_LIBRARY_PATH}"]',
            )


def _refusal(context: CheckContext, model: Model, path: str) -> str:
    """The server's message about a library's path; "" if it accepts the path, or if that is not known."""
    unpacked = PurePosixPath(_UNPACKED)
    plain = PurePosixPath(normpath(path))
    is_outside = plain.is_absolute() and not plain.is_relative_to(unpacked / model.directory)
    if context.mode == "multi":  # SageMaker names the directory of an archive
        is_outside = plain.is_absolute() and not plain.is_relative_to("/opt/ml")
    if is_outside and context.platform is not None and is_at_least(context.platform, _INSIDE_SINCE):
        return "Batching library path escapes model repository."
    if path.startswith("/") and not path.startswith("/opt/ml/"):
        return ""
    if context.mode == "single" and any(plain == unpacked / file.path for file in context.repository.files):
        return ""
    return f"Batching library path not found: {path}"
