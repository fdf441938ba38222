"""The implicit state of a sequence: outputs of a request that are inputs of the next one.

Triton's core hands each request its state, but a model of the Python backend cannot change it (it has no counterpart of
`TRITONBACKEND_StateNew`), so that every request gets the initial state. Hence a stand-in keeps the states itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import triton_python_backend_utils as pb  # provided by the stub
from numpy.typing import NDArray

__all__ = ["ImplicitState"]


class ImplicitState:
    """The states of the sequences that an instance serves; a sequence never changes its instance.

    Args:
        config: the model configuration as Triton hands it to a backend (its JSON form).

    Attributes:
        outputs: the outputs that are state.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        states = config.get("sequence_batching", {}).get("state", [])
        self._inputs = {each["output_name"]: each["input_name"] for each in states}
        self._kept: dict[int | str, Mapping[str, NDArray[Any]]] = {}
        self.outputs = list(self._inputs)

    def before(self, request: Any) -> Mapping[str, NDArray[Any]]:
        """The state inputs of a request; empty for the first one of a sequence, which has those of Triton's core."""
        if request.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
            self._kept.pop(request.correlation_id(), None)
        return self._kept.get(request.correlation_id(), {})

    def after(self, request: Any, values: Mapping[str, NDArray[Any]]) -> None:
        """Keep the state of a sequence until its last request."""
        self._kept[request.correlation_id()] = {given: values[name] for name, given in self._inputs.items()}
        if request.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END:
            del self._kept[request.correlation_id()]
