"""Users' Python models below a real tritonserver: the packages that they find, and where their prints appear."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from cdk_triton.errors import LocalError

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
EXECUTE = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(each, "IN").as_numpy() for each in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + words.NUMBER)]) for value in values]
"""
VENDOR = "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent / 'vendor'))\n"


@pytest.mark.parametrize("package", ["onnxruntime", "boto3", "cdk_triton", "pytest"])
def test_a_model_does_not_find_a_package_of_this_machine(new_bench: Any, packed: Any, package: str) -> None:
    pytest.importorskip(package)
    files = {"model/config.pbtxt": CONFIG, "model/1/model.py": f"import {package}\n{EXECUTE}"}
    with pytest.raises(LocalError, match=f"ModuleNotFoundError: No module named '{package}'"):
        new_bench().single("endpoint", packed(files))


@pytest.mark.parametrize(
    ("source", "files"),
    [
        pytest.param("import words\nimport numpy\nnumpy.linalg.norm([1.0])", {"1/words.py": "NUMBER = 2"}, id="beside"),
        pytest.param(f"{VENDOR}import words", {"1/vendor/words/__init__.py": "NUMBER = 2"}, id="a directory"),
    ],
)
def test_a_model_finds_its_own_modules(new_bench: Any, packed: Any, source: str, files: dict[str, str]) -> None:
    archive = {"model/config.pbtxt": CONFIG, "model/1/model.py": f"{source}\n{EXECUTE}"}
    bench = new_bench()
    bench.single("endpoint", packed(archive | {f"model/{name}": content for name, content in files.items()}))
    assert bench.answer("endpoint", 1.0) == [3.0]


def test_a_model_finds_the_standard_library_of_this_machine(new_bench: Any, packed: Any) -> None:
    # Modules in C: they fit no libpython of another patch version, which the system may have beside this one.
    modules = [name for name in ("ssl", "ctypes", "bz2", "lzma", "sqlite3") if importlib.util.find_spec(name)]
    source = f"import {', '.join(modules)}\nimport types\nwords = types.SimpleNamespace(NUMBER=2)\n{EXECUTE}"
    bench = new_bench()
    bench.single("endpoint", packed({"model/config.pbtxt": CONFIG, "model/1/model.py": source}))
    assert bench.answer("endpoint", 1.0) == [3.0]


def test_what_a_model_prints_is_in_the_log_when_it_has_answered(new_bench: Any, packed: Any) -> None:
    source = EXECUTE.replace("        return", "        print('asked for', values)\n        return").replace(
        "words.NUMBER", "2"
    )
    bench = new_bench()
    bench.single("endpoint", packed({"model/config.pbtxt": CONFIG, "model/1/model.py": source}))
    assert bench.answer("endpoint", 1.0) == [3.0]
    assert "asked for [array([[1.]]" in (bench.directory / "logs" / "endpoint" / "AllTraffic.log").read_text()
