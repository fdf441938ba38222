"""An argument of another type is one sentence in every public function of `artifacts`, `triton` and `sagemaker`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton import artifacts, sagemaker, triton
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages

PLATFORM = sagemaker.ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
INSTANCE = sagemaker.gpu_instance("ml.g5.2xlarge")
COPIES = [sagemaker.CopyRequirements(accelerators=1, memory_mib=1024)]


def functions() -> Iterator[tuple[ModuleType, str, str]]:
    """Each argument of each public function."""
    for module in (artifacts, triton, sagemaker):
        for name in module.__all__:
            found = getattr(module, name)
            if callable(found) and inspect.isroutine(inspect.unwrap(found)):
                for argument in inspect.signature(found).parameters:
                    yield module, name, argument


def good(repository: Path) -> dict[str, Any]:
    """A value of each argument."""
    read = triton.ModelRepository.from_directory(repository)
    return {
        "allow_unknown_fields": False,
        "compute_capability": "8.6",
        "config": triton.parse_model_config("name: 'text'"),
        "copies": COPIES,
        "cuda": "12.9",
        "environment": {},
        "gpu_count": 0,
        "instance": INSTANCE,
        "model_directories": ["text"],
        "name": "25.09",
        "option": "--fp16",
        "path": "config.pbtxt",
        "platform": PLATFORM,
        "platforms": [PLATFORM],
        "progress": None,
        "region": "eu-west-1",
        "release": "25.09",
        "repositories": [read],
        "repository": read,
        "source": read,
        "sources_asset": "asset",
        "target": repository.parent / "model.tar.gz",
        "text": "name: 'text'",
        "uncompressed": False,
        "version": (10, 13),
        "what": "the variant",
    }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "models" / "text" / "1").mkdir(parents=True)
    (tmp_path / "models" / "text" / "1" / "model.py").write_text("class TritonPythonModel: pass")
    (tmp_path / "models" / "text" / "config.pbtxt").write_text("backend: 'python'")
    return tmp_path / "models"


@pytest.mark.parametrize(
    ("module", "name", "argument"),
    list(functions()),
    ids=lambda value: getattr(value, "__name__", value).rpartition(".")[2],
)
def test_an_argument_of_another_type_is_a_sentence(
    messages: Messages, repository: Path, module: ModuleType, name: str, argument: str
) -> None:
    function: Callable[..., object] = getattr(module, name)
    arguments = {each: good(repository)[each] for each in inspect.signature(function).parameters}
    if name == "gpu_instance":
        arguments["name"] = "ml.g5.2xlarge"
    function(**arguments)
    with pytest.raises(ConfigurationError) as caught:
        function(**arguments | {argument: object()})
    messages.record("ConfigurationError", str(caught.value))


@pytest.mark.parametrize("versions", [("26.05", "ml.g5.xlarge"), ("13", "8.6")], ids=["capability", "cuda"])
def test_a_text_that_is_not_a_version_is_a_sentence(messages: Messages, versions: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sagemaker.host_ami(*versions)
    messages.record("ConfigurationError", str(caught.value))


def test_a_generator_is_a_list_of_values() -> None:
    assert sagemaker.instances_for((copy for copy in COPIES), INSTANCE) == 1
