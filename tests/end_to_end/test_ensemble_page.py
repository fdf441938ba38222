"""The whole ensemble of docs/ensembles.md, made, checked, served and asked as its page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import write_archive
from cdk_triton.client import TritonClient
from cdk_triton.local.aws import LocalAws

PAGE = (Path(__file__).parents[2] / "docs" / "ensembles.md").read_text(encoding="utf-8")
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for marked, text in found if marked == language]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models, as the page's commands make them; the last of the commands validates them."""
    made = tmp_path_factory.mktemp("page")
    (network, _) = blocks("python")
    (made / "network.py").write_text(network, encoding="utf-8")
    steps, ensemble, validate = (each for each in blocks("") if each.startswith(("mkdir", "cat", "cdk-triton")))
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    script = "".join([steps, f"'{sys.executable}' network.py\n", ensemble, validate])
    done = subprocess.run(["bash", "-euc", script], cwd=made, env=os.environ | {"PATH": path}, capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    assert b"no findings" in done.stdout + done.stderr
    return made


def test_the_tree_is_what_the_commands_make(directory: Path) -> None:
    drawn = [re.sub(r"#.*", "", line).strip("│├└─ ") for line in blocks("")[0].splitlines()]
    found = sorted(path.name for path in (directory / "models").rglob("*") if path.is_file())
    assert sorted(name.rpartition("/")[2] for name in drawn if not name.endswith("/")) == found


def test_it_has_no_findings_and_answers(directory: Path, tmp_path: Path) -> None:
    repository = ModelRepository.from_directory(directory / "models")
    assert repository.check("multi", PLATFORM) == ()
    archive = tmp_path / "fraud.tar.gz"
    write_archive(repository, archive)
    with LocalAws(tmp_path / "aws") as aws:
        s3, sagemaker = aws.client("s3"), aws.client("sagemaker")
        s3.create_bucket(Bucket="models")
        s3.upload_file(str(archive), "models", "fleet/fraud.tar.gz")
        sagemaker.create_model(
            ModelName="m",
            ExecutionRoleArn="arn:aws:iam::123456789012:role/r",
            PrimaryContainer={"Image": "triton", "Mode": "MultiModel", "ModelDataUrl": "s3://models/fleet/"},
        )
        variant = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
        sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
        sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="c")
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="e", WaiterConfig={"Delay": 1})

        client = TritonClient("e", runtime=aws.client("sagemaker-runtime"))
        amount = np.array([[12.5], [9000]], dtype=np.float32)
        answer = client.infer({"AMOUNT": amount, "COUNTRY": [["CH"], ["XX"]]}, target_model="fraud.tar.gz")

    assert answer["LABEL"].tolist() == [[b"fine"], [b"fraud"]]
    assert (answer["CONFIDENCE"] > 0.9).all()
