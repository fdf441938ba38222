"""Reads from a cloud assembly what a deployment of one stack would request from the artifact store.

The files are those of aws-cdk-lib's cloud-assembly-schema: `manifest.json` with stacks, asset manifests and nested
assemblies (stages), a template for each stack, an asset manifest for each stack.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdk_triton.cli.artifacts.intrinsics import resolve
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.documents import DocumentError, OtherVersionError
from cdk_triton.protocol.layout import ASSET_PREFIX, USED_BY_METADATA
from cdk_triton.protocol.plan import StackPlan

__all__ = [
    "STORE_HANDLER",
    "Asset",
    "Planned",
    "StackAssembly",
    "read_all_templates",
    "read_metadata",
    "read_nested_templates",
    "read_plans",
    "read_resource_metadata",
    "read_stack",
    "read_templates",
    "users_of_store",
]

RESOURCE_TYPE = "Custom::TritonArtifacts"
STORE_HANDLER = "artifacts.is_complete"
"""The mark of a function of a store's stack; logical ids belong to the user's app."""


@dataclass(frozen=True)
class Asset:
    """A file that a deployment publishes.

    Attributes:
        path: the file.
        bucket: the bucket to which it goes.
        key: the object key of the file in this bucket.
        role: the role that publishes the file, if the bootstrap has such a role.
        external_id: the external id that the role requires; None if it requires none.
    """

    path: Path
    bucket: str
    key: str
    role: str | None
    external_id: str | None


@dataclass(frozen=True)
class Planned:
    """The request of one `Custom::TritonArtifacts` resource, without its multi-model archives.

    The index of a multi-model endpoint lists what is deployed, so only a deployment copies the archives. A build plan
    without such copies is sent unchanged: it is then equal to the deployment's build plan, and continues its builds.

    Attributes:
        name: the resource's logical id.
        asset: the build plan's own asset, as the synthesis wrote it.
        plan: the build plan.
        text: the build plan as it is sent.
        properties: the resource's properties, with the location of this build plan.
    """

    name: str
    asset: Asset
    plan: StackPlan
    text: bytes
    properties: Mapping[str, Any]

    def needs(self, committed: Collection[str]) -> frozenset[str]:
        """The object keys that it reads from the build plan's bucket.

        Args:
            committed: the keys of archives that are committed, and of rehearsals that have passed.
        """
        commits = [each for each in self.plan.commits if each.artifact_key not in committed]
        found = {commit.asset for commit in commits}
        found |= {file.asset for commit in commits for file in commit.files or ()}
        builds = [commit.build for commit in commits if commit.build is not None]
        found |= {each.key for build in builds for each in build.inputs if each.bucket is None}
        rehearsals = [each for each in self.plan.rehearsals if each.key not in committed]
        found |= {each.key for rehearsal in rehearsals for each in rehearsal.inputs if each.bucket is None}
        if (builds or rehearsals) and self.plan.builder is not None:
            found.add(self.plan.builder.program.key)
        return frozenset(key for key in found if key is not None)


@dataclass(frozen=True)
class StackAssembly:
    """One stack of a cloud assembly.

    Attributes:
        name: the stack's name in CloudFormation.
        planned: the artifacts that the stack needs from the store.
        assets: the assets that the stack publishes, by object key.
        stores: the stacks of the app that contain a store of this stack; empty if only other apps contain one.
    """

    name: str
    planned: tuple[Planned, ...]
    assets: Mapping[str, Asset]
    stores: frozenset[str]


def read_stack(app: Path, stack: str, pseudo: Mapping[str, str]) -> StackAssembly:
    """Read one stack.

    Args:
        app: the cloud assembly's directory, as `cdk synth` wrote it.
        stack: the stack's name in CloudFormation, or its id or path in the app, as `cdk deploy` takes it.
        pseudo: the pseudo parameters of the account and region of the stack.

    Raises:
        ConfigurationError: the cloud assembly or the stack does not exist, the stack is for another account or region,
            or a property contains an unresolved token.
    """
    if not (app / "manifest.json").is_file():
        raise ConfigurationError(f"{app} is not a cloud assembly, it has no manifest.json: run `cdk synth` first")
    stacks = list(_stacks(app))
    chosen = [each for each in stacks if stack in (each.name, each.id, each.path)]
    if len(chosen) != 1:
        known = ", ".join(sorted(each.path for each in stacks)) or "no stack at all"
        what = "no stack" if not chosen else "several stacks"
        raise ConfigurationError(f"the cloud assembly {app} has {what} called {stack!r}; it has {known}")
    (found,) = chosen
    _check_environment(found, pseudo)
    assets = {asset.key: asset for manifest in found.asset_manifests for asset in _assets(manifest, pseudo)}
    resources = list(_artifact_resources(found.directory, found.template()))
    stores = {each.name for each in stacks if found.name in users_of_store(each.template())}
    if _has_store(found.template()):
        stores.add(found.name)
    planned = tuple(_planned(name, each, assets, pseudo) for name, each in resources)
    return StackAssembly(found.name, planned, assets, frozenset(stores))


def _has_store(template: Mapping[str, Any]) -> bool:
    resources = template.get("Resources", {}).values()
    return any(each.get("Properties", {}).get("Handler") == STORE_HANDLER for each in resources)


def users_of_store(template: Mapping[str, Any]) -> frozenset[str]:
    """The other stacks of the app that use a store of this template."""
    resources = template.get("Resources", {}).values()
    return frozenset(name for each in resources for name in each.get("Metadata", {}).get(USED_BY_METADATA, ()))


def read_all_templates(app: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and template of each stack of a cloud assembly. Stacks with the same name have their paths in the app.

    Raises:
        ConfigurationError: there is no cloud assembly, or a file of it cannot be read.
    """
    stacks = list(_stacks(app))
    named = Counter(stack.name for stack in stacks)
    for stack in stacks:
        name = stack.name if named[stack.name] == 1 else stack.path
        yield name, stack.template()


