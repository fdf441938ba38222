"""CT610 to CT629: whether the models fit the instance: its GPUs, its shared memory, its kind of endpoint."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import backend_files
from cdk_triton.checks.derived.configured import ConfiguredModel, Part, model_rule
from cdk_triton.checks.derived.scheduling import VISIBLE_DEVICES, instance_group_rule, no_such_gpu, visible_gpus
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelInstanceGroup
from cdk_triton.triton.shared_memory import CONTAINER_BYTES, python_instances, start_bytes


@instance_group_rule(
    "CT610",
    Severity.ERROR,
    "an instance group names a GPU that the instance does not have",
    source=core("src/model_config_utils.cc", 876, 893),
    applies=lambda platform: True,
)
def gpu_beyond_instance(part: Part[ModelInstanceGroup]) -> Iterator[Problem]:
    """An instance group lists a number in `gpus` that is not below the instance's number of GPUs.

    The server does not load the model. GPUs are numbered from 0. If the container's environment has
    `CUDA_VISIBLE_DEVICES`, the server has only the GPUs that this variable lists, and numbers them from 0 again.
    Without `gpus`, a group has instances on each GPU, whatever the instance type is.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU }
    """
    context, group = part.owner.context, part.message
    platform, environment = context.platform, context.environment
    if platform is None or group.kind not in (group.KIND_GPU, group.KIND_AUTO) or any(gpu < 0 for gpu in group.gpus):
        return  # the latter are reported by CT270 and CT271
    count = visible_gpus(context)
    has = f"{platform.instance_type} has {_gpus(count)}, numbered from 0"
    fix = "remove gpus to use every GPU, or list only GPUs that the instance type has"
    if environment is not None and count < platform.gpu_count:
        devices = environment.variables[VISIBLE_DEVICES]
        has = f"{VISIBLE_DEVICES}={devices} leaves {_gpus(count)} of {platform.instance_type}"
        fix = f"remove {VISIBLE_DEVICES} from the container's environment"
        if count:
            has, fix = f"{has}, numbered from 0", f"list only numbers below {count} in gpus, or {fix}"
    for position, gpu in enumerate(group.gpus):
        if gpu >= count:
            yield part.unloadable(
                f"gpus[{position}]",
                f"gpus lists {gpu}, but {has}",
                no_such_gpu(part, gpu),
                fix,
            )


@model_rule(
    "CT611",
    Severity.WARNING,
    "cc_model_filenames has no file for the instance's GPU",
    source=backend("tensorrt_backend", "src/model_state.cc", 501, 531),
    applies=lambda platform: True,
)
def no_file_for_gpu(each: ConfiguredModel) -> Iterator[Problem]:
    """`cc_model_filenames` names files for other GPUs, but no file for the GPU of the instance.

    The server then loads the default file. If this file is a TensorRT plan that was built only for another GPU, the
    server does not load the model. A plan that was built for several GPUs loads, but is slower than necessary. Add a
    file for the compute capability of the instance's GPU.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g6.xlarge
        # model/config.pbtxt
        platform: "tensorrt_plan"
        cc_model_filenames { key: "8.6" value: "a10g.plan" }

        # model/1/a10g.plan
        plan

        # model/1/model.plan
        plan

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        cc_model_filenames { key: "8.6" value: "a10g.plan" }
        cc_model_filenames { key: "8.9" value: "model.plan" }
    """
    platform, config = each.context.platform, each.config
    if platform is None or not config.cc_model_filenames:
        return
    gpu, capability = platform.instance.gpu, platform.instance.compute_capability
    if capability in config.cc_model_filenames:
        return
    if any(file.model is each.model and not file.is_there for file in backend_files(each.context)):
        return  # CT120
    named = ", ".join(sorted(config.cc_model_filenames))
    default = f"{config.default_model_filename!r}" if config.default_model_filename else "the default file"
    yield each.problem(
        "cc_model_filenames",
        f"{platform.instance_type} has the GPU {gpu} of compute capability {capability}, but cc_model_filenames has "
        f"{named} only, so the server would load {default}; a TensorRT plan for another GPU fails with: unable to load "
        "plan file to auto complete config",
        f'add the key "{capability}" with a file for this GPU',
    )


@rule(
    "CT612",
    Severity.WARNING,
    "a DALI model runs on several GPUs",
    source="https://github.com/triton-inference-server/dali_backend/issues/116",
    applies=lambda platform: platform.gpu_count > 1,
)
def dali_on_several_gpus(context: CheckContext) -> Iterator[Problem]:
    """A DALI model gets an instance on more than one GPU.

    Without `gpus`, the server creates an instance of the model on each GPU. Users report that servers with DALI in
    ensembles on several GPUs crash with signal 11 under load. The issue in which they report it is still open. Test the
    model under load, or run DALI on one GPU.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.12xlarge
        # model/config.pbtxt
        backend: "dali"

    Instead:
        # model/config.pbtxt
        backend: "dali"
        instance_group { kind: KIND_GPU gpus: 0 }
    """
    count = visible_gpus(context)
    for model in context.loaded_models:
        if model.backend_name == "dali" and len(used := _gpus_of(model, count)) > 1 and context.platform is not None:
            yield Problem(
                model.config_path,
                f"{model.name!r} would run on {len(used)} GPUs of {context.platform.instance_type}, and users have "
                "reported that servers with DALI on several GPUs crash under load: Signal (11)",
                "test the model under load, or give it one GPU: instance_group { kind: KIND_GPU gpus: 0 }",
                "instance_group",
            )


@rule(
    "CT620",
    Severity.WARNING,
    "the instance type is not in AWS's list for multi-model endpoints",
    source="https://docs.aws.amazon.com/sagemaker/latest/dg/multi-model-support.html",
    modes=("multi",),
    applies=lambda platform: not platform.instance.multi_model_listed,
)
def instance_not_listed(context: CheckContext) -> Iterator[Problem]:
    """The instance type is not in the library's copy of AWS's list of GPU instance types for multi-model endpoints.

    The list ends at ml.g5 and has only instance types with one GPU. SageMaker may reject the endpoint, but an instance
    type that is not in the list may also work. Try the instance type in your account, and then acknowledge CT620.

    Example:
        $ cdk-triton validate . --mode multi --platform 25.09/ml.g6.xlarge
        # model/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --mode multi --platform 25.09/ml.g5.xlarge
    """
    if context.platform is not None:
        yield Problem(
            ".",
            f"{context.platform.instance_type} is not in this library's copy of AWS's list of GPU instance types for "
            "multi-model endpoints; the list ends at ml.g5 and has only types with one GPU, so SageMaker may reject "
            "the endpoint",
            "try the instance type in your account and then acknowledge CT620, or use a listed type such as "
            "ml.g5.xlarge",
        )


@rule(
    "CT621",
    Severity.WARNING,
    "Python models need more shared memory than the container has",
    source=backend("python_backend", "src/shm_manager.cc", 97, 134),
)
def too_little_shared_memory(context: CheckContext) -> Iterator[Problem]:
    """The instances of all Python models together need more than the 64 MB of `/dev/shm` when they start.

    The last instance does not start. Each instance takes `shm_default_byte_size` bytes when it starts, and each version
    that `version_policy` selects has its own instances. If the container's environment has no such value, the
    constructs write the least that the release accepts: 1 MiB, or 4 MiB before 23.09. Later, an instance takes more
    memory if its tensors need more. SageMaker gives a container 64 MB, as Docker does by default, and has no setting
    for more. Run fewer instances, or lower `shm_default_byte_size`. Without a platform, the rule assumes one GPU and
    4 MiB.

    Example:
        # environment=ContainerEnvironment(shm_default_byte_size=16777216)
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_CPU count: 8 }

    Instead:
        # environment=ContainerEnvironment()

    Limits:
        The command has no option for the container's environment, so it uses the least size. A construct uses the
        environment that you give. On a multi-model endpoint, all archives share the memory, but this rule reads only
        one archive. `TritonMultiModel` adds up its ensembles, and warns with `cdk-triton:SharedMemory`.
    """
    each = start_bytes(context.environment, context.release)
    count = visible_gpus(context)
    instances = {model.name: n for model in context.loaded_models if (n := python_instances(model, count))}
    has_versions = any(len(model.served_versions) > 1 for model in context.loaded_models if model.name in instances)
    total = sum(instances.values())
    if total * each > CONTAINER_BYTES:
        names = listed([f"{name!r}: {n}" for name, n in instances.items()])
        what = "one instance of a Python model" if total == 1 else f"{total} instances of Python models"
        yield Problem(
            ".",
            f"{what} ({names}) would take {total * each:,} bytes of shared memory at the start, {each:,} for each, "
            f"but the container has {CONTAINER_BYTES:,} bytes, so the last instance would not start: Unable to "
            "initialize shared memory key",
            _smaller(total, each, start_bytes(None, context.release), has_versions=has_versions),
        )


def _smaller(instances: int, each: int, least: int, *, has_versions: bool) -> str:
    """What makes the instances fit: fewer of them, a smaller start size in whole MiB, or both."""
    share = max(CONTAINER_BYTES // instances >> 20 << 20, least)
    fixes = ["run fewer instances"] if instances > 1 else []
    fixes += ["load fewer versions with version_policy"] if has_versions else []
    if share < each:
        fixes.append(f"lower shm_default_byte_size in the container's environment to {share:,}")
    return ", or ".join(fixes)


def _gpus(count: int) -> str:
    if count == 0:
        return "no GPU"
    return "one GPU" if count == 1 else f"{count} GPUs"


def _gpus_of(model: Model, count: int) -> set[int]:
    """The GPUs of an instance with `count` GPUs that a model runs on; without any group it runs on all of them."""
    groups = model.config.instance_group if model.config is not None else ()
    used: set[int] = set() if groups else set(range(count))
    for group in groups:
        if group.kind in (group.KIND_GPU, group.KIND_AUTO):
            used.update(group.gpus or range(count))
    return used
