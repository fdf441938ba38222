"""Cycles in a directed graph, in time that grows with the graph and not with its square."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from cdk_triton.checks.context import CheckContext, per_check

Node = TypeVar("Node", bound=int | str)

__all__ = ["cycles", "ensemble_cycles"]


@per_check
def ensemble_cycles(context: CheckContext) -> Iterator[tuple[str, ...]]:
    """The ensembles that run each other in a cycle, as `cycles` gives them."""
    yield from cycles({model.name: model.graph.model_names for model in context.loaded_models})


def cycles(graph: Mapping[Node, Iterable[Node]]) -> list[tuple[Node, ...]]:
    """One cycle for each group of nodes that all reach each other, such as a node that leads to itself.

    Args:
        graph: node → where it leads to; a node that is not a key leads nowhere.

    Returns:
        The nodes of each cycle: the smallest of the group, and the shortest way from it back to itself.
    """
    found = []
    for group in _groups(graph):
        start = min(group)
        if len(group) > 1 or start in graph[start]:
            found.append(_way_back(graph, start, group))
    return sorted(found)


def _way_back(graph: Mapping[Node, Iterable[Node]], start: Node, group: set[Node]) -> tuple[Node, ...]:
    came_from: dict[Node, Node] = {}
    pending = [start]
    for node in pending:  # grows while we walk
        for following in graph[node]:
            if following == start:
                way = [node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if following in group and following not in came_from:
                came_from[following] = node
                pending.append(following)
    raise AssertionError("a group has a way back")


def _groups(graph: Mapping[Node, Iterable[Node]]) -> Iterator[set[Node]]:
    """The strongly connected components: Kosaraju's algorithm, without recursion."""
    backwards: dict[Node, list[Node]] = {node: [] for node in graph}
    for node, following in graph.items():
        for other in following:
            if other in backwards:
                backwards[other].append(node)
    taken: set[Node] = set()
    for node in reversed(_finished(graph)):
        if node in taken:
            continue
        taken.add(node)
        group = [node]
        for member in group:  # grows while we walk
            new = [other for other in dict.fromkeys(backwards[member]) if other not in taken]
            taken.update(new)
            group += new
        yield set(group)


def _finished(graph: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """The nodes in the postorder of a depth-first search."""
    seen: set[Node] = set()
    finished: list[Node] = []
    for root in graph:
        walk = [] if root in seen else [(root, iter(graph[root]))]
        seen.add(root)
        while walk:
            node, rest = walk[-1]
            new = next((other for other in rest if other in graph and other not in seen), None)
            if new is None:
                finished.append(node)
                walk.pop()
            else:
                seen.add(new)
                walk.append((new, iter(graph[new])))
    return finished
