"""The services that are answered here, because moto lacks what a deployment needs of them.

* `quotas` answers Service Quotas;
* `state_machines` runs the executions of Step Functions;
* `triton_images` answers for the ECR registries that contain SageMaker's Triton images.
"""

from cdk_triton_local.services.quotas import service_quotas
from cdk_triton_local.services.state_machines import LONGEST_PAUSE, StateMachines, has_map, not_modelled
from cdk_triton_local.services.triton_images import TritonImages

__all__ = ["LONGEST_PAUSE", "StateMachines", "TritonImages", "has_map", "not_modelled", "service_quotas"]
