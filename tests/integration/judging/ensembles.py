"""Strategies for a valid repository: one model, or an ensemble of models and ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from cdk_triton.triton import ModelConfig
from judging.drafts import OUR_RELEASE, Draft, Tensor
from judging.models import add_model, chance, served, tensors_of, versions, wildcards

__all__ = ["valid_repositories"]

BATCH_SIZES = st.sampled_from([0, 4, 8])


@st.composite
def valid_repositories(draw: st.DrawFn, release: str = OUR_RELEASE) -> Draft:
    """A repository that a server of the release loads."""
    draft = Draft(release=release)
    if chance(draw, 60):
        _Ensemble(draw, draft, "ensemble", draw(BATCH_SIZES), deep=chance(draw, 25)).build()
        draft.entry = "ensemble"
    else:
        batch = draw(BATCH_SIZES)
        given = [(t.data_type, wildcards(draw, t.shape)) for t in tensors_of(draw, draw(st.integers(1, 3)))]
        made = [(t.data_type, wildcards(draw, t.shape)) for t in tensors_of(draw, draw(st.integers(1, 2)))]
        add_model(draw, draft, "model", given, made, batch)
        draft.entry = "model"
    if chance(draw, 10):
        draft.files["unused/1/model.py"] = b""
        draft.texts["unused"] = b"oops"
        draft.configs["unused"] = ModelConfig()
    return draft


@dataclass
class _Child:
    """A model that a step runs."""

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    optional: set[str] = field(default_factory=set)
    versions: list[int] = field(default_factory=lambda: [1])


class _Ensemble:
    """Builds an ensemble step by step; every tensor has a shape, of which each mention hides what it likes by -1."""

    def __init__(self, draw: st.DrawFn, draft: Draft, name: str, batch: int, *, deep: bool) -> None:
        self.draw, self.draft, self.name, self.batch, self.deep = draw, draft, name, batch, deep
        self.config = ModelConfig(platform="ensemble", max_batch_size=batch)
        self.pool: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.consumed: set[str] = set()
        self.children: list[_Child] = []

    def build(self, given: Sequence[Tensor] = ()) -> _Child:
        """Write the configuration; `given` are the tensors that the ensemble takes, where an outer one says so."""
        self.config.ensemble_scheduling.SetInParent()
        self.draft.configs[self.name] = self.config
        for tensor in given:
            self._new_input(tensor)
        for index in range(self.draw(st.integers(1, 3))):
            self._step(index, [tensor for tensor in self.inputs if index == 0])
        outputs = [t for t in self.pool if t not in self.inputs and (t.name not in self.consumed or self._sometimes())]
        for tensor in self.inputs:
            self.config.input.add(name=tensor.name, data_type=tensor.data_type, dims=self._dims(tensor))
        for tensor in outputs:
            self.config.output.add(name=tensor.name, data_type=tensor.data_type, dims=self._dims(tensor))
        if self._sometimes():
            self.config.name = self.name
        numbers = [int(number) for number in versions(self.draw, self.config)]
        for number in numbers:
            self.draft.files[f"{self.name}/{number}/.gitkeep"] = b""
        return _Child(self.name, list(self.inputs), outputs, versions=served(self.config, numbers))

    def _sometimes(self) -> bool:
        return chance(self.draw, 30)

    def _dims(self, tensor: Tensor) -> list[int]:
        return wildcards(self.draw, tensor.shape)

    def _new_input(self, tensor: Tensor) -> Tensor:
        tensor = Tensor(f"x{len(self.pool)}", tensor.data_type, tensor.shape)
        self.pool.append(tensor)
        self.inputs.append(tensor)
        return tensor

    def _source(self) -> Tensor:
        """A tensor for an input of a step: one that is there, or a new input of the ensemble."""
        if self.pool and chance(self.draw, 70):
            return self.draw(st.sampled_from(self.pool))
        return self._new_input(tensors_of(self.draw, 1)[0])

    def _step(self, index: int, required: Sequence[Tensor]) -> None:
        child, sources = self._again() if self.children and chance(self.draw, 15) else (None, [])
        if child is None:
            sources = [*required, *(self._source() for _ in range(self.draw(st.integers(0 if required else 1, 2))))]
            child = self._child(f"{self.name}_{index}", sources)
        # A nested ensemble may want more than it was given.
        sources = [*sources, *(self._new_input(tensor) for tensor in child.inputs[len(sources) :])]
        version = self.draw(st.sampled_from([-1, -1, *child.versions]))
        step = self.config.ensemble_scheduling.step.add(model_name=child.name, model_version=version)
        for tensor, source in zip(child.inputs, sources, strict=True):
            if tensor.name not in child.optional:
                step.input_map[tensor.name] = source.name
                self.consumed.add(source.name)
        mapped = [t for t in child.outputs if not self._sometimes()] or child.outputs[:1]
        for tensor in mapped:
            made = Tensor(f"x{len(self.pool)}", tensor.data_type, tensor.shape)
            self.pool.append(made)
            step.output_map[tensor.name] = made.name

    def _again(self) -> tuple[_Child | None, list[Tensor]]:
        """A model that runs already, and tensors that fit its inputs."""
        child = self.draw(st.sampled_from(self.children))
        sources = []
        for tensor in child.inputs:
            fits = [t for t in self.pool if (t.data_type, t.shape) == (tensor.data_type, tensor.shape)]
            if not fits:
                return None, []
            sources.append(self.draw(st.sampled_from(fits)))
        return child, sources

    def _child(self, name: str, sources: Sequence[Tensor]) -> _Child:
        if self.deep and chance(self.draw, 50):
            batch = self.batch and self.batch + self.draw(st.sampled_from([0, 4]))
            child = _Ensemble(self.draw, self.draft, name, batch, deep=False).build(sources)
        else:
            child = self._model(name, sources)
        self.children.append(child)
        return child

    def _model(self, name: str, sources: Sequence[Tensor]) -> _Child:
        made = tensors_of(self.draw, self.draw(st.integers(1, 2)))
        batches = self.batch > 0
        if self._sometimes() and (batches or all(len(t.shape) > 1 for t in (*sources, *made))):
            batches = not batches
        size = max(self.batch, 1) + self.draw(st.sampled_from([0, 4])) if batches else 0

        def dims(tensor: Tensor) -> list[int]:
            if batches == (self.batch > 0):
                return self._dims(tensor)
            # The batch dimension is one of the shape where only one of the two batches.
            return self._dims(tensor)[1:] if batches else [-1, *self._dims(tensor)]

        config = add_model(
            self.draw,
            self.draft,
            name,
            [(tensor.data_type, dims(tensor)) for tensor in sources],
            [(tensor.data_type, dims(tensor)) for tensor in made],
            size,
        )
        numbers = {
            int(path.split("/")[1]) for path in self.draft.files if path.startswith(f"{name}/") and path.count("/") > 1
        }
        return _Child(
            name,
            [Tensor(t.name, s.data_type, s.shape) for t, s in zip(config.input, sources, strict=True)],
            [Tensor(t.name, s.data_type, s.shape) for t, s in zip(config.output, made, strict=True)],
            versions=served(config, sorted(numbers)),
        )
