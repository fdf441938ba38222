"""S3 buckets and their policies, and ECR repositories."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from collections.abc import Mapping

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import document, has_to_exist, missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)
from cdk_triton_local.process import ITSELF


@register
class Bucket(ResourceType):
    """AWS::S3::Bucket."""

    type_name = "AWS::S3::Bucket"
    note = (
        "A bucket with versioning and tags. Lifecycle rules, encryption and access settings are kept, but have no "
        "effect."
    )
    modelled = frozenset({"BucketName", "Tags", "VersioningConfiguration"})
    recorded = frozenset(
        {
            "AccessControl",
            "BucketEncryption",
            "LifecycleConfiguration",
            "LoggingConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
        }
    )
    attributes = frozenset({"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("BucketName") or context.generated_name(63, lower=True)
        place = context.environment
        location = {} if place.region == "us-east-1" else {"LocationConstraint": place.region}
        # In us-east-1 S3 answers 200 for a bucket that the caller owns; CloudFormation fails because it exists.
        owned = {bucket["Name"] for bucket in context.services.client("s3", ITSELF).list_buckets()["Buckets"]}
        if name in owned:
            raise LocalError(f"{name} already exists")
        context.client("s3").create_bucket(Bucket=name, **({"CreateBucketConfiguration": location} if location else {}))
        self._configure(context, name, properties, {})
        return self._physical(context, name)

    def existing(self, context: Context, identifier: Mapping[str, str]) -> PhysicalResource:
        name = identifier["BucketName"]
        with has_to_exist("Bucket not found"):
            context.client("s3").head_bucket(Bucket=name)
        return self._physical(context, name)

    def add_tags(self, context: Context, physical: PhysicalResource) -> None:
        s3 = context.client("s3")
        try:
            before = s3.get_bucket_tagging(Bucket=physical.id)["TagSet"]
        except s3.exceptions.ClientError:  # NoSuchTagSet
            before = []
        s3.put_bucket_tagging(Bucket=physical.id, Tagging={"TagSet": context.tag_list({"Tags": before})})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        self._configure(context, physical.id, properties, previous)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("s3").delete_bucket(Bucket=physical.id)

    @staticmethod
    def _physical(context: Context, name: str) -> PhysicalResource:
        place = context.environment
        suffix = place.url_suffix
        return PhysicalResource(
            name,
            {
                "Arn": f"arn:{place.partition}:s3:::{name}",
                "DomainName": f"{name}.s3.{suffix}",
                "DualStackDomainName": f"{name}.s3.dualstack.{place.region}.{suffix}",
                "RegionalDomainName": f"{name}.s3.{place.region}.{suffix}",
            },
        )

    @staticmethod
    def _configure(context: Context, name: str, properties: Properties, previous: Properties) -> None:
        s3 = context.client("s3")
        if "VersioningConfiguration" in properties or "VersioningConfiguration" in previous:
            status = properties.get("VersioningConfiguration", {}).get("Status", "Suspended")
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": status})
        tags = context.tag_list(properties)
        if tags or "Tags" in previous:
            s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})


@register
class BucketPolicy(ResourceType):
    """AWS::S3::BucketPolicy."""

    type_name = "AWS::S3::BucketPolicy"
    note = "The policy is stored with the bucket and returned by GetBucketPolicy, but never enforced."
    modelled = frozenset({"Bucket", "PolicyDocument"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        context.client("s3").put_bucket_policy(
            Bucket=properties["Bucket"], Policy=document(properties["PolicyDocument"])
        )
        return PhysicalResource(properties["Bucket"])

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return self.create(context, properties)

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("s3").delete_bucket_policy(Bucket=physical.id)


@register
class Repository(ResourceType):
    """AWS::ECR::Repository."""

    type_name = "AWS::ECR::Repository"
    note = "A repository to which no program can push. Images are recorded by name and never pulled."
    modelled = frozenset({"EmptyOnDelete", "ImageTagMutability", "RepositoryName", "Tags"})
    recorded = frozenset(
        {"EncryptionConfiguration", "ImageScanningConfiguration", "LifecyclePolicy", "RepositoryPolicyText"}
    )
    attributes = frozenset({"Arn", "RepositoryUri"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("RepositoryName") or context.generated_name(256, lower=True)
        created = context.client("ecr").create_repository(
            repositoryName=name,
            imageTagMutability=properties.get("ImageTagMutability", "MUTABLE"),
            tags=context.tag_list(properties),
        )["repository"]
        return PhysicalResource(name, {"Arn": created["repositoryArn"], "RepositoryUri": created["repositoryUri"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        for mutability in picked(properties, "ImageTagMutability").values():
            context.client("ecr").put_image_tag_mutability(repositoryName=physical.id, imageTagMutability=mutability)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("ecr").delete_repository(
                repositoryName=physical.id, force=bool(properties.get("EmptyOnDelete"))
            )
