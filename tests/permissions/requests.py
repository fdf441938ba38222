"""What IAM authorizes when a service is called: actions, resources and the condition keys that the service sends.

Source of the actions and resources: the service authorization reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html),
which the judge has as data: it rejects an action, a type of resource or a condition key that the reference lacks. Only
what differs from "the action is called like the operation" stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from tests.permissions.judging import Request

if TYPE_CHECKING:
    from tests.permissions.account import Account

    from cdk_triton_local.process import Call

__all__ = ["actions_of", "deployment_requests", "passed_roles", "requests_of"]

IAM_SERVICES: Final = {
    "stepfunctions": "states",
    "sagemaker-runtime": "sagemaker",
    "service-quotas": "servicequotas",
}
"""The prefix of IAM's actions, where boto3 calls the service differently."""

S3_ACTIONS: Final = {
    "AbortMultipartUpload": ["s3:AbortMultipartUpload"],
    "CompleteMultipartUpload": ["s3:PutObject"],
    "CreateMultipartUpload": ["s3:PutObject"],
    "DeleteBucketCors": ["s3:PutBucketCORS"],
    "DeleteBucketEncryption": ["s3:PutEncryptionConfiguration"],
    "DeleteBucketLifecycle": ["s3:PutLifecycleConfiguration"],
    "DeleteBucketTagging": ["s3:PutBucketTagging"],
    "DeleteObject": ["s3:DeleteObject"],
    "DeleteObjects": ["s3:DeleteObject"],
    "DeletePublicAccessBlock": ["s3:PutBucketPublicAccessBlock"],
    "GetBucketEncryption": ["s3:GetEncryptionConfiguration"],
    "GetBucketLifecycleConfiguration": ["s3:GetLifecycleConfiguration"],
    "GetPublicAccessBlock": ["s3:GetBucketPublicAccessBlock"],
    "HeadBucket": ["s3:ListBucket"],
    "HeadObject": ["s3:GetObject"],
    "ListBuckets": ["s3:ListAllMyBuckets"],
    "ListMultipartUploads": ["s3:ListBucketMultipartUploads"],
    "ListObjectVersions": ["s3:ListBucketVersions"],
    "ListObjects": ["s3:ListBucket"],
    "ListObjectsV2": ["s3:ListBucket"],
    "ListParts": ["s3:ListMultipartUploadParts"],
    "PutBucketEncryption": ["s3:PutEncryptionConfiguration"],
    "PutBucketLifecycleConfiguration": ["s3:PutLifecycleConfiguration"],
    "PutPublicAccessBlock": ["s3:PutBucketPublicAccessBlock"],
    "UploadPart": ["s3:PutObject"],
}
"""By operation ("Required permissions for Amazon S3 API operations" in S3's user guide)."""

