"""In which order resources are created.

CloudFormation works on independent resources in parallel, so its order among them is not fixed. Ours is: every resource
comes after what it depends on, and otherwise in the order of the template; deletions go exactly backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdk_triton.errors import TemplateError

__all__ = ["creation_order"]


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
