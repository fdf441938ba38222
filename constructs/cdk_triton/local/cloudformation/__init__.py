"""A strict CloudFormation over the local AWS: what it does not model is an error, never a silent success."""

from cdk_triton.local.cloudformation.api import CloudFormationApi
from cdk_triton.local.cloudformation.engine import Engine
from cdk_triton.local.cloudformation.resource_types import Mailbox, Services
from cdk_triton.local.cloudformation.wire import Reply

__all__ = ["CloudFormationApi", "Engine", "Mailbox", "Reply", "Services"]
