"""The rules CT116 and CT120 to CT158 before real judges: the core, its Python backend, and ONNX Runtime.

More about Python models is in `test_python_rules_against_server.py`.

The core looks at no model file but at labels, so that the null backends load what the real ones would refuse. The
Python backend that nvidia-pytriton brings is NVIDIA's own. What the ONNX Runtime backend, TensorRT, DALI and the others
say follows from their sources only: nothing here runs them. ONNX Runtime itself runs, in its newest version.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import onnx.parser
import pytest

from cdk_triton.triton import ModelRepository
from judging.server import Judge

TENSORS = 'input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 %s }'
PYTHON = f'backend: "python" {TENSORS % ""}'
SOURCE = "class TritonPythonModel:\n    def execute(self, requests): return []\n"
ENVIRONMENT = """
parameters {
  key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
}
"""

Files = Mapping[str, str | bytes]


def write(root: Path, files: Files) -> ModelRepository:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return ModelRepository.from_directory(root)


def archive(*members: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as target:
        for member in members:
            name, _, link = member.partition(" = ")
            info = tarfile.TarInfo(name)
            info.type, info.linkname = (tarfile.LNKTYPE if link else tarfile.REGTYPE), link
            target.addfile(info)
    return buffer.getvalue()


def zip_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        target.writestr("bin/activate", "")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        pytest.param(
            {"model/1/model.py": SOURCE.replace(":", "", 1)},
            "CT140",
            ["SyntaxError", "expected ':'"],
            id="syntax error",
        ),
        pytest.param(
            {"model/1/model.py": "import json"},
            "CT142",
            ["module '1.model' has no attribute 'TritonPythonModel'"],
            id="no class",
        ),
        pytest.param(
            {"model/1/model.py": f"{SOURCE}    def initialize(self): pass"}, "CT144", ["TypeError"], id="initialize"
        ),
        pytest.param(
            {"model/1/model.py": f"{SOURCE}    def auto_complete_config(self, config): return config"},
            "CT144",
            ["TypeError"],
            id="auto_complete_config",
        ),
        pytest.param(
            {"model/1/model.py": f"{SOURCE}    def __init__(self, path): pass"},
            "CT144",
            ["TypeError"],
            id="constructor",
        ),
        pytest.param(
            {"model/config.pbtxt": f'{PYTHON} default_model_filename: "a.txt"', "model/1/a.txt": SOURCE},
            "CT146",
            ["Model name must end with '.py'. Model name is"],
            id="another suffix",
        ),
        pytest.param(
            {"model/config.pbtxt": f'{PYTHON} default_model_filename: "a.b.py"', "model/1/a.b.py": SOURCE},
            "CT146",
            ["No module named '1.a'"],
            id="two dots",
        ),
        pytest.param(
            {"model/config.pbtxt": f'{PYTHON} default_model_filename: "../a.py"', "model/a.py": SOURCE},
            "CT146",
            ["No module named"],
            id="beside the version",
        ),
        pytest.param(
            {"model/config.pbtxt": PYTHON + ENVIRONMENT},
            "CT153",
            ["Failed to get the canonical path for model/env.tar.gz."],
            id="no environment",
        ),
        *(
            pytest.param(
                {"model/config.pbtxt": PYTHON + ENVIRONMENT, "model/env.tar.gz": content},
                "CT154",
                ["archive_read_open_filename() failed."],
                id=name,
            )
            for name, content in {"zip": zip_archive(), "text": b"hello", "empty": b""}.items()
        ),
        pytest.param(
            {"model/config.pbtxt": PYTHON + ENVIRONMENT, "model/env.tar.gz": archive("env/bin/activate", "env/lib/x")},
            "CT155",
            ["The Python environment should contain an 'activate' script."],
            id="a directory at the top",
        ),
        pytest.param(
            {
                "model/config.pbtxt": PYTHON + ENVIRONMENT,
                "model/env.tar.gz": archive("bin/activate", "lib/z = lib/y", "lib/y"),
            },
            "CT116",
            ["error code = -25 error message is Hard-link target 'lib/y' does not exist"],
            id="a hard link before its file",
        ),
        pytest.param(
            {
                "model/config.pbtxt": PYTHON + ENVIRONMENT.replace("$$TRITON_MODEL_DIRECTORY/", ""),
                "model/env.tar.gz": archive("bin/activate"),
            },
            "CT153",
            ["Failed to get the canonical path for env.tar.gz."],
            id="a relative path of an environment",
        ),
    ],
)
def test_the_python_backend_rejects_what_is_an_error(
    tmp_path: Path, python_judge: Judge, files: Files, code: str, words: list[str]
) -> None:
    base = {"model/config.pbtxt": PYTHON, "model/1/model.py": SOURCE}
    repository = write(tmp_path / "repository", {**base, **files})
    (finding,) = repository.check()
    assert (finding.code, finding.severity.value) == (code, "error")
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    for text in words:
        assert text in verdict.said
        assert text in finding.message


@pytest.mark.parametrize(
    ("name", "files", "code", "words"),
    [
        ("model", {"1/main.py": SOURCE}, "CT120", "Python model file not found in 'model/1/model.py'"),
        ("mo(del", {"1/model.py": SOURCE}, "CT145", ""),
        ("mo$del", {"1/model.py": SOURCE}, "CT145", ""),
    ],
)
def test_the_python_backend_waits_for_ever(
    tmp_path: Path,
    python_judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: Files,
    code: str,
    words: str,
) -> None:
    """It is the core that waits: 100 s and more were seen."""
    monkeypatch.setattr("judging.server.PATIENCE", 3.0)
    named = {f"{name}/{file}": content for file, content in files.items()}
    repository = write(tmp_path / "repository", {f"{name}/config.pbtxt": PYTHON, **named})
    (finding,) = repository.check()
    assert finding.code == code
    verdict = python_judge(repository.root, [name])
    assert not verdict.loaded
    assert "failed to load" not in verdict.said
    assert words in verdict.said
    assert words in finding.message


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        pytest.param({}, [], id="sound"),
        pytest.param({"model/1/model.py": SOURCE.replace("def", "async def")}, [], id="a coroutine"),
        pytest.param({"model/1/model.py": "class TritonPythonModel: pass"}, ["CT143"], id="requests would fail"),
        pytest.param(
            {"model/1/model.py": SOURCE.replace("Triton", "") + "locals()['Triton' + 'PythonModel'] = PythonModel"},
            [],
            id="a class made with locals",
        ),
        pytest.param(
            {"model/1/model.py": SOURCE.replace("Triton", "") + "vars()['TritonPythonModel'] = PythonModel"},
            [],
            id="a class made with vars",
        ),
        pytest.param(
            {"model/config.pbtxt": f'{PYTHON} default_model_filename: "s/a-b.py"', "model/1/s/a-b.py": SOURCE},
            [],
            id="file",
        ),
        pytest.param(
            {"model/config.pbtxt": PYTHON + ENVIRONMENT, "model/env.tar.gz": archive("bin/activate", "lib/x")},
            [],
            id="environment",
        ),
        pytest.param(
            {"model/config.pbtxt": PYTHON + ENVIRONMENT, "model/env.tar.gz/bin/activate": ""},
            [],
            id="unpacked environment",
        ),
        pytest.param(
            {
                "model/config.pbtxt": PYTHON + ENVIRONMENT.replace("/env", "/../env"),
                "env.tar.gz": archive("bin/activate", "lib/x"),
            },
            [],
            id="environment beside the models",
        ),
    ],
)
def test_the_python_backend_loads_what_is_no_error(
    tmp_path: Path, python_judge: Judge, files: Files, codes: list[str]
) -> None:
    base = {"model/config.pbtxt": PYTHON, "model/1/model.py": SOURCE}
    repository = write(tmp_path / "repository", {**base, **files})
    assert [finding.code for finding in repository.check()] == codes
    verdict = python_judge(repository.root, ["model"])
    assert verdict.loaded, verdict.said


@pytest.mark.parametrize(
    ("file", "files", "words"),
    [
        ("labels.txt", {}, "failed to open text file for read model/labels.txt: No such file or directory"),
        ("labels.txt", {"model/labels.txt/x": ""}, "std::length_error"),
        ("labels.txt", {"model/labels.txt": "cat"}, None),
        ("/labels.txt", {"model/labels.txt": "cat"}, None),
        ("1/labels.txt", {"model/1/labels.txt": "cat"}, None),
        ("../model/labels.txt", {"model/labels.txt": "cat"}, None),
        ("1/../labels.txt", {"model/labels.txt": "cat"}, None),
        ("../labels.txt", {"labels.txt": "cat"}, None),
        ("../labels.txt", {}, "failed to open text file for read model/../labels.txt: No such file or directory"),
        (
            "absent/../labels.txt",
            {"model/labels.txt": "cat"},
            "failed to open text file for read model/absent/../labels.txt: No such file or directory",
        ),
        (
            "labels.txt/",
            {"model/labels.txt": "cat"},
            "failed to open text file for read model/labels.txt/: Not a directory",
        ),
        ("..", {"model/labels.txt": "cat"}, "std::length_error"),
    ],
)
def test_the_core_reads_labels(tmp_path: Path, judge: Judge, file: str, files: Files, words: str | None) -> None:
    config = f'backend: "python" {TENSORS % f"label_filename: {file!r}"}'
    repository = write(tmp_path / "repository", {"model/config.pbtxt": config, "model/1/model.py": SOURCE, **files})
    findings = repository.check()
    verdict = judge(repository.root, ["model"])
    assert verdict.loaded is (words is None)
    assert [finding.code for finding in findings] == ["CT129"] * (words is not None)
    assert words is None or (words in verdict.said and words in findings[0].message)


@pytest.mark.parametrize("backend", ["onnxruntime", "tensorrt", "pytorch", "openvino", "dali", "fil"])
def test_the_core_does_not_miss_a_models_file(tmp_path: Path, judge: Judge, backend: str) -> None:
    """So CT120 is the backends' own rule, which null backends do not have."""
    config = f'backend: "{backend}" {TENSORS % ""}'
    repository = write(tmp_path / "repository", {"model/config.pbtxt": config, "model/1/other": ""})
    assert "CT120" in [finding.code for finding in repository.check()]
    assert judge(repository.root, ["model"]).loaded