RESOURCES: Final[Mapping[tuple[str, str], str]] = {
    ("cloudformation", "ListImports"): "*",
    ("cloudformation", "ListStacks"): "*",
    ("cloudwatch", "GetMetricStatistics"): "*",
    ("codebuild", "ListBuildsForProject"): "codebuild:{region}:{account}:project/{projectName}",
    ("codebuild", "StartBuild"): "codebuild:{region}:{account}:project/{projectName}",
    ("codebuild", "StopBuild"): "codebuild:{region}:{account}:project/{project}",
    ("ecr", "BatchGetImage"): "ecr:{region}:{registryId}:repository/{repositoryName}",
    ("iam", "GetRole"): "iam::{account}:role/{RoleName}",
    ("lambda", "GetFunctionConfiguration"): "lambda:{region}:{account}:function:{FunctionName}",
    ("lambda", "ListFunctions"): "*",
    ("logs", "CreateLogGroup"): "logs:{region}:{account}:log-group:{logGroupName}:log-stream:",
    ("logs", "CreateLogStream"): "logs:{region}:{account}:log-group:{logGroupName}:log-stream:{logStreamName}",
    ("logs", "DescribeLogStreams"): "logs:{region}:{account}:log-group:{logGroupName}:log-stream:",
    ("logs", "DescribeResourcePolicies"): "*",
    ("logs", "GetLogEvents"): "logs:{region}:{account}:log-group:{logGroupName}:log-stream:{logStreamName}",
    ("logs", "PutLogEvents"): "logs:{region}:{account}:log-group:{logGroupName}:log-stream:{logStreamName}",
    ("sagemaker", "CreateProcessingJob"): "sagemaker:{region}:{account}:processing-job/{ProcessingJobName}",
    ("sagemaker", "DescribeEndpoint"): "sagemaker:{region}:{account}:endpoint/{EndpointName}",
    ("sagemaker", "DescribeEndpointConfig"): "sagemaker:{region}:{account}:endpoint-config/{EndpointConfigName}",
    ("sagemaker", "DescribeInferenceComponent"): (
        "sagemaker:{region}:{account}:inference-component/{InferenceComponentName}"
    ),
    ("sagemaker", "DescribeModel"): "sagemaker:{region}:{account}:model/{ModelName}",
    ("sagemaker", "DescribeModelPackage"): "{ModelPackageName}",
    ("sagemaker", "DescribeProcessingJob"): "sagemaker:{region}:{account}:processing-job/{ProcessingJobName}",
    ("sagemaker", "InvokeEndpointAsync"): "sagemaker:{region}:{account}:endpoint/{EndpointName}",
    ("sagemaker", "ListEndpointConfigs"): "*",
    ("sagemaker", "ListEndpoints"): "*",
    ("sagemaker", "ListInferenceComponents"): "*",
    ("sagemaker", "ListModels"): "*",
    ("servicequotas", "ListAWSDefaultServiceQuotas"): "*",
    ("servicequotas", "ListServiceQuotas"): "*",
    ("ssm", "GetParameter"): "ssm:{region}:{account}:parameter{Name}",
    ("states", "DescribeExecution"): "{executionArn}",
    ("states", "DescribeMapRun"): "{mapRunArn}",
    ("states", "DescribeStateMachine"): "{stateMachineArn}",
    ("states", "ListMapRuns"): "{executionArn}",
    ("states", "StartExecution"): "{stateMachineArn}",
    ("sts", "AssumeRole"): "{RoleArn}",
}
"""By service and action, for roles and for the callers of commands; the rest of an ARN after its partition.

The ARN of a log group has more parts than in the reference ("Overview of managing access permissions to your CloudWatch
Logs resources": policies have `log-group:NAME:*` for its actions).
"""


def actions_of(service: str, operation: str) -> list[str]:
    """The actions that IAM authorizes for an operation of a service; both as boto3 calls them."""
    if service == "s3":
        return S3_ACTIONS.get(operation, [f"s3:{operation}"])
    if (service, operation) == ("lambda", "Invoke"):
        return ["lambda:InvokeFunction"]
    return [f"{IAM_SERVICES.get(service, service)}:{operation}"]


def requests_of(call: Call, account: Account) -> Iterator[Request]:
    """The decisions that one call needs.

    Raises:
        LookupError: the resource of the call is not known here.
    """
    service = IAM_SERVICES.get(call.service, call.service)
    if service == "s3":
        yield from _of_s3(call, account)
        return
    if (special := _SPECIAL.get((service, call.operation))) is not None:
        yield from special(call.parameters, account)
        return
    if service == "kms" or (service, call.operation) not in RESOURCES:
        raise LookupError(f"{service}:{call.operation}")
    yield Request(f"{service}:{call.operation}", _resource(service, call.operation, call.parameters, account))


def deployment_requests(call: Call, account: Account) -> Iterator[Request]:
    """The decisions that a call of CloudFormation needs, on any resource: the names of most are not known before."""
    key = call.parameters.get("KeyId") if call.service == "kms" else None
    for action in actions_of(call.service, call.operation):
        yield Request(action, None if key is None else account.key_arn(key))


