"""Draws each reference system: docs/images/<system>.svg, from the model repositories of model_assets/.

A picture has the endpoint, its target models, the steps of each with their backends, and the tensors between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tools.generate import Files, GenerateError, Generator
from tools.generate._shapes import for_dark_pages

from cdk_triton.triton import Model, ModelRepository
from cdk_triton.triton.schema import DataType, ModelConfig
from examples.reference_systems.assets import ASSETS, PLATFORM
from examples.reference_systems.tree_models import TENANTS


@dataclass(frozen=True)
class System:
    """A picture.

    Attributes:
        title: of the picture.
        target_models: the name of each target model and its repository; of a single-model endpoint, "" is the name.
        more: further target models that the picture does not draw.
    """

    title: str
    target_models: tuple[tuple[str, str], ...]
    more: str = ""


@dataclass(frozen=True)
class Step:
    """A model as a box.

    Attributes:
        name: of the model.
        backend: what runs it, in words.
        reads: its inputs, a line each.
    """

    name: str
    backend: str
    reads: tuple[str, ...]


SYSTEMS = {
    "image_classification": System("A photograph becomes a class", (("", "image_classification"),)),
    "two_ensembles": System(
        "Two ensembles share one endpoint", (("image", "image_classification"), ("text", "sentence_embedding"))
    ),
    "onnx_models": System(
        "Two networks on ONNX Runtime", (("images", "onnx_models/images"), ("texts", "onnx_models/texts"))
    ),
    "tensorrt_tenants": System(
        "One plan serves many tenants",
        (("tenant-1", "tensorrt_tenants"), ("tenant-2", "tensorrt_tenants")),
        more="… and as many as you name: each a copy of the one archive",
    ),
    "tree_models": System(
        "Tree models of three tenants share one endpoint",
        tuple((tenant, f"tree_models/{tenant}") for tenant in TENANTS),
    ),
    "pytorch_network": System("A PyTorch network on one endpoint", (("", "pytorch_network"),)),
    "text_generation": System("A prompt becomes a text", (("smollm2", "text_generation"),)),
}
BACKENDS = {
    "python": "Python",
    "dali": "DALI",
    "fil": "FIL",
    "onnxruntime": "ONNX Runtime",
    "pytorch": "PyTorch",
    "tensorrt": "TensorRT plan",
}
BOX, GAP, HEIGHT, ROW, MARGIN, SIDE = 164, 176, 54, 118, 16, 130
HEAD_WIDTH = 12  # of an arrow
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" role="img" aria-labelledby="title">
  <title id="title">{title}</title>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0 0 L10 5 L0 10 z" fill="#47566b"/>
    </marker>
    <style>
      .box {{ fill: #ffffff; stroke: #8394a8; }}
      .frame {{ fill: #f4f6f9; stroke: #c3ccd6; }}
      .name {{ font-size: 14px; font-weight: 600; fill: #1c2733; text-anchor: middle; }}
      .note {{ font-size: 12px; fill: #47566b; text-anchor: middle; }}
      .label {{ font-size: 12px; font-weight: 600; fill: #47566b; }}
      .tensor {{ font-size: 11px; fill: #47566b; text-anchor: middle; }}
      .flow {{ stroke: #47566b; stroke-width: 1.6; fill: none; marker-end: url(#arrow); }}
    </style>
  </defs>
  <rect width="{width}" height="{height}" fill="#ffffff"/>
"""


def picture(system: System) -> str:
    """Return the picture of a system."""
    rows = [(name, ModelRepository.from_directory(ASSETS / path)) for name, path in system.target_models]
    chains = [(name, list(steps(repository)), outside(repository)) for name, repository in rows]
    longest = max(len(chain) for _, chain, _ in chains)
    width = 2 * MARGIN + SIDE + longest * (GAP + BOX) + GAP
    height = 2 * MARGIN + len(chains) * ROW + (24 if system.more else 0)
    kind = "multi-model" if system.target_models[0][0] else "single-model"
    parts = [HEAD.format(width=width, height=height, title=escape(system.title))]
    parts.append(_box(MARGIN, MARGIN, SIDE, len(chains) * ROW - 12, "endpoint", kind, PLATFORM.instance_type))
    for number, (name, chain, tensors) in enumerate(chains):
        parts.extend(_row(name, chain, tensors, MARGIN + number * ROW))
    if system.more:
        parts.append(f'  <text class="label" x="{MARGIN}" y="{height - MARGIN}">{escape(system.more)}</text>\n')
    return for_dark_pages("".join([*parts, "</svg>\n"]))


