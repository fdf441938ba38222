"""Finds the artifact store that a CloudFormation stack holds."""

from __future__ import annotations

from dataclasses import dataclass

from botocore.exceptions import ClientError

from cdk_triton._wording import listed
from cdk_triton.cli.artifacts.assembly import STORE_HANDLER
from cdk_triton.cli.artifacts.aws import Aws, code_of
from cdk_triton.errors import ConfigurationError, StoreError

__all__ = ["Store", "only_store", "open_store", "stores_of_region"]


@dataclass(frozen=True)
class Store:
    """A deployed `TritonArtifactStore`.

    Attributes:
        aws: the account and region.
        bucket: the name of the store's bucket.
        function: the name of the function that carries out build plans.
    """

    aws: Aws
    bucket: str
    function: str


def open_store(stack: str) -> Store:
    """The store in a stack, whether it has the stack to itself or shares it with models.

    Args:
        stack: the stack's name or ARN, in the account and region of boto3's usual settings.

    Raises:
        ConfigurationError: there is no such stack, or no artifact store in it.
        StoreError: the stack holds several.
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    aws = Aws()
    found = [
        configuration
        for name in _functions(aws, stack)
        if (configuration := aws.client("lambda").get_function_configuration(FunctionName=name))["Handler"]
        == STORE_HANDLER
    ]
    if not found:
        raise ConfigurationError(
            f"the stack {stack!r} in {aws.region} does not contain a TritonArtifactStore: none of its functions has "
            f"the handler {STORE_HANDLER}; name the stack that contains the store"
        )
    if len(found) > 1:
        raise StoreError(
            f"the stack {stack} holds {len(found)} artifact stores, and the command takes one only: put them into "
            "stacks of their own"
        )
    return Store(aws, found[0]["Environment"]["Variables"]["STORE_BUCKET"], found[0]["FunctionName"])


def only_store() -> Store:
    """The store of the region, where there is one.

    Raises:
        ConfigurationError: the region has no store, or several.
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    aws = Aws()
    found = stores_of_region(aws)
    if not found:
        raise ConfigurationError(
            f"there is no TritonArtifactStore in {aws.region}, because no function has the handler {STORE_HANDLER}: "
            "deploy one, or choose the account and region that have one"
        )
    if len(found) > 1:
        stacks = sorted(_stack_of(aws, each.function) for each in found)
        raise ConfigurationError(
            f"{aws.region} has {len(found)} artifact stores, in the stacks {listed(stacks)}: add --store and one of "
            "them"
        )
    return found[0]


def stores_of_region(aws: Aws) -> list[Store]:
    """Every store of the region.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    functions = aws.pages("lambda", "list_functions", "Functions")
    found = [each for each in functions if each.get("Handler") == STORE_HANDLER]
    return [Store(aws, each["Environment"]["Variables"]["STORE_BUCKET"], each["FunctionName"]) for each in found]


def _stack_of(aws: Aws, function: str) -> str:
    found = aws.client("cloudformation").describe_stack_resources(PhysicalResourceId=function)
    return str(found["StackResources"][0]["StackName"])


def _functions(aws: Aws, stack: str) -> list[str]:
    try:
        resources = list(aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack))
    except ClientError as error:
        if code_of(error) == "ValidationError":  # "Stack with id … does not exist", or a name that cannot be one
            reason = error.response["Error"]["Message"]
            raise ConfigurationError(f"{reason} (looked for in {aws.region})") from error
        raise
    return [
        each["PhysicalResourceId"]
        for each in resources
        if each["ResourceType"] == "AWS::Lambda::Function" and each.get("PhysicalResourceId")
    ]
