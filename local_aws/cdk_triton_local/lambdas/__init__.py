"""Python Lambda functions, each in a process of its own.

* `runtime` starts the processes, sends them events and ends them at their timeout;
* `executions` counts how many run at once, and rejects more than a new account has;
* `_bootstrap` is the program of such a process: it imports the handler and calls it.
"""

from cdk_triton_local.lambdas.executions import CONCURRENT_EXECUTIONS, Executions, ThrottledError
from cdk_triton_local.lambdas.not_run import NotRunError
from cdk_triton_local.lambdas.runtime import FunctionCode, FunctionError, LambdaRuntime

__all__ = [
    "CONCURRENT_EXECUTIONS",
    "Executions",
    "FunctionCode",
    "FunctionError",
    "LambdaRuntime",
    "NotRunError",
    "ThrottledError",
]
