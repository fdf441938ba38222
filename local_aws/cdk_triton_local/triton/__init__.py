"""Real tritonserver processes behind SageMaker's runtime API, on this machine.

* `host` runs endpoints: it starts and replaces their variants, and sends invocations to them;
* `gateway` answers an invocation as sagemaker-runtime does, and `responses` contains the error answers;
* `variant` runs one production variant, `shadow` copies requests to a shadow variant, and `target_models` loads and
  unloads the models of a multi-model endpoint, with `inner_models` for the models inside their archives;
* `deadline` is the end of the time that an invocation may take;
* `model_data` downloads model data, `archives` unpacks it, and `paths` avoids directory names that Triton cannot use;
* `server` starts one tritonserver, `connection` talks to it, `server_files` arranges its files, and `loopback` keeps it
  on the loopback interface;
* `backends` contains the stand-ins for GPU backends, which run inside tritonserver.

`TritonHost` is imported when it is first used: Triton's Python stub imports the stand-in backends below this package,
and needs neither boto3 nor the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_triton_local.triton.host import TritonHost

__all__ = ["TritonHost"]


def __getattr__(name: str) -> object:
    if name == "TritonHost":
        from cdk_triton_local.triton.host import TritonHost

        return TritonHost
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
