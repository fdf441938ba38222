"""Which services may assume the library's roles, and on whose behalf.

A condition that a service does not meet fails every deployment. So a role has one only where a page of AWS says that
this service sends the key:

* SageMaker: "Cross-service confused deputy prevention", with the ARNs of real-time inference and of Processing jobs
  (https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html).
* CodeBuild: "Allow CodeBuild to interact with other AWS services", with `aws:SourceAccount`
  (https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-service-role.html).
"""

from __future__ import annotations

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from cdk_triton.hosting._cdk.stacks import stack_of

__all__ = ["codebuild_of_the_account", "sagemaker_inference", "sagemaker_processing"]


def sagemaker_inference(scope: IConstruct) -> iam.IPrincipal:
    """SageMaker for models and endpoints: of all its resources, because "the ARN must be in the format provided"."""
    arn = stack_of(scope).format_arn(service="sagemaker", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME)
    return _sagemaker(arn)


def sagemaker_processing(scope: IConstruct) -> iam.IPrincipal:
    """SageMaker for Processing jobs."""
    return _sagemaker(stack_of(scope).format_arn(service="sagemaker", resource="processing-job", resource_name="*"))


def codebuild_of_the_account(scope: IConstruct) -> iam.IPrincipal:
    """CodeBuild for projects of the stack's account; the role comes before the project, whose ARN it does not have."""
    account = {"StringEquals": {"aws:SourceAccount": stack_of(scope).account}}
    return iam.ServicePrincipal("codebuild.amazonaws.com", conditions=account)


def _sagemaker(source_arn: str) -> iam.IPrincipal:
    return iam.ServicePrincipal("sagemaker.amazonaws.com", conditions={"ArnLike": {"aws:SourceArn": source_arn}})
