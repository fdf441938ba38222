"""The data flow of an ensemble: which step writes and which steps read each tensor.

An ensemble names its tensors itself. A step's `input_map` names the ensemble tensor that each of the model's inputs
reads, and its `output_map` the ensemble tensor that each output writes. The request writes the ensemble's own inputs,
and the response reads its own outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdk_triton.triton.schema import ModelConfig

__all__ = ["EnsembleGraph", "EnsembleStep", "EnsembleTensor"]


@dataclass(frozen=True)
class EnsembleStep:
    """One step of an ensemble.

    Attributes:
        index: the step's position in `ensemble_scheduling.step`, from 0.
        model_name: the model that the step runs.
        model_version: the version; -1 is the latest. If the file has no version, the value is 0, and the server runs
            version 0.
        input_map: the model's input → the ensemble tensor that it reads.
        output_map: the model's output → the ensemble tensor that it writes.
    """

    index: int
    model_name: str
    model_version: int
    input_map: Mapping[str, str]
    output_map: Mapping[str, str]


@dataclass(frozen=True)
class EnsembleTensor:
    """One tensor of an ensemble.

    Attributes:
        name: the name of the tensor in the ensemble.
        writers: the steps that write it; a step with two outputs on the same tensor appears once.
        readers: the steps that read it.
        is_input: whether the request contains it.
        is_output: whether the response contains it.
    """

    name: str
    writers: tuple[EnsembleStep, ...]
    readers: tuple[EnsembleStep, ...]
    is_input: bool
    is_output: bool


@dataclass(frozen=True)
class EnsembleGraph:
    """The steps and tensors of an ensemble, as they are in its configuration, without any validation.

    Attributes:
        steps: the steps, in the order of the file.
        tensors: the tensors by name: the inputs, then the outputs, then the tensors that only steps use. Each group is
            in the order of the file. Only the tensors of one step's map are sorted by the keys of the map, because
            protobuf keeps no order in a map.
    """

    steps: tuple[EnsembleStep, ...]
    tensors: Mapping[str, EnsembleTensor]

    @classmethod
    def from_config(cls, config: ModelConfig) -> EnsembleGraph:
        """Read the graph from an ensemble's configuration; empty for any other model."""
        if not config.HasField("ensemble_scheduling"):
            return cls((), {})
        steps = tuple(
            EnsembleStep(
                index,
                step.model_name,
                step.model_version,
                dict(sorted(step.input_map.items())),  # protobuf keeps no order in a map
                dict(sorted(step.output_map.items())),
            )
            for index, step in enumerate(config.ensemble_scheduling.step)
        )
        inputs = dict.fromkeys(tensor.name for tensor in config.input)
        outputs = dict.fromkeys(tensor.name for tensor in config.output)
        names = {**inputs, **outputs}
        writers: dict[str, list[EnsembleStep]] = {}
        readers: dict[str, list[EnsembleStep]] = {}
        for step in steps:
            for mapped, users in ((step.input_map, readers), (step.output_map, writers)):
                for name in dict.fromkeys(mapped.values()):
                    names[name] = None
                    users.setdefault(name, []).append(step)
        tensors = {
            name: EnsembleTensor(
                name,
                writers=tuple(writers.get(name, ())),
                readers=tuple(readers.get(name, ())),
                is_input=name in inputs,
                is_output=name in outputs,
            )
            for name in names
        }
        return cls(steps, tensors)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that the steps run, each once, in the order of the file."""
        return tuple(dict.fromkeys(step.model_name for step in self.steps))
