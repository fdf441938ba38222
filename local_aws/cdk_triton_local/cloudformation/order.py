"""The order in which an operation works on resources, and which of them run at the same time.

CloudFormation starts every resource as soon as its dependencies exist, so the order of independent resources is not
fixed. Here resources are created one after the other: each after its dependencies, otherwise in the order of the
template. Deletions use the reverse order. Custom resources wait until nothing else can be done. Then all that can begin
run at the same time, as on AWS, because their functions have to support that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from cdk_triton.errors import TemplateError

__all__ = ["creation_order", "work_through"]


def creation_order(dependencies: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The names, each after those it depends on; names that are not keys are ignored.

    Raises:
        TemplateError: there is a cycle.
    """
    order: dict[str, None] = {}
    path: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        if name in path:
            cycle = path[path.index(name) :]
            raise TemplateError(f"Circular dependency between resources: [{', '.join(cycle)}]")
        path.append(name)
        for dependency in dependencies[name]:
            if dependency in dependencies:
                visit(dependency)
        path.pop()
        order[name] = None

    for name in dependencies:
        visit(name)
    return tuple(order)


def work_through(
    order: Sequence[str],
    dependencies: Mapping[str, Iterable[str]],
    customs: Collection[str],
    work: Callable[[str], None],
) -> None:
    """Call `work` for every resource. If a call fails, those that run at the same time still finish.

    Args:
        order: logical ids, each after those that it depends on.
        dependencies: the logical ids that each depends on.
        customs: the logical ids of custom resources.
        work: called with a logical id.
    """
    for names in _groups(order, dependencies, customs):
        if len(names) == 1:
            work(names[0])
            continue
        with ThreadPoolExecutor(len(names)) as pool:
            started = [pool.submit(work, name) for name in names]
        for each in started:
            each.result()


def _groups(
    order: Sequence[str], dependencies: Mapping[str, Iterable[str]], customs: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """Each group is one resource, or all custom resources that can begin."""
    left = dict.fromkeys(order)
    while left:
        ready = [name for name in left if not any(each in left for each in dependencies[name])]
        others = [name for name in ready if name not in customs]
        group = tuple(others[:1] or ready)
        yield group
        for name in group:
            del left[name]
