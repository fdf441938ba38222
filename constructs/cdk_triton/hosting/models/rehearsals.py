"""Whether a deployment rehearses a model: the server that will serve it answers golden requests first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Annotations
from constructs import Construct

from cdk_triton._wording import listed, quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.inference_type import GENERATING

__all__ = ["REHEARSAL_ERROR", "rehearses"]

CONTEXT_KEY: Final = "cdk-triton:rehearsal"
SKIP: Final = "skip"
"""`-c cdk-triton:rehearsal=skip` deploys without rehearsals."""

REHEARSAL_ERROR = "cdk-triton:Rehearsal"
SKIPPED_WARNING = "cdk-triton:RehearsalSkipped"
NOT_REHEARSED_WARNING = "cdk-triton:NotRehearsed"


def rehearses(
    construct: Construct, golden: Sequence[str], environment: ContainerEnvironment, *, uncompressed: bool
) -> bool:
    """Whether the deployment rehearses a construct's repositories that have golden requests.

    Args:
        construct: gets a warning if there are golden requests, but nothing is rehearsed.
        golden: how messages call the repositories with golden requests.
        environment: the container's settings.
        uncompressed: whether the endpoint serves the files without an archive.
    """
    if not golden or _is_skipped(construct):
        return False
    if reason := _why_not(environment, uncompressed=uncompressed):
        Annotations.of(construct).add_warning_v2(
            NOT_REHEARSED_WARNING, f"{listed(golden)} cannot be rehearsed, because {reason}"
        )
        return False
    return True


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
