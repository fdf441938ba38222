"""Warns about settings of a multi-model endpoint that are allowed but probably not intended.

These are settings that keep SageMaker from unloading ensembles, Python models that do not fit beside each other, and
models of the same name inside several ensembles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.python_variables import HONOURS_NO_BYTECODE, NO_BYTECODE
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.server_options import given_options
from cdk_triton.triton.shared_memory import CONTAINER_BYTES, start_bytes

__all__ = ["warn_about_multi_model"]

RELEASE_AFTER_UNLOAD = "--backend-config=dali,release_after_unload=true"

LOAD_LIMIT_WARNING = "cdk-triton:ModelLoadGpuLimit"
DALI_MEMORY_WARNING = "cdk-triton:DaliMemory"
RELOAD_WARNING = "cdk-triton:SharedModelNames"
PING_WARNING = "cdk-triton:PingOfMultiModel"
SHARED_MEMORY_WARNING = "cdk-triton:SharedMemory"

# Core looks a model up by its name alone from 53fc26e (branch r26.04) to 73aad7c, which branch r26.06 does not have.
_AMBIGUOUS_PING = ("26.04", "26.06")
_FALSE = ("false", "off", "0")

_InnerModels = Mapping[str, Mapping[str, str]]
"""By ensemble: the backends of the models that only the ensemble calls, by the model's name."""


def warn_about_multi_model(
    construct: IConstruct,
    platform: ServingPlatform,
    settings: ContainerEnvironment,
    variables: Mapping[str, str],
    ensembles: Mapping[str, Prepared],
) -> None:
    """Attach the warnings to a construct.

    Args:
        construct: the construct that gets the warnings.
        platform: the platform that serves the ensembles.
        settings: the settings of the container.
        variables: the container's variables.
        ensembles: the archives.
    """
    _warn_about_memory(construct, settings, ensembles)
    _warn_about_shared_memory(construct, start_bytes(settings, platform.release), platform, ensembles)
    inner_models = {name: each.inner_models for name, each in ensembles.items()}
    _warn_about_reloads(construct, platform, variables, inner_models)
    _warn_about_ping(construct, platform, settings, inner_models)


def _warn_about_memory(
    construct: IConstruct, settings: ContainerEnvironment, ensembles: Mapping[str, Prepared]
) -> None:
    """Warn about settings that keep SageMaker from unloading ensembles to load others."""
    if settings.model_load_gpu_limit is not None:
        Annotations.of(construct).add_warning_v2(
            LOAD_LIMIT_WARNING,
            f"model_load_gpu_limit is {settings.model_load_gpu_limit}. The container answers 400 to a load beyond this "
            "limit, but SageMaker unloads other models only after 507, so the invocation fails and no memory is freed. "
            "Remove model_load_gpu_limit, or acknowledge this",
        )
    dali = [name for name, each in ensembles.items() if "dali" in each.backends.values()]
    given = [f"--{option}={value}" for option, value in given_options(settings.additional_args)]
    if dali and RELEASE_AFTER_UNLOAD not in given:
        Annotations.of(construct).add_warning_v2(
            DALI_MEMORY_WARNING,
            f"DALI keeps its GPU memory when SageMaker unloads {', '.join(map(repr, dali))}, so other archives do not "
            f"get that memory. Add {RELEASE_AFTER_UNLOAD!r} to additional_args of the environment, or acknowledge this",
        )


def _warn_about_shared_memory(
    construct: IConstruct, each: int, platform: ServingPlatform, ensembles: Mapping[str, Prepared]
) -> None:
    """Warn about Python models that do not fit into the container together."""
    instances = {name: archive.python_instances for name, archive in ensembles.items() if archive.python_instances}
    total = sum(instances.values())
    if total * each <= CONTAINER_BYTES or len(instances) < 2:  # CT621 reports one archive that does not fit
        return
    largest = sorted(instances.items(), key=lambda item: (-item[1], item[0]))
    names = listed([f"{name!r}: {count}" for name, count in largest], shown=4)
    is_least = each == start_bytes(None, platform.release)
    fix = "Run" if is_least else "Lower shm_default_byte_size of the environment, run"
    Annotations.of(construct).add_warning_v2(
        SHARED_MEMORY_WARNING,
        f"the ensembles start {total} instances of Python models ({names}) with {each:,} bytes of shared memory each, "
        f"but a container has {CONTAINER_BYTES:,} bytes. SageMaker then unloads ensembles to load others, so requests "
        f"wait for loads, or fail. {fix} fewer instances, distribute the ensembles over several endpoints, or "
        "acknowledge this if callers do not use all ensembles at a time",
    )


def _warn_about_reloads(
    construct: IConstruct, platform: ServingPlatform, variables: Mapping[str, str], inner_models: _InnerModels
) -> None:
    """Warn about Python models with the same name that write bytecode into their directories."""
    old = is_older(platform, HONOURS_NO_BYTECODE)
    if variables.get(NO_BYTECODE) and not old:
        return
    python = {
        ensemble: [name for name, backend in models.items() if backend == "python"]
        for ensemble, models in inner_models.items()
    }
    shared = _shared(python)
    if not shared:
        return
    names = listed(
        [f"{model!r} of {listed_in_quotes(ensembles, shown=4)}" for model, ensembles in shared.items()], shown=4
    )
    cause = (
        f"Python models of Triton {platform.release} write bytecode into their directories"
        if old
        else f"without {NO_BYTECODE} Python models write bytecode into their directories"
    )
    fix = f"serve with {HONOURS_NO_BYTECODE} or newer" if old else f"set {NO_BYTECODE} to '1'"
    Annotations.of(construct).add_warning_v2(
        RELOAD_WARNING,
        f"ensembles have inner models of the same names ({names}), and {cause}: each time SageMaker loads one of these "
        "ensembles, Triton loads the others again, and they answer more slowly meanwhile. Give the inner models of "
        f"each ensemble names of their own, {fix}, or acknowledge this",
    )


def _warn_about_ping(
    construct: IConstruct,
    platform: ServingPlatform,
    settings: ContainerEnvironment,
    inner_models: _InnerModels,
) -> None:
    """Warn about a ping that fails as soon as two archives with a model of the same name are loaded."""
    release = platform.release
    if settings.ping_mode != "ready" or release is None or not settings.model_namespacing:
        return
    first, last = map(release_order, _AMBIGUOUS_PING)
    is_lenient = dict(given_options(settings.additional_args)).get("strict-readiness", "").lower() in _FALSE
    if is_lenient or not first <= release_order(release) <= last:
        return
    shared = list(_shared(inner_models))
    if shared:
        Annotations.of(construct).add_warning_v2(
            PING_WARNING,
            f"ping_mode is 'ready', and several archives have models of the same names ({listed_in_quotes(shared)}). "
            f"Triton {release} looks such a model up by its name alone, so /ping fails with 400 once two of the "
            "archives are loaded, and SageMaker replaces the container. Remove ping_mode, or give the models "
            "different names",
        )


def _shared(models: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The names that several ensembles use, with these ensembles."""
    users = defaultdict(list)
    for ensemble, names in models.items():
        for name in names:
            users[name].append(ensemble)
    return {name: ensembles for name, ensembles in sorted(users.items()) if len(ensembles) > 1}
