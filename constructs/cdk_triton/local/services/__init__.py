"""The services that are answered here, because moto lacks what a deployment asks of them.

* `quotas` answers Service Quotas;
* `triton_images` answers for the ECR registries that contain SageMaker's Triton images.
"""

from cdk_triton.local.services.quotas import service_quotas
from cdk_triton.local.services.triton_images import TritonImages

__all__ = ["TritonImages", "service_quotas"]
