"""The faults of AWS that pass, in groups that tests inject together."""

from __future__ import annotations

from cdk_triton_local.faults import fault_names

__all__ = ["GROUPS", "PASSING"]

_LASTING = {"full-build-queue", "full-log-policy", "isolated-subnets", "no-gpu-quota", "validated-roles"}
PASSING = [name for name in fault_names() if name not in _LASTING]
GROUPS = [
    ["inactive-functions", "function-network", "lambda-errors", "no-free-executions"],
    ["lost-invocations", "duplicate-events"],
    ["throttling", "conditional-conflicts"],
    ["lost-responses"],
    ["new-roles", "cross-region-copies", "slow-starts"],
]
