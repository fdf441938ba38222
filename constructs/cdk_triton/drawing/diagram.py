"""The data flow of a repository as boxes and arrows, with the findings at their places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.places import Place, place_of_inputs, place_of_instances, place_of_outputs
from cdk_triton.onnx_models.completion import completed
from cdk_triton.triton.ensemble import EnsembleStep, EnsembleTensor
from cdk_triton.triton.findings import Finding
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import ModelRepository
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name

__all__ = ["REQUEST", "RESPONSE", "Arrow", "Box", "Diagram", "diagrams"]

REQUEST, RESPONSE, NOTHING = "request", "response", "nothing"
"""The keys of the boxes that are not steps. `nothing` writes what no step writes, and reads what no step reads."""

_BACKENDS: Mapping[str, str] = {
    "dali": "DALI",
    "fil": "FIL",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "python": "Python",
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
    "tensorrt": "TensorRT",
}
_OF_STEP = re.compile(r'ensemble_scheduling\.step\[(\d+)\](?:\.(input|output)_map\["(.*)"\])?')


@dataclass(frozen=True)
class Box:
    """The caller's request or response, or a step.

    Attributes:
        key: what arrows refer to; `0` for the first step.
        name: the name of the model, or `request`, `response` or `nothing`.
        backend: what runs the model, in words; "" where no file shows it.
        place: the processor of its instances.
        findings: the numbers of its findings in the diagram, from 1.
    """

    key: str
    name: str
    backend: str = ""
    place: Place = ""
    findings: tuple[int, ...] = ()


@dataclass(frozen=True)
class Arrow:
    """A tensor on its way from one box to another.

    Attributes:
        source: the key of the box that writes it.
        target: the key of the box that reads it.
        tensor: its name in the ensemble.
        data_type: its type without `TYPE_`, or "".
        dims: its dimensions without the batch dimension; None where no file has them.
        crossing: the places between which it is copied, or "".
        findings: the numbers of its findings in the diagram.
    """

    source: str
    target: str
    tensor: str
    data_type: str = ""
    dims: tuple[int, ...] | None = None
    crossing: str = ""
    findings: tuple[int, ...] = ()

    @property
    def shape(self) -> str:
        """Type and dimensions, `FP32 [-1, 384]`."""
        dims = "" if self.dims is None else f" [{', '.join(map(str, self.dims))}]"
        return f"{self.data_type}{dims}".strip() or "unknown"


@dataclass(frozen=True)
class Diagram:
    """An ensemble, or a model that is not a step of one.

    Attributes:
        name: of the model.
        is_ensemble: whether it is an ensemble.
        max_batch_size: its largest batch; 0 without a batch dimension.
        boxes: in the order of a request, as far as there is one: the request first, the response last.
        arrows: in the order of the boxes that they come from.
        findings: the findings of the models in it.
    """

    name: str
    is_ensemble: bool
    max_batch_size: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def title(self) -> str:
        """The kind, the name and the largest batch of the model."""
        kind = "ensemble" if self.is_ensemble else "model"
        return f"{kind} {self.name}, " + (
            f"batches of up to {self.max_batch_size}" if self.max_batch_size else "no batches"
        )

    @property
    def own_findings(self) -> tuple[int, ...]:
        """The numbers of the findings that belong to no box and no arrow."""
        shown = {number for box in self.boxes for number in box.findings}
        shown |= {number for arrow in self.arrows for number in arrow.findings}
        return tuple(number for number in range(1, len(self.findings) + 1) if number not in shown)


def diagrams(repository: ModelRepository, findings: Iterable[Finding] = ()) -> tuple[Diagram, ...]:
    """A diagram of each ensemble, and of each model that is not a step of one.

    Args:
        repository: the repository; it may have errors.
        findings: those to mark, such as those of `ModelRepository.check`.
    """
    context = CheckContext(repository)
    known = tuple(findings)
    steps = {name for model in repository.ensembles for name in model.graph.model_names}
    models = [each for each in repository.models if each.is_recognisable] or list(repository.models)
    drawn = [each for each in models if each.is_ensemble or each.name not in steps]
    return tuple(_Drawing(context, each, known).diagram() for each in drawn or models)


class _Drawing:
    def __init__(self, context: CheckContext, model: Model, findings: tuple[Finding, ...]) -> None:
        self._context = context
        self._model = model
        self._config = model.config or completed(context, model) or ModelConfig()
        self._steps = model.graph.steps if model.is_ensemble else (_as_step(model, self._completed(model)),)
        names = {model.name, *(step.model_name for step in self._steps)}
        self._findings = tuple(each for each in findings if self._owner(each) in names)

    def diagram(self) -> Diagram:
        arrows = [*self._arrows()]
        order = _dependency_order(self._steps)
        boxes = [Box(REQUEST, REQUEST), *(self._box(self._steps[index]) for index in order)]
        if any(NOTHING in (each.source, each.target) for each in arrows):
            boxes.append(Box(NOTHING, NOTHING))
        boxes.append(Box(RESPONSE, RESPONSE))
        rank = {box.key: number for number, box in enumerate(boxes)}
        arrows.sort(key=lambda each: (rank[each.source], rank[each.target]))
        size = max(self._completed(self._model).max_batch_size, 0)
        return Diagram(self._model.name, self._model.is_ensemble, size, tuple(boxes), tuple(arrows), self._findings)

    def _completed(self, model: Model) -> ModelConfig:
        return completed(self._context, model) or ModelConfig()

    def _owner(self, finding: Finding) -> str:
        models = self._context.repository.models
        if len(models) == 1:
            return models[0].name
        return finding.path.partition("/")[0]

    def _box(self, step: EnsembleStep) -> Box:
        model = self._context.repository.model(step.model_name)
        numbers = tuple(self._findings_of_step(step))
        if model is None:
            return Box(str(step.index), step.model_name, "missing", "", numbers)
        backend = model.backend_name or ""
        words = "ensemble" if model.is_ensemble else _BACKENDS.get(backend, backend)
        return Box(str(step.index), model.name, words, place_of_instances(self._completed(model), backend), numbers)

    def _findings_of_step(self, step: EnsembleStep) -> Iterator[int]:
        """The numbers of the findings of a step and of its model, without those of its maps."""
        for number, finding in enumerate(self._findings, 1):
            match = _OF_STEP.match(finding.field) if self._owner(finding) == self._model.name else None
            if match is not None and self._model.is_ensemble:
                mapped = step.input_map if match[2] == "input" else step.output_map
                if int(match[1]) == step.index and match[3] not in mapped:
                    yield number
            elif self._owner(finding) == step.model_name:
                yield number

    def _arrows(self) -> Iterator[Arrow]:
        tensors = self._model.graph.tensors if self._model.is_ensemble else _tensors_of(self._steps[0])
        for tensor in tensors.values():
            sources = [REQUEST] * tensor.is_input + [str(step.index) for step in tensor.writers] or [NOTHING]
            targets = [str(step.index) for step in tensor.readers] + [RESPONSE] * tensor.is_output or [NOTHING]
            data_type, dims = self._type_and_dims(tensor)
            for source in sources:
                for target in targets:
                    written, read = self._written(source, data_type), self._read(target, data_type)
                    crossing = f"{written} → {read}" if written and read and written != read else ""
                    numbers = self._findings_of_arrow(tensor, source, target)
                    yield Arrow(source, target, tensor.name, data_type, dims, crossing, numbers)

    def _findings_of_arrow(self, tensor: EnsembleTensor, source: str, target: str) -> tuple[int, ...]:
        """The numbers of the findings of the map entries that connect the tensor."""
        numbers = []
        for number, finding in enumerate(self._findings, 1):
            match = _OF_STEP.match(finding.field)
            if match is None or match[2] is None or self._owner(finding) != self._model.name:
                continue
            at, kind = (target, "input") if match[2] == "input" else (source, "output")
            if match[1] == at:
                step = self._steps[int(at)]
                mapped = step.input_map if kind == "input" else step.output_map
                if mapped.get(match[3]) == tensor.name:
                    numbers.append(number)
        return tuple(numbers)

    def _type_and_dims(self, tensor: EnsembleTensor) -> tuple[str, tuple[int, ...] | None]:
        """From the first configuration on the tensor's way that has them."""
        found: list[tuple[str, tuple[int, ...] | None]] = []
        own: list[ModelInput | ModelOutput] = [*self._config.input, *self._config.output]
        found += [_type_and_dims_of(each) for each in own if each.name == tensor.name]
        for steps, side in ((tensor.writers, "output"), (tensor.readers, "input")):
            for step in steps:
                model = self._context.repository.model(step.model_name)
                config = ModelConfig() if model is None else self._completed(model)
                mapped = step.output_map if side == "output" else step.input_map
                named = {name for name, value in mapped.items() if value == tensor.name}
                given: list[ModelInput | ModelOutput] = [*(config.output if side == "output" else config.input)]
                found += [_type_and_dims_of(each) for each in given if each.name in named]
        data_type = next((name for name, _ in found if name), "")
        return data_type, next((dims for _, dims in found if dims is not None), None)

    def _written(self, source: str, data_type: str) -> Place:
        if source in (REQUEST, NOTHING):
            return "CPU" if source == REQUEST else ""
        model = self._context.repository.model(self._steps[int(source)].model_name)
        if model is None or model.is_ensemble:
            return ""
        return place_of_outputs(model, self._completed(model), model.backend_name or "", data_type)

    def _read(self, target: str, data_type: str) -> Place:
        if target in (RESPONSE, NOTHING):
            return "CPU" if target == RESPONSE else ""
        model = self._context.repository.model(self._steps[int(target)].model_name)
        if model is None or model.is_ensemble:
            return ""
        return place_of_inputs(self._completed(model), model.backend_name or "", data_type)


