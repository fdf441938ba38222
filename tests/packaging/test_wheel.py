"""The wheel: what is inside, and that it works far from the checkout."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

if TYPE_CHECKING:
    from golden_messages import Messages


# What the library reads at run time beside Python files; a missing one shows only on a user's machine.
REQUIRED = [
    "cdk_triton/py.typed",
    "cdk_triton/artifacts/recipes/data/trtexec_flags.json",
    "cdk_triton/onnx_models/reader/data/onnxruntime_operators.json",
    "cdk_triton/python_models/reader/data/python_names.json",
    "cdk_triton/triton/data/releases.json",
    "cdk_triton/triton/data/server_options.json",
    "cdk_triton/triton/schema.pyi",
    "cdk_triton/sagemaker/data/gpu_instances.json",
    "cdk_triton/sagemaker/data/images.json",
    "cdk_triton/cli/init/files/cdk.json.txt",
    "cdk_triton_local/process/_guardian.py",
    "cdk_triton/_lambda/artifacts/__init__.py",
    "cdk_triton/_lambda/protocol/__init__.py",
    "cdk_triton/_gpu_build/build_program/main.py",
]
PLACES = {
    "constructs/cdk_triton/": "cdk_triton/",
    "constructs/cdk_triton/protocol/": "cdk_triton/_lambda/protocol/",
    "gpu_build/": "cdk_triton/_gpu_build/",
    "lambda/": "cdk_triton/_lambda/",
    "local_aws/cdk_triton_local/": "cdk_triton_local/",
}
"""A folder of the checkout → what the wheel calls it."""

SUFFIXES = {".py", ".pyi", ".json", ".c", ".typed", ".pbtxt", ".txt", ".md", ""}
"""Text: pinned requirements, and the stand-ins for the tools of a GPU, which are called as the real ones are."""

OWN_CODE = {"docs", "cdk-triton --help", "cdk-triton explain"}
"""The code of the description that README.md does not contain in these words."""

MAX_FILE_BYTES = 300_000

STEP = """
backend: "python"
max_batch_size: 8
input [{name: "x" data_type: TYPE_FP32 dims: [4]}]
output [{name: "y" data_type: TYPE_FP32 dims: [4]}]
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [{name: "x" data_type: TYPE_FP32 dims: [4]}]
output [{name: "y" data_type: TYPE_FP32 dims: [4]}]
ensemble_scheduling { step [{
  model_name: "step" model_version: -1
  input_map {key: "x" value: "x"} output_map {key: "y" value: "y"}
}] }
"""
PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with an ensemble of one step."""
    for name, config in {"step": STEP, "ensemble": ENSEMBLE}.items():
        (tmp_path / "models" / name / "1").mkdir(parents=True)
        (tmp_path / "models" / name / "config.pbtxt").write_text(config)
    (tmp_path / "models" / "step" / "1" / "model.py").write_text(PYTHON_MODEL)
    (tmp_path / "models" / "ensemble" / "1" / "README.md").write_text("Keeps the version directory alive.\n")
    return tmp_path / "models"


