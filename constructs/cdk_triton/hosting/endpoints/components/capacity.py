"""Warns, when the app is complete, if copies do not fit on the instances, and if instances always stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import jsii
from aws_cdk import Annotations, IAspect
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton._wording import in_words
from cdk_triton.sagemaker import CopyRequirements, GpuInstance, instances_for

if TYPE_CHECKING:
    from cdk_triton.hosting.endpoints.components.component import TritonComponent

__all__ = ["CapacityWarnings", "initial_copies"]

UPDATE_WARNING: Final = "cdk-triton:NoRoomForUpdate"
ROLLBACK_WARNING: Final = "cdk-triton:NoRoomForRollback"
INITIAL_WARNING: Final = "cdk-triton:CopiesWaitForInstances"
MAXIMUM_WARNING: Final = "cdk-triton:CopiesBeyondInstances"
INSTANCES_STAY_WARNING: Final = "cdk-triton:InstancesStay"


def initial_copies(components: Sequence[TritonComponent]) -> list[CopyRequirements]:
    """The requirements of every copy that the components start with."""
    return [each.requirements for each in components for _ in range(each.copies)]


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
        if isinstance(node, sagemaker.CfnEndpointConfig) and self._components:
            self._check_initial()
            self._check_update()
            self._check_rollback()
            self._check_maximum()
            self._check_zero()

    def _check_initial(self) -> None:
        needed = instances_for(initial_copies(self._components), self._instance)
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
        copies = initial_copies(self._components)
        needed = {
            each.node.id: instances_for([*copies, *[each.requirements] * new(each)], self._instance)
            for each in self._components
            if new(each)
        }
        beyond = {name: count for name, count in needed.items() if count > self._most}
        return ", ".join(map(repr, beyond)), max(beyond.values(), default=0)

    def _check_maximum(self) -> None:
        copies = [each.requirements for each in self._components for _ in range(each.max_copies)]
        needed = instances_for(copies, self._instance)
        if needed > self._most:
            self._warn(
                MAXIMUM_WARNING,
                f"the components may scale to {len(copies)} copies together, which need {needed} instances, but "
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

    def _warn(self, code: str, text: str) -> None:
        Annotations.of(self._scope).add_warning_v2(code, text)
