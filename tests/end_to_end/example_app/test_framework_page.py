"""The walk through docs/framework_model.md: a file of XGBoost becomes an endpoint that answers as XGBoost does."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from cdk_triton.triton import ModelRepository
from examples.reference_systems.assets import ASSETS
from examples.reference_systems.questions import unseen_row
from sample_repositories.torch_models import torchscript

FILES, CONFIG, CHECK, DEPLOY, COMPARE, TORCH = (
    block.text for block in of_kind("end_to_end/example_app/test_framework_page.py")
)
CANCER = ASSETS / "tree_models/cancer"


@pytest.mark.long
def test_a_file_of_xgboost_becomes_an_endpoint(shell: Any, local_aws: Any) -> None:
    shutil.copy(CANCER / "cancer/1/xgboost.ubj", shell.directory.parent)
    shell.run("bash", "-euc", FILES)
    (shell.directory / "models/cancer/config.pbtxt").write_text(CONFIG)
    command, shown = CHECK.removeprefix("$ ").split("\n", 1)
    assert shell.run("bash", "-euc", command) == shown
    with local_aws(shell.directory) as led:
        led.run("bash", "-euc", DEPLOY.replace("local up --detach", "local status"))
        (endpoint,) = led.client("sagemaker").list_endpoints()["Endpoints"]
        with np.load(CANCER / "golden/prediction.npz", allow_pickle=False) as arrays:
            expected = arrays["output__0"]
        given = f"from numpy import array, float32\nrows, expected = {unseen_row('cancer')!r}, {expected!r}\n"
        led.run("python", "-c", given + COMPARE.replace("<EndpointName>", endpoint["EndpointName"]))


def test_the_configuration_of_the_network_fits_its_file(tmp_path: Any) -> None:
    version = tmp_path / "spirals/1"
    version.mkdir(parents=True)
    (version / "model.pt").write_bytes(torchscript("def forward(self, input: Tensor) -> Tensor"))
    (version.parent / "config.pbtxt").write_text(TORCH)
    assert ModelRepository.from_directory(tmp_path).check(platform="26.05/ml.g5.xlarge") == ()
