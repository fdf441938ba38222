"""CondaEnvironment: what it makes, and what it rejects before anything is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton import CondaEnvironment, ModelRepository, ServingPlatform
from cdk_triton.artifacts import ensemble_document
from cdk_triton.artifacts.build_plan import planned_build
from cdk_triton.artifacts.keys import keys_and_files
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]
Read = Callable[..., ModelRepository]

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
OLD = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
UNKNOWN = ServingPlatform(image=f"example/triton@sha256:{'0' * 64}", instance_type="ml.g5.xlarge")

MD5 = "0123456789abcdef" * 2
PYTHON = f"https://conda.anaconda.org/conda-forge/linux-64/python-3.12.4-0.conda#{MD5}\n"
NUMPY = f"https://conda.anaconda.org/conda-forge/linux-64/numpy-2.0.0-0.conda#{MD5}\n"
LOCK = f"@EXPLICIT\n{PYTHON}{NUMPY}"
RECIPE = CondaEnvironment("preprocess", lock="environment.lock")


def config(path: str = "$$TRITON_MODEL_DIRECTORY/env.tar.gz") -> bytes:
    return f'backend: "python"\nparameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}'.encode()


@pytest.fixture
def read(tmp_path: Path, write_files: WriteFiles) -> Read:
    """Reads a repository of Python models with recipes."""

    def make(
        lock: str = LOCK,
        *,
        recipes: Iterable[CondaEnvironment] = (RECIPE,),
        files: Mapping[str, bytes] | None = None,
    ) -> ModelRepository:
        standard = {
            "preprocess/config.pbtxt": config(),
            "preprocess/environment.lock": lock.encode(),
            "preprocess/1/model.py": b"class TritonPythonModel: ...\n",
        }
        root = write_files(tmp_path / "repository", {**standard, **(files or {})})
        return ModelRepository.from_directory(root, recipes=recipes)

    return make


def test_a_lock_file_becomes_an_archive(read: Read) -> None:
    repository = read()
    RECIPE.validate(repository, PLATFORM)
    document = ensemble_document(repository, PLATFORM)
    assert document["remove"] == ["preprocess/environment.lock"]
    assert document["steps"] == [RECIPE.step(repository, PLATFORM)]
    assert RECIPE.step(repository, PLATFORM) == {
        "recipe": "conda_environment",
        "name": "the conda environment of preprocess",
        "target": "preprocess/env.tar.gz",
        "packages": [
            {"url": line.partition("#")[0], "algorithm": "md5", "digest": MD5}
            for line in (PYTHON.strip(), NUMPY.strip())
        ],
    }
    assert RECIPE.produces == ("preprocess/env.tar.gz",)
    assert RECIPE.parameters() == {
        "recipe": "conda_environment",
        "lock": "preprocess/environment.lock",
        "archive": "preprocess/env.tar.gz",
    }


def test_a_produced_environment_is_no_missing_one(read: Read) -> None:
    codes = {finding.code for finding in read().check("single", PLATFORM)}
    assert "CT153" not in codes
    assert "CT153" in {finding.code for finding in read(recipes=()).check("single", PLATFORM)}


def minutes(repository: ModelRepository) -> float:
    return planned_build(repository, PLATFORM, *keys_and_files(repository, PLATFORM)).minutes


def test_a_larger_environment_takes_longer(read: Read) -> None:
    small = minutes(read())
    packages = [NUMPY.replace("numpy", f"package{number}") for number in range(300)]
    assert minutes(read(LOCK + "".join(packages))) > small + 5


@pytest.mark.parametrize(
    "path",
    [
        "$$TRITON_MODEL_DIRECTORY/../preprocess/env.tar.gz",
        "/opt/ml/model/preprocess/env.tar.gz",
    ],
)
def test_another_model_may_be_the_one_that_uses_it(read: Read, path: str) -> None:
    files = {
        "preprocess/config.pbtxt": b'backend: "python"\n',
        "other/config.pbtxt": config(path),
        "other/1/model.py": b"class TritonPythonModel: ...\n",
    }
    RECIPE.validate(read(files=files), PLATFORM)


def test_an_environment_that_nobody_uses_is_rejected(messages: Messages, read: Read) -> None:
    with messages.raises(ConfigurationError):
        RECIPE.validate(
            read(files={"preprocess/config.pbtxt": config("$$TRITON_MODEL_DIRECTORY/other.tar.gz")}), PLATFORM
        )


@pytest.mark.parametrize(("release", "is_rejected"), [("26.08", True), ("26.11", False), ("27.01", False)])
def test_a_python_that_nobody_has_read_is_not_judged(read: Read, release: str, is_rejected: bool) -> None:
    image = f"example.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    repository = read(LOCK.replace("3.12", "3.13"))
    with pytest.raises(ConfigurationError) if is_rejected else nullcontext():
        RECIPE.validate(repository, platform)


def test_every_wrong_line_is_named(messages: Messages, read: Read) -> None:
    lock = LOCK + "numpy\n" + PYTHON.replace("https", "http") + NUMPY.partition("#")[0].replace("numpy", "scipy")
    with messages.raises(ConfigurationError) as caught:
        RECIPE.validate(read(lock), PLATFORM)
    assert re.findall(r"line \d+", str(caught.value)) == ["line 4", "line 5", "line 6"]


def test_many_wrong_lines_are_counted(messages: Messages, read: Read) -> None:
    with messages.raises(ConfigurationError):
        RECIPE.validate(read(LOCK + "numpy\n" * 8), PLATFORM)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("environment.yml", "name: x\ndependencies:\n  - python=3.12\n", id="environment.yml"),
        pytest.param("conda-lock.yml", "version: 1\nmetadata: {}\npackage:\n- name: python\n", id="conda-lock.yml"),
    ],
)
def test_what_is_not_locked_is_rejected_with_the_command_that_locks_it(
    messages: Messages, read: Read, name: str, text: str
) -> None:
    recipe = CondaEnvironment("preprocess", lock=name)
    with messages.raises(ConfigurationError):
        recipe.validate(read(recipes=[recipe], files={f"preprocess/{name}": text.encode()}), PLATFORM)


def test_the_environment_has_the_python_of_the_container(messages: Messages, read: Read) -> None:
    with messages.raises(ConfigurationError):
        RECIPE.validate(read(), OLD)
    RECIPE.validate(read(LOCK.replace("3.12.4", "3.10.14").replace("numpy-2.0.0", "numpy-1.26.4")), OLD)
    RECIPE.validate(read(LOCK.replace("3.12.4", "3.9.1")), UNKNOWN)  # the build asks the image
    with messages.raises(ConfigurationError):
        RECIPE.validate(read(f"@EXPLICIT\n{NUMPY}"), PLATFORM)


def test_the_python_backend_of_an_older_release_does_not_read_numpy_2(messages: Messages, read: Read) -> None:
    with messages.raises(ConfigurationError):
        RECIPE.validate(read(LOCK.replace("3.12.4", "3.10.14")), OLD)


def test_one_copy_is_enough(messages: Messages, read: Read) -> None:
    second = CondaEnvironment("other", lock="other.lock")
    files = {
        "other/config.pbtxt": config(),
        "other/other.lock": f"# the same\n@EXPLICIT\n{NUMPY}{PYTHON}".encode(),
        "other/1/model.py": b"class TritonPythonModel: ...\n",
    }
    repository = read(recipes=[RECIPE, second], files=files)
    RECIPE.validate(repository, PLATFORM)
    with messages.raises(ConfigurationError):
        second.validate(repository, PLATFORM)
    different = read(recipes=[RECIPE, second], files={**files, "other/other.lock": f"@EXPLICIT\n{PYTHON}".encode()})
    second.validate(different, PLATFORM)


def test_values_that_no_repository_could_fix(messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        CondaEnvironment("preprocess", lock="environment.lock", archive="env.zip")
    with messages.raises(ConfigurationError):
        CondaEnvironment("preprocess", lock="/etc/lock")