def steps(repository: ModelRepository) -> Iterator[Step]:
    """Yield the models in the order in which a request passes them."""
    models = {model.name: model for model in repository.models}
    entry = next((model for model in repository.models if model.is_ensemble), repository.models[0])
    names = [step.model_name for step in _config(entry).ensemble_scheduling.step] or [entry.name]
    for name in names:
        config = _config(models[name])
        yield Step(name, BACKENDS[config.backend] + _more(config), tuple(map(_tensor, config.input)))


def outside(repository: ModelRepository) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a caller sends and what it gets, a line for each tensor."""
    entry = next((model for model in repository.models if model.is_ensemble), repository.models[0])
    return tuple(map(_tensor, _config(entry).input)), tuple(map(_tensor, _config(entry).output))


def _config(model: Model) -> ModelConfig:
    if model.config is None:
        raise GenerateError(f"{model.config_path} cannot be read")
    return model.config


def _more(config: ModelConfig) -> str:
    """The environment or the accelerator that a backend uses."""
    accelerators = config.optimization.execution_accelerators.gpu_execution_accelerator
    if any(each.name == "tensorrt" for each in accelerators):
        return " in TensorRT engines"
    return " in a packed environment" if "EXECUTION_ENV_PATH" in config.parameters else ""


def _tensor(tensor: object) -> str:
    """A tensor with its type and dimensions: `INPUT0: STRING [1]`."""
    dims = ", ".join("any" if size == -1 else str(size) for size in tensor.dims)  # type: ignore[attr-defined]
    kind = DataType.Name(tensor.data_type).removeprefix("TYPE_")  # type: ignore[attr-defined]
    return f"{tensor.name}: {kind} [{dims}]"  # type: ignore[attr-defined]


def _row(name: str, chain: Sequence[Step], tensors: tuple[Sequence[str], Sequence[str]], top: int) -> Iterator[str]:
    left, (inputs, outputs) = MARGIN + SIDE, tensors
    frame = len(chain) * BOX + (len(chain) - 1) * GAP + 24
    yield f'  <rect class="frame" x="{left + GAP - 12}" y="{top}" width="{frame}" height="{ROW - 12}" rx="6"/>\n'
    yield f'  <text class="label" x="{left + GAP}" y="{top + 17}">{escape(name or "model")}</text>\n'
    for number, step in enumerate(chain):
        yield from _arrow(left, top + 54, step.reads if number else inputs, width=GAP if number else GAP - 24)
        left += GAP
        yield _box(left, top + 30, BOX, HEIGHT + 6, step.name, *_lines(step.backend))
        left += BOX
    yield from _arrow(left, top + 54, outputs, width=GAP - HEAD_WIDTH, shift=12)


def _lines(text: str) -> tuple[str, ...]:
    """A note in one line or two."""
    before, separator, after = text.partition(" in ")
    return (before, f"in {after}") if separator else (text,)


def _arrow(left: int, y: int, labels: Sequence[str], *, width: int = GAP, shift: int = 0) -> Iterator[str]:
    """An arrow over the gap, with its tensors above."""
    yield f'  <path class="flow" d="M{left} {y} H{left + GAP - 2}"/>\n'
    middle = left + shift + (width - shift) // 2
    for number, label in enumerate(reversed(labels)):
        yield f'  <text class="tensor" x="{middle}" y="{y - 6 - 13 * number}">{escape(_short(label))}</text>\n'


def _short(label: str) -> str:
    """A label that fits between two boxes."""
    return label if len(label) <= 28 else label.replace(": ", ":").partition(" [")[0]


def _box(left: int, top: int, width: int, height: int, name: str, *notes: str) -> str:
    middle, first = left + width // 2, top + height // 2 - 2 - 6 * (len(notes) - 1)
    lines = [f'  <rect class="box" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>\n']
    lines.append(f'  <text class="name" x="{middle}" y="{first - 2}">{escape(name)}</text>\n')
    for number, note in enumerate(notes):
        lines.append(f'  <text class="note" x="{middle}" y="{first + 15 + 14 * number}">{escape(note)}</text>\n')
    return "".join(lines)


def _files() -> Files:
    return {f"docs/images/{name}.svg": picture(system).encode() for name, system in SYSTEMS.items()}


GENERATOR = Generator(_files)
