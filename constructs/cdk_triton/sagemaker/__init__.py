"""What SageMaker has for serving Triton: images and accounts, GPU instances, host AMIs, build machines, limits.

`ServingPlatform` puts them together, and users import it from `cdk_triton`: the package is internal. Nothing here
imports `aws_cdk`.
"""

from cdk_triton.sagemaker import limits
from cdk_triton.sagemaker.build_machines import codebuild_gpu, codebuild_gpu_regions, processing_instance
from cdk_triton.sagemaker.common_host import common_host_ami
from cdk_triton.sagemaker.component_placement import CopyRequirements, instances_for
from cdk_triton.sagemaker.host_amis import HOST_AMIS, HostAmi, host_ami
from cdk_triton.sagemaker.images import (
    REPOSITORY,
    accounts,
    image_name,
    image_release,
    image_releases,
    image_uri,
    registry_accounts,
    url_suffix,
)
from cdk_triton.sagemaker.instance_storage import InstanceStorage, instance_storage
from cdk_triton.sagemaker.instances import GpuInstance, gpu_instance, gpu_instances
from cdk_triton.sagemaker.platform import DERIVED, ServingPlatform

__all__ = [
    "DERIVED",
    "HOST_AMIS",
    "REPOSITORY",
    "CopyRequirements",
    "GpuInstance",
    "HostAmi",
    "InstanceStorage",
    "ServingPlatform",
    "accounts",
    "codebuild_gpu",
    "codebuild_gpu_regions",
    "common_host_ami",
    "gpu_instance",
    "gpu_instances",
    "host_ami",
    "image_name",
    "image_release",
    "image_releases",
    "image_uri",
    "instance_storage",
    "instances_for",
    "limits",
    "processing_instance",
    "registry_accounts",
    "url_suffix",
]
