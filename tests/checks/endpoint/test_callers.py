"""The rules CT660 and CT661: what callers cannot tell the schedulers of the models that they reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

TENSORS = """
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
"""
LEVELS = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"
STEP = """step { model_name: "MODEL" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }"""

InferenceType = Literal["infer", "generate", "generate_stream"]


def python(fields: str = "", backend: str = "python") -> str:
    return f'backend: "{backend}" {TENSORS} {fields}'


def checked(
    write: Write, messages: Messages, configs: dict[str, str], *, inference_type: InferenceType | None = "infer"
) -> list[Place]:
    """The findings in models whose configurations these are; `front` is the entry, and all others are loaded too."""
    files = {f"{name}/config.pbtxt": config for name, config in configs.items()}
    files |= {f"{name}/1/model.py": PYTHON_MODEL for name, config in configs.items() if "python" in config}
    files |= {f"{name}/1/.keep": "" for name, config in configs.items() if "python" not in config}
    environment = None if inference_type is None else ContainerEnvironment(inference_type=inference_type)
    others = tuple(name for name in configs if name != "front")
    found = write(files, base={}).check(default_model="front", additional_models=others, environment=environment)
    return messages.of(each for each in found if each.code in ("CT660", "CT661"))


def ensemble(model: str) -> str:
    return f'platform: "ensemble" {TENSORS} ensemble_scheduling {{ {STEP.replace("MODEL", model)} }}'


@pytest.mark.parametrize(
    ("configs", "found"),
    [
        pytest.param({"front": python(), "scorer": python(LEVELS)}, 1, id="a model that only others call"),
        pytest.param(
            {"front": python(), "part": ensemble("scorer"), "scorer": python(LEVELS)}, 1, id="of a called one"
        ),
        pytest.param({"front": ensemble("scorer"), "scorer": python(LEVELS)}, 0, id="a step"),
        pytest.param(
            {"front": ensemble("part"), "part": ensemble("scorer"), "scorer": python(LEVELS)}, 0, id="a step of a step"
        ),
        pytest.param({"front": python(LEVELS)}, 0, id="the entry model"),
        pytest.param({"front": python(), "scorer": python(LEVELS.replace("2", "1"))}, 0, id="one level"),
        pytest.param({"front": python("", "own"), "scorer": python(LEVELS)}, 0, id="beside a backend of one's own"),
    ],
)
def test_a_python_model_calls_without_a_priority(
    write: Write, messages: Messages, configs: dict[str, str], found: int
) -> None:
    place = ("CT660", "scorer/config.pbtxt", "dynamic_batching.priority_levels")
    assert checked(write, messages, configs) == [place] * found


@pytest.mark.parametrize("inference_type", ["generate", "generate_stream", "infer", None])
@pytest.mark.parametrize("model", ["front", "scorer"])
def test_the_generate_protocol_has_no_priority(
    write: Write, messages: Messages, model: str, inference_type: InferenceType | None
) -> None:
    configs = {"front": python(LEVELS)} if model == "front" else {"front": ensemble(model), model: python(LEVELS)}
    place = ("CT660", f"{model}/config.pbtxt", "dynamic_batching.priority_levels")
    is_found = inference_type in ("generate", "generate_stream")
    assert checked(write, messages, configs, inference_type=inference_type) == [place] * is_found


@pytest.mark.parametrize(
    ("configs", "inference_type", "found"),
    [
        ({"front": python("sequence_batching {}")}, "generate", "front"),
        ({"front": ensemble("sums"), "sums": python("sequence_batching {}")}, "generate_stream", "sums"),
        ({"front": python("sequence_batching {}")}, "infer", None),
        ({"front": python("sequence_batching { iterative_sequence: true }")}, "generate", None),
        ({"front": python(), "sums": python("sequence_batching {}")}, "generate", None),
    ],
)
def test_the_generate_protocol_has_no_sequences(
    write: Write,
    messages: Messages,
    configs: dict[str, str],
    inference_type: InferenceType,
    found: str | None,
) -> None:
    places = [] if found is None else [("CT661", f"{found}/config.pbtxt", "sequence_batching")]
    assert checked(write, messages, configs, inference_type=inference_type) == places
