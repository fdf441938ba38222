"""The fields of configurations that contradict the network of their model, which rules about that network report.

An ensemble's tensors are compared without them. Otherwise, one wrong field would also be a fault of the ensemble, with
the advice to change another field.
"""

from __future__ import annotations

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.onnx_models.rules.models import contradicted_names, contradicted_types
from cdk_triton.onnx_models.rules.shapes import contradicted_shapes
from cdk_triton.tensorrt_models.rules.networks import contradicted_by_recipes, names_contradicted_by_recipes

__all__ = ["contradicted", "misnamed"]


@per_check
def contradicted(context: CheckContext) -> frozenset[tuple[str, str]]:
    """The name of the model and the field, such as `input[0].dims`, of each (CT133, CT134, CT705)."""
    return frozenset((*contradicted_types(context), *contradicted_shapes(context), *contradicted_by_recipes(context)))


@per_check
def misnamed(context: CheckContext) -> frozenset[tuple[str, str, str]]:
    """Model, side and name of tensors that only the network or only the configuration has (CT131, CT132, CT705)."""
    return frozenset((*contradicted_names(context), *names_contradicted_by_recipes(context)))
