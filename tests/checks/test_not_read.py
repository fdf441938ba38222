"""What the server would load and no rule looked into: a user must not take "no findings" for "all was read"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ModelRepository
from sample_repositories.builds import PlanOfExample
from sample_repositories.plans import ADD, CONFIG, network, shapes
from sample_repositories.torch_models import compiled_archive, torchscript

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write
    from sample_repositories.written import Change

TENSORS = """
input { name: "x__0" data_type: TYPE_FP32 dims: 4 }
output { name: "y__0" data_type: TYPE_FP32 dims: 4 }
"""
CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"

NOT_OPENED = "the checks do not open files of the backend {!r}"
PYTORCH = NOT_OPENED.format("pytorch")
LARGE_FOREST = "the checks do not open tree models of more than 64 MiB"
UNKNOWN = "the checks do not know which files the backend {!r} loads"
ELSEWHERE = (
    "the class TritonPythonModel, or a base class, is in another module or may be changed by other code, so its "
    "methods were not checked"
)
NO_NETWORK = "the network of the plan is not in the repository"
OF_GPU = "the GPU determines the file (cc_model_filenames), and no serving platform is given"
OUTSIDE = "the configuration names a file outside the directory of the model"


DALI = """
from augment import decode
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=8)
def pipeline():
    return fn.resize(decode(fn.external_source(name="IN")), size=8)
