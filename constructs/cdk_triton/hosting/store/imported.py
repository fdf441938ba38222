"""The artifact store of another account or region, to be read and not written."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import has_own_policy, require_key, warn_about_key
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.naming.per_construct import encryption_key_of, path_of
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.protocol.layout import ARTIFACTS_PREFIX

__all__ = ["ImportedArtifactStore", "allow_promotion", "check_promotion", "grant_read_of_artifacts", "keys_of"]


class ImportedArtifactStore(Construct):
    """A store in another account or region, from which a store in this stack can copy the complete archives.

    `TritonArtifactStore.from_bucket` returns it. The receiving store copies each archive once, and then no longer needs
    the source store for it. Endpoints do not read from an imported store, for three reasons: SageMaker reads models
    only from its own region; a multi-model endpoint needs a prefix that this app can write to; and
    `cdk-triton artifacts gc` in the other account does not find the models of this account.

    Attributes:
        bucket: the imported store's bucket. The bucket's `encryption_key` is the key of that store.
        former_keys: the keys that the imported store had before.

    Args:
        scope: the stack or construct that uses the store.
        id: the construct's id.
        bucket: the imported store's bucket.
        former_keys: the keys that the imported store had before.

    Raises:
        ConfigurationError: a key is asymmetric or for HMAC, or is an alias that was imported by its name only.
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, bucket: s3.IBucket, former_keys: Sequence[kms.IKey] = ()) -> None:
        super().__init__(scope, id)
        self.bucket = bucket
        self.former_keys: Sequence[kms.IKey] = tuple(former_keys)
        for key in self._keys:  # an alias belongs to this account and region, and cannot refer to a key of another one
            require_key(key, f"a key of the imported artifact store {path_of(bucket)}")

    @property
    def _keys(self) -> list[kms.IKey]:
        return keys_of(self.bucket, self.former_keys)


def keys_of(bucket: s3.IBucket, former_keys: Sequence[kms.IKey]) -> list[kms.IKey]:
    """Every key with which objects of a store may be encrypted, the bucket's own first."""
    own = encryption_key_of(bucket)
    return [*([] if own is None else [own]), *former_keys]


def grant_read_of_artifacts(
    store: IConstruct, bucket: s3.IBucket, former_keys: Sequence[kms.IKey], grantee: iam.IGrantable
) -> iam.Grant:
    """Allow a principal to read complete archives, by the policies of the bucket and of its key.

    With `s3:ListBucket`, the status for a missing object is 404 instead of 403. The condition `s3:prefix` would prevent
    that, because a request for an object has no prefix ("HeadObject" in S3's API reference). So the principal can list
    the names of all objects.
    """
    objects, names = (
        iam.Grant.add_to_principal_or_resource(
            grantee=grantee, actions=[action], resource_arns=[resource], resource=bucket
        )
        for action, resource in (
            ("s3:GetObject", bucket.arn_for_objects(f"{ARTIFACTS_PREFIX}*")),
            ("s3:ListBucket", bucket.bucket_arn),
        )
    )
    grant = objects.combine(names)
    for key in keys_of(bucket, former_keys):
        grant = grant.combine(key.grant(grantee, "kms:Decrypt"))
        account = grantee.grant_principal.principal_account
        if account not in (None, stack_of(store).account) and not has_own_policy(key):
            warn_about_key(store, key, f"the account {account} to decrypt with the key (kms:Decrypt)")
    return grant


def check_promotion(
    store: IConstruct,
    promotes_from: ImportedArtifactStore | None,
    builders: Sequence[Builder] | None,
    export_prefix: str | None,
) -> None:
    """Reject arguments that a store with `promotes_from` cannot have.

    Raises:
        ConfigurationError: the store has builders, or exports.
    """
    if promotes_from is not None and builders:
        raise ConfigurationError(
            f"{store.node.path} promotes archives that another store has built, but also has builders: remove "
            "builders, or remove promotes_from to build in this store"
        )
    if promotes_from is not None and export_prefix is not None:
        raise ConfigurationError(
            f"{store.node.path} promotes archives of another store, but also has an export_prefix, so other apps "
            "would store untested archives there: remove export_prefix, and let each app promote into a store of its "
            "own"
        )


def allow_promotion(scope: IConstruct, role: iam.Role, origin: ImportedArtifactStore) -> None:
    """Allow the handler of the receiving store to read the complete archives of the source store.

    Across accounts, both sides must allow that: the receiving store with this permission, and the source store with the
    policies of its bucket and key, to which `TritonArtifactStore.grant_read` adds it.
    """
    bucket = origin.bucket
    objects = bucket.arn_for_objects(f"{ARTIFACTS_PREFIX}*")
    allow(
        role,
        Statement(actions=["s3:GetObject"], resources=[objects]),
        Statement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]),
    )
    acknowledge_wildcards(scope, {objects: "Later models determine which archives the store promotes."})
    if keys := origin._keys:
        allow(role, Statement(actions=["kms:Decrypt"], resources=[key.key_arn for key in keys]))
