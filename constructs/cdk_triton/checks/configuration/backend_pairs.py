"""CT283 to CT285: whether the platform and the backend of a model belong together."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import (
    PLATFORMS,
    ConfiguredModel,
    completed_pair,
    configured,
    configured_or_not,
    is_wrong_pair,
    model_rule,
)
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.findings import Severity

_UTILS = "src/model_config_utils.cc"
_KNOWN_PLATFORMS = ("ensemble", "onnxruntime_onnx", "pytorch_libtorch", "tensorrt_plan")


@rule("CT283", Severity.ERROR, "the platform of a model is unknown", source=core(_UTILS, 1442, 1451))
def unknown_platform(context: CheckContext) -> Iterator[Problem]:
    """The server cannot derive the backend from `platform` or the file name, so the server does not load the model.

    Write `backend`. The valid values of `platform` are `tensorrt_plan`, `onnxruntime_onnx`, `pytorch_libtorch`,
    `torch_aoti` (from 26.03), `tensorflow_savedmodel` and `tensorflow_graphdef` (to 25.02), and `ensemble`. `libtorch`
    is not a valid value. From 26.04 on, CT284 reports it, because the server then recognises it as a platform of
    PyTorch, but still rejects it. A `default_model_filename` identifies the backend only if the name is the backend's
    default, such as `model.onnx`.

    Example:
        # model/config.pbtxt
        platform: "python"

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    suggestions = Suggestions()
    for each in configured(context):
        platform, backend = completed_pair(context, each.model)
        name = each.config.default_model_filename
        if backend or platform == "ensemble" or not (platform or name):
            continue  # the last: nothing tells the backend, which CT105 reports
        if each.config.HasField("ensemble_scheduling"):
            continue  # meant as an ensemble: reported by CT311
        found = f"the platform {platform!r} does not belong to a backend"
        if not platform:
            found = f"the configuration does not name a backend, and the file name {name!r} does not identify one"
        meant = suggestions.closest(platform, _KNOWN_PLATFORMS, other_than=platform) if platform else None
        yield each.unloadable(
            "platform" if platform else "backend",
            found,
            f"unexpected platform type '{platform}' for {each.said_name}",
            'name the backend, for example backend: "python"'
            if meant is None
            else f'did you mean platform: "{meant}"?',
        )


@rule(
    "CT284", Severity.ERROR, "platform and backend of a model do not belong together", source=core(_UTILS, 1466, 1477)
)
def platform_of_another_backend(context: CheckContext) -> Iterator[Problem]:
    """`platform` has a value that does not belong to the model's backend, so the server does not load the model.

    The TensorRT, ONNX Runtime, PyTorch and TensorFlow backends have their own platforms. Write only `backend`. The
    server then completes the platform from the backend, or from the name of the model's file. If the server takes the
    backend from the model's own name, such as `text.pytorch`, it does not complete the platform, and does not load the
    model. Other backends accept every platform, and ignore it.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        platform: "onnx"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
    """
    for each in configured_or_not(context):
        platform, backend = completed_pair(context, each.model)
        if not is_wrong_pair(platform, backend, context.platform):
            continue
        found = f"the platform is {repr(platform) if platform else 'empty'}, but the backend is {backend!r}"
        fix = f"write platform: {PLATFORMS[backend]}" + ("" if backend == "tensorflow" else ", or remove `platform`")
        if each.name.partition(".")[2] == backend and not platform:
            found = f"the model's name implies the backend {backend!r}, but the platform is empty"
            fix = f'write backend: "{backend}"' if backend != "tensorflow" else fix
        words = f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}"
        yield each.unloadable("platform", found, words, fix)


@model_rule("CT285", Severity.ERROR, "an ensemble has a backend", source=core(_UTILS, 1453, 1460))
def ensemble_with_backend(each: ConfiguredModel) -> Iterator[Problem]:
    """An ensemble has a `backend`, so the server does not load the ensemble.

    The server itself runs ensembles, without a backend. A `default_model_filename` such as `model.py` also gives the
    ensemble a backend, because the server derives the backend from this name.

    Example:
        # first/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        # whole/config.pbtxt
        platform: "ensemble"
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "first"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "y" }
          }
        }

    Instead:
        # whole/config.pbtxt
        platform: "ensemble"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "first"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "y" }
          }
        }
    """
    platform, backend = completed_pair(each.context, each.model)
    if platform == "ensemble" and backend:
        field = "backend" if each.config.backend else "default_model_filename"
        origin = "" if each.config.backend else " (from default_model_filename)"
        yield each.problem(
            field,
            f"the ensemble has the backend {backend!r}{origin}, so the server would not load it: Ensemble model "
            f"'{each.said_name}' must have platform type 'ensemble' and empty backend type",
            "remove `backend`" if each.config.backend else "remove default_model_filename",
        )
