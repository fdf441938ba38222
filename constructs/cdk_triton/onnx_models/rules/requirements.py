"""CT125, CT126, CT137 and CT139: what an ONNX file needs beside its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import is_pointer, repository_files
from cdk_triton.checks.derived.releases import is_at_least, known_release
from cdk_triton.checks.registry import Problem, rule, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.onnx_models.reader.file import ExternalData
from cdk_triton.onnx_models.reader.runtime import onnx_support
from cdk_triton.onnx_models.rules.models import OnnxModelFile, onnx_models, onnx_rule
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity

_EXTERNAL_DATA = "https://onnx.ai/onnx/repo-docs/ExternalData.html"

# ONNX Runtime 1.24 rejects it, and 1.23 does not: both were tried.
_STRICT_SINCE = "26.02"


def _is_strict(platform: ServingPlatform) -> bool:
    return is_at_least(platform, _STRICT_SINCE)


def _located(each: OnnxModelFile) -> Iterator[tuple[ExternalData, PurePosixPath, bool]]:
    """Each file with weights: the entry that reaches furthest into it, its path, and whether it is outside."""
    furthest: dict[str, ExternalData] = {}
    for external in each.onnx.external_data:
        known = furthest.get(external.location)
        if known is None or known.end < external.end:
            furthest[external.location] = external
    for location, external in furthest.items():
        path = PurePosixPath(normpath(each.file.path.parent / location))
        outside = location.startswith("/") or not path.is_relative_to(each.file.path.parent)
        yield external, path, outside


@onnx_rule(
    "CT125",
    Severity.ERROR,
    "an ONNX file has its weights outside its directory",
    source=_EXTERNAL_DATA,
    applies=_is_strict,
)
def weights_outside(each: OnnxModelFile) -> Iterator[Problem]:
    """From 26.02 on (ONNX Runtime 1.24), the weights must be in the directory of the ONNX file, or below it.

    Otherwise, the server does not load the model. Save the model with its weights beside the ONNX file
    (`onnx.save_model` with `location`).

    Example:
        $ cdk-triton validate . --platform 26.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/weights.bin
        0123456789abcdef
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[4] OUT)
        <float[4] W = ["location": "../weights.bin"]>
        { OUT = Add(IN, W) }

    Instead:
        # model/1/weights.bin
        0123456789abcdef
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[4] OUT)
        <float[4] W = ["location": "weights.bin"]>
        { OUT = Add(IN, W) }
    """
    for external, _, outside in _located(each):
        if outside:
            yield each.unloadable(
                f"the weights are in {external.location!r}, outside the directory of the file",
                f"External data path validation failed for initializer: {external.tensor}",
                "save the model with its weights beside it (onnx.save_model with location)",
            )


@rule("CT126", Severity.WARNING, "newer releases reject the place of an ONNX file's weights", source=_EXTERNAL_DATA)
def weights_outside_for_now(context: CheckContext) -> Iterator[Problem]:
    """Releases from 26.02 on do not accept weights outside the directory of the ONNX file.

    Releases before 26.02 load the model. Newer releases contain ONNX Runtime 1.24 or newer, and do not load it. Save
    the model with its weights beside the ONNX file (`onnx.save_model` with `location`).

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/weights.bin
        0123456789abcdef
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[4] OUT)
        <float[4] W = ["location": "../weights.bin"]>
        { OUT = Add(IN, W) }

    Instead:
        # model/1/weights.bin
        0123456789abcdef
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[4] OUT)
        <float[4] W = ["location": "weights.bin"]>
        { OUT = Add(IN, W) }
    """
    if context.platform is not None and _is_strict(context.platform):
        return  # CT125
    for each in onnx_models(context):
        for external, path, outside in _located(each):
            if outside and (external.location.startswith("/") or _size(context, path) is not None):
                yield Problem(
                    each.file.path,
                    f"the weights are in {external.location!r}, outside the directory of the file; releases from "
                    f"{_STRICT_SINCE} on would not load {each.name!r}: External data path validation failed for "
                    f"initializer: {external.tensor}",
                    "save the model with its weights beside it (onnx.save_model with location)",
                )


@rule("CT139", Severity.ERROR, "weights of an ONNX file are missing", source=_EXTERNAL_DATA)
def missing_weights(context: CheckContext) -> Iterator[Problem]:
    """A large model keeps its weights in separate files, and one of these files is missing or too short.

    The server does not load the model. Copy these files together with the ONNX file.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[4] OUT)
        <float[4] W = ["location": "model.onnx_data"]>
        { OUT = Add(IN, W) }

    Instead:
        # model/1/model.onnx_data
        0123456789abcdef
    """
    for each in onnx_models(context):
        for external, path, outside in _located(each):
            if outside and (external.location.startswith("/") or (context.platform and _is_strict(context.platform))):
                continue  # CT125 and CT126
            size = _size(context, path)
            if size is None or (size >= 0 and size < external.end):
                state = "which is missing" if size is None else f"which has {size} bytes of at least {external.end}"
                found = f"{each.file.path} has weights in {external.location!r}, {state}"
                words = f"the tensor {external.tensor!r} cannot be read"
                fix = "copy this file from the directory into which the model was exported"
                yield Problem(path, would_not_load(each.owner.model, found, words), fix)


def _size(context: CheckContext, path: PurePosixPath) -> int | None:
    """The size of a file anywhere in the repository; -1 if it is not known yet, None if there is no such file."""
    files = repository_files(context)
    file = files.file(path)
    if files.has(path) and (file is None or is_pointer(context, file)):
        return -1  # a pointer is reported by CT127
    return None if file is None else file.size


@rule(
    "CT137",
    Severity.ERROR,
    "an ONNX file is newer than the ONNX Runtime that serves",
    source=backend("onnxruntime_backend", "src/onnxruntime_loader.cc", 165, 199),
    applies=lambda platform: known_release(platform) is not None,
)
def too_new(context: CheckContext) -> Iterator[Problem]:
    """The file has a newer opset or `ir_version` than the ONNX Runtime of the release supports.

    The opset is the version of the operators, and `ir_version` is the version of the file format. The server does not
    load the model. Export the model with an older opset or `ir_version`, or serve with a newer release.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 23]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 21]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }
    """
    release = known_release(context.platform)
    # A newer ONNX Runtime reads what an older one does not: an assumed version cannot show the fault.
    support = None if release is None or "onnxruntime" in release.assumed else onnx_support(release.onnxruntime)
    if release is None or support is None:
        return
    for each in onnx_models(context):
        said = [
            (
                f"Opset {opset} is under development and support for this is limited",
                f"export the model with opset {support.opsets[domain]} or older" + (f" of {domain}" if domain else ""),
            )
            for domain, opset in each.onnx.opsets.items()
            if opset > support.opsets.get(domain, opset)
        ]
        if each.onnx.ir_version > support.ir_version:
            words = (
                f"Unsupported model IR version: {each.onnx.ir_version}, max supported IR version: {support.ir_version}"
            )
            said.append((words, f"set ir_version to {support.ir_version} in the export of the model"))
        for words, fix in said:
            yield Problem(
                each.file.path,
                f"the server is {release.release} with ONNX Runtime {release.onnxruntime}, which would not load "
                f"{each.name!r}: {words}",
                fix,
            )
