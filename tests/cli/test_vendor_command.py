"""`cdk-triton vendor`: real uv and pip, and an index that is a directory."""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from wheel_index import WheelIndex

Run = Callable[..., Outcome]

pytestmark = pytest.mark.slow

PLATFORM = "24.09/ml.g5.xlarge"  # Python 3.10, which no machine of a developer has
OF_IMAGE = "cp310-cp310-manylinux_2_28_x86_64"
OF_MACHINE = f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-manylinux_2_17_{platform.machine()}"
IN_IMAGE = "core.cpython-310-x86_64-linux-gnu.so"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelIndex:
    """The only place where uv and pip look."""
    (tmp_path / "index").mkdir()
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return WheelIndex(tmp_path / "index")


@pytest.fixture(params=["uv", "pip"])
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tool that the command finds: without uv, it takes pip."""
    if request.param == "pip":
        monkeypatch.setenv("PATH", "/nowhere")
    elif shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    return str(request.param)


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


@pytest.mark.usefixtures("tool")
def test_the_repository_has_the_package_of_the_image_and_the_cache_that_of_this_machine(
    run: Run, index: WheelIndex, repository: Path, tmp_path: Path
) -> None:
    index.add("words", tag=OF_IMAGE, files={IN_IMAGE: ""})
    index.add("words", tag=OF_MACHINE, files={"core.py": ""})
    vendor = repository / "echo/1/vendor"
    outcome = run("vendor", vendor, "words", "--platform", PLATFORM)
    assert (outcome.status, outcome.out) == (
        0,
        f"{vendor}: words 1.0 for Python 3.10\n"
        f"the local AWS: words 1.0 for Python {sys.version_info.major}.{sys.version_info.minor}\n",
    )
    assert names(vendor / "words") == ["__init__.py", IN_IMAGE]
    findings = ModelRepository.from_directory(repository).check(
        platform=ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
    )
    assert "CT115" not in {each.code for each in findings}
    assert [each.name for each in (tmp_path / "cache").rglob("core.*")] == ["core.py"]


@pytest.mark.usefixtures("tool")
def test_another_version_takes_the_place_of_the_first(run: Run, index: WheelIndex, repository: Path) -> None:
    vendor = repository / "echo/1/vendor"
    index.add("words")
    with zipfile.ZipFile(index.directory / "words-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(vendor)  # this is how a wheel is installed
    index.add("words", version="2.0")
    run("vendor", vendor, "words==2.0", "--platform", PLATFORM)
    assert [each for each in names(vendor) if each != "bin"] == ["words", "words-2.0.dist-info"]


def test_a_wheel_for_every_python_has_no_second_build(
    run: Run, index: WheelIndex, repository: Path, tmp_path: Path
) -> None:
    index.add("letters", tag=f"cp38-abi3-manylinux_2_28_{platform.machine()}")
    index.add("words", requires="letters")
    vendor = repository / "echo/1/vendor"
    outcome = run("vendor", vendor, "words", "--platform", PLATFORM)
    assert outcome.out.splitlines() == [f"{vendor}: {name} 1.0 for Python 3.10" for name in ("letters", "words")]
    assert not (tmp_path / "cache").exists()


def test_without_what_a_package_requires(run: Run, index: WheelIndex, repository: Path) -> None:
    index.add("words", requires="letters")
    vendor = repository / "echo/1/vendor"
    outcome = run("vendor", vendor, "words", "--no-deps", "--platform", PLATFORM)
    assert (outcome.status, outcome.out) == (0, f"{vendor}: words 1.0 for Python 3.10\n")


def test_no_build_for_this_machine_is_no_error(run: Run, index: WheelIndex, repository: Path) -> None:
    index.add("words", tag=OF_IMAGE)
    vendor = repository / "echo/1/vendor"
    outcome = run("vendor", vendor, "words", "--platform", PLATFORM)
    assert (outcome.status, outcome.out) == (0, f"{vendor}: words 1.0 for Python 3.10\n")
    assert "the local AWS cannot load models that import words: " in outcome.err


def test_no_build_for_the_image_is_one_sentence(run: Run, index: WheelIndex, repository: Path) -> None:
    index.add("words", tag=OF_MACHINE)
    vendor = repository / "echo/1/vendor"
    outcome = run("vendor", vendor, "words", "--platform", PLATFORM)
    assert (outcome.status, outcome.out, vendor.exists()) == (1, "", False)
    assert outcome.err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in outcome.err


def test_a_directory_that_cannot_be_beside_a_model(run: Run, repository: Path) -> None:
    outcome = run("vendor", repository / "ehco/1/vendor", "words", "--platform", PLATFORM)
    assert outcome.status == 2
    assert "name a new directory beside model.py" in outcome.said
