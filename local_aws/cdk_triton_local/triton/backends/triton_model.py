"""The common part of the stand-ins: the shape of a model of Triton's Python backend."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb  # provided by the stub
from numpy.typing import NDArray

from cdk_triton_local.triton.backends.implicit_state import ImplicitState

__all__ = ["StandIn"]


class StandIn(ABC):
    """A model whose requests are answered one batch at a time.

    A subclass loads the model in `load` and answers in `compute`; both raise `ValueError` with the reason of a failure.
    """

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the model; called by Triton."""
        self.config: dict[str, Any] = json.loads(args["model_config"])
        self._state = ImplicitState(self.config)
        self._can_batch = self.config["max_batch_size"] > 0 and not self._state.outputs
        directory = Path(args["model_repository"]) / args["model_version"]
        try:
            stands_for = self.load(directory)
        except (ValueError, OSError) as error:
            raise pb.TritonModelException(str(error)) from error
        if args["model_instance_name"].endswith("_0"):  # once per model
            pb.Logger.log_warn(f"model {self.config['name']!r}: {stands_for}")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests; called by Triton."""
        tensors = [{t.name(): t.as_numpy() for t in request.inputs()} for request in requests]
        if len(requests) > 1 and self._can_batch and _fit_together(tensors):
            sizes = [len(next(iter(one.values()))) for one in tensors]
            joined = {name: np.concatenate([one[name] for one in tensors]) for name in tensors[0]}
            return self._answer_together(requests, joined, sizes)
        return [self._answer(request, one) for request, one in zip(requests, tensors, strict=True)]

    @abstractmethod
    def load(self, directory: Path) -> str:
        """Load the model version in `directory`; returns the stand-in's line for the log."""

    @abstractmethod
    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """The tensors named `outputs`, in this order, for the given inputs."""

    def _answer(self, request: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
        wanted = request.requested_output_names()
        names = list({*wanted, *self._state.outputs})
        try:
            values = self.compute({**tensors, **self._state.before(request)}, names)
        except Exception as error:  # the model's own failure is the caller's, not the stub's
            return _failure(error)
        by_name = dict(zip(names, values, strict=True))
        if self._state.outputs:
            self._state.after(request, by_name)
        return pb.InferenceResponse([pb.Tensor(name, by_name[name]) for name in wanted])

    def _answer_together(
        self, requests: Sequence[Any], tensors: Mapping[str, NDArray[Any]], sizes: list[int]
    ) -> list[Any]:
        names = [output["name"] for output in self.config["output"]]
        try:
            values = self.compute(tensors, names)
        except Exception as error:
            return [_failure(error) for _ in requests]
        ends = np.cumsum(sizes)
        responses = []
        for request, start, end in zip(requests, [0, *ends[:-1]], ends, strict=True):
            wanted = request.requested_output_names()
            parts = [pb.Tensor(n, v[start:end]) for n, v in zip(names, values, strict=True) if n in wanted]
            responses.append(pb.InferenceResponse(parts))
        return responses


def _fit_together(tensors: Sequence[Mapping[str, NDArray[Any]]]) -> bool:
    shapes = [{name: tensor.shape[1:] for name, tensor in one.items()} for one in tensors]
    return all(shape == shapes[0] for shape in shapes)


def _failure(error: Exception) -> Any:
    return pb.InferenceResponse(error=pb.TritonError(str(error)))
