"""Child processes: how they are started, how they end, and which environment they get.

* `child` starts a process below a guardian, and stops it;
* `_guardian` is the program that every child runs below: it kills what its child leaves behind;
* `principals` gives each principal an access key, which shows who sends a request;
* `variables` contains the environment variables that lead AWS clients to the local AWS, and those that lead them away.
"""

from cdk_triton_local.process.child import INHERITED_VARIABLES, Child, child_environment, start
from cdk_triton_local.process.principals import (
    CALLER,
    CLOUDFORMATION,
    CLOUDWATCH,
    EVENTBRIDGE,
    ITSELF,
    Call,
    Principals,
)
from cdk_triton_local.process.variables import conflicting_variables, credentials, endpoint_variables, no_proxy

__all__ = [
    "CALLER",
    "CLOUDFORMATION",
    "CLOUDWATCH",
    "EVENTBRIDGE",
    "INHERITED_VARIABLES",
    "ITSELF",
    "Call",
    "Child",
    "Principals",
    "child_environment",
    "conflicting_variables",
    "credentials",
    "endpoint_variables",
    "no_proxy",
    "start",
]
