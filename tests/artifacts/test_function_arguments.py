"""An argument of another type is one sentence in the public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton import sagemaker
from cdk_triton.artifacts import write_archive
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import serve_arguments

if TYPE_CHECKING:
    from golden_messages import Messages

INSTANCE = sagemaker.gpu_instance("ml.g5.2xlarge")
COPIES = [sagemaker.CopyRequirements(accelerators=1, memory_mib=1024)]


@pytest.fixture
def good(tmp_path: Path) -> dict[str, Any]:
    """A value of each argument."""
    (tmp_path / "models" / "text" / "1").mkdir(parents=True)
    (tmp_path / "models" / "text" / "1" / "model.py").write_text("class TritonPythonModel: pass")
    (tmp_path / "models" / "text" / "config.pbtxt").write_text("backend: 'python'")
    return {
        "environment": {},
        "gpu_count": 0,
        "model_directories": ["text"],
        "progress": None,
        "source": tmp_path / "models",
        "target": tmp_path / "model.tar.gz",
    }


@pytest.mark.parametrize("function", [write_archive, serve_arguments])
def test_an_argument_of_another_type_is_a_sentence(
    messages: Messages, good: dict[str, Any], function: Callable[..., object]
) -> None:
    arguments = {each: good[each] for each in inspect.signature(function).parameters}
    function(**arguments)
    for argument in arguments:
        with messages.raises(ConfigurationError):
            function(**arguments | {argument: object()})


@pytest.mark.parametrize("versions", [("26.05", "ml.g5.xlarge"), ("13", "8.6")], ids=["capability", "cuda"])
def test_a_text_that_is_not_a_version_is_a_sentence(messages: Messages, versions: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sagemaker.host_ami(*versions)
    messages.record("ConfigurationError", str(caught.value))


def test_a_generator_is_a_list_of_values() -> None:
    assert sagemaker.instances_for((copy for copy in COPIES), INSTANCE) == 1