def passed_roles(call: Call) -> Iterator[tuple[str, str]]:
    """The roles that a call passes to a service, with the service."""
    for operation, place, service in _PASSING:
        if call.operation == operation:
            role = reduce(lambda part, key: part.get(key, {}), place.split("."), call.parameters)
            if isinstance(role, str) and role.startswith("arn:"):
                yield role, service


_PASSING: Final = (
    ("CreateFunction", "Role", "lambda.amazonaws.com"),
    ("CreateModel", "ExecutionRoleArn", "sagemaker.amazonaws.com"),
    ("CreateEndpointConfig", "ExecutionRoleArn", "sagemaker.amazonaws.com"),
    ("CreateProcessingJob", "RoleArn", "sagemaker.amazonaws.com"),
    ("CreateProject", "serviceRole", "codebuild.amazonaws.com"),
    ("CreateSchedule", "Target.RoleArn", "scheduler.amazonaws.com"),
    ("CreateStateMachine", "roleArn", "states.amazonaws.com"),
    ("UpdateFunctionConfiguration", "Role", "lambda.amazonaws.com"),
    ("UpdateProject", "serviceRole", "codebuild.amazonaws.com"),
    ("UpdateStateMachine", "roleArn", "states.amazonaws.com"),
)
"""The operations that pass a role to a service ("iam:PassRole" in the dependent actions of the reference)."""


def _resource(service: str, action: str, parameters: Mapping[str, Any], account: Account) -> str:
    text = RESOURCES[service, action].format(region=account.region, account=account.id, **parameters)
    return text if text == "*" or text.startswith("arn:") else f"arn:aws:{text}"


def _of_s3(call: Call, account: Account) -> Iterator[Request]:
    parameters, operation = call.parameters, call.operation
    bucket, key = parameters.get("Bucket", ""), parameters.get("Key", "")
    if operation in ("CopyObject", "UploadPartCopy"):
        source, _, source_key = _source(parameters["CopySource"])
        yield Request("s3:GetObject", f"arn:aws:s3:::{source}/{source_key}")
        yield from _of_key("kms:Decrypt", account.bucket_key(source), account)
        yield Request("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}")
        yield from _of_key("kms:GenerateDataKey", account.bucket_key(bucket), account)
        return
    if operation in ("DeleteObject", "DeleteObjects"):
        objects = parameters.get("Delete", {}).get("Objects", [parameters])
        for each in objects:
            action = "s3:DeleteObjectVersion" if each.get("VersionId") else "s3:DeleteObject"
            yield Request(action, f"arn:aws:s3:::{bucket}/{each['Key']}")
        return
    for action in actions_of("s3", operation):
        arn = "*" if operation == "ListBuckets" else f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
        context = {"s3:prefix": parameters["Prefix"]} if action == "s3:ListBucket" and "Prefix" in parameters else {}
        yield Request(action, arn, context)
    if operation in ("GetObject", "HeadObject"):
        if account.has_object(bucket, key):
            yield from _of_key("kms:Decrypt", account.bucket_key(bucket), account)
        else:  # without this permission, S3 answers 403 instead of 404 ("HeadObject" in the API reference)
            yield Request("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": key})
    if operation in ("CreateMultipartUpload", "PutObject"):
        yield from _of_key("kms:GenerateDataKey", account.bucket_key(bucket), account)
    if operation in ("CompleteMultipartUpload", "UploadPart"):  # "Uploading and copying objects using multipart upload"
        yield from _of_key("kms:Decrypt", account.bucket_key(bucket), account)


def _source(copied: Any) -> tuple[str, str, str]:
    if isinstance(copied, Mapping):
        return copied["Bucket"], "/", copied["Key"]
    return unquote(str(copied).partition("?")[0]).lstrip("/").partition("/")


