"""Which resources an operation works on next, and which of them at once.

CloudFormation starts every resource as soon as what it depends on is there. Here resources are worked on one after the
other. Only custom resources wait until nothing else can be done, and then all that can begin do so at once, because
their functions have to bear that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from cdk_triton_local.cloudformation.plan import ChangePlan
from cdk_triton_local.cloudformation.resource_types import is_custom
from cdk_triton_local.cloudformation.stacks import Target

__all__ = ["work_through"]


def work_through(target: Target, plan: ChangePlan, work: Callable[[str], None]) -> None:
    """Do something with every resource of a plan; what is under way is finished when something fails."""
    resources = target.template.resources
    for names in _groups(plan.order, plan.dependencies, lambda name: is_custom(resources[name].type)):
        if len(names) == 1:
            work(names[0])
            continue
        with ThreadPoolExecutor(len(names)) as pool:
            started = [pool.submit(work, name) for name in names]
        for each in started:
            each.result()


def _groups(
    order: Sequence[str], dependencies: Mapping[str, Iterable[str]], customs: Callable[[str], bool]
) -> Iterator[tuple[str, ...]]:
    """The names in groups, one after the other: one resource, or all custom resources that can begin."""
    left = dict.fromkeys(order)
    while left:
        ready = [name for name in left if not any(each in left for each in dependencies[name])]
        others = [name for name in ready if not customs(name)]
        group = tuple(others[:1] or ready)
        yield group
        for name in group:
            del left[name]
