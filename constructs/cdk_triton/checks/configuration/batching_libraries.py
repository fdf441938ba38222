"""CT240 and CT241: the library with a batching strategy that a model names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

_LIBRARY_PATH = "TRITON_BATCH_STRATEGY_PATH"
_UNPACKED = "/opt/ml/model"
_INSIDE_SINCE = "26.06"  # core dcb315d, on the branch r26.06: IsChildPathEscapingParentPath


@model_rule(
    "CT240",
    Severity.ERROR,
    "a batching library is set for a model of sequences",
    source=core("src/backend_model.cc", 185, 193),
)
def library_with_sequences(each: ConfiguredModel) -> Iterator[Problem]:
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
    config = each.config
    if config.HasField("sequence_batching") and _LIBRARY_PATH in config.parameters and not each.model.is_ensemble:
        yield each.unloadable(
            f'parameters["{_LIBRARY_PATH}"]',
            f"{_LIBRARY_PATH} is set together with sequence_batching",
            f"{_LIBRARY_PATH} cannot be specified with sequence batcher, using default batching strategy",
            "remove the parameter",
        )


@model_rule("CT241", Severity.ERROR, "a batching library is missing", source=core("src/backend_model.cc", 194, 213))
def library_missing(each: ConfiguredModel) -> Iterator[Problem]:
    """`TRITON_BATCH_STRATEGY_PATH` names a file that the server does not find, so the server does not load the model.

    A single-model container unpacks the archive in `/opt/ml/model`, so write an absolute path below this directory. On
    a multi-model endpoint, SageMaker chooses the directory, so you cannot know this path in advance. On both kinds of
    endpoint, the server finds a library `batchstrategy.so` in the model's directory without the parameter. From 26.06
    on (core dcb315d), the library must be in the directory of its model.

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
    config = each.config
    if _LIBRARY_PATH not in config.parameters or config.HasField("sequence_batching") or each.model.is_ensemble:
        return  # an ensemble has no batcher, and looks for none
    path = config.parameters[_LIBRARY_PATH].string_value
    if words := _words(each, path):
        yield each.unloadable(
            f'parameters["{_LIBRARY_PATH}"]',
            f"{_LIBRARY_PATH} is {path!r}",
            words,
            f"put batchstrategy.so into the directory {each.model.directory}, where the server finds the library, and "
            "remove the parameter",
        )


def _words(each: ConfiguredModel, path: str) -> str:
    """The server's message about a library's path; "" if it accepts the path, or if that is not known."""
    context, unpacked = each.context, PurePosixPath(_UNPACKED)
    plain = PurePosixPath(normpath(path))
    is_outside = plain.is_absolute() and not plain.is_relative_to(unpacked / each.model.directory)
    if context.mode == "multi":  # SageMaker names the directory of an archive
        is_outside = plain.is_absolute() and not plain.is_relative_to("/opt/ml")
    if is_outside and context.platform is not None and is_at_least(context.platform, _INSIDE_SINCE):
        return "Batching library path escapes model repository."
    if path.startswith("/") and not path.startswith("/opt/ml/"):
        return ""
    if context.mode == "single" and any(plain == unpacked / file.path for file in context.repository.files):
        return ""
    return f"Batching library path not found: {path}"