def read_templates(app: Path, account: str, region: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and template of each stack of a cloud assembly that is for an account and region, or for any.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    for stack in _stacks_for(app, account, region):
        yield stack.name, stack.template()


def read_nested_templates(app: Path, account: str, region: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The templates of the stacks that are nested in these stacks, each with the name of its outermost stack.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    for stack in _stacks_for(app, account, region):
        yield from ((stack.name, nested) for nested in _nested(stack.directory, stack.template()))


def read_plans(app: Path, account: str, region: str) -> Iterator[tuple[str, list[StackPlan]]]:
    """The name of each of these stacks, and its `Custom::TritonArtifacts` requests, including those of nested stacks.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    for stack in _stacks_for(app, account, region):
        files = {asset.key: asset.path for manifest in stack.asset_manifests for asset in _assets(manifest, {})}
        resources = _artifact_resources(stack.directory, stack.template())
        keys = [each["Properties"].get("PlanKey") for _, each in resources]
        yield stack.name, [_plan(files[key]) for key in keys if isinstance(key, str) and key in files]


def read_metadata(app: Path, kind: str) -> Iterator[tuple[str, Any, Path]]:
    """The metadata of this type in a cloud assembly: the construct's path, the data, and the assembly of its stack.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    for stack in _stacks(app):
        for path, entries in stack.metadata.items():
            yield from (
                (path.removeprefix("/"), each["data"], stack.directory) for each in entries if each["type"] == kind
            )


def read_resource_metadata(app: Path, kind: str) -> Iterator[tuple[str, Any]]:
    """The metadata of this type of the resources in the templates: the path of the resource's stack, and the data.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    for stack in _stacks(app):
        for resource in stack.template().get("Resources", {}).values():
            if (data := resource.get("Metadata", {}).get(kind)) is not None:
                yield stack.path, data


def _stacks_for(app: Path, account: str, region: str) -> Iterator[_Stack]:
    for stack in _stacks(app):
        place = stack.environment.removeprefix("aws://").split("/")
        wanted = ("unknown-account", account), ("unknown-region", region)
        if all(part in each for part, each in zip(place, wanted, strict=False) if part):
            yield stack


@dataclass(frozen=True)
class _Stack:
    directory: Path
    id: str
    path: str
    name: str
    environment: str
    properties: Mapping[str, Any]
    asset_manifests: tuple[Path, ...]
    artifact: Mapping[str, Any]

    def template(self) -> Mapping[str, Any]:
        """Read the stack's template."""
        return _json(self.directory / self.properties["templateFile"])

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the constructs by path; newer versions of the CDK write them into a file of their own."""
        file = self.artifact.get("additionalMetadataFile")
        other = {} if file is None else _json(self.directory / file)
        return {**self.artifact.get("metadata", {}), **other}


def _stacks(directory: Path) -> Iterator[_Stack]:
    artifacts = _json(directory / "manifest.json").get("artifacts", {})
    for id_, artifact in artifacts.items():
        properties = artifact.get("properties", {})
        if artifact["type"] == "cdk:cloud-assembly":
            yield from _stacks(directory / properties["directoryName"])
        elif artifact["type"] == "aws:cloudformation:stack":
            needed = [artifacts[name] for name in artifact.get("dependencies", []) if name in artifacts]
            manifests = [
                directory / each["properties"]["file"] for each in needed if each["type"] == "cdk:asset-manifest"
            ]
            path = artifact.get("displayName", id_).partition(" ")[0]  # "Stage/Stack (Stage-Stack)"
            name = properties.get("stackName", id_)
            yield _Stack(
                directory, id_, path, name, artifact.get("environment", ""), properties, tuple(manifests), artifact
            )


def _check_environment(stack: _Stack, pseudo: Mapping[str, str]) -> None:
    account, _, region = stack.environment.removeprefix("aws://").partition("/")
    wanted = {"AWS::AccountId": account, "AWS::Region": region}
    for name, value in wanted.items():
        if value and not value.startswith("unknown-") and value != pseudo[name]:
            raise ConfigurationError(
                f"the stack {stack.path!r} is for {account}/{region}, but the credentials and settings here lead to "
                f"{pseudo['AWS::AccountId']}/{pseudo['AWS::Region']}: choose the profile and region of the stack"
            )


def _assets(manifest: Path, pseudo: Mapping[str, str]) -> Iterator[Asset]:
    for file in _json(manifest).get("files", {}).values():
        if file["source"].get("packaging", "file") != "file" or "path" not in file["source"]:
            continue  # directories that the CDK zips are none of ours
        path = manifest.parent / file["source"]["path"]
        for place in file["destinations"].values():
            role = place.get("assumeRoleArn")
            yield Asset(
                path,
                _filled(place["bucketName"], pseudo),
                _filled(place["objectKey"], pseudo),
                None if role is None else _filled(role, pseudo),
                place.get("assumeRoleExternalId"),
            )


def _filled(text: str, pseudo: Mapping[str, str]) -> str:
    """An asset manifest's text with its placeholders filled in."""
    for name, value in pseudo.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _artifact_resources(directory: Path, template: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and properties, with what needs the template resolved, also of nested stacks."""
    for each in (template, *_nested(directory, template)):
        for name, resource in each.get("Resources", {}).items():
            if resource["Type"] == RESOURCE_TYPE:
                yield name, {**resource, "Mappings": each.get("Mappings", {})}


def _nested(directory: Path, template: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The templates of the nested stacks of a template, and of the stacks that are nested in them."""
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::CloudFormation::Stack":
            path = resource.get("Metadata", {}).get("aws:asset:path")
            if path is not None:
                nested = _json(directory / path)
                yield nested
                yield from _nested(directory, nested)


def _planned(name: str, resource: Mapping[str, Any], assets: Mapping[str, Asset], pseudo: Mapping[str, str]) -> Planned:
    wanted = {
        key: value for key, value in resource["Properties"].items() if key not in ("ServiceToken", "ServiceTimeout")
    }
    properties = {key: resolve(value, pseudo, resource["Mappings"], f"{name}.{key}") for key, value in wanted.items()}
    asset = assets.get(properties["PlanKey"])
    if asset is None:
        raise ConfigurationError(
            f"the plan {properties['PlanKey']} of {name} is not among the stack's assets: run `cdk synth` again"
        )
    plan = _plan(asset.path)
    if plan.fleet is None:
        return Planned(name, asset, plan, asset.path.read_bytes(), properties)
    plan = replace(plan, fleet=None)
    text = plan.text()
    sha256 = hashlib.sha256(text).hexdigest()
    directory = properties["PlanKey"].rpartition("/")
    # The handler may read what begins as the assets of this library do.
    key = f"{directory[0]}{directory[1]}{ASSET_PREFIX}plan-{sha256}.json"
    return Planned(name, asset, plan, text, {**properties, "PlanKey": key, "PlanSha256": sha256})


def _plan(file: Path) -> StackPlan:
    try:
        return StackPlan.parse(_text(file))
    except DocumentError as error:
        is_newer = isinstance(error, OtherVersionError) and error.is_newer
        raise ConfigurationError(
            f"{file} is not a plan of this version of cdk-triton ({error}): "
            f"{'update cdk-triton' if is_newer else 'run `cdk synth` again'}"
        ) from error


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read ({error.strerror}): run `cdk synth` again") from error


def _json(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(_text(file))
    except ValueError as error:
        raise ConfigurationError(f"{file} is not JSON ({error}): run `cdk synth` again") from error
    return document
