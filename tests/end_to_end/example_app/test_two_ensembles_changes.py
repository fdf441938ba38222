"""System 1: an ensemble is added, changed and dropped, and the endpoint is not touched."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHECKOUT = Path(__file__).parents[3]
STACK = "TwoEnsembles"
EGYPTIAN_CAT = 285
IMAGE = '"image": ModelRepository.from_directory(ASSETS / "image_classification"),'
CATS = IMAGE.replace('"image"', '"cats"')


class Edited:
    """A copy of the example app, whose stack a user edits and deploys."""

    def __init__(self, shell: Any, directory: Path) -> None:
        self.shell = shell
        self.directory = directory
        self.module = directory / "examples/reference_systems/two_ensembles.py"

    def deploy(self, *replacements: tuple[str, str]) -> dict[str, str]:
        text = self.module.read_text()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        self.module.write_text(text)
        self.shell.deploy(STACK, "--exclusively", "--app", f"{sys.executable} {self.directory / 'app.py'}")
        found: dict[str, str] = self.shell.outputs(STACK)
        return found

    def cat(self, target_model: str) -> int:
        """The class of the cat's photograph."""
        jpeg = np.frombuffer((CHECKOUT / "examples/photographs/chelsea.jpg").read_bytes(), dtype=np.uint8)
        endpoint = self.shell.outputs(STACK)["EndpointName"]
        answer = self.shell.ask(endpoint, "OUTPUT", {"INPUT": jpeg[np.newaxis]}, target_model=target_model)
        return int(answer.argmax())

    def resources(self) -> Any:
        """What SageMaker has of the endpoint: its configuration, when it was changed, and the model."""
        sagemaker = self.shell.client("sagemaker")
        endpoint = sagemaker.describe_endpoint(EndpointName=self.shell.outputs(STACK)["EndpointName"])
        models = sorted(model["ModelName"] for model in sagemaker.list_models()["Models"])
        return endpoint["EndpointConfigName"], endpoint["LastModifiedTime"], models


@pytest.fixture
def edited(example_app: Any, model_assets: Path, tmp_path: Path) -> Iterator[Edited]:
    shutil.copy(CHECKOUT / "app.py", tmp_path)
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    for repository in model_assets.iterdir():
        if (repository / "ensemble").is_dir():
            shutil.copytree(repository, tmp_path / "model_assets" / repository.name)
        elif not repository.name.startswith("."):
            (tmp_path / "model_assets").mkdir(exist_ok=True)
            (tmp_path / "model_assets" / repository.name).symlink_to(repository)
    yield Edited(example_app, tmp_path)
    example_app.deploy(STACK, "--exclusively", f"--app={example_app.assembly}")


def test_ensembles_come_change_and_go_while_the_endpoint_stays(edited: Edited) -> None:
    outputs = edited.shell.outputs(STACK)
    before = edited.resources()

    added = edited.deploy(
        (IMAGE, f"{IMAGE}\n                {CATS}"),
        ('value=multi_model.target_model("image")', 'value=multi_model.target_model("cats")'),
    )
    assert edited.resources() == before
    assert added["ImageModel"].startswith("cats-")
    assert edited.cat(added["ImageModel"]) == edited.cat(outputs["ImageModel"]) == EGYPTIAN_CAT

    with (edited.directory / "model_assets/image_classification/ensemble/config.pbtxt").open("a") as config:
        config.write("# changed\n")
    changed = edited.deploy()
    assert edited.resources() == before
    assert changed["ImageModel"] != added["ImageModel"]
    assert edited.cat(changed["ImageModel"]) == EGYPTIAN_CAT
    assert edited.cat(added["ImageModel"]) == EGYPTIAN_CAT  # for callers who have not learned of the new one

    dropped = edited.deploy((CATS, ""), ('target_model("cats")', 'target_model("image")'))
    assert edited.resources() == before
    assert dropped["ImageModel"].startswith("image-")
    assert edited.cat(changed["ImageModel"]) == EGYPTIAN_CAT  # as long as its archive is in the store
