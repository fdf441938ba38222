"""The example app: its templates, the linters on them, and what it says when something is missing.

The app is copied beside a tiny repository and one whose network is tiny, so that nothing here needs the prepared
weights.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import aws_cdk as cdk
import onnx.parser
import pytest
from aws_cdk.assertions import Template
from tests.docs.blocks import Block, of_kind
from tests.snapshots.compare import assert_as_looked_at

from examples.reference_systems.assets import ASSETS, PREPARED
from examples.reference_systems.pytorch_network import NETWORK
from sample_repositories.torch_models import torchscript

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

SYSTEMS = [
    *("TwoEnsembles", "ImageClassification", "OnnxModels", "TensorRTTenants", "TextGeneration", "TextStreaming"),
    *("TreeModels", "PyTorchNetwork"),
]
STACKS = ["TritonArtifacts", *SYSTEMS]

BERT = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int32[N, L] token_ids, int32[N, L] attn_mask) => (float[N, 384] output) { output = Cast<to = 1>(token_ids) }
"""


def write_repositories(world: World) -> None:
    """The repositories with a network that has bert's inputs and outputs only, and an image ensemble of nothing."""
    assets = world.directory / "model_assets"
    prepared = shutil.ignore_patterns("*.onnx", "vendor", "tokenizer.json")
    shutil.copytree(world.root / "model_assets" / "sentence_embedding", assets / "sentence_embedding", ignore=prepared)
    shutil.copytree(world.root / "model_assets" / "tensorrt_tenants", assets / "tensorrt_tenants", ignore=prepared)
    shutil.copytree(world.root / "model_assets" / "text_generation", assets / "text_generation", ignore=prepared)
    shutil.copytree(world.root / "model_assets" / "tree_models", assets / "tree_models")
    shutil.copytree(world.root / "model_assets" / "pytorch_network", assets / "pytorch_network")
    scripted = assets / NETWORK.relative_to(ASSETS)
    scripted.parent.mkdir(exist_ok=True)
    scripted.write_bytes(torchscript("def forward(self, input: Tensor) -> Tensor"))
    network = onnx.parser.parse_model(BERT).SerializeToString()
    for repository in ("sentence_embedding", "tensorrt_tenants"):
        (assets / repository / "bert" / "bert.onnx").write_bytes(network)
    world.repository("image_classification", below="model_assets")
    for name in ("images", "texts"):
        world.repository(name, below="model_assets/onnx_models")


def write_checkout(world: World) -> Path:
    """A directory with the app and prepared assets."""
    write_repositories(world)
    shutil.copy(world.root / "app.py", world.directory)
    systems = Path("examples", "reference_systems")
    shutil.copytree(world.root / systems, world.directory / systems, ignore=shutil.ignore_patterns("__pycache__"))
    for prepared in PREPARED:
        (world.directory / "model_assets" / prepared).parent.mkdir(parents=True, exist_ok=True)
        (world.directory / "model_assets" / prepared).write_text("prepared")
    return world.directory


@pytest.fixture(name="checkout")
def _checkout(world: World) -> Path:
    return write_checkout(world)


def load(directory: Path) -> ModuleType:
    """The app of a directory, with the systems that are beside it."""
    spec = importlib.util.spec_from_file_location("example_app", directory / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as during:
        during.syspath_prepend(directory)
        for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
            during.delitem(sys.modules, name)
        spec.loader.exec_module(module)
        for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
            del sys.modules[name]
    return module


@pytest.fixture(name="app", scope="module")
def _app(shared_world: World) -> cdk.App:
    checkout = write_checkout(shared_world)
    app = shared_world.app(validated=True)
    shutil.rmtree(checkout / "model_assets")
    write_repositories(shared_world)
    load(checkout).add_stacks(app)
    app.synth()  # only then references to other stacks are what the template says
    return app


def stack(app: cdk.App, name: str) -> cdk.Stack:
    found = app.node.find_child(name)
    assert isinstance(found, cdk.Stack)
    return found


def test_two_ensembles_share_one_endpoint(app: cdk.App) -> None:
    template = Template.from_stack(stack(app, "TwoEnsembles"))

    template.resource_count_is("AWS::SageMaker::Endpoint", 1)
    assert set(template.find_outputs("*")) == {"EndpointName", "TextModel", "ImageModel"}
    assert re.fullmatch(r"text-[0-9a-f]{10}\.tar\.gz", template.find_outputs("TextModel")["TextModel"]["Value"])


def test_each_stack_can_be_deployed_with_the_store_alone(app: cdk.App) -> None:
    for name in SYSTEMS:
        assert [dependency.node.id for dependency in stack(app, name).dependencies] == ["TritonArtifacts"]


def test_the_templates_pass_cfn_lint_and_cdks_own_validation(shared_world: World, app: cdk.App) -> None:
    templates = sorted(Path(app.outdir).glob("*.template.json"))

    # W3005: CDK makes every Lambda function and state machine depend on the role that it refers to.
    lint = subprocess.run(
        [shared_world.root / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())

    assert len(templates) == len(STACKS)
    assert (lint.returncode, lint.stdout) == (0, "")
    assert report["pluginReports"] == []


@pytest.mark.parametrize("name", STACKS)
def test_the_template_is_the_one_that_was_looked_at(app: cdk.App, name: str) -> None:
    assert_as_looked_at(stack(app, name), name)


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "app.py"],
        cwd=directory,
        env={**os.environ, "CDK_VALIDATION": "false"},  # of templates, which takes most of the time
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_missing_weights_are_named_with_the_command_that_prepares_them(messages: Messages, checkout: Path) -> None:
    weights = checkout / "model_assets" / "image_classification" / "resnet50" / "1" / "model.onnx"
    weights.unlink()

    done = run(checkout)

    assert done.returncode == 1
    messages.record("app.py", done.stderr)
    assert str(weights) in done.stderr
    assert "`python model_assets/prepare.py`" in done.stderr


def test_a_missing_constructs_distribution_is_not_mistaken_for_the_directory(checkout: Path) -> None:
    (checkout / "constructs" / "cdk_triton").mkdir(parents=True)
    (checkout / "aws_cdk.py").write_text("")
    (checkout / "cdk_nag.py").write_text("AwsSolutionsChecks = NIST80053R5Checks = None")

    done = run(checkout, "-S")  # without site-packages

    assert done.returncode == 1
    assert "unknown location" in done.stderr
    assert "`make setup`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_repository_that_cannot_be_read_is_an_exception_that_ends_with_the_sentence(checkout: Path) -> None:
    (checkout / "model_assets" / "sentence_embedding" / "tokenizer" / "1" / "gone").symlink_to("/etc/passwd")

    done = run(checkout)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("cdk_triton.errors.RepositoryError: ")


@pytest.mark.parametrize("block", of_kind("hosting/test_example_app.py"), ids=str)
def test_the_stacks_in_the_readme_can_be_synthesised(world: World, block: Block) -> None:
    write_repositories(world)
    (world.directory / "app.py").write_text(block.text)

    done = run(world.directory)

    assert (done.returncode, done.stderr) == (0, "")
