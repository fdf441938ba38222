"""The services that are answered here, because moto lacks what a deployment needs of them.

* `alarms` evaluates CloudWatch's alarms, with the values of `metric_values`, and `metric_math` for expressions;
* `events` sends the events of endpoints to the rules of EventBridge;
* `quotas` answers Service Quotas;
* `state_machines` runs the executions of Step Functions;
* `triton_images` answers for the ECR registries that contain SageMaker's Triton images.
"""

from cdk_triton_local.services.alarms import Alarms, check_alarm
from cdk_triton_local.services.events import EndpointEvents
from cdk_triton_local.services.metric_values import MetricValues
from cdk_triton_local.services.quotas import service_quotas
from cdk_triton_local.services.state_machines import LONGEST_PAUSE, StateMachines, has_map, not_modelled
from cdk_triton_local.services.triton_images import TritonImages

__all__ = [
    "LONGEST_PAUSE",
    "Alarms",
    "EndpointEvents",
    "MetricValues",
    "StateMachines",
    "TritonImages",
    "check_alarm",
    "has_map",
    "not_modelled",
    "service_quotas",
]
