"""The rules CT153 to CT159: the environments of Python models."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write


def platform(release: str | None) -> ServingPlatform | None:
    return None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")


def of_an_own_image(release: str) -> ServingPlatform:
    image = f"example.com/triton@sha256:{'0' * 64}"
    return ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)


def with_environment(path: str) -> tuple[str, str]:
    parameter = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}'
    return 'backend: "python"', f'backend: "python" {parameter}'


MODEL = "$$TRITON_MODEL_DIRECTORY"
ARCHIVE = f"{MODEL}/env.tar.gz"
CONDA_312 = "conda-meta/python-3.12.4-h5148396_1.json lib/python3.12/os.py bin/activate"


@pytest.mark.parametrize(
    ("path", "files", "release", "codes"),
    [
        pytest.param(ARCHIVE, {"env.tar.gz": CONDA_312}, "25.09", [], id="sound"),
        pytest.param(ARCHIVE, {"env.tar.gz": "./bin/activate ./lib/python3.12/os.py"}, "25.09", [], id="tar -C env ."),
        pytest.param(ARCHIVE, {}, None, ["CT153"], id="missing"),
        pytest.param(ARCHIVE, {"env.tar.gz": b"hello"}, None, ["CT154"], id="text"),
        pytest.param(ARCHIVE, {"env.tar.gz": b""}, None, ["CT154"], id="empty"),
        pytest.param(ARCHIVE, {"env.tar.gz": b"PK\x03\x04" + bytes(600)}, None, ["CT154"], id="a ZIP archive"),
        pytest.param(
            ARCHIVE, {"env.tar.gz": "env/bin/activate env/lib/x"}, None, ["CT155"], id="a directory at the top"
        ),
        pytest.param(ARCHIVE, {"env.tar.gz": CONDA_312}, "24.09", ["CT159"], id="another Python"),
        pytest.param(
            ARCHIVE, {"env.tar.gz": CONDA_312.replace("bin/activate", "bin/python")}, None, ["CT155"], id="conda's own"
        ),
        pytest.param(
            ARCHIVE,
            {"env.tar.gz": CONDA_312, "triton_python_backend_stub": ""},
            "24.09",
            [],
            id="another Python with its own process",
        ),
        pytest.param(ARCHIVE.replace("env.tar.gz", "../bert/env.tar.gz"), {}, None, ["CT153"], id="beside, missing"),
        pytest.param(
            "$$TRITON_MODEL_DIRECTORY/env",
            {"env/bin/activate": "", "env/lib/python3.12/os.py": ""},
            "25.09",
            [],
            id="unpacked",
        ),
        pytest.param(
            "$$TRITON_MODEL_DIRECTORY/env",
            {"env/lib/python3.12/os.py": ""},
            "25.09",
            ["CT155"],
            id="unpacked, no script",
        ),
        pytest.param(
            "$$TRITON_MODEL_DIRECTORY/env",
            {"env/bin/activate": "", "env/lib/python3.8/os.py": ""},
            "25.09",
            ["CT159"],
            id="unpacked, another Python",
        ),
        pytest.param(
            "/opt/ml/model/preprocess/env.tar.gz", {"env.tar.gz": CONDA_312}, None, [], id="SageMaker's place"
        ),
        pytest.param(f"{MODEL}env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="no slash"),
        pytest.param(
            f"{MODEL}/9/../env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="no directory before .."
        ),
        pytest.param(f"{MODEL}/1/../env.tar.gz", {"env.tar.gz": CONDA_312}, None, [], id="a directory before .."),
        pytest.param(
            f"{MODEL}/config.pbtxt/../env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="a file before"
        ),
        pytest.param(
            f"{MODEL}/9/../../preprocess/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="and back"
        ),
        pytest.param(f"{MODEL}/env.tar.gz/", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="a slash behind"),
        pytest.param(f"{MODEL}//./env.tar.gz", {"env.tar.gz": CONDA_312}, None, [], id="slashes"),
        pytest.param(MODEL[1:] + "/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="one $"),
        pytest.param("$${TRITON_MODEL_DIRECTORY}/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="braces"),
        pytest.param(f" {MODEL}/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="a blank before"),
        pytest.param(f"/{MODEL}/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="a slash before"),
        pytest.param(MODEL.lower() + "/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="small letters"),
        pytest.param(ARCHIVE, {"env.tar.gz": gzip.compress(bytes(10240))}, None, ["CT155"], id="an empty archive"),
        pytest.param(ARCHIVE, {"env.tar.gz": "/bin/activate"}, None, ["CT155"], id="an absolute member"),
        pytest.param(f"{MODEL}/env", {"env/bin/activate/x": ""}, None, ["CT155"], id="a directory for the script"),
        pytest.param(f"{MODEL}/env", {"env/bin/activate/x": ""}, "25.09", [], id="a directory that nobody reads"),
        pytest.param(f"{MODEL}/my env", {"my env/bin/activate": ""}, None, ["CT165"], id="a blank in a directory"),
        pytest.param(f"{MODEL}/my env", {"my env/bin/activate": ""}, "24.09", ["CT164"], id="a blank for the shell"),
        pytest.param(f"{MODEL}/my env", {"my env/bin/activate": ""}, "25.09", [], id="a blank without a shell"),
        pytest.param(
            f"{MODEL}/my env.tar.gz", {"my env.tar.gz": CONDA_312}, None, [], id="a blank in an archive's name"
        ),
        pytest.param("/tmp/env.tar.gz", {}, None, ["CT158"], id="elsewhere"),
        pytest.param(
            "/models/other/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT158"], id="of another repository"
        ),
        pytest.param("env.tar.gz", {}, None, ["CT153"], id="relative to the server"),
        pytest.param("/models/preprocess/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="where it lay"),
        pytest.param("env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="without the variable"),
        pytest.param("./env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="in the model"),
        pytest.param("preprocess/env.tar.gz", {"env.tar.gz": CONDA_312}, None, ["CT153"], id="in the archive"),
    ],
)
def test_environments(
    write: Write, path: str, files: Mapping[str, Change], release: str | None, codes: list[str]
) -> None:
    change: dict[str, Change] = {"preprocess/config.pbtxt": with_environment(path)}
    change |= {f"preprocess/{name}": content for name, content in files.items()}
    findings = write(change).check(platform=platform(release))
    assert [finding.code for finding in findings if finding.code.startswith(("CT15", "CT16"))] == codes


@pytest.mark.parametrize(
    ("path", "there", "meant"),
    [
        (ARCHIVE, ["other.tar.gz"], "other.tar.gz"),
        (ARCHIVE, ["one.tar.gz", "two.tar.gz"], ""),
        (f"{MODEL}/preprocess/env.tar.gz", ["env.tar.gz", "two.tar.gz"], "env.tar.gz"),
    ],
    ids=["the only one", "one of two", "of this name"],
)
def test_an_archive_in_the_place_of_a_missing_one(
    messages: Messages, write: Write, path: str, there: list[str], meant: str
) -> None:
    change: dict[str, Change] = {"preprocess/config.pbtxt": with_environment(path)}
    change |= {f"preprocess/{name}": CONDA_312 for name in there}
    (finding,) = [each for each in write(change).check() if each.code == "CT153"]
    messages.of([finding])
    assert finding.fix.startswith(f'write "{MODEL}/{meant}"' if meant else "put the packed environment there")


@pytest.mark.parametrize(
    ("release", "codes"), [("26.08", ["CT159"]), ("26.11", []), ("27.01", [])], ids=["read", "assumed", "not known"]
)
def test_a_python_that_nobody_has_read_is_not_judged(write: Write, release: str, codes: list[str]) -> None:
    environment = CONDA_312.replace("3.12", "3.13") + " lib/python3.13/site-packages/x.so"
    change: dict[str, Change] = {
        "preprocess/config.pbtxt": with_environment(ARCHIVE),
        "preprocess/env.tar.gz": environment,
    }
    findings = write(change).check(platform=of_an_own_image(release))
    assert [finding.code for finding in findings if finding.code in ("CT158", "CT159")] == codes


def test_the_working_directory_of_ones_own_image_may_have_the_environment(messages: Messages, write: Write) -> None:
    change: dict[str, Change] = {
        "preprocess/config.pbtxt": with_environment("env.tar.gz"),
        "preprocess/env.tar.gz": CONDA_312,
    }
    findings = write(change).check(platform=of_an_own_image("25.09"))
    assert messages.of(findings) == [
        ("CT158", "preprocess/config.pbtxt", 'parameters["EXECUTION_ENV_PATH"].string_value')
    ]


def test_an_environment_of_another_model(write: Write) -> None:
    path = "$$TRITON_MODEL_DIRECTORY/../bert/env.tar.gz"
    assert write({"preprocess/config.pbtxt": with_environment(path), "bert/env.tar.gz": CONDA_312}).check() == ()


@pytest.mark.parametrize("path", ["$$TRITON_MODEL_DIRECTORY/../env.tar.gz", "/opt/ml/model/env.tar.gz"])
@pytest.mark.parametrize(
    ("content", "release", "codes"),
    [
        (CONDA_312, "25.09", []),
        (None, "25.09", ["CT153"]),
        (b"hello", "25.09", ["CT154"]),
        ("env/bin/activate env/lib/x", "25.09", ["CT155"]),
        (CONDA_312, "24.09", ["CT159"]),
    ],
)
def test_an_environment_beside_the_models(
    write: Write, path: str, content: Change, release: str, codes: list[str]
) -> None:
    findings = write({"preprocess/config.pbtxt": with_environment(path), "env.tar.gz": content}).check(
        platform=platform(release), default_model="ensemble"
    )
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(("python", "codes"), [("3.12", []), ("3.8", ["CT159"])])
def test_an_unpacked_environment_beside_the_models(write: Write, python: str, codes: list[str]) -> None:
    files: dict[str, Change] = {"envs/one/bin/activate": "", f"envs/one/lib/python{python}/site-packages/x/y.py": ""}
    change = with_environment("$$TRITON_MODEL_DIRECTORY/../envs/one")
    findings = write({"preprocess/config.pbtxt": change, **files}).check(
        platform=platform("25.09"), default_model="ensemble"
    )
    assert [finding.code for finding in findings if finding.code.startswith("CT15")] == codes


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import numpy as np\nimport json, os.path\nimport triton_python_backend_utils as pb_utils", "CT159"),
        ("import shared\nfrom helpers.text import clean\nfrom . import shared", "CT159"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "CT159"),
        ("import numpy\nimport torch.nn", "CT156"),
        ("from transformers import AutoTokenizer", "CT156"),
    ],
)
def test_what_a_model_imports(write: Write, source: str, code: str) -> None:
    files: dict[str, Change] = {
        "preprocess/config.pbtxt": with_environment(ARCHIVE),
        "preprocess/env.tar.gz": CONDA_312,
        "preprocess/1/model.py": f"{source}\nclass TritonPythonModel:\n    def execute(self, requests): return []\n",
        "preprocess/1/shared.py": "",
        "preprocess/helpers/text.py": "def clean(text): return text",
    }
    assert [finding.code for finding in write(files).check(platform=platform("24.09"))] == [code]


@pytest.mark.parametrize("path", ["env.tar.gz", "preprocess.tar.gz", "/models/preprocess/env.tar.gz"])
def test_messages_about_a_place_where_the_server_does_not_look(messages: Messages, write: Write, path: str) -> None:
    files: dict[str, Change] = {
        "preprocess/config.pbtxt": with_environment(path),
        "preprocess/env.tar.gz": CONDA_312,
    }
    assert messages.of(write(files).check()) == [
        ("CT153", "preprocess/config.pbtxt", 'parameters["EXECUTION_ENV_PATH"].string_value')
    ]


def test_messages(messages: Messages, write: Write) -> None:
    assert messages.of(write({"preprocess/config.pbtxt": with_environment(ARCHIVE)}).check()) == [
        ("CT153", "preprocess/config.pbtxt", 'parameters["EXECUTION_ENV_PATH"].string_value')
    ]
