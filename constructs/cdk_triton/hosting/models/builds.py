"""The builder of a model in the form of a build plan, and a warning about long builds."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Annotations
from constructs import Construct

from cdk_triton.artifacts.build_plan import job_minutes, platform_document
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["build_machine", "warn_about_duration"]

LONG_BUILD_WARNING = "cdk-triton:LongBuild"
BUILD_TIMEOUT_WARNING = "cdk-triton:BuildTimeout"

DEPLOYMENT_MINUTES = 50
"""How long one deployment waits for a build: `PATIENCE_SECONDS` of the store's handler."""

UPLOAD_MINUTES = 5
"""The build program ends itself this long before the service would, so that finished files are uploaded."""


def build_machine(builder: Builder, platform: ServingPlatform, program: str) -> BuildMachine:
    """The builder in the form of a build plan; `program` is the object key of the build program among the assets."""
    return BuildMachine(
        builder._kind,
        builder._timeout_minutes,
        platform_document(platform),
        BuildInput(None, program, "program.pyz"),
        *builder._machine(platform),
    )


def warn_about_duration(
    construct: Construct, builder: Builder, build_minutes: Sequence[float], rehearsal_minutes: Sequence[float] = ()
) -> None:
    """Warn if building and rehearsing these repositories may exceed the time limit of a deployment or of a job.

    Args:
        construct: gets the warning.
        builder: the builder that builds all of them in one job.
        build_minutes: the estimate for each repository that is built.
        rehearsal_minutes: the estimate for each repository that is rehearsed.
    """
    estimate = job_minutes([*build_minutes, *rehearsal_minutes])
    parts = (_part("build", "building", build_minutes), _part("rehearsal", "rehearsing", rehearsal_minutes))
    work = " and ".join(filter(None, parts))
    if estimate > DEPLOYMENT_MINUTES:
        Annotations.of(construct).add_warning_v2(
            LONG_BUILD_WARNING,
            f"{work} may take {estimate:.0f} minutes (a rough estimate), but a deployment waits for "
            f"{DEPLOYMENT_MINUTES} minutes. A deployment that has to do everything would fail, and the next "
            "deployment would use the builds that the first one started. Run `cdk-triton artifacts build` before the "
            "deployment, or acknowledge this",
        )
    if estimate > builder._timeout_minutes - UPLOAD_MINUTES:
        Annotations.of(construct).add_warning_v2(
            BUILD_TIMEOUT_WARNING,
            f"{work} may take {estimate:.0f} minutes (a rough estimate), but {type(builder).__name__} ends a job after "
            f"{builder._timeout_minutes} minutes. Then the store keeps the finished plans, and the next deployment "
            "builds the rest. Give the store's builder a longer timeout, or acknowledge this",
        )


def _part(noun: str, verb: str, minutes: Sequence[float]) -> str:
    """A part of a job in words; an empty text if the job does not have it."""
    return f"{verb} {len(minutes)} ensembles" if len(minutes) > 1 else f"the {noun}" * len(minutes)
