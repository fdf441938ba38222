"""The faults of a network for which TensorRT builds no plan, by ONNX's own definitions of operators."""

from __future__ import annotations

from difflib import SequenceMatcher

from cdk_triton.checks.context import CheckContext
from cdk_triton.onnx_models.reader.graph import GraphFault
from cdk_triton.onnx_models.verdicts import graph_verdicts
from cdk_triton.tensorrt_models.sources import PlanSource

__all__ = ["plan_graph_faults"]

_SLIP = 0.85

# Faults of these kinds end TensorRT's parser as well. It does not look at types and unknown attributes as ONNX does,
# and takes operators of newer opsets.
_KINDS = ("operator", "shape", "attribute", "value", "cycle")


def plan_graph_faults(context: CheckContext, source: PlanSource) -> tuple[GraphFault, ...]:
    """The faults of the network that a recipe builds, once for each operator and reason; none without a recipe."""
    verdict = graph_verdicts(context).get(source.network.source) if source.has_recipe else None
    first: dict[tuple[str, str], GraphFault] = {}
    for fault in verdict.faults if verdict is not None else ():
        if fault.kind in _KINDS and not _may_be_taken(fault, source):
            first.setdefault((fault.operator, fault.reason), fault)
    return tuple(first.values())


def _may_be_taken(fault: GraphFault, source: PlanSource) -> bool:
    """Whether TensorRT may take it: shapes that a loop declares, a permutation of another length, or a plugin.

    The parser looks plugins up by the operator's name, in every domain. A recipe without plugins adds none to those
    that TensorRT ships, none of which has a name that is nearly an operator's.
    """
    if fault.kind == "attribute" and fault.operator == "Transpose":
        return True  # the parser of TensorRT-RTX takes perm = [0, 1, 2] and [0] for an input of two dimensions
    if fault.kind != "operator":
        return fault.kind in ("shape", "attribute") and fault.operator in ("If", "Loop", "Scan")
    if source.may_have_plugins or not _is_nearly(fault.operator, fault.fix):
        return True
    return "_TRT" in fault.operator or "Plugin" in fault.operator


def _is_nearly(name: str, operator: str) -> bool:
    """Whether a name is a misspelt operator: `Gemmm`, not `FancyAttention`."""
    return SequenceMatcher(None, name.lower(), operator.lower()).ratio() > _SLIP