def _type_and_dims_of(tensor: ModelInput | ModelOutput) -> tuple[str, tuple[int, ...] | None]:
    name = enum_name(tensor, "data_type").removeprefix("TYPE_")
    return "" if name == "INVALID" else name, tuple(tensor.dims) or None


def _as_step(model: Model, config: ModelConfig) -> EnsembleStep:
    """The step of an ensemble that would have no other."""
    inputs, outputs = ({each.name: each.name for each in side} for side in (config.input, config.output))
    return EnsembleStep(0, model.name, -1, inputs, outputs)


def _tensors_of(step: EnsembleStep) -> Mapping[str, EnsembleTensor]:
    inputs = {name: EnsembleTensor(name, (), (step,), True, False) for name in step.input_map}
    outputs = {name: EnsembleTensor(name, (step,), (), False, True) for name in step.output_map if name not in inputs}
    return {**inputs, **outputs}


def _dependency_order(steps: tuple[EnsembleStep, ...]) -> list[int]:
    """Each step follows those whose tensors it reads, unless there is a circle."""
    rest, order = list(range(len(steps))), list[int]()
    while rest:
        written = {name for index in rest for name in steps[index].output_map.values()}
        ready = [index for index in rest if written.isdisjoint(steps[index].input_map.values())]
        order += ready or rest[:1]
        rest = [index for index in rest if index not in order]
    return order