"""
FIL = 'backend: "fil" parameters { key: "model_type" value { string_value: "lightgbm" } }'


@pytest.mark.parametrize(
    ("config", "files", "path", "reason"),
    [
        pytest.param(
            'backend: "pytorch"',
            {"1/model.pt": torchscript("def forward(self, *rest) -> Tensor")},
            "1/model.pt",
            "the code of the model has no signature of forward that the checks can read",
            id="TorchScript that is not understood",
        ),
        pytest.param(
            'backend: "pytorch"',
            {"1/model.pt": b"\x1c\0\0\0PTMF\0\0\0\0"},
            "1/model.pt",
            "the checks do not read the FlatBuffer format of TorchScript",
            id="TorchScript as a FlatBuffer",
        ),
        pytest.param(
            'backend: "pytorch" runtime: "model.py"', {"1/model.py": ""}, "1/model.py", PYTORCH, id="PyTorch in Python"
        ),
        pytest.param(
            'platform: "torch_aoti"',
            {"1/model.pt2": compiled_archive(spec="")},
            "1/model.pt2",
            "the archive does not contain the call specification of the model as text",
            id="pt2",
        ),
        pytest.param(FIL, {"1/model.txt": b"tree" + bytes(64 * 2**20)}, "1/model.txt", LARGE_FOREST, id="lightgbm"),
        pytest.param(
            'backend: "dali"',
            {"1/dali.py": DALI, "1/augment.py": "def decode(x):\n    return x\n"},
            "1/dali.py",
            "the definition imports 'augment', which the checks do not read, so other code may make inputs",
            id="DALI with a module",
        ),
        pytest.param(
            'backend: "dali"',
            {"1/dali.py": ""},
            "1/dali.py",
            "the definition does not show the inputs and outputs of the pipeline",
            id="dali.py",
        ),
        pytest.param(
            'backend: "dali"',
            {"1/model.dali": ""},
            "1/model.dali",
            "the checks do not know the inputs and outputs of such a pipeline",
            id="dali",
        ),
        pytest.param(
            'backend: "openvino"',
            {"1/model.xml": "<net/>", "1/model.bin": b"1"},
            "1/model.xml",
            NOT_OPENED.format("openvino"),
            id="openvino",
        ),
        pytest.param(
            'platform: "tensorflow_savedmodel"',
            {"1/model.savedmodel/saved_model.pb": b"1"},
            "1/model.savedmodel",
            NOT_OPENED.format("tensorflow"),
            id="tensorflow",
        ),
        pytest.param(
            'backend: "own"',
            {"libtriton_own.so": b"1", "1/.gitkeep": ""},
            "libtriton_own.so",
            UNKNOWN.format("own"),
            id="own backend",
        ),
        pytest.param('backend: "tensorrtllm"', {"1/.gitkeep": ""}, "1", UNKNOWN.format("tensorrtllm"), id="another"),
        pytest.param('platform: "tensorrt_plan"', {"1/model.plan": b"ftrt"}, "1/model.plan", NO_NETWORK, id="plan"),
        pytest.param(
            'platform: "tensorrt_plan"',
            {"1/model.plan": b"ftrt", "1/model.onnx": b"weights"},
            "1/model.plan",
            "the network of the plan, model/1/model.onnx, cannot be read",
            id="plan of an unreadable network",
        ),
        pytest.param(
            'backend: "onnxruntime" cc_model_filenames { key: "8.6" value: "a.onnx" }',
            {"1/a.onnx": b"1"},
            "1",
            OF_GPU,
            id="file of the GPU",
        ),
        pytest.param(
            'backend: "onnxruntime" default_model_filename: "../../shared/model.onnx"',
            {"1/.gitkeep": ""},
            "1",
            OUTSIDE,
            id="file elsewhere",
        ),
        pytest.param(
            'backend: "onnxruntime" default_model_filename: "model.ort"',
            {"1/model.ort": b"\0\0\0\0ORTM"},
            "1/model.ort",
            "the checks do not read ONNX Runtime's own format",
            id="ort",
        ),
        pytest.param(
            'backend: "python"',
            {"1/model.py": "from text import TritonPythonModel\n", "1/text.py": CLASS},
            "1/model.py",
            ELSEWHERE,
            id="imported class",
        ),
        pytest.param(
            'backend: "python"',
            {
                "1/model.py": f"from base import Base\n{CLASS.replace(':', '(Base):', 1)}",
                "1/base.py": "class Base: ...",
            },
            "1/model.py",
            ELSEWHERE,
            id="imported base class",
        ),
        pytest.param(
            'backend: "python"',
            {"1/model.cpython-310-x86_64-linux-gnu.so": b"1", "1/model.py": CLASS},
            "1/model.py",
            "the module of the model is not a source file",
            id="compiled module",
        ),
    ],
)
def test_it_is_listed_with_the_reason(
    messages: Messages, write: Write, config: str, files: dict[str, Change], path: str, reason: str
) -> None:
    written = {f"model/{name}": content for name, content in files.items()}
    report = write({"model/config.pbtxt": config + TENSORS, **written}, base={}).report()
    assert report.not_read == ((f"model/{path}", "model", reason),)
    messages.record("not read", reason)


@pytest.mark.parametrize(
    ("config", "files"),
    [
        pytest.param('backend: "python"', {"1/model.py": CLASS}, id="python"),
        pytest.param('backend: "pytorch"', {"1/model.pt": torchscript()}, id="TorchScript"),
        pytest.param('backend: "pytorch"', {"1/model.pt": b"1"}, id="no TorchScript: CT841"),
        pytest.param('platform: "torch_aoti"', {"1/model.pt2": compiled_archive()}, id="compiled"),
        pytest.param('backend: "identity"', {"1/.gitkeep": ""}, id="no file"),
        pytest.param('backend: "pytorch"', {"1/.gitkeep": ""}, id="missing: CT120"),
        pytest.param('backend: "python"', {"1/model.py": "class"}, id="syntax error: CT140"),
        pytest.param('backend: "python"', {"1/model.py": "x = 1"}, id="no class: CT142"),
        pytest.param(
            'backend: "pytorch"',
            {"1/model.pt": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"},
            id="pointer: CT127",
        ),
        pytest.param('backend: "pytroch', {"1/model.pt": b"1"}, id="unreadable configuration: CT101"),
    ],
)
def test_what_was_read_or_has_a_finding_is_not_listed(write: Write, config: str, files: dict[str, Change]) -> None:
    written = {f"model/{name}": content for name, content in files.items()}
    assert write({"model/config.pbtxt": config, **written}, base={}).report().not_read == ()


def test_a_platform_determines_the_file_of_the_gpu(write: Write) -> None:
    config = 'backend: "onnxruntime" cc_model_filenames { key: "8.6" value: "a.onnx" }'
    repository = write({"model/config.pbtxt": config, "model/1/a.onnx": network(ADD)}, base={})
    assert repository.report().not_read
    assert repository.report(platform="25.09/ml.g5.xlarge").not_read == ()


def test_the_gpu_may_determine_a_file_elsewhere(write: Write) -> None:
    config = 'backend: "onnxruntime" cc_model_filenames { key: "8.6" value: "../../shared/a.onnx" }'
    repository = write({"model/config.pbtxt": config, "model/1/.gitkeep": ""}, base={})
    (part,) = repository.report(platform="25.09/ml.g5.xlarge").not_read
    assert part == ("model/1", "model", OUTSIDE)


def test_the_network_of_a_recipe_is_read_in_place_of_its_plan(write: Write) -> None:
    written = write({"bert/config.pbtxt": CONFIG, "bert/bert.onnx": network(ADD)}, base={})
    good = shapes((1, 128), (8, 128), (16, 128))
    for source, reasons in (("bert/bert.onnx", []), ("elsewhere.onnx", [NO_NETWORK])):
        recipe = PlanOfExample(("bert/1/model.plan",), source, ({"ids": good, "mask": good},))
        repository = ModelRepository.from_directory(written.root, recipes=[recipe])
        assert [each.reason for each in repository.report().not_read] == reasons


def test_a_file_that_a_build_writes_is_not_read_before(write: Write) -> None:
    files = {"model/config.pbtxt": 'backend: "dali"', "cdk-triton.toml": 'produced = ["model/1/model.dali"]'}
    (part,) = write(files, base={}).report().not_read
    assert part == ("model/1/model.dali", "model", "the file does not exist before the build")


def test_a_model_that_the_server_does_not_load_is_not_listed(write: Write) -> None:
    files = {f"{name}/config.pbtxt": 'backend: "openvino"' for name in ("first", "second")}
    repository = write({**files, "first/1/model.xml": b"1", "second/1/model.xml": b"1"}, base={})
    assert [each.model for each in repository.report(default_model="first").not_read] == ["first"]
