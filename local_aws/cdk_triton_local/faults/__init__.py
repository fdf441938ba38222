"""Faults of AWS that its documentation describes, injected into the calls that the local AWS answers.

`local up --faults` and `LocalAws.inject` turn them on; without them, the local AWS has none. A fault rejects calls,
loses responses, or delivers events twice. It counts calls instead of seconds, so it passes after the same calls on a
slow machine and on a fast one.

* `fault`: what a fault consists of;
* `documented`: the faults, with the pages that describe them;
* `injection`: decides which calls get the error of a fault.
"""

from cdk_triton_local.faults.documented import FAULTS, fault_names, markdown
from cdk_triton_local.faults.fault import Fault, Rejection, ServiceError
from cdk_triton_local.faults.injection import Faults

__all__ = ["FAULTS", "Fault", "Faults", "Rejection", "ServiceError", "fault_names", "markdown"]
