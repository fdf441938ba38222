"""The rehearsals of a model's repositories: the server that will serve them answers golden requests first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aws_cdk import Annotations
from constructs import Construct

from cdk_triton._wording import listed, quoted
from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.findings import report_errors
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.rehearsal.prepared import PreparedRehearsal, prepare_rehearsal
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Mode
from cdk_triton.triton.inference_type import GENERATING

__all__ = ["check_gpus", "prepare_rehearsals"]

CONTEXT_KEY: Final = "cdk-triton:rehearsal"
SKIP: Final = "skip"
"""`-c cdk-triton:rehearsal=skip` deploys without rehearsals."""

REHEARSAL_ERROR = "cdk-triton:Rehearsal"
SKIPPED_WARNING = "cdk-triton:RehearsalSkipped"
NOT_REHEARSED_WARNING = "cdk-triton:NotRehearsed"


def prepare_rehearsals(
    construct: Construct,
    prepared: Mapping[str, Prepared],
    mode: Mode,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool,
) -> dict[str, PreparedRehearsal] | None:
    """The rehearsals of a construct's repositories, by the names of the repositories in messages.

    Args:
        construct: gets the errors, and a warning if nothing is rehearsed.
        prepared: the repositories by their names in messages.
        mode: how an endpoint serves them.
        environment: the container's settings.
        uncompressed: whether the endpoint serves the files without an archive.

    Returns:
        The rehearsals; None if one cannot be run, which is reported as an error.
    """
    with_requests = {what: each for what, each in prepared.items() if each.repository.rehearsal is not None}
    if not with_requests or _is_skipped(construct):
        return {}
    if reason := _why_not(environment, uncompressed=uncompressed):
        Annotations.of(construct).add_warning_v2(
            NOT_REHEARSED_WARNING, f"{listed(list(with_requests))} cannot be rehearsed, because {reason}"
        )
        return {}
    found: dict[str, PreparedRehearsal] = {}
    errors = []
    for what, each in with_requests.items():
        try:
            rehearsal = prepare_rehearsal(each, mode, environment)
        except ConfigurationError as error:
            errors.append((REHEARSAL_ERROR, f"{what} cannot be rehearsed: {error}"))
        else:
            assert rehearsal is not None  # of a repository with golden requests
            found[what] = rehearsal
    return found if report_errors(construct, errors) else None


def check_gpus(
    construct: Construct, platform: ServingPlatform, builder: Builder, rehearsals: Iterable[PreparedRehearsal]
) -> None:
    """Report rehearsals that need more GPUs than the machine of the builder has."""
    has = builder._gpu_count(platform)
    report_errors(
        construct,
        [
            (
                REHEARSAL_ERROR,
                f"{each.prepared.repository.root} cannot be rehearsed: an instance_group needs {each.gpus} GPUs, as "
                f"{platform.instance_type} has, but a job of {type(builder).__name__} has {has}: give the store "
                "builders=[SageMakerProcessingBuilder()], which uses the endpoint's instance type if SageMaker "
                "Processing has it, or remove the golden requests",
            )
            for each in rehearsals
            if has is not None and each.gpus > has
        ],
    )


def _why_not(environment: ContainerEnvironment, *, uncompressed: bool) -> str | None:
    """Why a way to serve repositories cannot be rehearsed, although another construct may serve them otherwise."""
    if uncompressed:
        return (
            "a rehearsal reads the archive of a repository, but uncompressed=True serves files without one: remove "
            "uncompressed=, or acknowledge this"
        )
    if environment.inference_type in GENERATING:
        return (
            f"the container has inference_type={environment.inference_type!r}, so it does not read KServe's protocol, "
            "which golden requests have: remove the golden requests, or acknowledge this"
        )
    return None


def _is_skipped(construct: Construct) -> bool:
    value = construct.node.try_get_context(CONTEXT_KEY)
    if value is None:
        return False
    if value != SKIP:
        raise ConfigurationError(
            f"the context value {CONTEXT_KEY} is {quoted(value)}: write `-c {CONTEXT_KEY}={SKIP}` to deploy without "
            "rehearsals, or remove it"
        )
    Annotations.of(construct).add_warning_v2(
        SKIPPED_WARNING,
        f"{path_of(construct)} is deployed without a rehearsal, because the context has {CONTEXT_KEY}={SKIP}, so a "
        "server that does not load or answers wrongly shows on the endpoint first",
    )
    return True
