"""CT179: operators of an ONNX file that neither ONNX nor ONNX Runtime defines.

ONNX Runtime registers `com.microsoft` and some internal domains itself. Every other operator comes from a function in
the file, from a library in `model_operations.op_library_filename`, or from an execution accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import nearest
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.onnx_models.reader.graph import GraphFault
from cdk_triton.onnx_models.reader.runtime import has_operator, known_operators, newest_version, operator_since
from cdk_triton.onnx_models.rules.graphs import judged_models
from cdk_triton.onnx_models.rules.models import OnnxModelFile
from cdk_triton.onnx_models.rules.operator_libraries import library_advice
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity

_DOMAIN = "com.microsoft"
# The domains of TensorRT's plugins, in exports for TensorRT and in ONNX Runtime's accelerator.
_TENSORRT = ("TRT", "trt.plugins")


@rule(
    "CT179",
    Severity.ERROR,
    "an ONNX file has an operator that nothing registers",
    source="https://github.com/microsoft/onnxruntime/blob/004b79eda305a216ab8d0e21eabe81d7713eb768/"
    "docs/ContribOperators.md",
)
def unregistered_operator(context: CheckContext) -> Iterator[Problem]:
    """Neither ONNX Runtime nor a configured library of custom operators defines an operator of the file.

    ONNX Runtime then does not load the file. New versions of ONNX Runtime add operators to the domain `com.microsoft`.
    So the rule uses the operators of the release's ONNX Runtime if a release is given. `ai.onnx.contrib` is the domain
    of ONNX Runtime Extensions. The backend does not enable these extensions, so put their library into the repository
    and write its path into `op_library_filename`. The path is absolute and begins with `/opt/ml/model/`, as CT291
    describes. On a multi-model endpoint, only a library in an image of your own has a known path.

    An operator such as `EfficientNMS_TRT` is a plugin of TensorRT. Only TensorRT runs it, so build a TensorRT plan.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = com.microsoft.QuickerGelu(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = com.microsoft.QuickGelu(IN) }

    Limits:
        The rule skips a model with a library, because the rule does not read the operators in the library. The rule
        also skips a model with an execution accelerator, because the accelerator TensorRT registers its plugins as
        operators. The rule does not check the attributes and inputs of operators outside of ONNX's own domains.
    """
    for each, verdict in judged_models(context):
        if each.config.model_operations.op_library_filename or _has_accelerator(each):
            continue
        for fault in verdict.foreign:
            if (found := _unregistered(fault, context.platform, _remedy(each, fault))) is not None:
                what, fix = found
                yield each.unloadable(f"{fault.subject} {what}", fault.reason, fix, joint="; ")


def _has_accelerator(each: OnnxModelFile) -> bool:
    accelerators = each.config.optimization.execution_accelerators
    return bool(accelerators.gpu_execution_accelerator or accelerators.cpu_execution_accelerator)


def _remedy(each: OnnxModelFile, fault: GraphFault) -> str:
    """What to do about an operator that is spelled right, but comes from elsewhere."""
    if fault.domain in _TENSORRT or fault.operator.endswith("_TRT"):
        return "build a TensorRT plan from this network, because the operator is a plugin of TensorRT"
    return f"for a custom operator, {library_advice(each.owner.context, each.owner.model)}"


def _unregistered(fault: GraphFault, platform: ServingPlatform | None, remedy: str) -> tuple[str, str] | None:
    """Why nothing registers an operator, and the fix; None if something may register it."""
    known = known_operators(fault.domain)
    if not known:
        near = nearest(fault.domain, [_DOMAIN], at_most=1) if fault.operator in known_operators(_DOMAIN) else []
        what = f"is of the domain {fault.domain!r}, which ONNX Runtime does not register"
        return what, f"write the domain {near[0]!r} if that is meant; {remedy}" if near else remedy
    release = known_release(platform)
    is_read = release is not None and "onnxruntime" not in release.assumed
    version = release.onnxruntime if release is not None and is_read else None
    if has_operator(fault.domain, fault.operator, version):
        return None
    since = operator_since(fault.domain, fault.operator)
    if release is not None and since is not None:
        what = f"is newer than ONNX Runtime {version} of {release.release}"
        fix = f"serve with a release that has ONNX Runtime {since} or newer, or export the model without this operator"
        return what, fix
    if release is not None and not is_read:
        return None  # a newer ONNX Runtime may have it
    near = nearest(fault.operator, known, at_most=1)
    what = f"is not in any ONNX Runtime up to {newest_version()}"
    return what, f"write {near[0]!r} if that is meant; {remedy}" if near else remedy
