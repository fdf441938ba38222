"""An AWS on this machine for the stacks of this library, on one loopback port.

Which process starts which::

    cdk-triton local up --detach
      └─ python -m cdk_triton_local.daemon         the local AWS: moto, CloudFormation, the front, the control plane
           └─ process/_guardian.py, one per child; it kills what its child leaves behind
                ├─ lambdas/_bootstrap.py           a Lambda function
                ├─ tritonserver                    a variant of an endpoint
                │    └─ Triton's Python stub       imports triton/backends, the stand-ins for GPU backends
                └─ bash                            a command of a build or a processing job
                     └─ trtexec, nvidia-smi        programs of build_tools, the stand-ins for the tools of a GPU image

Without `--detach`, the local AWS runs in the process of the command. `LocalAws` runs it in the caller's process.

Which package does what; a package imports only those that come before it:

* `process`: child processes and their environment variables;
* `wire`: the wire formats of AWS's APIs;
* `faults`: the faults of AWS that can be injected;
* `endpoints`: SageMaker's endpoints, without the servers behind them;
* `lambdas`: runs Lambda functions;
* `cloudformation`: a strict CloudFormation, with one class for each resource type;
* `triton`: runs a tritonserver for each variant of an endpoint, and answers invocations;
* `build_tools`: stand-ins for the tools of a GPU image;
* `jobs`: runs CodeBuild's builds and SageMaker's Processing jobs;
* `services`: Service Quotas, and the registries of SageMaker's Triton images;
* `moto_state`: the state of every other service, in moto, and the corrections that moto needs;
* `front`: the one HTTP server, which decides who answers a request.

These modules put them together:

* `clock` is the time of metrics, alarms, scaling and updates;
* `skipped_time` is the time of functions, state machines and jobs;
* `aws` starts and stops everything in one process;
* `daemon` starts that process for a state directory, finds it again and stops it; `logs` reads its logs, and `running`
  lists the state directories that have a running local AWS;
* `fidelity` prints what is modelled, for the user guide.

The names below are imported when they are first used, because the stand-ins start many times in a build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton_local import process
    from cdk_triton_local.aws import LocalAws
    from cdk_triton_local.clock import Clock
    from cdk_triton_local.daemon import Daemon, DaemonOptions, DaemonStatus
    from cdk_triton_local.faults import fault_names
    from cdk_triton_local.logs import LogSelection
    from cdk_triton_local.process import conflicting_variables, no_proxy
    from cdk_triton_local.running import directory_option

__all__ = [
    "Clock",
    "Daemon",
    "DaemonOptions",
    "DaemonStatus",
    "LocalAws",
    "LogSelection",
    "conflicting_variables",
    "directory_option",
    "fault_names",
    "no_proxy",
    "process",
]

__getattr__, __dir__ = lazy_names(__name__)