def _of_key(action: str, key: str | None, account: Account) -> Iterator[Request]:
    """S3 uses a key for the caller ("Using server-side encryption with AWS KMS keys").

    Without the encryption context that S3 sends, because the judge does not know its condition keys, such as
    `kms:EncryptionContext:aws:s3:arn`, and no policy of a role here has them.
    """
    if key is not None:
        yield Request(
            action, key, {"kms:ViaService": f"s3.{account.region}.amazonaws.com", "kms:CallerAccount": account.id}
        )


def _invocation(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
    function = parameters["FunctionName"]
    arn = (
        function if function.startswith("arn:") else f"arn:aws:lambda:{account.region}:{account.id}:function:{function}"
    )
    yield Request("lambda:InvokeFunction", arn)


def _processing_job(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
    arn = _resource("sagemaker", "CreateProcessingJob", parameters, account)
    yield Request("sagemaker:CreateProcessingJob", arn)
    if parameters.get("Tags"):
        yield Request("sagemaker:AddTags", arn)


def _publication(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
    topic = parameters["TopicArn"]
    yield Request("sns:Publish", topic)
    _, key = account.topic(topic)
    if key is not None:
        via = {"kms:ViaService": f"sns.{account.region}.amazonaws.com", "kms:CallerAccount": account.id}
        yield Request("kms:GenerateDataKey", key, via)
        yield Request("kms:Decrypt", key, via)


def _builds(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
    for build in parameters["ids"]:
        project = build.partition(":")[0]
        yield Request("codebuild:BatchGetBuilds", f"arn:aws:codebuild:{account.region}:{account.id}:project/{project}")


def _alarms(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
    for name in parameters["AlarmNames"]:
        yield Request("cloudwatch:DescribeAlarms", f"arn:aws:cloudwatch:{account.region}:{account.id}:alarm:{name}")


def _stack(operation: str) -> Callable[[Mapping[str, Any], Account], Iterator[Request]]:
    def requests(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
        # Without a name, a resource leads to its stack, which only AWS knows.
        yield Request(f"cloudformation:{operation}", account.stack(parameters.get("StackName", "any")))

    return requests


def _endpoint(operation: str) -> Callable[[Mapping[str, Any], Account], Iterator[Request]]:
    def requests(parameters: Mapping[str, Any], account: Account) -> Iterator[Request]:
        place, target = f"arn:aws:sagemaker:{account.region}:{account.id}", parameters.get("TargetModel")
        context = {} if target is None else {"sagemaker:TargetModel": target}
        yield Request(f"sagemaker:{operation}", f"{place}:endpoint/{parameters['EndpointName']}", context)
        if component := parameters.get("InferenceComponentName"):
            yield Request(f"sagemaker:{operation}", f"{place}:inference-component/{component}")

    return requests


def _nothing(*_: object) -> Iterator[Request]:
    """GetCallerIdentity in the API reference of STS: "No permissions are required to perform this operation"."""
    return iter(())


_SPECIAL: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any], Account], Iterator[Request]]]] = {
    **{
        ("cloudformation", name): _stack(name)
        for name in ("DescribeStackResource", "DescribeStackResources", "DescribeStacks", "GetTemplate")
    },
    ("cloudformation", "ListStackResources"): _stack("ListStackResources"),
    ("cloudwatch", "DescribeAlarms"): _alarms,
    ("codebuild", "BatchGetBuilds"): _builds,
    ("lambda", "Invoke"): _invocation,
    ("sagemaker", "CreateProcessingJob"): _processing_job,
    ("sagemaker", "InvokeEndpoint"): _endpoint("InvokeEndpoint"),
    ("sagemaker", "InvokeEndpointWithResponseStream"): _endpoint("InvokeEndpointWithResponseStream"),
    ("sns", "Publish"): _publication,
    ("sts", "GetCallerIdentity"): _nothing,
}
