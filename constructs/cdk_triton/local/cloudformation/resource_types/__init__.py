"""The resource types of the local CloudFormation, one module per service."""

from cdk_triton.local.cloudformation.resource_types import (
    autoscaling,
    codebuild,
    custom,
    iam,
    lambda_functions,
    messaging,
    monitoring,
    sagemaker,
    security,
    storage,
)
from cdk_triton.local.cloudformation.resource_types.base import (
    DOCS,
    Context,
    Mailbox,
    Physical,
    ResourceType,
    Services,
    find,
    is_custom,
    register,
    registered,
)

__all__ = [
    "DOCS",
    "Context",
    "Mailbox",
    "Physical",
    "ResourceType",
    "Services",
    "autoscaling",
    "codebuild",
    "custom",
    "find",
    "iam",
    "is_custom",
    "lambda_functions",
    "messaging",
    "monitoring",
    "register",
    "registered",
    "sagemaker",
    "security",
    "storage",
]
