"""Brings archives into the artifact store while a stack is deployed: one custom resource per model.

An archive is packed at synth, or built during the deployment from sources that are, or taken from the store that this
one promotes from. A plan that builds nothing is the same as before there were builds.

Its properties are the plan's place and hash and nothing that grows, because a thousand ensembles would not fit into the
events of Lambda and Step Functions. URLs and target models are composed at synth; the resource returns no data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aws_cdk import CfnResource, CustomResource, Duration
from constructs import Construct

from cdk_triton.artifacts import S3File, artifact_key, build_inputs, layout, recipes_of, source_key
from cdk_triton.artifacts.recipe_checks import without_promises
from cdk_triton.artifacts.repository_checks import Keys
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.images import ContainerImage
from cdk_triton.hosting.models.assets import CloudAssembly, changed_during
from cdk_triton.hosting.models.recipe_checks import builder_document, warn_about_duration
from cdk_triton.hosting.naming.acknowledgements import bucket_identity
from cdk_triton.hosting.naming.logical_ids import change_id_with
from cdk_triton.hosting.store.builds.grants import GRANT_IDS
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

__all__ = ["Artifact", "artifact_resource", "provider_of", "reject_archives", "stage_artifact", "stage_files"]

PLAN_SCHEMA, BUILD_PLAN_SCHEMA, PROMOTION_PLAN_SCHEMA, FILES_PLAN_SCHEMA, METADATA_PLAN_SCHEMA = range(1, 6)
"""The schemas of plans: one that only commits, one that also builds, one that promotes, one whose files are served as
they are, and one with metadata, whatever else it has. They are raised together with `lambda/artifacts/plan.py` when a
plan contains something that older handlers would misread."""

MAX_METADATA_BYTES = 256 * 1024
"""The size of these names; a thousand ensembles with names of a hundred characters fit. A template has 1 MB at most
("CloudFormation quotas", template body size in an S3 object)."""

MAX_KEY_BYTES = 1024
"""The limit of an object's key ("Naming Amazon S3 objects")."""

SERVICE_TIMEOUT = Duration.minutes(58)
"""A backstop: the handler ends a request after 50 minutes. If nobody answers, CloudFormation would wait an hour."""


class Artifact(NamedTuple):
    """A repository on its way into the store.

    Attributes:
        repository: the repository.
        name: the repository's name.
        key: SHA-256 over everything that determines the archive.
        source: the same without the platform.
        platform: the platform's label.
        asset: the archive's object key among the assets; None where it is built or promoted.
        build: how it is built: the inputs of a build and its ensemble, in the form of plans.
        files: what is served instead of an archive, in the form of plans; None where it is one.
    """

    repository: ModelRepository
    name: str
    key: str
    source: str
    platform: str
    asset: str | None
    build: Mapping[str, object] | None = None
    files: Sequence[Mapping[str, object]] | None = None

    @property
    def archive(self) -> str:
        """The archive's object key in the store, or the prefix of what is served instead."""
        if self.files is not None:
            return layout.files_prefix(self.name, self.key)
        return layout.archive_key(self.name, self.key)


def stage_artifact(
    assembly: CloudAssembly,
    repository: ModelRepository,
    platform: ServingPlatform,
    ensemble: Mapping[str, object] | None,
    keys: Keys | None,
    *,
    pack: bool,
    store: ITritonArtifactStore,
) -> Artifact:
    """Pack a repository, or what it is built from, into the cloud assembly, unless it is promoted.

    Args:
        assembly: where the assets go.
        repository: the repository.
        platform: what serves it.
        ensemble: what is built of it, in the form of plans; None where nothing is.
        keys: the repository's; None where it has recipes.
        pack: False where the synthesis is known to fail: then nothing is packed and nothing built.
        store: where it goes.

    Raises:
        ArchiveError: a file cannot be read or is written to at this moment, or the archive cannot be written.
    """
    name = repository.name
    if not pack:
        repository = without_promises(repository)  # it was said already that nobody keeps them
    if store.promotes_from is not None and ensemble is not None:
        return Artifact(repository, name, str(ensemble["artifact_key"]), source_key(repository), platform.label, None)
    if ensemble is None or not pack:
        # There are no keys only where recipes are wrong or not built: the synthesis fails, and nothing is deployed.
        source, key = keys or (source_key(repository), artifact_key(repository, platform))
        packed = store.promotes_from is None
        asset = assembly.add_archive(repository, platform, key, pack=pack) if packed else None
        return Artifact(repository, name, key, source, platform.label, asset)
    inputs = build_inputs(repository, assembly.add_sources(repository, pack=pack))
    if inputs[0]["path"] != ensemble["sources"]:
        raise changed_during(repository, "the recipes were checked")
    key = str(ensemble["artifact_key"])
    build = {"inputs": inputs, "ensemble": ensemble}
    return Artifact(repository, name, key, source_key(repository), platform.label, None, build)


def reject_archives(repository: ModelRepository, store: ITritonArtifactStore) -> None:
    """Reject files that are served as they are, if only archives are possible.

    Raises:
        ConfigurationError: the repository has recipes, or the store takes archives from another one.
    """
    if repository.recipes:
        raise ConfigurationError(
            f"{repository.root} has recipes, whose builds write archives, but uncompressed=True serves files without "
            "an archive: remove uncompressed=, or put the outputs of the recipes into the repository instead of the "
            "recipes"
        )
    if store.promotes_from is not None:
        raise ConfigurationError(
            f"{repository.root} has uncompressed=True, but its store promotes archives from another store: remove "
            "uncompressed, or give the model a store without promotes_from"
        )


