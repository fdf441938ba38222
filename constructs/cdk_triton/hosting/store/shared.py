"""One artifact store for several apps of an account and region: its app exports values, and the others import them.

The exports are CloudFormation's, as between the stacks of one app. An export cannot be changed or removed while a stack
imports it. So the store of a live endpoint stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import CfnOutput, Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.artifacts import S3File
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.images import PULL_ACTIONS, container_image, sagemaker_repositories
from cdk_triton.hosting.access.keys import require_key
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import share_an_environment
from cdk_triton.hosting.naming.taken_names import take_name
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.hosting.store.builds.grants import allow_inputs, allow_pull
from cdk_triton.hosting.store.builds.selection import BUILDER_IDS, BUILDING, BuilderChoice
from cdk_triton.hosting.store.imported import ImportedArtifactStore
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["SharedArtifactStore", "export_store"]

_EXPORT_PREFIX = re.compile(r"[A-Za-z0-9:-]{1,200}")
"""The characters of an export's name, of which the rest of 255 follows ("CloudFormation template Outputs syntax")."""


class SharedArtifactStore(Construct):
    """The store of another app in this account and region. Models use it like a store of their own app.

    CloudFormation takes the values of the store from that app's exports during a deployment. Repeat the settings that
    take effect at synth: the store's `builders`, and whether it has an `encryption_key`.

    Attributes:
        bucket: the bucket.
        former_keys: all but the first of `encryption_keys`.
        promotes_from: always None.
        service_token: the provider of `Custom::TritonArtifacts`.
        handler_role: the role that reads the inputs of builds from S3.
        build_roles: the roles of the builders' jobs, by the builder's kind.

    Args:
        scope: any stack of the app.
        id: the construct's id.
        export_prefix: the store's `export_prefix`.
        builders: the store's `builders`.
        has_encryption_key: whether the store has an `encryption_key`, which its app then exports.
        encryption_keys: the store's own key and then its `former_keys`. Give this argument instead of
            `has_encryption_key`.

    Raises:
        ConfigurationError: `export_prefix` cannot begin an export's name, or two builders are of the same kind; a key
            is asymmetric, for HMAC or an alias imported by its name only, or both `has_encryption_key` and
            `encryption_keys` are given.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        export_prefix: str,
        builders: Sequence[Builder] | None = None,
        has_encryption_key: bool = False,
        encryption_keys: Sequence[kms.IKey] = (),
    ) -> None:
        super().__init__(scope, id)
        if has_encryption_key and encryption_keys:
            raise ConfigurationError(
                f"{path_of(self)} got both has_encryption_key, which takes the key from the store's exports, and "
                "encryption_keys, which name the key: remove one of the two"
            )
        prefix = _checked(export_prefix)

        def exported(name: str) -> str:
            return Fn.import_value(f"{prefix}:{name}")

        self._choice = BuilderChoice(self, builders)
        keys = [require_key(key, f"a key in encryption_keys of {path_of(self)}") for key in encryption_keys]
        if has_encryption_key:
            keys = [kms.Key.from_key_arn(self, "Key", exported("KeyArn"))]
        self.former_keys: Sequence[kms.IKey] = keys[1:]
        self.bucket: s3.IBucket = s3.Bucket.from_bucket_attributes(
            self,
            "Bucket",
            bucket_name=exported(_bucket(bool(keys))),
            encryption_key=keys[0] if keys else None,
        )
        self.promotes_from: ImportedArtifactStore | None = None  # a store that promotes is not shared
        self.service_token = exported("ServiceToken")
        self.handler_role = iam.Role.from_role_name(self, "HandlerRole", exported("HandlerRole"))
        self.build_roles: Mapping[str, iam.IRole] = {
            kind: iam.Role.from_role_name(self, f"{name}Role", exported(f"{name}Role"))
            for kind, name in BUILDER_IDS.items()
            if any(builder._kind == kind for builder in self._choice.builders)
        }

    def _require_assets_of(self, scope: Construct, bucket_name: str) -> None:
        """The store's app alone knows the bucket of the assets, so another bucket fails only in the deployment."""

    def _builder_for(
        self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File], work: str = BUILDING
    ) -> Builder:
        """The permissions are policies in this app, because the roles belong to the store's app."""
        builder = self._choice.builder_for(scope, platform, work)
        if platform.image is not None:  # the store's app has allowed SageMaker's images
            allow_pull(scope, container_image(scope, platform), self.build_roles[builder._kind])
        allow_inputs(scope, inputs, self.handler_role)
        return builder


def export_store(
    store: Construct,
    export_prefix: str,
    *,
    bucket: s3.IBucket,
    service_token: str,
    handler: iam.Role,
    builders: Mapping[str, iam.Role],
    had_key: bool,
) -> None:
    """Export the values of a store that other apps need, and let its builders pull every image of SageMaker.

    A store that once had a key is exported as a store with a key, because other apps must be able to read what the key
    has encrypted.

    Raises:
        ConfigurationError: `export_prefix` cannot begin an export's name, or another store has it.
    """
    fix = "exports are unique in an account and region: give each store a prefix of its own"
    take_name(store, "export_prefix", export_prefix, share_an_environment, fix)
    key = bucket.encryption_key
    values = {
        _bucket(key is not None or had_key): bucket.bucket_name,
        **({} if key is None else {"KeyArn": key.key_arn}),
        "ServiceToken": service_token,
        "HandlerRole": handler.role_name,
        **{f"{BUILDER_IDS[kind]}Role": role.role_name for kind, role in builders.items()},
    }
    outputs = Construct(store, "Exports")
    for name, value in values.items():
        CfnOutput(outputs, name, value=value, export_name=f"{_checked(export_prefix)}:{name}")
    images = sagemaker_repositories(store)
    reason = "SageMaker's registry depends on the region, which is known only during deployment, and on the release."
    for role in builders.values() if images else ():
        allow(role, Statement(actions=list(PULL_ACTIONS), resources=images))
        acknowledge_wildcards(role, {image: reason for image in images if ":*:" in image})


def _bucket(has_encryption_key: bool) -> str:
    """The name of the export says whether there is a key, so CloudFormation rejects an app that is wrong about it."""
    return "EncryptedBucket" if has_encryption_key else "Bucket"


def _checked(export_prefix: str) -> str:
    reject_token(export_prefix, "export_prefix")
    if not _EXPORT_PREFIX.fullmatch(export_prefix):
        raise ConfigurationError(
            f"export_prefix is {quoted(export_prefix)}: use a literal name, such as 'triton-artifacts', of up to 200 "
            "letters, digits, ':' and '-'"
        )
    return export_prefix
