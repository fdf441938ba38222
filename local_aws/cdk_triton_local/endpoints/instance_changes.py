"""Changes of the number of instances, during which an endpoint is `Updating`.

SageMaker rejects UpdateEndpoint, DeleteEndpoint and UpdateEndpointWeightsAndCapacities meanwhile, as "Cannot update
in-progress endpoint" (AWS's own operator waits for the end:
https://github.com/aws/amazon-sagemaker-operator-for-k8s, `DeleteEndpointInProgressMessagePrefix`). Instances with GPUs
take minutes. While a change waits, the clock hurries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cdk_triton_local.clock import Clock, Waits
from cdk_triton_local.endpoints.instance_pools import changed_pools

__all__ = ["SECONDS", "change_instances"]

SECONDS = 180.0
"""How long an endpoint is `Updating`."""

_STATUS, _DESIRED, _CURRENT = "endpoint_status", "DesiredInstanceCount", "CurrentInstanceCount"
_POOLS = "InstancePools"


def change_instances(
    clock: Clock, endpoint: Any, summaries: Iterable[dict[str, Any]], wanted: Mapping[str, int]
) -> None:
    """Change the instance counts of variants.

    Args:
        clock: the clock of the change.
        endpoint: moto's endpoint, which is in service.
        summaries: the summaries of its variants (ProductionVariantSummary).
        wanted: the numbers, by variant.
    """
    changed = [each for each in summaries if wanted.get(each["VariantName"], each.get(_DESIRED)) != each.get(_DESIRED)]
    for summary in changed:
        summary[_DESIRED] = wanted[summary["VariantName"]]
    if not changed:
        return

    setattr(endpoint, _STATUS, "Updating")

    def change() -> Waits:
        if SECONDS:
            yield SECONDS
        for summary in changed:
            summary[_CURRENT] = summary[_DESIRED]
            if _POOLS in summary:
                summary[_POOLS] = changed_pools(summary[_POOLS], summary[_CURRENT])
        setattr(endpoint, _STATUS, "InService")

    clock.start(change(), urgent=True)
