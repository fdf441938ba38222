"""Finds the publisher of a `TritonMultiModel` by the template of its stack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from cdk_triton._wording import listed
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription, platform_name
from cdk_triton.cli.artifacts.aws import Aws, code_of
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol import layout

__all__ = ["Fleet", "open_fleet"]

_WITHOUT_PUBLISHER = (
    "call add_publisher() and deploy the stack; if a publisher was removed, its published ensembles are still in the "
    "store, and you can unpublish them after this deployment"
)

_NESTED = (
    "if one of them has the publisher, give its name instead of {0}, as `aws cloudformation "
    "describe-stack-resources --stack-name {0}` prints it"
)


@dataclass(frozen=True)
class Fleet:
    """A deployed `TritonMultiModel` with a publisher.

    Attributes:
        aws: the account and region.
        name: the name on the command line, `STACK/PATH`.
        description: the publisher.
        machine: the ARN of the publisher's state machine.
        bucket: the store's bucket.
        platforms: the labels of all platforms that the stack has a publisher for.
    """

    aws: Aws
    name: str
    description: PublisherDescription
    machine: str
    bucket: str
    platforms: frozenset[str]

    @property
    def platform_option(self) -> str:
        """The option with which a command finds this publisher; "" for the publisher of the present platform."""
        return f" --platform {platform_name(self.description.platform)}" if self.description.is_next else ""

    @property
    def served(self) -> str:
        """The prefix that the endpoint serves from."""
        return layout.fleet_prefix(self.description.fleet, self.description.platform.label)

    @property
    def catalogue(self) -> str:
        """The prefix of the catalogue."""
        return layout.catalogue_prefix(self.description.fleet, self.description.platform.label)

    @cached_property
    def caller(self) -> str:
        """The `aws:userid` of these credentials.

        Raises:
            ClientError, BotoCoreError: AWS rejected the call, or could not be reached.
        """
        return str(self.aws.client("sts").get_caller_identity()["UserId"])

    def failures(self, execution: str) -> str:
        """The prefix of the reasons why the execution of this ARN did not change ensembles."""
        return layout.publishing_failures_prefix(self.description.fleet, self.description.platform.label, execution)

    def keys(self, prefix: str) -> Iterator[str]:
        """The object keys below a prefix."""
        pages = self.aws.pages("s3", "list_objects_v2", "Contents", Bucket=self.bucket, Prefix=prefix)
        return (each["Key"] for each in pages)


def open_fleet(name: str, platform: str | None = None) -> Fleet:
    """The publisher of a `TritonMultiModel`.

    Args:
        name: the stack, a slash, and the construct's path within the stack.
        platform: the platform that it publishes for, RELEASE/INSTANCE; None for the one that the endpoint serves.

    Raises:
        ConfigurationError: there is no such stack, it has no such publisher, none for the platform, or another version
            of the library made it.
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    stack, slash, path = name.partition("/")
    if not (stack and slash and path):
        raise ConfigurationError(
            f"'{name}' is not STACK/FLEET: give the stack and the construct id, e.g. Serving/Fleet"
        )
    aws = Aws()
    template = _template(aws, stack)
    found = list(_publishers(template))
    paths = {each["multi_model"] for _, each in found}
    if path not in paths:
        known = f"it has {listed(sorted(paths))}" if paths else _WITHOUT_PUBLISHER
        if any(each.get("Type") == "AWS::CloudFormation::Stack" for each in template.get("Resources", {}).values()):
            known += f". It has nested stacks: {_NESTED.format(stack)}"
        raise ConfigurationError(f"the stack {stack} in {aws.region} does not have a publisher of {path}; {known}")
    ours = [(logical, PublisherDescription.parse(each, name)) for logical, each in found if each["multi_model"] == path]
    logical, description = _chosen(ours, platform, name)
    resource = aws.client("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId=logical)
    machine = resource["StackResourceDetail"]["PhysicalResourceId"]
    definition = json.loads(aws.client("stepfunctions").describe_state_machine(stateMachineArn=machine)["definition"])
    bucket = definition["States"]["Ensembles"]["ItemReader"]["Parameters"]["Bucket"]
    labels = frozenset(each.platform.label for _, each in ours)
    return Fleet(aws, name, description, machine, bucket, labels)


def _chosen(
    publishers: Sequence[tuple[str, PublisherDescription]], platform: str | None, name: str
) -> tuple[str, PublisherDescription]:
    """The publisher for a platform, and its logical id."""
    known = {platform_name(each.platform): (logical, each) for logical, each in publishers}
    if platform is None:
        return next((logical, each) for logical, each in publishers if not each.is_next)
    if platform not in known:
        raise ConfigurationError(
            f"{name} has no publisher for the platform {platform}; it has {listed(sorted(known))}: use one of them, or "
            "deploy add_publisher(next_platform=…) first"
        )
    return known[platform]


def _template(aws: Aws, stack: str) -> Mapping[str, Any]:
    try:
        body = aws.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    except ClientError as error:
        if code_of(error) == "ValidationError":  # "Stack with id … does not exist", or a name that cannot be one
            reason = error.response["Error"]["Message"]
            raise ConfigurationError(f"{reason} (looked for in {aws.region})") from error
        raise
    try:
        template: Mapping[str, Any] = json.loads(body) if isinstance(body, str) else body
    except ValueError:  # YAML: not a template of the CDK
        return {}
    return template


def _publishers(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical, resource in template.get("Resources", {}).items():
        if (document := resource.get("Metadata", {}).get(PUBLISHER_METADATA)) is not None:
            yield logical, document
