"""The rules CT115 to CT117: packages that were made elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.artifacts import CondaEnvironment, WheelEnvironment
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

ON_A10G = "ml.g5.xlarge"
ENVIRONMENT = (
    'backend: "python"',
    'backend: "python" parameters { key: "EXECUTION_ENV_PATH" '
    'value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }',
)
SITE = "lib/python3.12/site-packages"
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
LINUX_312 = "core.cpython-312-x86_64-linux-gnu.so"
ELF_ARM = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44)
ELF_X86 = ELF_ARM.replace(b"\xb7", b"\x3e")
MACH_O = b"\xcf\xfa\xed\xfe" + bytes(60)


def found(write: Write, files: Mapping[str, Change], platform: ServingPlatform | None, messages: Messages) -> list[str]:
    findings = write({f"preprocess/{name}": content for name, content in files.items()}).check(platform=platform)
    places: list[Place] = messages.of(each for each in findings if each.code in ("CT115", "CT116", "CT117"))
    return [f"{code} {path.removeprefix('preprocess/')}" for code, path, _ in places]


def at(release: str, instance_type: str = ON_A10G) -> ServingPlatform:
    return ServingPlatform(release=release, instance_type=instance_type)


@pytest.mark.parametrize(
    ("release", "names", "is_found"),
    [
        pytest.param("25.09", [LINUX_312], False, id="that of the image"),
        pytest.param("24.09", [LINUX_312], True, id="a newer Python, after a change of release"),
        pytest.param("25.09", ["core.cpython-310-x86_64-linux-gnu.so"], True, id="an older Python"),
        pytest.param("25.09", ["core.cpython-310-x86_64-linux-gnu.so", LINUX_312], False, id="one for each"),
        pytest.param("25.09", ["core.cpython-312-darwin.so"], True, id="macOS"),
        pytest.param(None, ["core.cpython-312-darwin.so"], True, id="macOS without a platform"),
        pytest.param(None, ["core.cpython-310-x86_64-linux-gnu.so"], False, id="any Python without a platform"),
        pytest.param("25.09", ["core.cp312-win_amd64.pyd"], True, id="Windows"),
        pytest.param("25.09", ["core.pyd"], True, id="Windows without a tag"),
        pytest.param("25.09", ["core.cpython-312-aarch64-linux-gnu.so"], True, id="ARM"),
        pytest.param("25.09", ["core.cpython-312-x86_64-linux-musl.so"], True, id="musl"),
        pytest.param("25.09", ["core.pypy310-pp73-x86_64-linux-gnu.so"], True, id="PyPy"),
        pytest.param("25.09", ["libcore.so.1", "attach_macos.so", "core.dylib"], False, id="libraries"),
        pytest.param("25.09", ["core.cpython-312-darwin.so", "core.py"], False, id="macOS, and its source"),
        pytest.param("25.09", ["core.pyd", "core.py"], False, id="Windows, and its source"),
    ],
)
def test_the_tag_of_a_module(
    write: Write, messages: Messages, release: str | None, names: list[str], is_found: bool
) -> None:
    platform = None if release is None else at(release)
    files: dict[str, Change] = {f"1/vendor/text/{name}": b"" for name in names}
    assert found(write, files, platform, messages) == [f"CT115 1/vendor/text/{names[0]}"] * is_found


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        pytest.param(LINUX_312, [], id="that of the image"),
        pytest.param("core.cpython-312-darwin.so", ["CT115", "CT161"], id="macOS"),
        pytest.param("core.cpython-312-x86_64-linux-musl.so", ["CT115", "CT161"], id="musl"),
        pytest.param("core.cp312-win_amd64.pyd", ["CT115", "CT161"], id="Windows"),
    ],
)
def test_a_package_that_needs_a_module_of_another_system_does_not_load(
    write: Write, name: str, codes: list[str]
) -> None:
    files: dict[str, Change] = {
        "preprocess/1/model.py": f"import text\n{MODEL}",
        "preprocess/1/text/__init__.py": "from .core import clean",
        f"preprocess/1/text/{name}": b"x",
    }
    findings = write(files).check(platform=at("25.09"))
    assert sorted(finding.code for finding in findings) == codes
    assert all("as CT115 says" in finding.fix for finding in findings if finding.code == "CT161")


@pytest.mark.parametrize(
    ("content", "is_found"),
    [(ELF_X86, False), (ELF_ARM, True), (MACH_O, True), (b"", False)],
    ids=["x86-64", "ARM", "macOS", "empty"],
)
def test_the_first_bytes_of_a_module_of_the_stable_interface(
    write: Write, messages: Messages, content: bytes, is_found: bool
) -> None:
    files: dict[str, Change] = {"1/vendor/text/core.abi3.so": content}
    assert found(write, files, at("25.09"), messages) == ["CT115 1/vendor/text/core.abi3.so"] * is_found


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param(f"{SITE}/text/{LINUX_312}", [], id="sound"),
        pytest.param(f"{SITE}/text/core.cpython-311-x86_64-linux-gnu.so", ["CT115"], id="of another Python"),
        pytest.param("lib/python3.10/site-packages/text/core.cpython-310-darwin.so", ["CT115"], id="of macOS"),
        pytest.param("lib/python3.10/site-packages/text/core.cpython-310-x86_64-linux-gnu.so", [], id="CT159"),
        pytest.param(f"{SITE}/numpy-2.2.1.dist-info/METADATA", [], id="numpy 2"),
        pytest.param("lib/z = lib/y", ["CT116"], id="a link to nowhere"),
        pytest.param("lib/z = lib/y lib/y", ["CT116"], id="a link to a later member"),
        pytest.param("lib/y lib/z = lib/y", [], id="a link to a member"),
        pytest.param("./lib/y lib/z = ./lib/y", [], id="a link to a member below ./"),
        pytest.param("lib/z = /etc/hosts", [], id="a link to a file of the image"),
    ],
)
def test_the_members_of_an_environment(write: Write, messages: Messages, members: str, expected: list[str]) -> None:
    files: dict[str, Change] = {"config.pbtxt": ENVIRONMENT, "env.tar.gz": f"bin/activate {members}"}
    assert found(write, files, at("25.09"), messages) == [f"{code} env.tar.gz" for code in expected]


@pytest.mark.parametrize(
    ("name", "release", "is_found"),
    [
        ("numpy-2.2.1.dist-info/METADATA", "24.09", True),
        ("numpy-2.2.1.dist-info/METADATA", "25.04", False),
        ("numpy-1.26.4.dist-info/METADATA", "24.09", False),
        ("conda-meta/numpy-2.0.2-py310h1d0b8b9_1.json", "24.09", True),
    ],
)
def test_numpy_for_an_older_release(write: Write, messages: Messages, name: str, release: str, is_found: bool) -> None:
    files: dict[str, Change] = {f"1/vendor/{name}": b""}
    assert found(write, files, at(release), messages) == [f"CT117 1/vendor/{name}"] * is_found


@pytest.mark.parametrize("kind", ["KIND_GPU", "KIND_CPU"])
@pytest.mark.parametrize(
    ("member", "is_cpu"),
    [
        (f"{SITE}/torch-2.5.1+cpu.dist-info/METADATA", True),
        (f"{SITE}/torch-2.5.1+cu124.dist-info/METADATA", False),
        ("conda-meta/pytorch-2.5.1-cpu_generic_py312_h3a8e4bb_9.json", True),
        ("conda-meta/pytorch-2.5.1-py3.12_cpu_0.json", True),
        ("conda-meta/pytorch-2.5.1-cuda124_py312h1d0b8b9_300.json", False),
    ],
)
def test_pytorch_for_the_cpu(write: Write, messages: Messages, member: str, is_cpu: bool, kind: str) -> None:
    config = (ENVIRONMENT[0], f"{ENVIRONMENT[1]} instance_group {{ kind: {kind} }}")
    files: dict[str, Change] = {"config.pbtxt": config, "env.tar.gz": f"bin/activate {member}"}
    expected = ["CT117 env.tar.gz"] * (is_cpu and kind == "KIND_GPU")
    assert found(write, files, at("25.09"), messages) == expected


@pytest.mark.parametrize(
    ("name", "line", "is_found"),
    [
        ("requirements.txt", "torch==2.5.1+cpu \\", True),
        ("requirements.txt", "torch==2.5.1 \\", False),
        ("conda-linux-64.lock", "https://conda.org/linux-64/pytorch-2.5.1-cpu_generic_py312_h3a8e4bb_9.conda#0", True),
        ("conda-linux-64.lock", "https://conda.org/linux-64/pytorch-2.5.1-cuda124_py312h1d0b8b9_300.conda#0", False),
    ],
)
def test_pytorch_for_the_cpu_in_the_lock_file_of_a_recipe(
    write: Write, messages: Messages, name: str, line: str, is_found: bool
) -> None:
    config = (ENVIRONMENT[0], f"{ENVIRONMENT[1]} instance_group {{ kind: KIND_GPU }}")
    root = write({"preprocess/config.pbtxt": config, f"preprocess/{name}": f"# locked\n{line}\n"}).root
    recipe = WheelEnvironment("preprocess") if name == "requirements.txt" else CondaEnvironment("preprocess", lock=name)
    findings = ModelRepository.from_directory(root, recipes=[recipe]).check(platform=at("25.09"))
    places = messages.of(each for each in findings if each.code == "CT117")
    assert places == [("CT117", f"preprocess/{name}", "")] * is_found


@pytest.mark.parametrize("beside", ["text/__init__.py", "text-1.0.dist-info/METADATA"])
def test_the_fix_names_the_directory_and_the_packages(write: Write, beside: str) -> None:
    files = {f"preprocess/1/vendor/{name}": b"" for name in (beside, "text/core.cpython-310-x86_64-linux-gnu.so")}
    [finding] = [each for each in write(files).check(platform=at("25.09")) if each.code == "CT115"]
    assert "cdk-triton vendor preprocess/1/vendor text --platform 25.09/ml." in finding.fix


def test_the_fix_names_the_distribution_that_recorded_the_module(write: Write) -> None:
    module = "cv2/_core.cpython-310-x86_64-linux-gnu.so"
    info = "opencv_python-4.12.0.88.dist-info"
    packages = {
        module: b"",
        f"{info}/RECORD": f"cv2/__init__.py,,\n{module},sha256=0,0\n{info}/RECORD,,\n".encode(),
        "numpy-2.2.1.dist-info/RECORD": b"numpy/__init__.py,,\n",
    }
    files = {f"preprocess/1/vendor/{name}": content for name, content in packages.items()}
    [finding] = [each for each in write(files).check(platform=at("25.09")) if each.code == "CT115"]
    assert "cdk-triton vendor preprocess/1/vendor opencv-python --platform 25.09/ml." in finding.fix


def test_a_python_of_its_own_is_not_judged(write: Write, messages: Messages) -> None:
    files: dict[str, Change] = {"triton_python_backend_stub": b"", "1/vendor/core.cpython-310-darwin.so": b""}
    assert found(write, files, at("25.09"), messages) == []
