"""Whether a stack rolls back, which only its status tells: a rollback sends the same requests as another update."""

from __future__ import annotations

import logging

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from .failure import is_forbidden
from .invocation import Invocation

__all__ = ["rolls_back"]

_ROLLS_BACK = ("UPDATE_ROLLBACK", "ROLLBACK")

log = logging.getLogger(__name__)


def rolls_back(stack_id: str, invocation: Invocation) -> bool:
    """Whether a stack is certainly rolling back.

    A request without a stack, of a command or a publisher, belongs to no rollback. A store in a VPC without an endpoint
    for CloudFormation cannot find out, and gets the answer False.
    """
    if not stack_id:
        return False
    try:
        status = invocation.stack_status(stack_id)
    except (ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError) as error:
        log.warning("CloudFormation cannot be reached, so a rollback is treated as any update: %s", error)
        return False
    except ClientError as error:
        if not is_forbidden(error):
            raise
        log.warning("the status of the stack is forbidden, so a rollback is treated as any update: %s", error)
        return False
    if status.startswith(_ROLLS_BACK):
        log.info("the stack is %s", status)
        return True
    return False
