"""CT601 to CT609: whether the image has what the models need, and runs on the instance's GPU.

`ServingPlatform` itself rejects a platform that fits no model at all, such as a GPU that the release does not support.
`tensorrt_bounds` compares versions of TensorRT, so an unverified version never causes an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, completed_pair, has_argument, model_rule
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.derived.tensors import tensors
from cdk_triton.checks.registry import Problem, rule, would_not_load
from cdk_triton.checks.sources import backend, core, server
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.releases import backends_in, is_at_least, tensorrt_bounds
from cdk_triton.triton.schema import DataType, ModelConfig

_FIND_BACKEND = core("src/backend_model.cc", 408, 443)
_NOT_FOUND = "unable to find backend library for backend '{}', try specifying runtime on the model configuration."
_IN_OTHER_IMAGES = ("tensorrtllm", "vllm")

_DALI_IMPORTABLE_SINCE = "24.05"

_TURING = (7, 5)
_BLACKWELL = (10, 0)
_WITHOUT_VOLTA = (10, 5)  # the first TensorRT that no longer supports GPUs before Turing
_WITH_BLACKWELL = (10, 8)  # the first that supports Blackwell
_WITH_INT64 = (10,)  # the first that has tensors of this type

# Major compute capability → the first CUDA toolkit that compiles for it, for the generations since Ampere.
_CUDA_FOR = {9: (11, 8), 10: (12, 8), 12: (12, 8)}


@rule(
    "CT601",
    Severity.ERROR,
    "the release does not have the model's backend",
    source=_FIND_BACKEND,
    applies=lambda platform: platform.release is not None and platform.image is None,
)
def backend_not_in_release(context: CheckContext) -> Iterator[Problem]:
    """A model's backend is not in SageMaker's image of the release, often because the backend's name is misspelt.

    The server does not load the model. SageMaker's images have the backends dali, fil, identity, onnxruntime, openvino,
    python, pytorch, repeat, square and tensorrt, which `enable_all` in the server's `build.py` lists. Releases up to
    25.02 also have the backend tensorflow, but SageMaker's last image with this backend is 24.09. In newer releases,
    convert a TensorFlow graph definition or a saved model to ONNX, or run it in a Python model with a packed
    environment. The backends vLLM and TensorRT-LLM are only in other images of NVIDIA.

    You may add your own backend to a model, as `libtriton_<backend>.so` in the model's directory or in each version
    directory.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "tensorrt_plan"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        platform: "tensorrt_plan"

    Limits:
        The rule skips a model with `runtime`, which CT607 checks. If the platform has your own image, CT606 reports the
        backend instead.
    """
    for model, backend_name, fix in _without_backend(context):
        yield Problem(
            model.config_path,
            would_not_load(
                model,
                f"{model.name!r} needs the backend {backend_name!r}, which is not in SageMaker's image of "
                f"{context.release}",
                _NOT_FOUND.format(backend_name),
            ),
            fix,
            _backend_field(model),
        )


@rule("CT606", Severity.WARNING, "SageMaker's images do not have the model's backend", source=_FIND_BACKEND)
def backend_not_known(context: CheckContext) -> Iterator[Problem]:
    """A model's backend is in no release of SageMaker's image, and no platform with such an image is given.

    The server does not load a model if the image does not have its backend. If the platform has SageMaker's image,
    CT601 reports the backend as an error, and the documentation of CT601 lists the backends. Your own image may have
    other backends, which the library's tables do not contain. The rule assumes that such an image has vLLM or
    TensorRT-LLM if a model needs one of them, because NVIDIA publishes images with these backends.

    Example:
        # model/config.pbtxt
        backend: "onnx"

        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] x) => (float[N, 4] y) { y = Identity(x) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
    """
    platform = context.platform
    if platform is not None and platform.image is None:
        return  # reported by CT601
    for model, backend_name, fix in _without_backend(context):
        if platform is None:
            found = "which no release of SageMaker's image has, so a server without this backend"
        elif backend_name not in _IN_OTHER_IMAGES:
            found = "which SageMaker's image does not have; if your own image does not have it either, the server"
        else:
            continue
        yield Problem(
            model.config_path,
            f"{model.name!r} needs the backend {backend_name!r}, {found} would not load the model: "
            f"{_NOT_FOUND.format(backend_name)}",
            fix,
            _backend_field(model),
        )


@model_rule(
    "CT607",
    Severity.ERROR,
    "the release does not have the library that runtime names",
    source=core("src/backend_model.cc", 328, 400),
    applies=lambda platform: (
        platform.release is not None and platform.image is None and is_at_least(platform.release, "24.01")
    ),
)
def runtime_not_in_release(each: ConfiguredModel) -> Iterator[Problem]:
    """The server does not find the file that a model's `runtime` names as the library of the backend.

    The server does not load the model. `runtime` replaces the default name `libtriton_<backend>.so`. The server looks
    for this file in the version directory, in the model's directory, and in the backend's directory in the image. The
    name `model.py` stands for a backend that is written in Python. The server looks for such a backend only in the
    image, and in SageMaker's images only the backend `pytorch` has this file. Remove `runtime`, or add the library to
    the model's directory.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        runtime: "model.py"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"

    Limits:
        The rule skips a name with `/`, and a backend that the release does not have.
    """
    known = backends_in(each.context.release)
    _, backend_name = completed_pair(each.context, each.model)
    runtime = each.config.runtime
    if not runtime or "/" in runtime or backend_name not in known or has_argument(each.context, "--backend-directory"):
        return
    if runtime == "model.py":
        is_there = backend_name == "pytorch"
        words = f"unable to find Python backend based backend library 'model.py' for model '{each.name}'"
        fix = "remove `runtime`"
    else:
        is_there = runtime == f"libtriton_{backend_name}.so" or _lies_beside(each.model, runtime)
        words = f"unable to find backend library '{runtime}' for model '{each.name}'"
        fix = f"remove `runtime`, or add {runtime!r} to the directory of the model"
    if not is_there:
        found = f"SageMaker's image of {each.context.release} has no {runtime!r} for the backend {backend_name!r}"
        yield each.unloadable("runtime", found, words, fix)


@rule(
    "CT602",
    Severity.ERROR,
    "TensorRT of the release does not run on the instance's GPU",
    source=backend("tensorrt_backend", "src/model_state.cc", 541, 571),
    applies=lambda platform: platform.release is not None,
)
def gpu_without_tensorrt(context: CheckContext) -> Iterator[Problem]:
    """The repository has a TensorRT model, but the release's TensorRT does not support the instance's GPU.

    TensorRT cannot build or load a plan on this GPU. TensorRT 10.5 (in releases from 24.10 or 24.11 on) does not
    support Volta, the GPU of ml.p3. Blackwell, the GPU of ml.g7, ml.g7e and ml.p6, needs TensorRT 10.8, which first
    came with 25.01. The rule uses only verified versions of TensorRT.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.p6-b200.48xlarge
        # model/config.pbtxt
        platform: "tensorrt_plan"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.p6-b200.48xlarge
    """
    platform = context.platform
    if platform is None or platform.release is None:
        return
    gpu = _numbers(platform.instance.compute_capability)
    oldest, newest = tensorrt_bounds(platform.release)
    if gpu < _TURING and oldest is not None and oldest >= _WITHOUT_VOLTA:
        reason, fix = "no longer supports", "serve with a release up to 24.09, or on a newer GPU"
    elif gpu >= _BLACKWELL and newest is not None and newest < _WITH_BLACKWELL:
        reason, fix = "does not support yet", "serve with 25.01 or newer"
    else:
        return
    found = (
        f"{platform.instance_type} has the GPU {platform.instance.gpu}, which TensorRT of {platform.release} {reason}"
    )
    for model in context.loaded_models:
        if model.backend_name == "tensorrt":
            words = "unable to load plan file to auto complete config"
            yield Problem(model.config_path, would_not_load(model, found, words), fix)


@rule(
    "CT603",
    Severity.WARNING,
    "the instance's GPU is newer than the release",
    source=server("docs/introduction/compatibility.md", 30, 100),
    applies=lambda platform: platform.release is not None,
)
def gpu_newer_than_release(context: CheckContext) -> Iterator[Problem]:
    """The release was built with a CUDA toolkit that does not compile for the instance's GPU.

    While models load, the GPU's driver translates code that was compiled for older GPUs. This takes minutes, or fails
    with `no kernel image is available for execution on the device`. Serve with a newer release, or on an older GPU. The
    rule skips a repository with a TensorRT model, because CT602 checks TensorRT plans.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.p6-b200.48xlarge
        # model/config.pbtxt
        backend: "onnxruntime"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.p6-b200.48xlarge
    """
    platform, facts = context.platform, known_release(context.platform)
    if platform is None or facts is None or facts.cuda is None:
        return
    gpu = _numbers(platform.instance.compute_capability)
    needed = _CUDA_FOR.get(gpu[0])
    if needed is None or _numbers(facts.cuda) >= needed:
        return
    if not any(model.backend_name == "tensorrt" for model in context.loaded_models):
        yield Problem(
            ".",
            f"{platform.instance_type} has the GPU {platform.instance.gpu} (compute capability "
            f"{platform.instance.compute_capability}), which needs CUDA {needed[0]}.{needed[1]} or newer, but Triton "
            f"{facts.release} was built with CUDA {facts.cuda}, so models load slowly, or fail with: no kernel image "
            "is available for execution on the device",
            "serve with a newer release, or on an older GPU",
        )


@rule(
    "CT604",
    Severity.ERROR,
    "TensorRT of the release does not support tensors of INT64",
    source=backend("tensorrt_backend", "src/tensorrt_utils.cc", 36, 62),
    applies=lambda platform: platform.release is not None,
)
def int64_before_tensorrt_10(context: CheckContext) -> Iterator[Problem]:
    """A TensorRT model has a tensor of `TYPE_INT64`, and the release has TensorRT 8.

    TensorRT 8 builds the INT64 inputs of an ONNX file as INT32, so the server does not load the model. TensorRT 10
    (from 24.05 on) keeps these inputs as INT64. The same ONNX file therefore needs different configurations for
    TensorRT 8 and for TensorRT 10. If you export the file with INT32 inputs, one configuration fits both.

    Example:
        $ cdk-triton validate . --platform 24.03/ml.g5.xlarge
        # model/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 8
        input { name: "token_ids" data_type: TYPE_INT64 dims: 128 }
        output { name: "embedding" data_type: TYPE_FP32 dims: 384 }

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 8
        input { name: "token_ids" data_type: TYPE_INT32 dims: 128 }
        output { name: "embedding" data_type: TYPE_FP32 dims: 384 }

    Limits:
        The rule does not read the types of a plan. So it does not report a `TYPE_INT32` for a tensor that TensorRT 10
        keeps as INT64.
    """
    newest = tensorrt_bounds(context.release)[1] if context.release is not None else None
    if newest is None or newest >= _WITH_INT64:
        return
    for tensor in tensors(context):
        is_int64 = tensor.message.data_type == DataType.Value("TYPE_INT64")
        if is_int64 and tensor.owner.model.backend_name == "tensorrt":
            yield tensor.unloadable(
                "data_type",
                f"{tensor.name!r} is TYPE_INT64, but TensorRT 8 of {context.release} builds INT64 as INT32",
                f"unexpected datatype TYPE_INT32 for inference {tensor.repeated} '{tensor.name}', expecting TYPE_INT64",
                "write TYPE_INT32 and send INT32, or serve with 24.05 or newer",
            )


@rule(
    "CT605",
    Severity.WARNING,
    "the release may fail to serialise a DALI pipeline",
    source=backend("dali_backend", "src/model_provider/model_provider.h", 86, 142),
    applies=lambda platform: platform.release is not None and not is_at_least(platform.release, _DALI_IMPORTABLE_SINCE),
)
def pipeline_without_dali(context: CheckContext) -> Iterator[Problem]:
    """A DALI model is a Python file, and the release is older than 24.05.

    While the DALI backend loads such a model, it serialises the file's pipeline with the container's `python3`. From
    24.05 on, this `python3` finds DALI. Before 24.05, DALI is in a directory that `import nvidia.dali` does not search,
    so the server may fail to load the model. Serialise the pipeline into `model.dali` with the release's DALI, or serve
    with 24.05 or newer.

    Example:
        $ cdk-triton validate . --platform 24.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "dali"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
    """
    for model in context.loaded_models:
        if model.backend_name == "dali" and (source := _pipeline_source(model)) is not None:
            yield Problem(
                model.directory,
                f"the container's python3 must serialise {source}, but finds DALI only from {_DALI_IMPORTABLE_SINCE} "
                f"on, so the server of {context.release} may not load {model.name!r}: Failed to load model file. The "
                "program looked in the following locations",
                f"serialise the pipeline into model.dali with the DALI of {context.release}, or serve with "
                f"{_DALI_IMPORTABLE_SINCE} or newer",
            )


def _without_backend(context: CheckContext) -> Iterator[tuple[Model, str, str]]:
    """The models whose backend is neither in the image nor beside the model: with the backend, and the fix."""
    known = backends_in(context.release)
    suggestions = Suggestions()
    if has_argument(context, "--backend-directory"):
        return
    for model in context.loaded_models:
        name = model.backend_name
        if name is None or name in known or (model.config is not None and _brings_its_own(model, model.config)):
            continue
        longer = (each for each in sorted(known) if each.startswith(name))
        meant = next(longer, None) or suggestions.closest(name, sorted(known))
        if name == "tensorflow":
            fix = "convert the model to ONNX, or serve with a release up to 25.02 (SageMaker's last image is 24.09)"
        elif meant is not None:
            fix = f'write backend: "{meant}" if you mean this backend'
        else:
            fix = f"name a backend of the image ({', '.join(sorted(known))})"
        yield model, name, fix


def _brings_its_own(model: Model, config: ModelConfig) -> bool:
    """Whether `runtime` names a library, or the backend's lies beside the model; CT311 reports ensembles."""
    if config.runtime or config.HasField("ensemble_scheduling"):
        return True
    return _lies_beside(model, f"libtriton_{model.backend_name}.so")


def _lies_beside(model: Model, library: str) -> bool:
    """Whether a library is in the model's directory, or in that of each version that is served."""
    paths = {*(file.path for file in model.files), *model.produced}
    places = [model.directory / str(version) / library for version in model.served_versions]
    return model.directory / library in paths or (bool(places) and paths.issuperset(places))


def _backend_field(model: Model) -> str:
    if model.config is None or not (model.config.backend or model.config.platform):
        return ""
    return "backend" if model.config.backend else "platform"


def _pipeline_source(model: Model) -> str | None:
    """The Python file of a DALI model, if a served version has no serialised pipeline."""
    default = (model.config.default_model_filename if model.config is not None else "") or "model.dali"
    names = {str(path) for path in (*(file.path for file in model.files), *model.produced)}
    for version in model.served_versions:
        candidates = [str(model.directory / str(version) / name) for name in (default, "dali.py")]
        found = next((name for name in candidates if name in names), "")
        if found.endswith(".py"):
            return found
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
