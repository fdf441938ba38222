"""The faults that can be injected, with the pages that describe them.

Not among them are listings of S3 that lack what was just written: they show each write at once since December 2020
("Amazon S3 data consistency model", https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html).
"""

from __future__ import annotations

import math
from typing import Final

from cdk_triton_local.faults.fault import Callers, Fault, Rejection, ServiceError
from cdk_triton_local.process import Call

__all__ = ["FAULTS", "fault_names", "markdown"]


def _invoke(*errors: ServiceError) -> tuple[Rejection, ...]:
    return (Rejection("lambda", errors, frozenset({"Invoke"}), Callers.EVERYBODY),)


_LAMBDA_ERRORS: Final = "https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors"

_PENDING: Final = ServiceError(
    "CodeArtifactUserPendingException",
    409,
    "Lambda is initializing your function. It will be ready to invoke shortly.",
)
_THROTTLING: Final = ServiceError("ThrottlingException", 400, "Rate exceeded")
_LONGER_THAN_A_CLIENT: Final = 6
"""More errors than a client of a function makes attempts (`lambda/artifacts/clients.py`), so that a poll fails."""

_PROPAGATION_SECONDS: Final = 120
"""AWS gives no bound. A handler repeats a call that is denied for three minutes after the beginning of its request."""

_WRITES: Final = {
    "s3": frozenset(
        {
            "AbortMultipartUpload",
            "CompleteMultipartUpload",
            "CopyObject",
            "CreateMultipartUpload",
            "DeleteObject",
            "DeleteObjects",
            "PutObject",
            "UploadPart",
            "UploadPartCopy",
        }
    ),
    "codebuild": frozenset({"StartBuild"}),
    "sagemaker": frozenset({"CreateProcessingJob"}),
    "stepfunctions": frozenset({"StartExecution"}),
}


def _is_conditional(call: Call) -> bool:
    return "IfNoneMatch" in call.parameters or "IfMatch" in call.parameters


def _copies_from_another_bucket(call: Call) -> bool:
    source = str(call.parameters.get("CopySource", "")).lstrip("/")
    return source.partition("/")[0] != str(call.parameters["Bucket"])


def _logs_elsewhere(call: Call) -> bool:
    groups = (call.parameters.get("loggingConfiguration") or {}).get("destinations") or []
    arns = [each.get("cloudWatchLogsLogGroup", {}).get("logGroupArn", "") for each in groups]
    return any(":log-group:/aws/vendedlogs/" not in arn for arn in arns)


def _is_in_vpc(call: Call) -> bool:
    return "VpcConfig" in (call.parameters.get("NetworkConfig") or call.parameters)


_DESCRIBE_NETWORK: Final = frozenset({"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"})
_INTERFACES: Final = frozenset({"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"})
_SAGEMAKER_NETWORK: Final = frozenset(
    {
        *_DESCRIBE_NETWORK,
        *_INTERFACES,
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterfacePermission",
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVpcs",
    }
)
_NO_NETWORK: Final = ServiceError(
    "ValidationException", 400, "The execution role does not have the EC2 permissions that the VpcConfig requires."
)
"""AWS does not document the text."""

