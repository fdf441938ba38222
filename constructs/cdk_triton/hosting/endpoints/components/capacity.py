"""Whether the copies of all components fit on the instances of their endpoint.

The first copies must fit, which is checked as soon as a component is added. Everything else causes a warning when the
app is complete: copies that scale further, updates without room, instances that stay or serve nothing, and state that
several copies would have to share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import jsii
from aws_cdk import Annotations, IAspect
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton._wording import in_words
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.state import warn_about_state_of_copies
from cdk_triton.sagemaker import CopyRequirements, GpuInstance, ServingPlatform, instances_for

if TYPE_CHECKING:
    from cdk_triton.hosting.endpoints.components.component import TritonComponent

__all__ = ["CapacityWarnings", "check_capacity"]

UPDATE_WARNING: Final = "cdk-triton:NoRoomForUpdate"
ROLLBACK_WARNING: Final = "cdk-triton:NoRoomForRollback"
INITIAL_WARNING: Final = "cdk-triton:CopiesWaitForInstances"
MAXIMUM_WARNING: Final = "cdk-triton:CopiesBeyondInstances"
INSTANCES_STAY_WARNING: Final = "cdk-triton:InstancesStay"


NO_COMPONENT_WARNING: Final = "cdk-triton:NoComponent"

Copies = Sequence[tuple[CopyRequirements, int]]
"""What one copy of each component reserves, and the number of its copies."""

MANY_COPIES: Final = 1000
"""More copies than this are not placed one by one."""


def check_capacity(what: str, copies: Copies, platform: ServingPlatform, most: int) -> None:
    """Reject copies that do not fit on the instances.

    Args:
        what: the last component, as a sentence names it.
        copies: the first copies of all components.
        platform: the platform of the instances.
        most: the largest number of instances.

    Raises:
        ConfigurationError: the copies need more instances.
    """
    needed = _instances_for(copies, platform.instance)
    if needed > most:
        raise ConfigurationError(
            f"{what} raises the initial copies of the endpoint to {sum(number for _, number in copies)}, which need "
            f"{needed} {platform.instance_type} of {platform.gpu_count} GPUs, but max_instance_count is {most}: raise "
            "max_instance_count, or lower copies= or accelerators="
        )


def _instances_for(copies: Copies, instance: GpuInstance) -> int:
    """The number of instances that the copies need; for very many copies, the number of instances with their GPUs."""
    if sum(number for _, number in copies) > MANY_COPIES:
        return math.ceil(sum(one.accelerators * number for one, number in copies) / instance.gpu_count)
    return instances_for((one for one, number in copies for _ in range(number)), instance)


def _initial_copies(components: Sequence[TritonComponent]) -> list[tuple[CopyRequirements, int]]:
    return [(each.requirements, each.copies) for each in components]


@jsii.implements(IAspect)
class CapacityWarnings:
    """Compares the copies of all components of an endpoint with its instances.

    Args:
        scope: the endpoint, which gets the warnings.
        instance: the type of its instances.
        counts: the initial, the smallest and the largest number of instances.
        components: the endpoint's components; later ones are appended.
    """

    def __init__(
        self,
        scope: Construct,
        instance: GpuInstance,
        counts: tuple[int, int, int],
        components: Sequence[TritonComponent],
    ) -> None:
        self._scope = scope
        self._instance = instance
        self._initial, self._least, self._most = counts
        self._components = components

    def visit(self, node: IConstruct) -> None:
        """Look at one construct."""
        if not isinstance(node, sagemaker.CfnEndpointConfig):
            return
        if not self._components:
            self._warn(
                NO_COMPONENT_WARNING,
                f"the endpoint has no component, so no request is answered, but {self._initial} {self._instance.name} "
                "cost money. Call add_component(), or acknowledge this while you remove a component before you change "
                "it",
            )
        else:
            self._check_initial()
            self._check_update()
            self._check_rollback()
            self._check_maximum()
            self._check_zero()
            self._check_state()

    def _check_initial(self) -> None:
        needed = _instances_for(_initial_copies(self._components), self._instance)
        if needed > self._initial:
            self._warn(
                INITIAL_WARNING,
                f"the first copies of the components need {needed} instances, but initial_instance_count is "
                f"{self._initial}, so the last copies wait until SageMaker adds instances, or fail. Raise "
                "initial_instance_count, or acknowledge this",
            )

    def _check_update(self) -> None:
        """An update starts new copies before it ends the old ones: one at a time, or a batch of the policy."""
        beyond, needed = self._beyond_capacity(lambda each: each._update_copies)
        if beyond:
            self._warn(
                UPDATE_WARNING,
                f"an update of component {beyond} starts new copies, which need whole GPUs, before the old copies "
                f"end. max_instance_count is {self._most}, but the free GPUs of {self._most} {self._instance.name} do "
                f"not suffice then, so the update waits for capacity and fails. Raise max_instance_count to {needed}, "
                "or acknowledge this if you remove a component before you change it",
            )

    def _check_rollback(self) -> None:
        """Without `rollback_batch`, "SageMaker AI provisions the entire capacity of the old fleet at once"."""
        beyond, needed = self._beyond_capacity(lambda each: each._rollback_copies)
        if beyond:
            self._warn(
                ROLLBACK_WARNING,
                f"a rollback of component {beyond} starts the old copies beside the new copies: rollback_batch copies "
                f"at a time, or all at once without rollback_batch. The rollback needs {needed} {self._instance.name}, "
                f"but max_instance_count is {self._most}. Give the policy a smaller rollback_batch, raise "
                "max_instance_count, or acknowledge this",
            )

    def _beyond_capacity(self, new: Callable[[TritonComponent], int]) -> tuple[str, int]:
        """The components whose new copies do not fit beside all initial copies, and the number of instances needed."""
        copies = _initial_copies(self._components)
        needed = {
            each.node.id: _instances_for([*copies, (each.requirements, new(each))], self._instance)
            for each in self._components
            if new(each)
        }
        beyond = {name: count for name, count in needed.items() if count > self._most}
        return ", ".join(map(repr, beyond)), max(beyond.values(), default=0)

    def _check_maximum(self) -> None:
        copies = [(each.requirements, each.max_copies) for each in self._components]
        needed = _instances_for(copies, self._instance)
        if needed > self._most:
            together = sum(number for _, number in copies)
            self._warn(
                MAXIMUM_WARNING,
                f"the components may scale to {together} copies together, which need {needed} instances, but "
                f"max_instance_count is {self._most}, so SageMaker cannot place the last copies. Raise "
                "max_instance_count, or acknowledge this if the components do not scale out at the same time",
            )

    def _check_zero(self) -> None:
        """SageMaker removes all instances only if no component has a copy and `MinInstanceCount` is 0."""
        stopping = [each.node.id for each in self._components if each.min_copies == 0]
        if not stopping:
            return
        kept = [each.node.id for each in self._components if each.min_copies != 0]
        reasons = [
            *([f"min_instance_count is {self._least}"] if self._least else []),
            *([f"{in_words(map(repr, kept), 'and')} {'keeps' if len(kept) == 1 else 'keep'} a copy"] if kept else []),
        ]
        if reasons:
            self._warn(
                INSTANCES_STAY_WARNING,
                f"{in_words(map(repr, stopping), 'and')} may scale to zero copies, but {' and '.join(reasons)}, so "
                "instances stay and cost money. Set min_instance_count=0 and let every component scale to zero, or "
                "acknowledge this if other components need the GPUs",
            )

    def _check_state(self) -> None:
        copies = {each.node.id: (each.model, each.max_copies) for each in self._components}
        warn_about_state_of_copies(Annotations.of(self._scope), copies)

    def _warn(self, code: str, text: str) -> None:
        Annotations.of(self._scope).add_warning_v2(code, text)
