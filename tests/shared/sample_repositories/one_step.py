"""An ensemble `pipeline` of one step, and the Python model that the step runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories.written import Change

COMPLETED_PY = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        return auto_complete_model_config

    def execute(self, requests):
        return [None for request in requests]
"""


def tensor(side: str, name: str, data_type: str = "FP32", dims: str = "4", more: str = "") -> str:
    """An input or output."""
    return f'{side} {{ name: "{name}" data_type: TYPE_{data_type} dims: [ {dims} ] {more} }}\n'


IN, OUT = tensor("input", "IN"), tensor("output", "OUT")


def python(text: str = IN + OUT, name: str = "model", source: str = PYTHON_MODEL) -> dict[str, Change]:
    """A Python model with these inputs, outputs and settings."""
    return {f"{name}/config.pbtxt": f'backend: "python"\n{text}', f"{name}/1/model.py": source}


def step(model: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """A step that runs the latest version of a model."""
    maps = "".join(f' input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items())
    maps += "".join(f' output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items())
    return f'step {{ model_name: "{model}" model_version: -1{maps} }}\n'


RUN = step("model", {"IN": "IN"}, {"OUT": "OUT"})


def ensemble(text: str = IN + OUT, steps: str = RUN, name: str = "pipeline") -> dict[str, Change]:
    """An ensemble with these inputs, outputs and settings."""
    return {
        f"{name}/config.pbtxt": f'platform: "ensemble"\n{text}ensemble_scheduling {{\n{steps}}}\n',
        f"{name}/1/.gitkeep": "",
    }
