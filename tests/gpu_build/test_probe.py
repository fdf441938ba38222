"""What the machine is, and when it is another one than the plan was made for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from build_program.gpu_names import MODELS, compare_gpu_names
from build_program.plan import BuildPlan, Ensemble
from build_program.probe import check, check_tensorrt, probe
from build_program.step import BuildError
from cdk_triton.sagemaker import gpu_instances

if TYPE_CHECKING:
    from golden_messages import Messages


PLATFORM: dict[str, str | None] = {
    "image": "sagemaker-tritonserver:25.09-py3",
    "release": "25.09",
    "gpu": "NVIDIA A10G",
    "compute_capability": "8.6",
    "tensorrt": "10.13.3.9",
    "dali": "1.51.2",
    "python": "3.12",
}
PROBED = {
    "gpu": "NVIDIA A10G",
    "compute_capability": "8.6",
    "driver": "580.82.07",
    "tensorrt": "10.13.3.9",
    "dali": "1.51.2",
    "python": "3.12",
}


def plan(*steps: dict[str, Any]) -> BuildPlan:
    ensemble = Ensemble("text", "0" * 64, "sources.tar.gz", {}, (), steps, ())
    return BuildPlan("cdk-triton-0123456789abcdef", 60, PLATFORM, (ensemble,))


@pytest.mark.parametrize(
    ("expected", "probed", "comparison"),
    [
        # As nvidia-smi calls the GPUs of SageMaker's instances.
        ("NVIDIA A10G", "NVIDIA A10G", "same"),
        ("NVIDIA T4", "Tesla T4", "same"),
        ("NVIDIA V100 16GB", "Tesla V100-SXM2-16GB", "same"),
        ("NVIDIA A100 40GB", "NVIDIA A100-SXM4-40GB", "same"),
        ("NVIDIA A100 80GB", "NVIDIA A100-SXM4-80GB", "same"),
        ("NVIDIA H100 80GB", "NVIDIA H100 80GB HBM3", "same"),
        ("NVIDIA H200 141GB", "NVIDIA H200", "same"),
        ("NVIDIA L40S", "NVIDIA L40S", "same"),
        ("NVIDIA K80", "Tesla K80", "same"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "same",
        ),
        ("NVIDIA A100 40GB", "NVIDIA A100-SXM4-80GB", "other"),
        ("NVIDIA L4", "NVIDIA L40S", "other"),
        ("NVIDIA A10G", "NVIDIA A10", "unknown"),
        ("NVIDIA A10G", "NVIDIA GeForce RTX 3090", "unknown"),
    ],
)
def test_names_of_gpus_are_compared_as_products(expected: str, probed: str, comparison: str) -> None:
    assert compare_gpu_names(expected, probed) == comparison


def test_the_models_are_those_of_sagemakers_instances() -> None:
    names = {instance.gpu for instance in gpu_instances().values()}

    assert all(compare_gpu_names(name, name) == "same" for name in names)
    assert {name for name in names if compare_gpu_names("NVIDIA other", name) == "unknown"} == set()
    assert {model for model in MODELS if not any(compare_gpu_names(name, model) == "same" for name in names)} == set()


@pytest.mark.parametrize(
    "probed",
    [
        pytest.param({"gpu": None}, id="no GPU"),
        pytest.param({"gpu": "Tesla T4", "compute_capability": "7.5"}, id="another GPU"),
        pytest.param({"gpu": "NVIDIA L4"}, id="another product"),
        pytest.param({"gpu": "NVIDIA A10", "compute_capability": None}, id="unknown compute capability"),
        pytest.param({"compute_capability": "8.9"}, id="another compute capability"),
    ],
)
def test_another_gpu_is_rejected(messages: Messages, probed: Mapping[str, str | None]) -> None:
    with messages.raises(BuildError):
        check(plan(), {**PROBED, **probed})


def test_what_a_step_needs_of_tensorrt_is_rejected_too(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    step = {"recipe": "tensorrt_plan", "name": "the TensorRT plan of bert", "tensorrt_major": 10}
    (tmp_path / "trtexec").write_text("")
    (tmp_path / "trtexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    (ensemble,) = plan(step).ensembles
    check_tensorrt(ensemble, PROBED["tensorrt"])
    with messages.raises(BuildError):
        check_tensorrt(ensemble, "11.0.0.114")

    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with messages.raises(BuildError):
        check_tensorrt(ensemble, PROBED["tensorrt"])


def test_smaller_differences_are_warnings(messages: Messages) -> None:
    assert check(plan(), PROBED) == []
    assert check(plan(), {**PROBED, "tensorrt": "10.13.3", "dali": None}) == []
    assert check(plan(), {**PROBED, "python": "3.11"}, ["nvidia-smi"]) == []  # there is no image to be wrong about
    other_versions = {"tensorrt": "10.9.0.34", "dali": "1.47.0", "python": "3.10"}
    for changes, count in ((other_versions, 3), ({"gpu": "NVIDIA A10"}, 1), ({"compute_capability": None}, 1)):
        warnings = check(plan(), {**PROBED, **changes})
        assert len(warnings) == count
        for warning in warnings:
            messages.record("build.json", warning)


class Recorded:
    """A work whose commands answer what is written down here."""

    def __init__(self, answers: Mapping[str, list[str]]) -> None:
        self._answers = answers

    def run(self, command: list[str], **_: object) -> list[str]:
        shown = " ".join(command)
        for part, lines in self._answers.items():
            if part in shown:
                return lines
        raise BuildError("it is not there")


def test_a_driver_that_does_not_know_the_compute_capability_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    work: Any = Recorded(
        {
            "compute_cap": ['Field "compute_cap" is not a valid field to query.'],
            "--query-gpu=name,driver_version": ["Tesla T4, 470.256.02"],
            "dpkg-query": ["libnvinfer10 10.13.3.9-1+cuda13.0", "libnvinfer-bin 10.13.3.9-1+cuda13.0"],
            "nvidia.dali": ["a warning", "DALI 1.51.2"],
        }
    )

    probed = probe(work)

    assert {**probed, "python": "…"} == {
        "gpu": "Tesla T4",
        "compute_capability": None,
        "driver": "470.256.02",
        "tensorrt": "10.13.3.9",
        "dali": "1.51.2",
        "python": "…",
    }


def test_what_is_not_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    work: Any = Recorded({})

    assert {name for name, value in probe(work).items() if value is not None} == {"python"}