def stage_files(
    assembly: CloudAssembly, repository: ModelRepository, platform: ServingPlatform, keys: Keys, *, pack: bool
) -> Artifact:
    """Copy a repository, whose files are served as they are, into the cloud assembly.

    Args:
        assembly: where the assets go.
        repository: the repository.
        platform: what serves it.
        keys: the repository's, as of such files.
        pack: False where the synthesis is known to fail: then nothing is copied.

    Raises:
        ConfigurationError: a name cannot be part of an object key.
        ArchiveError: a file cannot be read or is written to at this moment, or cannot be copied.
    """
    prefix = layout.files_prefix(repository.name, keys.artifact)
    files = assembly.add_files(repository, pack=pack)
    if longest := [file["path"] for file in files if len(f"{prefix}{file['path']}".encode()) > MAX_KEY_BYTES]:
        raise ConfigurationError(
            f"{longest[0]!r} of {repository.root} makes an object key of more than {MAX_KEY_BYTES} bytes, which S3 "
            "rejects: shorten the path, or remove uncompressed="
        )
    return Artifact(repository, repository.name, keys.artifact, keys.source, platform.label, None, files=files)


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
    """Have the store's handler commit the artifacts, and copy those of a multi-model to where its endpoint finds them.

    Args:
        scope: the construct that needs them; the resource becomes its child `Artifacts`.
        assembly: where its assets go.
        store: where the artifacts go.
        artifacts: by ensemble; the names matter for a multi-model endpoint only.
        platform: what serves them, and what they are built for.
        image: the image that serves them, and that they are built in.
        multi_model: for a multi-model endpoint, the name of its prefix in the store.
        metadata: what the manifests of archives that are stored now contain beside what the library writes.

    Raises:
        ConfigurationError: the store cannot read the stack's assets, or has no builder for the platform.
    """
    # One repository may serve under several names; it is committed once.
    distinct = list({a.archive: a for a in artifacts.values()}.values())
    built = [artifact for artifact in distinct if artifact.build is not None]
    commits = [_commit(artifact, metadata) for artifact in distinct]
    plan: dict[str, object] = {
        "schema": PLAN_SCHEMA if store.promotes_from is None else PROMOTION_PLAN_SCHEMA,
        "commits": commits,
        "fleet": None if multi_model is None else _copies(multi_model, platform, artifacts),
    }
    if any(artifact.files is not None for artifact in distinct):
        plan["schema"] = FILES_PLAN_SCHEMA
    if built:
        builder = store._builder_for(scope, platform, _s3_files(built))
        warn_about_duration(scope, builder, [artifact.repository for artifact in built])
        plan |= {
            "schema": BUILD_PLAN_SCHEMA,
            "commits": [{**commit, "build": each.build} for commit, each in zip(commits, distinct, strict=True)],
            "builder": builder_document(builder, platform, assembly.add_program()),
        }
    if metadata:
        plan["schema"] = METADATA_PLAN_SCHEMA
    published = assembly.add_plan(plan)
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
        properties=properties | ({"BuildImage": image.uri} if built else {}),
    )
    # "Modifying service token is not allowed", says CloudFormation where a model gets another store.
    change_id_with(resource, [store.service_token, *bucket_identity(scope, store.bucket)])
    if multi_model is not None:
        _show_in_diff(resource, artifacts)
    if built:
        granted = map(scope.node.try_find_child, GRANT_IDS)
        resource.node.add_dependency(*(policy for policy in granted if policy is not None))
    return resource


def _show_in_diff(resource: CustomResource, artifacts: Mapping[str, Artifact]) -> None:
    """Note ensemble and target model where `cdk diff` shows them: the properties of the resource are two hashes.

    CloudFormation does not send metadata to the handler, and does not call it for a change of metadata alone. So
    nothing is built or copied for it, and it is not part of an event, whose size is limited.
    """
    targets = {ensemble: layout.target_model(ensemble, each.source) for ensemble, each in artifacts.items()}
    size = len(json.dumps(targets))
    made = resource.node.default_child
    assert isinstance(made, CfnResource)  # as CDK makes it
    if size <= MAX_METADATA_BYTES:
        made.add_metadata(layout.TARGET_MODELS_METADATA, targets)
    else:
        said = f"{len(targets)} ensembles, which would take {size:,} bytes here; `cdk-triton artifacts list` has them"
        made.add_metadata(layout.TARGET_MODELS_METADATA, said)


def provider_of(model: object) -> str | None:
    """The service token of a model's store; None for a model of the user's own making."""
    return getattr(model, "_service_token", None)


def _s3_files(artifacts: Iterable[Artifact]) -> list[S3File]:
    return [
        file
        for artifact in artifacts
        for recipe in recipes_of(artifact.repository)
        for _, file in sorted(recipe.s3_files.items())
    ]


def _commit(artifact: Artifact, metadata: Mapping[str, str] | None) -> dict[str, object]:
    return {
        "repository": artifact.name,
        "artifact_key": artifact.key,
        "platform": artifact.platform,
        "asset": artifact.asset,
        "archive": artifact.archive,
        "manifest": layout.manifest_key(artifact.name, artifact.key),
        **({} if artifact.files is None else {"files": artifact.files}),
        **({"metadata": dict(metadata)} if metadata else {}),
    }


def _copies(name: str, platform: ServingPlatform, artifacts: Mapping[str, Artifact]) -> dict[str, object]:
    prefix = layout.fleet_prefix(name, platform.label)
    copies = [
        {
            "ensemble": ensemble,
            "artifact_key": artifact.key,
            "archive": artifact.archive,
            "target": prefix + layout.target_model(ensemble, artifact.source),
        }
        for ensemble, artifact in artifacts.items()
    ]
    return {"name": name, "index": layout.index_key(name, platform.label), "copies": copies}
