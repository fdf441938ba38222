"""Warns, when the app is complete, of components that find no room, and of instances that never go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import jsii
from aws_cdk import Annotations, IAspect
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton.sagemaker import CopyRequirements, GpuInstance, instances_for

if TYPE_CHECKING:  # makes what looks at it
    from cdk_triton.hosting.components.component import TritonComponent

__all__ = ["RoomWarnings", "initial_copies"]

UPDATE_WARNING: Final = "cdk-triton:NoRoomForUpdate"
INITIAL_WARNING: Final = "cdk-triton:CopiesWaitForInstances"
MAXIMUM_WARNING: Final = "cdk-triton:CopiesBeyondInstances"
INSTANCES_STAY_WARNING: Final = "cdk-triton:InstancesStay"


def initial_copies(components: Sequence[TritonComponent]) -> list[CopyRequirements]:
    """The requirements of all first copies of components."""
    return [each.requirements for each in components for _ in range(each.copies)]


@jsii.implements(IAspect)
class RoomWarnings:
    """Looks at all components of an endpoint together.

    Args:
        scope: the endpoint, which gets the warnings.
        instance: the type of its instances.
        counts: the initial, the least and the greatest number of instances.
        components: those that there are; more may come.
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
        if isinstance(node, sagemaker.CfnEndpointConfig) and self._components:
            self._look_at_initial()
            self._look_at_update()
            self._look_at_maximum()
            self._look_at_zero()

    def _look_at_initial(self) -> None:
        needed = instances_for(initial_copies(self._components), self._instance)
        if needed > self._initial:
            self._warn(
                INITIAL_WARNING,
                f"the first copies of its components need {needed} instances, and initial_instance_count is "
                f"{self._initial}: the last copies wait for instances that SageMaker adds, or fail. Raise "
                "initial_instance_count, or acknowledge this",
            )

    def _look_at_update(self) -> None:
        """Each component needs room for one more copy: an update starts new copies before it ends the old ones."""
        copies = initial_copies(self._components)
        without = [
            each.node.id
            for each in self._components
            if each.copies and instances_for([*copies, each.requirements], self._instance) > self._most
        ]
        if without:
            self._warn(
                UPDATE_WARNING,
                f"an update of {', '.join(without)} starts a new copy before the old one ends, and needs whole GPUs "
                f"for it: none are free on {self._most} {self._instance.name}, which is max_instance_count, so the "
                "update waits for capacity and fails. Raise max_instance_count by one, or acknowledge this where you "
                "remove a component before you change it",
            )

    def _look_at_maximum(self) -> None:
        copies = [each.requirements for each in self._components for _ in range(each.max_copies)]
        needed = instances_for(copies, self._instance)
        if needed > self._most:
            self._warn(
                MAXIMUM_WARNING,
                f"its components may scale to {len(copies)} copies together, which need {needed} instances, and "
                f"max_instance_count is {self._most}: copies beyond that find no room. Raise max_instance_count, or "
                "acknowledge this where they do not scale out at the same time",
            )

    def _look_at_zero(self) -> None:
        """Instances go when no component has a copy, and `MinInstanceCount` is 0."""
        asleep = [each.node.id for each in self._components if each.min_copies == 0]
        if not asleep:
            return
        awake = [each.node.id for each in self._components if each.min_copies != 0]
        reasons = [
            *([f"min_instance_count is {self._least}"] if self._least else []),
            *([f"{', '.join(awake)} keeps a copy"] if awake else []),
        ]
        if reasons:
            self._warn(
                INSTANCES_STAY_WARNING,
                f"{', '.join(asleep)} scales to zero copies, and {' and '.join(reasons)}: instances stay and cost. Set "
                "min_instance_count=0 and let every component scale to zero, or acknowledge this where the GPUs are "
                "for other components",
            )

    def _warn(self, code: str, text: str) -> None:
        Annotations.of(self._scope).add_warning_v2(code, text)
