"""CT151 and CT152: plans of TensorRT that were built elsewhere, or files that are not plans."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.backend_files import BackendFile, file_rule, is_pointer
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.tensorrt_models.reader.plan import PlanFile, tensorrt_plan
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.unreadable import Unreadable


@file_rule(
    "CT151",
    Severity.WARNING,
    "a TensorRT plan does not record the TensorRT version and the GPU that it needs",
    source="https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/advanced.html",
)
def unverifiable_plan(each: BackendFile) -> Iterator[Problem]:
    """By default, a plan runs only with the TensorRT version and on the kind of GPU that built the plan.

    A plan that `trtexec` builds with `--hardwareCompatibilityLevel` also runs on some other GPUs. A plan that `trtexec`
    builds with `--versionCompatible` also runs with newer versions, if the server has the argument
    `--backend-config=tensorrt,version-compatible=true`.

    The file does not record the version, the GPU and these options in a documented format, so the rule cannot check
    them. If the plan does not match the server's TensorRT and GPU, the server does not load the model.

    Build the plan in the image that serves the model, on the GPU that serves the model. Then acknowledge the warning
    with this reason.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        # model/1/model.plan
        ftrt

    Instead:
        # model/config.pbtxt
        platform: "onnxruntime_onnx"
        # model/1/model.plan is removed
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }
    """
    if each.backend != "tensorrt" or each.file is None:
        return
    read = each.context.contents(tensorrt_plan, each.file)
    if not isinstance(read, PlanFile):
        return
    platform, release = each.context.platform, known_release(each.context.platform)
    on = ""
    if platform is not None and release is not None:
        instance = platform.instance
        on = f" (TensorRT {release.tensorrt} on {instance.gpu}, compute capability {instance.compute_capability})"
    doubt = "" if read.begins_like_plan else ", and does not begin as plans of TensorRT 8.6 and newer do"
    yield each.problem(
        f"the plan does not record the TensorRT version and the GPU that it was built for{doubt}; unless both suit the "
        f"server{on}, the server would not load {each.model.name!r}: unable to load plan file to auto complete config",
        "build the plan in the serving image on the serving GPU, and acknowledge CT151 with this as the reason",
    )


@file_rule(
    "CT152",
    Severity.ERROR,
    "a file that should be a TensorRT plan is something else",
    source=backend("tensorrt_backend", "src/loader.cc", 86, 101),
)
def no_plan(each: BackendFile) -> Iterator[Problem]:
    """The server cannot read a TensorRT plan from the file, so the server does not load the model.

    For example, an ONNX file is not a plan, even if its name is `model.plan`. The `.engine` file that Ultralytics
    exports is not a plan either, because metadata comes before the plan. Build the plan with `trtexec`, in the image
    and on the GPU that serve the model.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        # model/1/model.plan
        <?xml version="1.0"?><net/>

    Instead:
        # model/config.pbtxt
        backend: "openvino"
        # model/1/model.plan is removed
        # model/1/model.xml
        <?xml version="1.0"?><net/>
        # model/1/model.bin
        weights
    """
    if each.backend != "tensorrt" or each.file is None or is_pointer(each.context, each.file):
        return
    read = each.context.contents(tensorrt_plan, each.file)
    if isinstance(read, Unreadable):
        yield each.problem(
            f"the file {read.reason}; the server cannot read a TensorRT plan from it, and would not load "
            f"{each.model.name!r}: unable to load plan file to auto complete config: {each.path}",
            "build the plan with trtexec in the serving image, on the serving GPU",
        )
