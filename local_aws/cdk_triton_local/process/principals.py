"""The calls of services, and who makes them.

Each principal for whom the local AWS calls itself has an access key of its own. So the access key of a request says on
whose behalf it is sent, wherever it comes from: the process of a function, a job, an endpoint, or a client of this
process.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cdk_triton_local.process.variables import credentials

__all__ = ["CALLER", "CLOUDFORMATION", "CLOUDWATCH", "EVENTBRIDGE", "ITSELF", "Call", "Principals"]

CALLER: Final = "caller"
"""Whoever has the variables of the local AWS: a user with the `cdk` command, the AWS CLI or an SDK."""

CLOUDFORMATION: Final = "cloudformation.amazonaws.com"
"""CloudFormation, which uses the permissions of its service role for a deployment, or else those of the caller."""

CLOUDWATCH: Final = "cloudwatch.amazonaws.com"
"""CloudWatch, which carries out the actions of alarms."""

EVENTBRIDGE: Final = "events.amazonaws.com"
"""EventBridge, which sends events to the targets of its rules."""

ITSELF: Final = "itself"
"""The local AWS, where it looks into its own state. AWS does this without a call that IAM authorizes."""


@dataclass(frozen=True)
class Call:
    """One call of a service.

    Attributes:
        principal: see `Principals`.
        service: as boto3 calls it.
        operation: as in the API reference, such as `PutObject`.
        parameters: its parameters by their names in the API reference, without contents of objects.
    """

    principal: str
    service: str
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Principals:
    """The access keys of all principals.

    Args:
        account: the account of the local AWS.
        secret: the secret of every key.
    """

    def __init__(self, account: str, secret: str) -> None:
        self._secret = secret
        self._keys = {CALLER: credentials(account, secret)["AWS_ACCESS_KEY_ID"]}
        self._principals = {key: principal for principal, key in self._keys.items()}
        self._lock = threading.Lock()

    def credentials(self, principal: str) -> Mapping[str, str]:
        """The variables with a principal's credentials.

        Args:
            principal: the ARN of a role, or one of the names of this module.
        """
        with self._lock:
            if principal not in self._keys:
                key = f"local{hashlib.sha256(principal.encode()).hexdigest()[:16]}"
                self._keys[principal], self._principals[key] = key, principal
            return {"AWS_ACCESS_KEY_ID": self._keys[principal], "AWS_SECRET_ACCESS_KEY": self._secret}

    def of_key(self, key: str) -> str | None:
        """The principal of an access key; None for a key that IAM or STS has issued, and for an unknown one."""
        return self._principals.get(key)
