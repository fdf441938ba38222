"""Brings archives into the artifact store while a stack is deployed: one custom resource per model or fleet.

Its properties are the plan's place and hash and nothing that grows, because a thousand ensembles would not fit into the
events of Lambda and Step Functions. URLs and target models are composed at synth; the resource returns no data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import CustomResource, Duration
from constructs import Construct

from cdk_triton.artifacts import source_key
from cdk_triton.hosting import layout
from cdk_triton.hosting.assets import CloudAssembly
from cdk_triton.hosting.store import ITritonArtifactStore
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

__all__ = ["Artifact", "deliver", "prepare"]

PLAN_SCHEMA = 1
"""Raised together with `lambda/artifacts/plan.py` when a plan says something that older handlers would misread."""

SERVICE_TIMEOUT = Duration.minutes(58)
"""A backstop: should the provider framework's own timeout handler fail, CloudFormation would wait an hour in vain."""


@dataclass(frozen=True)
class Artifact:
    """A packed repository on its way into the store.

    Attributes:
        name: the repository's name.
        key: SHA-256 over everything that determines the archive.
        source: the same without the platform.
        platform: the platform's label.
        asset: the archive's object key among the assets.
    """

    name: str
    key: str
    source: str
    platform: str
    asset: str

    @property
    def archive(self) -> str:
        """The archive's object key in the store."""
        return layout.archive_key(self.name, self.key)


def prepare(assembly: CloudAssembly, repository: ModelRepository, platform: ServingPlatform, *, pack: bool) -> Artifact:
    """Key a repository and pack it into the cloud assembly; `pack=False` where the synthesis is known to fail.

    Raises:
        ConfigurationError: the directory's name cannot be part of an object key.
        ArchiveError: a file cannot be read, or the archive cannot be written.
    """
    name = layout.check_name(repository.name, "the repository's directory")
    key, asset = assembly.add_archive(repository, platform, pack=pack)
    return Artifact(name, key, source_key(repository), platform.label, asset)


def deliver(
    scope: Construct,
    assembly: CloudAssembly,
    store: ITritonArtifactStore,
    artifacts: Mapping[str, Artifact],
    *,
    fleet: str | None = None,
) -> CustomResource:
    """Have the store's handler commit the artifacts and, for a fleet, copy them to where its endpoint finds them.

    Args:
        scope: the construct that needs them; the resource becomes its child `Artifacts`.
        assembly: where its assets go.
        store: where the artifacts go.
        artifacts: by ensemble; the names matter for a fleet only.
        fleet: the fleet's name.

    Raises:
        ConfigurationError: the store cannot read the stack's assets.
    """
    plan = {
        "schema": PLAN_SCHEMA,
        # One repository may serve under several names; it is committed once.
        "commits": [_commit(artifact) for artifact in {a.archive: a for a in artifacts.values()}.values()],
        "fleet": None if fleet is None else _fleet(fleet, artifacts),
    }
    published = assembly.add_plan(plan)
    store.require_assets_of(scope, published.bucket_name)
    return CustomResource(
        scope,
        "Artifacts",
        resource_type="Custom::TritonArtifacts",
        service_token=store.service_token,
        service_timeout=SERVICE_TIMEOUT,
        properties={
            "PlanBucket": published.bucket_name,
            "PlanKey": published.object_key,
            "PlanSha256": published.sha256,
        },
    )


def _commit(artifact: Artifact) -> dict[str, str]:
    return {
        "repository": artifact.name,
        "artifact_key": artifact.key,
        "platform": artifact.platform,
        "asset": artifact.asset,
        "archive": artifact.archive,
        "manifest": layout.manifest_key(artifact.name, artifact.key),
    }


def _fleet(name: str, artifacts: Mapping[str, Artifact]) -> dict[str, object]:
    (platform,) = {artifact.platform for artifact in artifacts.values()}
    prefix = layout.fleet_prefix(name, platform)
    copies = [
        {
            "ensemble": ensemble,
            "artifact_key": artifact.key,
            "archive": artifact.archive,
            "target": prefix + layout.target_model(ensemble, artifact.source),
        }
        for ensemble, artifact in artifacts.items()
    ]
    return {"name": name, "index": layout.index_key(name, platform), "copies": copies}
