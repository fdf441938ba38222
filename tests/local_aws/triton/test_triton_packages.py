"""Users' Python models below a real tritonserver: the packages that they find, and where their prints appear."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.errors import LocalError
from wheel_index import WheelIndex

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


def test_a_model_finds_the_build_of_a_package_for_this_machine(
    new_bench: Any, packed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = WheelIndex(tmp_path)
    own = f"cp3{sys.version_info.minor}"
    index.add("words", tag="cp310-cp310-manylinux_2_28_x86_64", files={"core.cpython-310-x86_64-linux-gnu.so": ""})
    for name, value in {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path), "PIP_NO_INDEX": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    index.add(
        "words",
        tag=f"{own}-{own}-manylinux_2_17_{platform.machine()}",
        code="from words.core import NUMBER",
        files={"core.py": "NUMBER = 2"},
    )
    vendor = tmp_path / "vendor"
    command = [sys.executable, "-m", "cdk_triton", "vendor", str(vendor), "words", "--platform", "24.09/ml.g5.xlarge"]
    subprocess.run(command, check=True, capture_output=True)
    source = f"{VENDOR}import words\n{EXECUTE}"
    installed = {
        f"model/1/vendor/{path.relative_to(vendor)}": path.read_bytes() for path in vendor.rglob("*") if path.is_file()
    }
    bench = new_bench()
    archive = packed({"model/config.pbtxt": CONFIG, "model/1/model.py": source} | installed)
    bench.single("endpoint", archive)
    bench.fleet("fleet", model=archive)
    assert bench.answer("endpoint", 1.0) == bench.answer("fleet", 1.0, model="model") == [3.0]
    said = f"model/1/vendor: words 1.0 is the build for Python 3.{sys.version_info.minor} of this machine"
    assert bench.lines.count(said) == 2


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