def sources(root: Path) -> set[str]:
    """The library's files as the wheel names them: those in git, and those that would be added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PLACES]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    present = [name for name in listed if name and (root / name).is_file()]
    return {name.replace(place, PLACES[place], 1) for name in present for place in PLACES if name.startswith(place)}


@pytest.mark.slow
def test_the_wheel_holds_the_library_and_nothing_else(distributions: Any, root: Path) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        files = {entry.filename: entry.file_size for entry in wheel.infolist()}
    own = {name for name in files if ".dist-info/" not in name}

    assert own == sources(root)
    assert set(REQUIRED) <= own
    assert {Path(name).suffix for name in own} <= SUFFIXES
    assert {name for name in own if files[name] > MAX_FILE_BYTES} == set()


@pytest.mark.slow
def test_the_sdist_holds_what_a_build_needs_and_nothing_else(distributions: Any) -> None:
    with tarfile.open(distributions.sdist) as sdist:
        names = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    assert {name.partition("/")[0] for name in names} == {
        *(
            "constructs",
            "gpu_build",
            "lambda",
            "local_aws",
            "LICENSE",
            "PKG-INFO",
            "README.md",
            "pyproject.toml",
            ".gitignore",
        )
    }


@pytest.mark.slow
def test_each_link_of_the_description_works_on_a_package_index(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    description = metadata.get_payload()
    assert isinstance(description, str)
    readme = (root / "README.md").read_text(encoding="utf-8")

    assert metadata["Description-Content-Type"] == "text/markdown"
    assert targets(description) == [target for target in targets(readme) if target.startswith("https:")]
    assert "](" not in re.sub(r"\]\(https:", "", description)
    assert re.findall(r"\b(?:href|src)=(?![\"']?https:).*", description) == []
    assert [text for text in contents(description, "text") if "!" in text] == []  # what is left of a picture
    assert contents(description, "code_inline", "fence") <= contents(readme, "code_inline", "fence") | OWN_CODE
    assert "[Not verified on AWS](docs/not_verified.md) lists" in readme
    assert "Not verified on AWS lists" in description


def parts(markdown: str) -> Iterator[Token]:
    """The blocks of a text and what is in them: texts, links, code."""
    for block in MarkdownIt().enable("table").parse(markdown):
        yield from (block, *(block.children or ()))


def targets(markdown: str) -> list[str]:
    """The addresses of links and pictures, in order."""
    return [str(part.attrs[name]) for part in parts(markdown) for name in ("href", "src") if name in part.attrs]


def contents(markdown: str, *types: str) -> set[str]:
    """The contents of all parts of these types."""
    return {part.content for part in parts(markdown) if part.type in types}


def test_the_sdist_builds_the_same_wheel(distributions: Any) -> None:
    assert distributions.wheel_of_sdist.name == distributions.wheel.name
    with zipfile.ZipFile(distributions.wheel) as direct, zipfile.ZipFile(distributions.wheel_of_sdist) as through_sdist:
        assert {e.filename: e.CRC for e in direct.infolist()} == {e.filename: e.CRC for e in through_sdist.infolist()}


@pytest.mark.slow
def test_the_installed_library_is_not_the_checkout(environment: Any, tmp_path: Path) -> None:
    done = environment.run("python", "-c", "import cdk_triton; print(cdk_triton.__file__)", cwd=tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(environment.directory), done.stderr


@pytest.mark.slow
def test_nothing_is_imported_that_the_wheel_does_not_require(environment: Any, tmp_path: Path) -> None:
    """All but the local AWS and the load of `bench`, which need extras, and the handlers, which run in Lambda."""
    program = """
import importlib, importlib.util, pkgutil, cdk_triton
assert importlib.util.find_spec("pytest") is None, "the environment has more than the wheel requires"
for name in (module.name for module in pkgutil.walk_packages(cdk_triton.__path__, "cdk_triton.")):
    if not name.startswith(("cdk_triton._gpu_build", "cdk_triton._lambda", "cdk_triton.cli.bench.")):
        importlib.import_module(name)
        print(name)
"""
    done = environment.run("python", "-c", program, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    expected = {"cdk_triton.cli.local", "cdk_triton.client.runtime", "cdk_triton.hosting.store.store"}
    assert expected <= set(done.stdout.split())


@pytest.mark.slow
def test_the_installed_command_checks_a_repository(environment: Any, tmp_path: Path, repository: Path) -> None:
    done = environment.run("cdk-triton", "validate", str(repository), "--format", "json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"findings": [], "not_read": []}), done.stderr


@pytest.mark.slow
def test_the_installed_command_writes_a_project_that_synthesises(environment: Any, tmp_path: Path) -> None:
    done = environment.run("cdk-triton", "init", "my-endpoint", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    project = tmp_path / "my-endpoint"
    assert ".whl" in (project / "requirements.txt").read_text()
    app = project / "app.py"
    app.write_text(app.read_text().replace("App()", 'App(outdir="cdk.out")'))

    done = environment.run("python", "app.py", cwd=project)

    assert done.returncode == 0, done.stderr
    template = json.loads((project / "cdk.out" / "MyEndpoint.template.json").read_text())
    types = {resource["Type"] for resource in template["Resources"].values()}
    assert {"AWS::SageMaker::Model", "AWS::SageMaker::Endpoint", "Custom::TritonArtifacts"} <= types
    assert list((project / "cdk.out").glob("asset.*.tar.gz"))


def test_without_its_extra_the_local_aws_says_how_to_get_it(
    messages: Messages, environment: Any, tmp_path: Path
) -> None:
    done = environment.run("cdk-triton", "local", "up", "--detach", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "false\n")  # what a shell evaluates then
    assert done.stderr.endswith("pip install 'cdk-triton[local]'\n")
    messages.record("cdk-triton local", " ".join(done.stderr.split()))
