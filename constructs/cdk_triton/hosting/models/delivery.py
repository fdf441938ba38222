"""Brings archives into the artifact store while a stack is deployed: one custom resource per model.

An archive is packed at synth, built during the deployment from sources that synth packed, or promoted from another
store.

The resource's properties are only the location and the hash of the build plan, because a thousand ensembles would not
fit into the events of Lambda and Step Functions. URLs and target models are composed at synth; the resource returns no
data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from aws_cdk import CfnResource, CustomResource, Duration
from constructs import Construct

from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.hosting.access.images import ContainerImage
from cdk_triton.hosting.models.assets import Artifact, CloudAssembly
from cdk_triton.hosting.models.builds import build_machine, warn_about_duration
from cdk_triton.hosting.models.rehearsals import REHEARSAL_ERROR
from cdk_triton.hosting.naming.acknowledgements import bucket_identity
from cdk_triton.hosting.naming.findings import report_errors
from cdk_triton.hosting.naming.logical_ids import change_id_with
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.hosting.store.builds.grants import GRANT_IDS
from cdk_triton.hosting.store.builds.selection import BUILDING, REHEARSING
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.protocol import layout
from cdk_triton.protocol.plan import Commit, PlannedRehearsal, ServedArchives, ServedCopy, StackPlan
from cdk_triton.rehearsal.prepared import PreparedRehearsal
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["artifact_resource", "delivering_store"]

MAX_METADATA_BYTES = 256 * 1024
"""The size of the names in the metadata, enough for a thousand names of a hundred characters. A template has at most 1
MB ("CloudFormation quotas", template body size in an S3 object)."""

SERVICE_TIMEOUT = Duration.minutes(58)
"""For a handler that never answers: it should end a request after 50 minutes, and CloudFormation waits an hour."""


def artifact_resource(
    scope: Construct,
    assembly: CloudAssembly,
    store: ITritonArtifactStore,
    artifacts: Mapping[str, Artifact],
    *,
    platform: ServingPlatform,
    image: ContainerImage,
    multi_model: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> CustomResource:
    """Make the store's handler commit the artifacts, and copy those of a `TritonMultiModel` below its prefix.

    Args:
        scope: the construct that needs them; the resource becomes its child `Artifacts`.
        assembly: the cloud assembly for its assets.
        store: the store for the artifacts.
        artifacts: the artifacts by ensemble; only a multi-model endpoint uses the names.
        platform: the platform that serves them, for which they are built.
        image: the image that serves them, in which they are built.
        multi_model: the name of a multi-model endpoint's prefix in the store; None for a single model.
        metadata: the user's metadata for the manifests of archives that are stored now.

    Raises:
        ConfigurationError: the store cannot read the stack's assets, or has no builder for the platform, which builds
            and rehearsals need.
    """
    # One repository may serve under several names, but is committed once, and each different rehearsal of it is run.
    distinct = list({a.archive: a for a in artifacts.values()}.values())
    built = [artifact for artifact in distinct if artifact.build is not None]
    rehearsals = {(a.name, r.key): (a, r) for a in artifacts.values() if (r := a.prepared.rehearsal) is not None}
    rehearsed = list(rehearsals.values())
    machine = None
    if built or (rehearsed and store.promotes_from is None):
        files = [file for each in built for file in each.prepared.s3_files.values()]
        builder = store._builder_for(scope, platform, files, BUILDING if built else REHEARSING)
        _check_gpus(scope, platform, builder, [artifact.prepared for artifact, _ in rehearsed])
        minutes = [each.prepared.build_minutes for each in built]
        warn_about_duration(scope, builder, minutes, [rehearsal.minutes for _, rehearsal in rehearsed])
        machine = build_machine(builder, platform, assembly.add_program())
    plan = StackPlan(
        commits=tuple(_commit(artifact, platform, metadata or {}) for artifact in distinct),
        fleet=None if multi_model is None else _served_archives(multi_model, platform, artifacts),
        builder=machine,
        rehearsals=tuple(_planned_rehearsal(artifact, rehearsal) for artifact, rehearsal in rehearsed),
    )
    published = assembly.add_plan(plan.text())
    store._require_assets_of(scope, published.bucket_name)
    properties = {
        "PlanBucket": published.bucket_name,
        "PlanKey": published.object_key,
        "PlanSha256": published.sha256,
    }
    resource = CustomResource(
        scope,
        "Artifacts",
        resource_type="Custom::TritonArtifacts",
        service_token=store.service_token,
        service_timeout=SERVICE_TIMEOUT,
        properties=properties | ({"BuildImage": image.uri} if machine is not None else {}),
    )
    # When a model gets another store, CloudFormation answers "Modifying service token is not allowed".
    change_id_with(resource, [store.service_token, *bucket_identity(scope, store.bucket)])
    if multi_model is not None:
        _show_in_diff(resource, artifacts)
    if machine is not None:
        granted = map(scope.node.try_find_child, GRANT_IDS)
        resource.node.add_dependency(*(policy for policy in granted if policy is not None))
    return resource


def _check_gpus(scope: Construct, platform: ServingPlatform, builder: Builder, rehearsed: Iterable[Prepared]) -> None:
    """Report rehearsals that need more GPUs than the machine of the builder has."""
    has = builder._gpu_count(platform)
    report_errors(
        scope,
        [
            (
                REHEARSAL_ERROR,
                f"{each.repository.root} cannot be rehearsed: an instance_group needs {each.gpus} GPUs, as "
                f"{platform.instance_type} has, but a job of {type(builder).__name__} has {has}: give the store "
                "builders=[SageMakerProcessingBuilder()], which uses the endpoint's instance type if SageMaker "
                "Processing has it, or remove the golden requests",
            )
            for each in rehearsed
            if has is not None and each.gpus > has
        ],
    )


def _show_in_diff(resource: CustomResource, artifacts: Mapping[str, Artifact]) -> None:
    """Add ensembles and target models to the metadata, because the properties in `cdk diff` are only two hashes.

    `cdk diff` shows metadata only with `--method=template`: with a change set, it hides differences of metadata
    (`overrideDiffResourceChangeImpactWithChangeSetChangeImpact` in aws-cdk 2.1148.1).

    CloudFormation neither sends metadata to the handler nor calls it when only metadata changes. So this causes no
    build and no copy, and does not count towards the limited size of an event.
    """
    targets = {
        ensemble: layout.target_model(ensemble, each.prepared.keys.source) for ensemble, each in artifacts.items()
    }
    size = len(json.dumps(targets))
    made = resource.node.default_child
    assert isinstance(made, CfnResource)  # as CDK makes it
    if size <= MAX_METADATA_BYTES:
        made.add_metadata(layout.TARGET_MODELS_METADATA, targets)
    else:
        summary = (
            f"{len(targets)} ensembles, which would take {size:,} bytes here; `cdk-triton artifacts list` has them"
        )
        made.add_metadata(layout.TARGET_MODELS_METADATA, summary)


def delivering_store(model: object) -> ITritonArtifactStore | None:
    """The store of a model of this library; None for an imported model, or a model of a user's own class."""
    store: ITritonArtifactStore | None = getattr(model, "_store", None)
    return store


def _commit(artifact: Artifact, platform: ServingPlatform, metadata: Mapping[str, str]) -> Commit:
    key = artifact.prepared.keys.artifact
    return Commit(
        artifact.name,
        key,
        platform.label,
        artifact.asset,
        artifact.archive,
        layout.manifest_key(artifact.name, key),
        artifact.build,
        artifact.files,
        metadata,
    )


def _planned_rehearsal(artifact: Artifact, rehearsal: PreparedRehearsal) -> PlannedRehearsal:
    return PlannedRehearsal(
        artifact.name,
        rehearsal.artifact_key,
        rehearsal.key,
        rehearsal.platform.image_identity,
        () if artifact.golden is None else (artifact.golden,),
        rehearsal.golden,
        rehearsal.document,
    )


def _served_archives(name: str, platform: ServingPlatform, artifacts: Mapping[str, Artifact]) -> ServedArchives:
    prefix = layout.fleet_prefix(name, platform.label)
    copies = []
    for ensemble, each in artifacts.items():
        keys = each.prepared.keys
        target = prefix + layout.target_model(ensemble, keys.source)
        copies.append(ServedCopy(ensemble, keys.artifact, each.archive, target))
    return ServedArchives(name, layout.index_key(name, platform.label), tuple(copies))
