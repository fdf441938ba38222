"""Python Lambda functions, each in a process of its own.

* `runtime` starts the processes, sends them events and ends them at their timeout;
* `_bootstrap` is the program of such a process: it imports the handler and calls it.
"""

from cdk_triton.local.lambdas.runtime import FunctionCode, FunctionError, LambdaRuntime

__all__ = ["FunctionCode", "FunctionError", "LambdaRuntime"]