def onnx_text(body: str, *, opset: int = 17) -> bytes:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> model {body}'
    return bytes(onnx.parser.parse_model(text).SerializeToString())


WEIGHTS = '(float[4] IN) => (float[4] OUT) <float[4] W = ["location": "%s"]> { OUT = Add(IN, W) }'


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ({"model.onnx": b"hello"}, "CT130", "Protobuf parsing failed"),
        ({"model.onnx": b"\x08\x08"}, "CT130", "No graph was found in the protobuf"),
        ({"model.onnx": onnx_text(WEIGHTS % "w.bin")}, "CT139", "w.bin"),
    ],
)
def test_onnx_runtime_rejects_what_is_an_error(tmp_path: Path, files: Files, code: str, words: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    named = {f"model/1/{name}": content for name, content in files.items()}
    repository = write(tmp_path / "repository", {"model/config.pbtxt": 'backend: "onnxruntime"', **named})
    (finding,) = repository.check()
    assert finding.code == code
    with pytest.raises(Exception, match=words) as caught:
        runtime.InferenceSession(tmp_path / "repository/model/1/model.onnx", providers=["CPUExecutionProvider"])
    assert type(caught.value).__module__.startswith("onnxruntime")
    assert words in finding.message


def test_onnx_runtime_tells_its_own_format_by_the_name(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    body = onnx_text("(float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }")
    runtime.InferenceSession(body, options, providers=["CPUExecutionProvider"])
    own = (tmp_path / "model.ort").read_bytes()
    for name, content, words in [
        ("a.ort", own, ""),
        ("a.ORT", own, ""),
        ("a.ort", body, "ORT model verification failed"),
        ("a.onnx", own, "Protobuf parsing failed"),
    ]:
        config = f'backend: "onnxruntime" default_model_filename: "{name}"'
        repository = write(tmp_path / f"{len(content)}{name}", {"m/config.pbtxt": config, f"m/1/{name}": content})
        messages = [finding.message for finding in repository.check()]
        if not words:
            runtime.InferenceSession(repository.root / "m/1" / name, providers=["CPUExecutionProvider"])
            assert messages == []
        else:
            with pytest.raises(Exception, match=words):
                runtime.InferenceSession(repository.root / "m/1" / name, providers=["CPUExecutionProvider"])
            assert words in messages[0]


def test_onnx_runtime_may_find_out_the_size_of_an_output(tmp_path: Path) -> None:
    """Which is why CT136 is a warning, and CT134 leaves such a dimension alone."""
    runtime = pytest.importorskip("onnxruntime")
    shapes = {}
    for name, body in {
        "found out": "(float[N, 4] IN) => (float[N, M] OUT) { OUT = Identity(IN) }",
        "an input's": "(float[N, T] IN) => (float[N, T] OUT) { OUT = Identity(IN) }",
    }.items():
        session = runtime.InferenceSession(onnx_text(body), providers=["CPUExecutionProvider"])
        shapes[name] = session.get_outputs()[0].shape
    assert shapes == {"found out": ["N", 4], "an input's": ["N", "T"]}
