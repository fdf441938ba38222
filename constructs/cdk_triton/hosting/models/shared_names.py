"""Warns of archives of one multi-model endpoint whose inner models have the same names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.environment import HONOURS_NO_BYTECODE, NO_BYTECODE
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.server_options import given_options

__all__ = ["InnerModels", "warn_about_ping", "warn_about_reloads"]

InnerModels = Mapping[str, Mapping[str, str]]
"""By ensemble: the backends of the models that only the ensemble calls, by the model's name."""

RELOAD_WARNING = "cdk-triton:SharedModelNames"
PING_WARNING = "cdk-triton:PingOfMultiModel"

# Core looks a model up by its name alone from 53fc26e (branch r26.04) to 73aad7c, which branch r26.06 does not have.
_AMBIGUOUS_PING = ("26.04", "26.06")
_FALSE = ("false", "off", "0")


def warn_about_reloads(
    construct: IConstruct, platform: ServingPlatform, variables: Mapping[str, str], inner_models: InnerModels
) -> None:
    """Warn of Python models with the same name, where they write bytecode into their directories.

    Args:
        construct: gets the warning.
        platform: what serves the ensembles.
        variables: the container's variables.
        inner_models: the models of each archive.
    """
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
    told = listed(
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
        f"ensembles have inner models of the same names ({told}), and {cause}: each time SageMaker loads one of these "
        "ensembles, Triton loads the others again, and they answer more slowly meanwhile. Give the inner models of "
        f"each ensemble names of their own, {fix}, or acknowledge this",
    )


def warn_about_ping(
    construct: IConstruct,
    platform: ServingPlatform,
    settings: ContainerEnvironment,
    inner_models: InnerModels,
) -> None:
    """Warn of a ping that fails as soon as two archives with a model of one name are loaded.

    Args:
        construct: gets the warning.
        platform: what serves the ensembles.
        settings: how the container starts.
        inner_models: the models of each archive.
    """
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
    """The names that several ensembles have, with these ensembles."""
    users = defaultdict(list)
    for ensemble, names in models.items():
        for name in names:
            users[name].append(ensemble)
    return {name: ensembles for name, ensembles in sorted(users.items()) if len(ensembles) > 1}