FAULTS: Final = (
    Fault(
        "inactive-functions",
        "Lambda has reclaimed the resources of all functions, as after weeks without a call: the first call of each "
        "function fails, and so do the next three while the function is pending.",
        "https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html",
        _invoke(
            ServiceError(
                "ResourceNotReadyException",
                502,
                "The function is inactive and its VPC connection is no longer available. Wait for the VPC connection "
                "to reestablish and try again.",
            ),
            *3 * (_PENDING,),
        ),
    ),
    Fault(
        "function-network",
        "Lambda cannot connect a function to its VPC at the first three calls.",
        _LAMBDA_ERRORS,
        _invoke(
            ServiceError("ENINotReadyException", 502, "The elastic network interface isn't ready yet."),
            ServiceError("EC2ThrottledException", 502, "Amazon EC2 throttled Lambda during function initialization."),
            ServiceError("EC2UnexpectedException", 502, "Lambda received an unexpected Amazon EC2 client exception."),
        ),
    ),
    Fault(
        "lambda-errors",
        "Lambda fails to run a function at the first three calls.",
        _LAMBDA_ERRORS,
        _invoke(
            ServiceError("ServiceException", 500, "The Lambda service encountered an internal error."),
            ServiceError(
                "ResourceConflictException",
                409,
                "The operation cannot be performed at this time. An update is in progress.",
            ),
            ServiceError("CodeArtifactUserDeletedException", 409, "The code artifact user has been deleted."),
        ),
    ),
    Fault(
        "no-free-executions",
        "Other functions of the account occupy its concurrent executions at the first five calls of a function.",
        "https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html",
        _invoke(*5 * (ServiceError("TooManyRequestsException", 429, "Rate Exceeded."),)),
    ),
    Fault(
        "lost-invocations",
        "The first call of each function runs the function, but the caller gets an error of Lambda.",
        "https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html#bp-lambda-serviceexception",
        _invoke(ServiceError("ServiceException", 500, "The Lambda service encountered an internal error.", True)),
    ),
    Fault(
        "duplicate-events",
        "Lambda delivers each asynchronous event twice, such as a request of CloudFormation to a custom resource.",
        "https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html",
        repeats_events=True,
    ),
    Fault(
        "throttling",
        "Every service throttles the first six calls of each function, and then the first call of each operation, also "
        "those of a user.",
        "https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html",
        tuple(
            rejection
            for service, error in {
                "cloudformation": ServiceError("Throttling", 400, "Rate exceeded"),
                "codebuild": _THROTTLING,
                "logs": _THROTTLING,
                "s3": ServiceError("SlowDown", 503, "Please reduce your request rate."),
                "sagemaker": _THROTTLING,
                "stepfunctions": _THROTTLING,
            }.items()
            for rejection in (
                Rejection(service, _LONGER_THAN_A_CLIENT * (error,), is_of_caller=True),
                Rejection(service, (error,), callers=Callers.FUNCTIONS_AND_USERS),
            )
        ),
    ),
    Fault(
        "lost-responses",
        "Each operation that writes is carried out at the first call of a function, but the response is an error of "
        "the service.",
        "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html",
        tuple(
            Rejection(service, (ServiceError("InternalError", 500, "We encountered an internal error.", True),), writes)
            for service, writes in _WRITES.items()
        ),
    ),
    Fault(
        "conditional-conflicts",
        "The first two writes of each kind with a condition conflict with another request.",
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html",
        (
            Rejection(
                "s3",
                2
                * (
                    ServiceError(
                        "ConditionalRequestConflict",
                        409,
                        "The conditional request cannot succeed due to a conflicting operation against this resource.",
                    ),
                ),
                frozenset({"CompleteMultipartUpload", "PutObject", "DeleteObject"}),
                applies=_is_conditional,
            ),
        ),
    ),
    Fault(
        "new-roles",
        "IAM has not propagated roles and policies yet: the first two calls of each function to each service are "
        "denied, and CodeBuild and SageMaker cannot assume the role of a job at the next two attempts. It takes two "
        "minutes at most.",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency",
        (
            *(
                Rejection(service, 2 * (error,), is_of_caller=True, seconds=_PROPAGATION_SECONDS)
                for service, error in {
                    "codebuild": ServiceError("AccessDeniedException", 400, "User is not authorized."),
                    "s3": ServiceError("AccessDenied", 403, "Access Denied"),
                    "sagemaker": ServiceError("AccessDeniedException", 400, "User is not authorized."),
                    "stepfunctions": ServiceError("AccessDeniedException", 400, "User is not authorized."),
                }.items()
            ),
            Rejection(
                "codebuild",
                2
                * (
                    ServiceError(
                        "InvalidInputException",
                        400,
                        "CodeBuild is not authorized to perform: sts:AssumeRole on the role",
                    ),
                ),
                frozenset({"StartBuild"}),
                seconds=_PROPAGATION_SECONDS,
            ),
            Rejection(
                "sagemaker",
                2 * (ServiceError("ValidationException", 400, "Could not assume role. Ensure that the role exists"),),
                frozenset({"CreateProcessingJob"}),
                seconds=_PROPAGATION_SECONDS,
            ),
        ),
    ),
    Fault(
        "cross-region-copies",
        "S3 rejects each copy from another bucket, as if that bucket were in another region and the request passed a "
        "VPC endpoint.",
        "https://repost.aws/knowledge-center/s3-troubleshoot-copy-between-buckets",
        (
            Rejection(
                "s3",
                (ServiceError("AccessDenied", 403, "VPC endpoints do not support cross-region requests"),),
                frozenset({"CopyObject", "UploadPartCopy"}),
                is_lasting=True,
                applies=_copies_from_another_bucket,
            ),
        ),
    ),
    Fault(
        "validated-roles",
        "Lambda and SageMaker reject functions, models and Processing jobs in a VPC whose role does not have the "
        "permissions of EC2 that their guides list.",
        "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",
        (
            Rejection(
                "lambda",
                (
                    ServiceError(
                        "InvalidParameterValueException",
                        400,
                        "The provided execution role does not have permissions to call CreateNetworkInterface on EC2",
                    ),
                ),
                frozenset({"CreateFunction"}),
                Callers.EVERYBODY,
                is_lasting=True,
                applies=_is_in_vpc,
                required=_INTERFACES | _DESCRIBE_NETWORK,
                is_unscoped=True,
            ),
            Rejection(
                "sagemaker",
                (_NO_NETWORK,),
                frozenset({"CreateModel"}),
                Callers.EVERYBODY,
                is_lasting=True,
                applies=_is_in_vpc,
                required=_SAGEMAKER_NETWORK,
            ),
            Rejection(
                "sagemaker",
                (_NO_NETWORK,),
                frozenset({"CreateProcessingJob"}),
                Callers.EVERYBODY,
                is_lasting=True,
                applies=_is_in_vpc,
                required=_SAGEMAKER_NETWORK,
                is_unscoped=True,
            ),
        ),
    ),
    Fault(
        "isolated-subnets",
        "A function in subnets without a route to a NAT gateway gets no answer from a service for which its VPC has no "
        "VPC endpoint: each attempt to connect times out.",
        "https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html",
        isolates_functions=True,
    ),
    Fault(
        "slow-starts",
        "Builds, Processing jobs and endpoints wait five minutes for a machine.",
        "https://docs.aws.amazon.com/codebuild/latest/APIReference/API_BuildPhase.html",
        start_seconds={"codebuild": 300, "sagemaker": 300},
    ),
    Fault(
        "full-build-queue",
        "No build leaves the queue of CodeBuild, until its time in the queue is over.",
        "https://docs.aws.amazon.com/codebuild/latest/userguide/builds-working.html",
        start_seconds={"codebuild": math.inf},
    ),
    Fault(
        "no-gpu-quota",
        "The quotas for GPUs are 0, as in a new account: no build, Processing job or endpoint starts.",
        "https://docs.aws.amazon.com/codebuild/latest/userguide/limits.html",
        (
            Rejection(
                "codebuild",
                (
                    ServiceError(
                        "AccountLimitExceededException", 400, "Cannot have more than 0 builds in queue for the account"
                    ),
                ),
                frozenset({"StartBuild"}),
                Callers.EVERYBODY,
                is_lasting=True,
            ),
            Rejection(
                "sagemaker",
                (
                    ServiceError(
                        "ResourceLimitExceeded",
                        400,
                        "The account-level service limit is 0 Instances, with current utilization of 0 Instances and a "
                        "request delta of 1 Instances. Please use AWS Service Quotas to request an increase for this "
                        "quota.",
                    ),
                ),
                frozenset({"CreateEndpoint", "CreateProcessingJob"}),
                Callers.EVERYBODY,
                is_lasting=True,
            ),
        ),
    ),
    Fault(
        "full-log-policy",
        "The resource policy of CloudWatch Logs has reached 5,120 characters: no state machine gets a log group whose "
        "name does not begin with `/aws/vendedlogs/`.",
        "https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html#bp-cwl",
        (
            Rejection(
                "stepfunctions",
                (
                    ServiceError(
                        "InvalidLoggingConfiguration",
                        400,
                        "Invalid Logging Configuration: The CloudWatch Logs Resource Policy size was exceeded. We "
                        "suggest prefixing your CloudWatch log group name with /aws/vendedlogs/states/",
                    ),
                ),
                frozenset({"CreateStateMachine", "UpdateStateMachine"}),
                Callers.EVERYBODY,
                is_lasting=True,
                applies=_logs_elsewhere,
            ),
        ),
    ),
)
"""All faults. The codes and statuses are those of botocore's service models and of the sources."""


def fault_names() -> list[str]:
    """The names of all faults."""
    return [fault.name for fault in FAULTS]


def markdown() -> list[str]:
    """The table of the faults, for the user guide."""
    rows = [f"| `{fault.name}` | {fault.note} | [source]({fault.source}) |" for fault in FAULTS]
    return ["| fault | on the local AWS | documented |", "|---|---|---|", *rows]
