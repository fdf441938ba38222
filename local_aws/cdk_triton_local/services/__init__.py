"""The services that are answered here, because moto lacks what a deployment needs of them.

* `monitoring` publishes metrics, evaluates `alarms` and does the `scaling` every minute. `metric_values` has the values
  of metrics, `metric_math` computes expressions, and `schedules` knows the times of scheduled actions;
* `events` sends the events of endpoints to the rules of EventBridge;
* `quotas` answers Service Quotas;
* `state_machines` runs the executions of Step Functions;
* `triton_images` answers for the ECR registries that contain SageMaker's Triton images.
"""

from cdk_triton_local.services.alarms import check_alarm
from cdk_triton_local.services.events import EndpointEvents
from cdk_triton_local.services.monitoring import Monitoring
from cdk_triton_local.services.quotas import service_quotas
from cdk_triton_local.services.state_machines import LONGEST_PAUSE, StateMachines, has_map, not_modelled
from cdk_triton_local.services.triton_images import TritonImages

__all__ = [
    "LONGEST_PAUSE",
    "EndpointEvents",
    "Monitoring",
    "StateMachines",
    "TritonImages",
    "check_alarm",
    "has_map",
    "not_modelled",
    "service_quotas",
]
