"""The codes of errors and warnings about inference components."""

from __future__ import annotations

from typing import Final

from cdk_triton.checks.documentation import ConstructCode

__all__ = ["COMPONENT_CODES"]

COMPONENT_CODES: Final = (
    ConstructCode(
        "cdk-triton:ComponentMemory",
        "a component may reserve more memory than an instance offers",
        "A host keeps a part of the instance's memory for itself, and AWS does not document how much. If no instance "
        "has enough free memory, the component fails to start. Lower memory=, or try the present value in your account "
        "and acknowledge the warning.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:ComponentOfOtherModel",
        "a component runs a model that is not a TritonModel of the app",
        "The network, the archive and the image of such a model cannot be checked. Give it the network of the other "
        "components. Grant components.role the permissions that the model's own role has, because AWS does not "
        "document which of the two roles SageMaker uses.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:CopiesBeyondInstances",
        "the copies of the components may scale further than the instances",
        "SageMaker cannot place copies that need more than max_instance_count instances. Raise max_instance_count=, or "
        "lower the maximum of the copies.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:CopiesWaitForInstances",
        "the first copies need more instances than the endpoint starts with",
        "The last copies wait until SageMaker has added instances, or fail. Raise initial_instance_count=.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:InstancesStay",
        "a component scales to zero, but its instances cannot",
        "You pay for the instances that stay. SageMaker removes all instances only if min_instance_count is 0 and "
        "every component has a minimum of 0 copies.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoComponent",
        "an endpoint for components has no component",
        "SageMaker starts its instances, which cost money, but no request is answered. Call add_component(), or "
        "acknowledge the warning if you remove a component now, and add it again, changed, in the next deployment.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoInitialCopy",
        "a component begins with no copy",
        "According to one report, SageMaker rejects a new component without a copy. Start with one copy, and scale to "
        "zero afterwards.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoRoomForRollback",
        "the rollback of an inference component's update finds no free GPUs",
        "A rollback starts old copies in addition to the new ones. Without rollback_batch, it starts all of them at "
        "once. Give the policy a smaller rollback_batch, or raise max_instance_count.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoRoomForUpdate",
        "an update of a component finds no free GPUs",
        "An update starts a new copy before the old one ends. The new copy needs free GPUs on the instances, or one "
        "more instance. If max_instance_count does not allow that, the update waits for capacity and fails. Raise "
        "max_instance_count.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:ScaleToZeroInstances",
        "the instances of an endpoint may go to zero",
        "According to one report, some regions reject a MinInstanceCount of 0. Try create-endpoint-config in your "
        "region, then acknowledge the warning.",
        "Inference components",
    ),
)
