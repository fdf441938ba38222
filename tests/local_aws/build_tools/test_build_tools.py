"""The stand-ins for the tools of a GPU: they say what they are, and take and print what the real ones do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cdk_triton_local.build_tools import environment, tools_directory
from cdk_triton_local.build_tools.nvidia_smi import main as nvidia_smi
from cdk_triton_local.build_tools.trtexec import main as trtexec
from cdk_triton_local.triton.backends.plan import onnx_in_plan

TOOLS = environment(gpu="NVIDIA A10G", compute_capability="8.6", tensorrt="10.13.3.9")
PROFILE = ["--minShapes=x:1x3", "--optShapes=x:2x3", "--maxShapes=x:4x3"]
LAST = "&&&& {} TensorRT.trtexec [TensorRT v101303] [b9] # trtexec {}"

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the `trtexec` in this process, in an empty directory: exit code and lines."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, tensorrt: str = "10.13.3.9") -> tuple[int, list[str]]:
        monkeypatch.setenv("CDK_TRITON_STAND_IN_TENSORRT", tensorrt)
        code = trtexec(arguments)
        return code, capsys.readouterr().out.splitlines()

    return call


def write_network(
    file: str, *, batch: str | int = "n", data_type: int = TensorProto.FLOAT, operator: str = "Add", domain: str = ""
) -> None:
    """y = x + x, with x of 3 columns."""
    tensors = [helper.make_tensor_value_info(name, data_type, [batch, 3]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "x"], ["y"], domain=domain)], "double", tensors[:1], tensors[1:]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(each, 17) for each in {"", domain}], ir_version=8
    )
    onnx.save(model, file)


def test_they_are_executables_on_the_path(tmp_path: Path) -> None:
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"],
        env=TOOLS,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "NVIDIA A10G, 8.6, 0.0\n"
    assert done.stderr.startswith("cdk-triton stand-in for nvidia-smi: ")
    assert all(os.access(tools_directory() / name, os.X_OK) for name in ("nvidia-smi", "trtexec"))


def test_nvidia_smi_knows_no_other_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi(["--query-gpu=uuid", "--format=csv,noheader"]) == 2
    assert capsys.readouterr().out == 'Field "uuid" is not a valid field to query.\n'
    assert nvidia_smi([]) == 1


def test_a_network_is_built_into_a_plan_of_the_local_backend(run: Run) -> None:
    write_network("a.onnx")
    arguments = ["--onnx=a.onnx", "--saveEngine=a.plan", "--fp16", "--skipInference", *PROFILE]

    code, lines = run(*arguments)

    assert code == 0
    assert lines[0] == LAST.format("RUNNING", " ".join(arguments))
    assert lines[1].startswith("cdk-triton stand-in for trtexec: ")
    assert lines[-1] == LAST.format("PASSED", " ".join(arguments))
    onnx.load_from_string(onnx_in_plan(Path("a.plan").read_bytes(), name="a.plan"))


def test_a_plan_is_run_with_given_inputs(run: Run) -> None:
    write_network("a.onnx")
    run("--onnx=a.onnx", "--saveEngine=a.plan", "--skipInference", *PROFILE)
    values = np.array([[1, 2, 3], [-1, 0.1, 1e-7]], np.float32)
    Path("x.raw").write_bytes(values.tobytes())

    code, lines = run(
        "--loadEngine=a.plan",
        "--shapes=x:2x3",
        "--loadInputs=x:x.raw",
        "--dumpRawBindingsToFile",
        "--exportOutput=o.json",
    )

    assert code == 0
    assert "[I] Output binding for y with dimensions 2x3 is created." in lines
    assert (
        "[I] Writing file for output binding y (with datatype fp32 and dimensions 2.3) to y.output.2.3.fp32.raw"
        in lines
    )
    assert Path("y.output.2.3.fp32.raw").read_bytes() == (2 * values).tobytes()
    assert json.loads(Path("o.json").read_text()) == [
        {"name": "y", "dimensions": "2x3", "values": [2, 4, 6, -2, 0.2, 2e-07]}
    ]


@pytest.mark.parametrize(
    ("arguments", "tensorrt", "said"),
    [
        (["--fast"], "10.13.3.9", "Unknown option: --fast "),
        (["--onnx=a.onnx", "--fp16"], "11.0.0.114", "Unknown option: --fp16 "),
        (["--onnx=a.onnx", "--bf16"], "8.6.1.6", "Unknown option: --bf16 "),
        (["--fp16"], "10.13.3.9", "Model missing or format not recognized"),
        (["--onnx=b.onnx"], "10.13.3.9", "Failed to parse onnx file"),
        (["--onnx=missing.onnx"], "10.13.3.9", "Failed to parse onnx file"),
        (
            ["--onnx=static.onnx", *PROFILE],
            "10.13.3.9",
            "Static model does not take explicit shapes since the shape of inference tensors will be determined by the "
            "model itself",
        ),
        (
            ["--onnx=a.onnx", "--minShapes=z:1x3", "--optShapes=z:1x3", "--maxShapes=z:1x3"],
            "10.13.3.9",
            'Cannot find input tensor with name "z" in the network inputs! Please make sure the input tensor names are '
            "correct.",
        ),
        (
            ["--onnx=a.onnx", "--minShapes=x:1x4", "--optShapes=x:1x4", "--maxShapes=x:1x4"],
            "10.13.3.9",
            "Required optimization profile is invalid",
        ),
        (["--loadEngine=a.onnx"], "10.13.3.9", "Engine deserialization failed"),
        (["--loadEngine=a.plan", "--shapes=x:5x3"], "10.13.3.9", "Inference set up failed"),
        (["--loadEngine=a.plan", "--useProfile=1"], "10.13.3.9", "Inference set up failed"),
        (
            ["--loadEngine=a.plan", "--loadInputs=z:x.raw"],
            "10.13.3.9",
            "Invalid tensor names found in --loadInputs flag.",
        ),
        (
            ["--loadEngine=a.plan", "--shapes=x:1x3", "--loadInputs=x:a.onnx"],
            "10.13.3.9",
            "Unexpected file size for input file: a.onnx. Note: Input binding size is: 12 bytes but the file size is",
        ),
    ],
)
def test_what_the_real_one_rejects_is_rejected_in_its_words(
    run: Run, arguments: list[str], tensorrt: str, said: str
) -> None:
    write_network("a.onnx")
    write_network("static.onnx", batch=2)
    Path("b.onnx").write_bytes(b"\x08\x08no network")
    run("--onnx=a.onnx", "--saveEngine=a.plan", "--skipInference", *PROFILE)

    code, lines = run(*arguments, tensorrt=tensorrt)

    assert code == 1
    assert any(line.startswith("[E] ") and said in line for line in lines), lines
    assert lines[-1].startswith("&&&& FAILED TensorRT.trtexec ")


@pytest.mark.parametrize("domain", ["", "TRT"])
def test_an_operator_of_a_plugin_is_the_limit_of_the_stand_in(run: Run, domain: str) -> None:
    write_network("a.onnx", operator="FastNms_TRT", domain=domain)
    code, lines = run("--onnx=a.onnx", "--staticPlugins=libnms.so")
    assert code == 1
    assert any("does not have the operator FastNms_TRT, so it cannot show" in line for line in lines), lines


def test_integers_are_narrow_before_tensorrt_10(run: Run) -> None:
    write_network("a.onnx", data_type=TensorProto.INT64)
    for tensorrt, word in (("8.6.1.6", "int32"), ("10.13.3.9", "int64")):
        _, lines = run("--onnx=a.onnx", "--dumpRawBindingsToFile", tensorrt=tensorrt)
        assert any(f"output binding y (with datatype {word} and" in line for line in lines)


def test_outputs_stay_on_the_gpu_from_tensorrt_11_on(run: Run) -> None:
    write_network("a.onnx", batch=1)
    Path("x.raw").write_bytes(np.ones(3, np.float32).tobytes())
    arguments = ["--onnx=a.onnx", "--loadInputs=x:x.raw", "--dumpRawBindingsToFile"]

    run(*arguments, tensorrt="11.1.0.106")
    assert np.fromfile("y.output.1.3.fp32.raw", np.float32).tolist() == [0, 0, 0]
    run(*arguments, "--includeDataTransfers", tensorrt="11.1.0.106")
    assert np.fromfile("y.output.1.3.fp32.raw", np.float32).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("tensorrt", "banner"),
    [
        ("8.6.1.6", "[TensorRT v8601] #"),
        ("10.0.1.6", "[TensorRT v100001] #"),
        ("10.13.3.9", "[TensorRT v101303] [b9] #"),
        ("11.1.0.106", "[TensorRT v110100] [b106] #"),
    ],
)
def test_the_banner_tells_the_version_as_that_version_does(run: Run, tensorrt: str, banner: str) -> None:
    code, lines = run("--help", tensorrt=tensorrt)

    assert code == 0
    assert banner in lines[0]
