"""The policies of an account on the local AWS as they are when a call is made: AWS authorizes a call before it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from tests.permissions.judging import Document, Policies, document

from cdk_triton_local.process import ITSELF

if TYPE_CHECKING:
    from cdk_triton_local import LocalAws

__all__ = ["Account"]


@dataclass
class Account:
    """Reads moto's state, and the stacks of the local AWS.

    Attributes:
        aws: the local AWS.
    """

    aws: LocalAws

    @property
    def id(self) -> str:
        """The account."""
        return self.aws.account

    @property
    def region(self) -> str:
        """The region."""
        return self.aws.region

    def stack(self, name: str) -> str:
        """The ARN of a stack, by its name or ARN; with any id if there is none."""
        if name.startswith("arn:"):
            return name
        try:
            cloudformation = self.aws.client("cloudformation", ITSELF)  # whose calls have no faults
            found: str = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        except ClientError:
            return f"arn:aws:cloudformation:{self.region}:{self.id}:stack/{name}/any"
        return found

    def of_role(self, arn: str) -> Policies | None:
        """The policies of a role, or None if it does not exist."""
        role = self._role(arn)
        if role is None:
            return None
        managed = [_default_version(policy) for policy in list(role.managed_policies.values())]
        inline = [_text(document) for document in list(role.policies.values())]
        boundary = role.permissions_boundary_arn
        policies = self._backend("iam", "aws").managed_policies
        return Policies(
            identity=tuple(sorted(managed + inline)),
            boundary=_default_version(policies[boundary]) if boundary else None,
        )

    def trust(self, arn: str) -> Document | None:
        """The trust policy of a role."""
        role = self._role(arn)
        return None if role is None else _text(role.assume_role_policy_document)

    def bucket_policy(self, name: str) -> Document | None:
        """The policy of a bucket, or None."""
        bucket = self._backend("s3", "aws").buckets.get(name)
        return _text(bucket.policy) if bucket is not None and bucket.policy else None

    def bucket_key(self, name: str) -> str | None:
        """The ARN of the KMS key that encrypts the objects of a bucket by default, or None."""
        bucket = self._backend("s3", "aws").buckets.get(name)
        rules = ((bucket.encryption or {}) if bucket is not None else {}).get("Rule", [])
        for rule in rules if isinstance(rules, list) else [rules]:
            default = rule.get("ApplyServerSideEncryptionByDefault", {})
            if default.get("KMSMasterKeyID"):
                return self.key_arn(str(default["KMSMasterKeyID"]))
        return None

    def has_object(self, bucket: str, key: str) -> bool:
        """Whether there is an object."""
        found = self._backend("s3", "aws").buckets.get(bucket)
        return found is not None and key in found.keys

    def key_arn(self, key: str) -> str:
        """The ARN of a key, by its ARN or id."""
        return key if key.startswith("arn:") else f"arn:aws:kms:{self.region}:{self.id}:key/{key}"

    def key_policy(self, arn: str) -> Document | None:
        """The policy of a KMS key."""
        key = self._backend("kms", self.region).keys.get(arn.rpartition("/")[2])
        return _text(key.policy) if key is not None else None

    def topic(self, arn: str) -> tuple[Document | None, str | None]:
        """The policy of a topic, and the ARN of its KMS key."""
        topic = self._backend("sns", self.region).topics.get(arn)
        if topic is None:
            return None, None
        key = topic.kms_master_key_id
        return _text(topic._policy_json), self.key_arn(key) if key else None

    def _role(self, arn: str) -> Any:
        roles = self._backend("iam", "aws").roles
        return next((role for role in list(roles.values()) if role.arn == arn), None)

    def _backend(self, service: str, region: str) -> Any:
        from moto.backends import get_backend

        return get_backend(service)[self.id][region]  # type: ignore[call-overload]  # any service


def _default_version(policy: Any) -> Document:
    return next(_text(version.document) for version in list(policy.versions) if version.is_default)


def _text(policy: Any) -> Document:
    return document(policy if isinstance(policy, dict) else json.loads(policy))
