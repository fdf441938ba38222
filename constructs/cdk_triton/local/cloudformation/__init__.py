"""A strict CloudFormation over the local AWS: what it does not model is an error, never a silent success."""

from cdk_triton.local.cloudformation.api import CloudFormationApi
from cdk_triton.local.cloudformation.engine import TemplateEngine
from cdk_triton.local.cloudformation.resource_types import Mailbox, Services

__all__ = ["CloudFormationApi", "Mailbox", "Services", "TemplateEngine"]
