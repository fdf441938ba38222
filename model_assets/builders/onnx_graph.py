"""Writing an ONNX graph by hand: nodes in order, weights beside them, bytes at the end.

A tensor is named after the node that writes it, so the graph reads in a viewer as it reads in the builder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

# Opset 17 is the first with LayerNormalization as one operator; ONNX Runtime 1.23 (Triton 25.09) and TensorRT 10 both
# read it. A newer one would only shut older servers out. https://onnxruntime.ai/docs/reference/compatibility.html
OPSET = 17
IR_VERSION = 9

Specification = tuple[int, list[str | int]]
"""The element type of an input or output, and its shape; a string in it names a dynamic dimension."""


class Graph:
    """An ONNX graph under construction."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        """Adds a weight or a small constant and returns its name; one that is there already under `name` is kept."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name)
        return name

    def integers(self, *values: int) -> str:
        """A one-dimensional INT64 constant, as shapes and axes want it."""
        return self.constant("integers/" + ",".join(map(str, values)), values, np.int64)

    def node(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Adds a node with one output and returns the output's name, which is `name`."""
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def to_bytes(
        self,
        *,
        inputs: Mapping[str, Specification],
        outputs: Mapping[str, Specification],
        description: str,
        metadata: Mapping[str, str],
    ) -> bytes:
        """Checks the graph and serialises it; the same graph always gives the same bytes.

        Args:
            inputs: their names, with type and shape.
            outputs: the same for the results.
            description: the model's doc string, which every ONNX viewer shows.
            metadata: further properties of the model.
        """
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
            [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="cdk-triton model_assets",
            doc_string=description,
        )
        helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model, full_check=True)  # with shape inference: a wrong kernel or axis ends here
        return model.SerializeToString(deterministic=True)


FLOAT = TensorProto.FLOAT
INT32 = TensorProto.INT32
