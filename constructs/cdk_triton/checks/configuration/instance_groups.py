"""CT270 to CT279 and CT244: whether the server can make the instances of a model that its instance groups describe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import (
    ConfiguredModel,
    Part,
    completed_pair,
    has_argument,
    model_rule,
)
from cdk_triton.checks.derived.scheduling import instance_groups, no_such_gpu, said_group
from cdk_triton.checks.registry import Problem, rules_about
from cdk_triton.checks.sources import backend, core, server
from cdk_triton.sagemaker import gpu_instances
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInstanceGroup, enum_name

_UTILS = "src/model_config_utils.cc"
_SERVE = server("docker/sagemaker/serve", 183, 183)
_LARGEST_INT = 2**31 - 1

# std::stoi: the number at the beginning, whatever follows it.
_STOI = re.compile(r"\s*([+-]?[0-9]+)", re.ASCII)

# The policies that the server gives instances by itself.
_OWN_POLICIES = re.compile(r"cpu|model|gpu_[0-9]+")


Group = Part[ModelInstanceGroup]


@per_check
def _groups(context: CheckContext) -> Iterator[Group]:
    """Every instance group of a model; those of an ensemble are reported by CT312 or CT311."""
    for group in instance_groups(context):
        if not group.owner.model.is_ensemble and not group.owner.config.HasField("ensemble_scheduling"):
            yield group


_group_rule = rules_about(_groups)


@_group_rule(
    "CT270", Severity.ERROR, "an instance group that does not use GPUs lists GPUs", source=core(_UTILS, 1729, 1785)
)
def gpus_without_gpu_kind(group: Group) -> Iterator[Problem]:
    """An instance group of `KIND_CPU` or `KIND_MODEL` lists `gpus`, so the server does not load the model.

    Only a group of `KIND_GPU` or `KIND_AUTO` may list `gpus`. `KIND_AUTO`, which is the default, lets the server choose
    the kind. If a group of `KIND_AUTO` lists a negative id, the server chooses `KIND_CPU` and then rejects the list.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_CPU gpus: 0 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_CPU }
    """
    kind, gpus = group.message.kind, group.message.gpus
    undecided = kind == ModelInstanceGroup.KIND_AUTO and any(gpu < 0 for gpu in gpus)
    if not gpus or not (kind in (ModelInstanceGroup.KIND_CPU, ModelInstanceGroup.KIND_MODEL) or undecided):
        return
    said = "KIND_MODEL" if kind == ModelInstanceGroup.KIND_MODEL else "KIND_CPU"
    yield group.unloadable(
        "gpus",
        f"gpus is {list(gpus)}",
        f"{said_group(group)} has kind {said} but specifies one or more GPUs",
        "remove gpus, or write kind: KIND_GPU and ids from 0 on",
    )


@_group_rule("CT271", Severity.ERROR, "the id of a GPU is negative", source=core(_UTILS, 1757, 1778))
def negative_gpu(group: Group) -> Iterator[Problem]:
    """An instance group of `KIND_GPU` lists a negative id in `gpus`, so the server does not load the model.

    The ids of GPUs begin with 0. A group without `gpus` has instances on every GPU.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU gpus: -1 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU gpus: 0 }
    """
    for position, gpu in enumerate(group.message.gpus) if group.message.kind == ModelInstanceGroup.KIND_GPU else ():
        if gpu < 0:
            yield group.unloadable(
                f"gpus[{position}]",
                f"the GPU {gpu} does not exist",
                no_such_gpu(group, gpu),
                "write ids from 0 on, or remove gpus to use all GPUs",
            )


@_group_rule(
    "CT244", Severity.ERROR, "an instance group lists a GPU that no instance type has", source=core(_UTILS, 1757, 1778)
)
def gpu_beyond_any_instance(group: Group) -> Iterator[Problem]:
    """An instance group lists an id in `gpus` that is too high for every instance type of SageMaker.

    The server does not load the model. The ids of GPUs begin with 0. If a platform is given, CT610 compares the ids
    with its instance type.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU gpus: 42 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_GPU gpus: 0 }
    """
    gpus = group.message.gpus
    takes_gpus = group.message.kind in (ModelInstanceGroup.KIND_GPU, ModelInstanceGroup.KIND_AUTO)
    if group.owner.context.platform is not None or not takes_gpus or min(gpus, default=-1) < 0:
        return  # reported by CT610, CT270 or CT271
    count = max(instance.gpu_count or 0 for instance in gpu_instances().values())
    for position, gpu in enumerate(gpus):
        if gpu >= count:
            yield group.unloadable(
                f"gpus[{position}]",
                f"gpus lists {gpu}, but no instance type has more than {count} GPUs, numbered from 0",
                no_such_gpu(group, gpu),
                "remove gpus to use every GPU, or list only GPUs that the instance type has",
                joint="; ",
            )


@_group_rule("CT272", Severity.WARNING, "the number of instances is negative", source=core(_UTILS, 928, 942))
def negative_count(group: Group) -> Iterator[Problem]:
    """The server treats a negative `count` as a missing `count`, without a message.

    The server then creates one instance. It creates two if the ONNX Runtime or TensorFlow backend runs the model on the
    CPU. A `count` of 0 has the same effect, so you cannot switch a model off with `count`.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { count: -1 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { count: 1 }
    """
    count = group.message.count
    if count < 0:
        yield group.problem(
            "count",
            f"count is {count}, so the server would create the default number of instances of {group.owner.name!r} "
            "instead: at least one",
            "write the number of instances",
        )


@_group_rule(
    "CT273",
    Severity.ERROR,
    "profiles are set for a model that is not a TensorRT plan",
    source=core(_UTILS, 1792, 1800),
)
def profile_without_plan(group: Group) -> Iterator[Problem]:
    """An instance group has a `profile`, but the model is not a TensorRT plan, so the server does not load the model.

    Only TensorRT plans have optimization profiles.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { profile: "0" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { }
    """
    platform, runs = _pair(group.owner)
    if group.message.profile and runs and platform != "tensorrt_plan":
        yield group.unloadable(
            "profile",
            f"profile is {list(group.message.profile)} and the backend is {runs!r}",
            f"{said_group(group)} and platform {platform}specifies profile field which is only supported for TensorRT "
            "models",
            "remove `profile`",
        )


@_group_rule("CT274", Severity.ERROR, "the profile of a TensorRT plan is not a number", source=core(_UTILS, 1800, 1816))
def profile_is_no_index(group: Group) -> Iterator[Problem]:
    """A `profile` is not the index of an optimization profile, so the server does not load the model.

    Write the index of the profile in the plan as a string, for example `"1"`. The first profile has the index `"0"`.
    The server crashes if the number does not fit into a signed 32-bit integer.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_GPU profile: "large" }

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_GPU profile: "1" }

    Limits:
        The rule does not compare the index with the number of profiles, which only TensorRT can read from a plan.
    """
    for position, profile in enumerate(group.message.profile):
        number = int(match[1]) if (match := _STOI.match(profile)) else None
        is_index = number is not None and 0 <= number <= _LARGEST_INT
        if is_index or _pair(group.owner) != ("tensorrt_plan", "tensorrt"):
            continue
        field, found = f"profile[{position}]", f"the profile {profile!r} is not an index"
        fix = 'write the index of a profile of the plan, for example "0"'
        if number is not None and not -_LARGEST_INT - 1 <= number <= _LARGEST_INT:
            yield group.problem(field, f"{found}, so the server would crash: std::out_of_range", fix)
        elif number is not None:
            yield group.unloadable(field, found, f"specifies invalid profile {profile}", fix)
        else:
            words = f"unable to parse '{profile}': stoi" if profile else "profile name must not be empty"
            yield group.unloadable(field, found, words, fix)


@_group_rule(
    "CT275",
    Severity.ERROR,
    "the backend does not support the kind of an instance group",
    source=backend("tensorrt_backend", "src/instance_state.cc", 262, 269),
)
def kind_without_backend(group: Group) -> Iterator[Problem]:
    """The backend of a model does not support the kind of an instance group, so the server does not load the model.

    The TensorRT backend needs `KIND_GPU`. From 26.06 on, it needs `KIND_MODEL` instead for a model whose parameter
    `enable_multi_device` is `true`. Triton's OpenVINO backend runs only on CPUs, so it needs `KIND_CPU`.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_CPU }

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_GPU }

    Limits:
        The rule skips a group whose kind the server chooses, because the choice depends on the instance type. With
        `enable_multi_device`, the rule accepts both `KIND_GPU` and `KIND_MODEL`, whatever the value and the release.
    """
    runs, kind = _pair(group.owner)[1], enum_name(group.message, "kind")
    several_gpus = "enable_multi_device" in group.owner.config.parameters
    if runs == "tensorrt" and (kind == "KIND_CPU" or (kind == "KIND_MODEL" and not several_gpus)):
        words, right = "TensorRT backend supports only GPU device", "KIND_GPU"
    elif runs == "openvino" and kind in ("KIND_GPU", "KIND_MODEL"):
        words, right = "Triton OpenVINO backend supports only Kind CPU and AUTO", "KIND_CPU"
    else:
        return
    yield group.unloadable(
        "kind",
        f"the kind is {kind} and the backend is {runs!r}",
        f"unable to load model '{group.owner.said_name}', {words}",
        f"write kind: {right}",
    )


@model_rule(
    "CT276", Severity.ERROR, "all instances of a model are passive", source=core("src/rate_limiter.cc", 207, 229)
)
def only_passive_instances(each: ConfiguredModel) -> Iterator[Problem]:
    """All instance groups of a model are `passive`, so the first request to the model crashes the whole server.

    The server loads passive instances, but never sends them a request. The server prints no message when it loads such
    a model, but it does not create a queue for the model's requests. The crash also stops all other models. A model
    needs an instance group that is not passive.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { passive: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { }
    """
    groups = each.config.instance_group
    if groups and not each.model.is_ensemble and all(group.passive for group in groups):
        yield each.problem(
            "instance_group",
            f"all instances of {each.name!r} are passive, so the server would crash at the first request",
            "remove `passive`, or add an instance group that is not passive",
        )


@_group_rule("CT277", Severity.WARNING, "a model sets the rate limiter, but the server does not use it", source=_SERVE)
def rate_limiter_off(group: Group) -> Iterator[Problem]:
    """SageMaker starts the server without `--rate-limit`, so resources and priorities of instances have no effect.

    To switch the rate limiter on, write `--rate-limit=execution_count` into `additional_args` of the container's
    environment (from 23.07). A resource must then be global in all instance groups of all models, or in none.
    Otherwise, the server does not load a model, and reports:
    `Resource "R" is present as both global and device-specific resource in the model configuration`.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { rate_limiter { resources { name: "memory" count: 2 } } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { }
    """
    if group.message.HasField("rate_limiter") and not has_argument(group.owner.context, "--rate-limit="):
        yield group.problem(
            "rate_limiter",
            "the server that SageMaker starts does not limit rates (--rate-limit=off), so rate_limiter would have no "
            f"effect on {group.owner.name!r}",
            "remove rate_limiter, or switch rate limits on with --rate-limit=execution_count in additional_args",
        )


@_group_rule(
    "CT278",
    Severity.WARNING,
    "an instance group uses a deep learning accelerator",
    source=backend("tensorrt_backend", "src/tensorrt_model_instance.cc", 45, 76),
)
def secondary_device(group: Group) -> Iterator[Problem]:
    """`secondary_devices` needs a deep learning accelerator (`KIND_NVDLA`), which no SageMaker instance has.

    Only NVIDIA's embedded boards have such an accelerator. The TensorRT backend passes the device to TensorRT, and
    accepts at most one device for each instance group. Other backends ignore `secondary_devices`.

    Example:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_GPU secondary_devices { kind: KIND_NVDLA device_id: 0 } }

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        instance_group { kind: KIND_GPU }
    """
    if group.message.secondary_devices:
        yield group.problem(
            "secondary_devices",
            f"an instance group of {group.owner.name!r} uses a deep learning accelerator (KIND_NVDLA), which no "
            "SageMaker instance has",
            "remove secondary_devices",
        )


@_group_rule("CT279", Severity.WARNING, "the server does not have the host policy of an instance group", source=_SERVE)
def unknown_host_policy(group: Group) -> Iterator[Problem]:
    """An instance group names a `host_policy` that the server does not have, so its instances run without a policy.

    The server prints no message. A host policy sets NUMA nodes and CPU cores. The server itself has the policies `cpu`,
    `model`, `gpu_0`, `gpu_1` and so on. An argument `--host-policy` adds another policy, but SageMaker starts the
    server without this argument. To add a policy, write the argument into `additional_args` of the container's
    environment (from 23.07).

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { host_policy: "near" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { }
    """
    policy = group.message.host_policy
    is_known = not policy or _OWN_POLICIES.fullmatch(policy)
    if not is_known and not has_argument(group.owner.context, f"--host-policy={policy},"):
        yield group.problem(
            "host_policy",
            f"the server that SageMaker starts has no host policy {policy!r}, so the instances of "
            f"{group.owner.name!r} would run without one",
            f"remove host_policy, or define it with --host-policy={policy},<setting>=<value> in additional_args",
        )


def _pair(each: ConfiguredModel) -> tuple[str, str]:
    return completed_pair(each.context, each.model)
