"""Small repositories of ensembles and Python models, as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdk_triton.triton import Finding, ModelRepository
from judging.server import Judge, Verdict

__all__ = [
    "BATCH",
    "DECOUPLED",
    "IN",
    "MODEL_PY",
    "OUT",
    "RUN",
    "Files",
    "both",
    "ensemble",
    "python",
    "step",
    "tensor",
    "write",
]

Files = Mapping[str, str]

MODEL_PY = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def tensor(side: str, name: str, data_type: str = "FP32", dims: str = "4", more: str = "") -> str:
    """An input or output."""
    return f'{side} {{ name: "{name}" data_type: TYPE_{data_type} dims: [ {dims} ] {more} }}\n'


IN, OUT = tensor("input", "IN"), tensor("output", "OUT")
BATCH = "max_batch_size: 8\n"
DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def python(text: str = IN + OUT, name: str = "model") -> Files:
    """A Python model with these inputs, outputs and settings."""
    return {f"{name}/config.pbtxt": f'backend: "python"\n{text}', f"{name}/1/model.py": MODEL_PY}


def step(inputs: Mapping[str, str], outputs: Mapping[str, str], model: str = "model", version: int = -1) -> str:
    """A step."""
    maps = "".join(f' input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items())
    maps += "".join(f' output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items())
    return f'step {{ model_name: "{model}" model_version: {version}{maps} }}\n'


RUN = step({"IN": "IN"}, {"OUT": "OUT"})


def ensemble(text: str = IN + OUT, steps: str = RUN, name: str = "pipeline") -> Files:
    """An ensemble with these inputs, outputs and settings."""
    text = f'platform: "ensemble"\n{text}ensemble_scheduling {{\n{steps}}}\n'
    return {f"{name}/config.pbtxt": text, f"{name}/1/.gitkeep": ""}


def write(root: Path, files: Files) -> ModelRepository:
    """Put the files into a directory and read them."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return ModelRepository.from_directory(root)


def both(directory: Path, judge: Judge, files: Files) -> tuple[tuple[Finding, ...], Verdict]:
    """What the checks find, and what the server says, of a repository whose entry is `pipeline`."""
    repository = write(directory / "repository", files)
    return repository.check(default_model="pipeline"), judge(repository.root, ["pipeline"])
