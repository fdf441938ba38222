"""Libraries with TensorRT plugins: what the build and the server get, and which endpoints can load them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.artifacts.plans import A10G, CONFIG, onnx_bytes, written

from cdk_triton import ContainerEnvironment, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts.prepare import prepare
from cdk_triton.artifacts.recipes.documents import declared_recipe
from cdk_triton.artifacts.recipes.plugins import with_plugins
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages

LIBRARY = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00" + bytes(44)
NETWORK = """
network (int32[batch, 128] ids) => (float[batch, 128] out) { out = acme.FastNms (ids) }
"""
ENVIRONMENT = ContainerEnvironment()


def plan(**changed: Any) -> TensorRTPlan:
    return TensorRTPlan("bert", **{"parity": None, "plugins": ["lib/libnms.so"], **changed})


def repository(root: Path, *recipes: TensorRTPlan, library: bytes | None = LIBRARY) -> ModelRepository:
    network = onnx_bytes(NETWORK.replace("acme.", ""))
    files = {"bert/config.pbtxt": CONFIG.encode(), "bert/model.onnx": network}
    if library is not None:
        files["bert/lib/libnms.so"] = library
    return written(root, files, recipes)


def test_the_build_and_the_archive_have_the_library(tmp_path: Path) -> None:
    recipe = plan()
    models = repository(tmp_path, recipe)
    prepared = prepare(models, "single", A10G, ENVIRONMENT)
    assert (prepared.is_sound, prepared.errors) == (True, ())
    assert recipe.step(models, A10G)["plugins"] == ["bert/lib/libnms.so"]
    assert "bert/lib/libnms.so" not in recipe.consumes
    assert recipe.parameters()["plugins"] == ["bert/lib/libnms.so"]
    assert "plugins" not in plan(plugins=()).parameters()  # the keys of other plans stay


def test_the_server_loads_the_libraries_when_it_starts(tmp_path: Path) -> None:
    models = repository(tmp_path, plan(plugins=["lib/libnms.so", "libother.so"]))
    arguments = ("--backend-config=tensorrt,plugins=/opt/own.so", "--exit-on-error=true")
    given = ContainerEnvironment(additional_args=arguments)
    assert with_plugins(given, models).additional_args == (
        "--exit-on-error=true",
        "--backend-config=tensorrt,plugins=/opt/own.so;/opt/ml/model/bert/lib/libnms.so;/opt/ml/model/bert/libother.so",
    )
    assert with_plugins(given, repository(tmp_path, plan(plugins=()))) is given


@pytest.mark.parametrize(
    ("changed", "library", "platform"),
    [
        ({}, None, A10G),
        ({}, LIBRARY.replace(b"\x3e", b"\xb7"), A10G),
        ({}, b"git lfs pointer", A10G),
        ({}, LIBRARY, ServingPlatform(release="22.07", instance_type="ml.g5.xlarge")),
        ({"parity": TensorRTPlan("bert").parity}, LIBRARY, A10G),
    ],
    ids=["missing", "ARM", "no library", "old release", "compared"],
)
def test_libraries_that_cannot_be_loaded_are_rejected(
    messages: Messages, tmp_path: Path, changed: Any, library: bytes | None, platform: ServingPlatform
) -> None:
    recipe = plan(**changed)
    with messages.raises(ConfigurationError):
        recipe.validate(repository(tmp_path, recipe, library=library), platform)


@pytest.mark.parametrize(
    "plugins", ["libnms.so", ["../libnms.so"], ["a;b.so"], [7]], ids=["a text", "outside", "two in one", "a number"]
)
def test_paths_are_checked(messages: Messages, plugins: Any) -> None:
    with messages.raises(ConfigurationError):
        plan(plugins=plugins)


def test_a_multi_model_endpoint_cannot_load_them(messages: Messages, tmp_path: Path) -> None:
    recipe = plan()
    (error,) = prepare(repository(tmp_path, recipe), "multi", A10G, ENVIRONMENT).errors
    with messages.raises(ConfigurationError) as raised:
        declared_recipe(recipe)
    assert str(raised.value) == error
