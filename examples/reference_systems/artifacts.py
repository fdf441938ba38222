"""The artifact store of the reference systems."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton import CodeBuildGpuBuilder, TritonArtifactStore


class Artifacts(cdk.Stack):
    """The store in a stack of its own, which outlives those that use it, with a key and a log of who reads and writes.

    Neither is needed to try it: `TritonArtifactStore(stack, "Store")` is a store too.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(400))],
        )
        cdk.Validations.of(access_logs).acknowledge(
            cdk.Acknowledgment(
                id="NIST.800.53.R5-S3DefaultEncryptionKMS",
                reason="S3 delivers access logs only to buckets that are encrypted with S3's own keys.",
            ),
            cdk.Acknowledgment(
                id="NIST.800.53.R5-S3BucketReplicationEnabled",
                reason="A replica needs a bucket in another stack. An organisation has such a bucket for its logs.",
            ),
        )
        resource = access_logs.node.default_child
        if isinstance(resource, cdk.CfnResource):
            why = "Records of accesses to the records would never end."
            resource.add_metadata("checkov", {"skip": [{"id": "CKV_AWS_18", "comment": why}]})
        # The stacks name no region, so that nobody knows here whether CodeBuild has GPUs there. With no builder named,
        # a SageMaker Processing job would build: it has GPUs in more regions, and most accounts have no quota for it.
        self.store = TritonArtifactStore(
            self,
            "Store",
            builders=[CodeBuildGpuBuilder()],
            encryption_key=kms.Key(self, "Key", description="The Triton artifact store", enable_key_rotation=True),
            access_logs_bucket=access_logs,
        )
