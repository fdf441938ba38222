"""`cdk-triton validate` for several repositories: named directories, or those of an app with what serves them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import onnx.parser
import pytest

from cdk_triton import ContainerEnvironment, ModelRepository, TensorRTPlan, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from golden_messages import Messages

PYTHON = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
PLAN = """
platform: "tensorrt_plan"
max_batch_size: 8
input { name: "ids" data_type: TYPE_INT32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int32[N, 4] other) => (float[N, 4] y) { y = Cast<to = 1>(other) }
"""
PLATFORM = "25.09/ml.g5.xlarge"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three repositories in the working directory: one without findings, with a warning, and with an error."""
    monkeypatch.chdir(tmp_path)
    for name, config in (("good", PYTHON), ("warned", PYTHON), ("wrong", PYTHON + "platfrom: 'x'")):
        (tmp_path / "models" / name / "model" / "1").mkdir(parents=True)
        (tmp_path / "models" / name / "model" / "1" / "model.py").write_text(CLASS)
        (tmp_path / "models" / name / "model" / "config.pbtxt").write_text(config)
    (tmp_path / "models" / "warned" / "model" / "02").mkdir()
    return Path("models")


def several(models: Path) -> list[Path]:
    return [models / name for name in ("good", "warned", "wrong")]


def codes(outcome: Any) -> list[tuple[str, ...]]:
    found = json.loads(outcome.out)["findings"]
    return [tuple(each[key] for key in ("repository", "construct", "code") if key in each) for each in found]


def test_one_call_checks_several_directories(messages: Messages, run: Any, models: Path) -> None:
    outcome = run("validate", *several(models))
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert [line for line in lines if line.startswith("models/") and ": 1 model, " in line] == [
        "models/good: 1 model, no findings",
        "models/warned: 1 model, 1 warning",
        "models/wrong: 1 model, 1 error",
    ]
    assert "3 repositories: 1 error, 1 warning" in lines
    assert sum("rules skipped" in line for line in lines) == 1
    assert run("validate", *several(models)[:2]).status == 0
    assert run("validate", *several(models)[:2], "--strict").status == 1


def test_json_names_the_repository_of_each_finding(run: Any, models: Path) -> None:
    outcome = run("validate", *several(models), "--format", "json")
    assert codes(outcome) == [("models/warned", "CT112"), ("models/wrong", "CT101")]


def test_sarif_has_a_run_with_an_id_of_its_own_for_each_repository(run: Any, models: Path) -> None:
    runs = json.loads(run("validate", *several(models), "--format", "sarif").out)["runs"]
    assert [each["automationDetails"]["id"] for each in runs] == [f"cdk-triton/{each}/" for each in several(models)]
    assert [[result["ruleId"] for result in each["results"]] for each in runs] == [[], ["CT112"], ["CT101"]]


@pytest.mark.parametrize(("copies", "is_accepted"), [(20, True), (21, False)])
def test_more_runs_than_github_accepts_are_a_warning(
    messages: Messages, run: Any, models: Path, copies: int, is_accepted: bool
) -> None:
    directories = [Path(shutil.copytree(models / "good", models / f"good{number}")) for number in range(copies)]
    outcome = run("validate", *directories, "--format", "sarif")
    assert (outcome.status, len(json.loads(outcome.out)["runs"])) == (0, copies)
    assert (outcome.err == "") is is_accepted
    if not is_accepted:
        messages.record("cdk-triton validate", outcome.err.strip())


def test_a_directory_that_cannot_be_read_ends_with_2(run: Any, models: Path) -> None:
    outcome = run("validate", models / "good", models / "nowhere")
    assert (outcome.status, outcome.out) == (2, "")
    assert "nowhere" in outcome.err


@pytest.fixture
def synth(models: Path) -> Callable[[Callable[[cdk.App], None]], Path]:
    def call(build: Callable[[cdk.App], None]) -> Path:
        app = cdk.App(outdir=str(Path("cdk.out").absolute()), builtin_cloud_formation_validation=False)
        build(app)
        app.synth()
        return Path("cdk.out")

    return call


def test_an_app_is_checked_as_it_serves_its_repositories(
    messages: Messages, run: Any, models: Path, synth: Callable[..., Path]
) -> None:
    def build(app: cdk.App) -> None:
        stack = cdk.Stack(app, "Text")
        ensembles = {"good": "models/good", "warned": "models/warned"}
        TritonMultiModel(stack, "Fleet", platform=PLATFORM, ensembles=ensembles)
        production = cdk.Stack(cdk.Stage(app, "Production"), "Text")
        TritonModel(production, "Model", platform=PLATFORM, repository="models/warned")

    outcome = run("validate", "--app", synth(build))
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert sorted(line for line in lines if ": 1 model, " in line) == [
        "Production/Text/Model (models/warned): 1 model, 1 warning",
        "Text/Fleet (models/good): 1 model, no findings",
        "Text/Fleet (models/warned): 1 model, 1 warning",
    ]
    assert "--platform" not in outcome.out  # the app has it
    found = codes(run("validate", "--app", "cdk.out", "--format", "json"))
    assert ("models/warned", "Text/Fleet", "CT112") in found
    ids = [
        each["automationDetails"]["id"]
        for each in json.loads(run("validate", "-a", "cdk.out", "--format", "sarif").out)["runs"]
    ]
    assert len(set(ids)) == 3


def test_what_changed_since_the_synthesis_is_found(run: Any, models: Path, synth: Callable[..., Path]) -> None:
    app = synth(lambda app: _model(app, repository="models/good"))
    (models / "good" / "model" / "config.pbtxt").write_text('backend: "pyton"')
    assert run("validate", "--app", app).status == 1


def test_mode_platform_environment_and_acknowledgements_are_those_of_the_app(
    run: Any, models: Path, synth: Callable[..., Path]
) -> None:
    second = models / "good" / "second"
    (second / "1").mkdir(parents=True)
    (second / "1" / "model.py").write_text(CLASS + "    y = f'{\"a\"}'\n")
    (second / "config.pbtxt").write_text(PYTHON)
    assert [code for *_, code in codes(run("validate", models / "good", "--format", "json"))] == ["CT403"]

    environment = ContainerEnvironment(default_model_name="model", additional_models=("second",))
    app = synth(lambda app: _model(app, repository="models/good", environment=environment))
    assert codes(run("validate", "--app", app, "--format", "json")) == []

    warned = ModelRepository.from_directory("models/warned", acknowledge={"CT112": "kept for the record"})
    outcome = run("validate", "--app", synth(lambda app: _model(app, repository=warned)))
    assert "CT112 is acknowledged: kept for the record" in outcome.out


def test_a_model_of_an_app_may_import_from_the_pythonpath_of_its_container(
    run: Any, models: Path, synth: Callable[..., Path]
) -> None:
    (models / "good" / "model" / "1" / "model.py").write_text(f"import mylib\n{CLASS}")
    assert codes(run("validate", "--app", synth(lambda app: _model(app, repository="models/good")), "--format", "json"))

    # The value is a token, which the assembly of the synthesis does not contain.
    environment = ContainerEnvironment(variables={"PYTHONPATH": f"/opt/ml/model/{cdk.Aws.REGION}"})
    app = synth(lambda app: _model(app, repository="models/good", environment=environment))
    assert codes(run("validate", "--app", app, "--format", "json")) == []


@pytest.fixture
def synth_plan(models: Path, synth: Callable[..., Path]) -> Callable[[], Path]:
    """Synthesise an app whose repository gets a TensorRT plan from a recipe."""

    def synth_plan() -> Path:
        root = models / "plan"
        (root / "network").mkdir(parents=True)
        (root / "network" / "config.pbtxt").write_text(PLAN)
        (root / "network" / "network.onnx").write_bytes(onnx.parser.parse_model(NETWORK).SerializeToString())
        recipes = [TensorRTPlan("network", onnx="network.onnx")]
        return synth(lambda app: _model(app, repository=ModelRepository.from_directory(root, recipes=recipes)))

    return synth_plan


def test_a_description_of_another_version_says_what_to_run(
    messages: Messages, run: Any, synth_plan: Callable[[], Path]
) -> None:
    app = synth_plan()
    for file in app.rglob("*.json"):
        file.write_text(file.read_text().replace('"document": "{', '"document": "'))
    outcome = run("validate", "--app", app)
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton validate", outcome.said)


def test_a_recipes_network_is_checked_and_its_file_counts_as_present(run: Any, synth_plan: Callable[[], Path]) -> None:
    app = synth_plan()
    outcome = run("validate", "--app", app, "--format", "json")
    found = [code for *_, code in codes(outcome)]
    assert "CT705" in found
    assert "CT120" not in found


def _model(app: cdk.App, **arguments: Any) -> None:
    TritonModel(cdk.Stack(app, "Text"), "Model", platform=PLATFORM, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--app", "models"], id="no cloud assembly"),
        pytest.param(["--app", "empty"], id="no model"),
        pytest.param(["models/good", "--app", "empty"], id="a directory beside the app"),
        pytest.param(["--app", "empty", "--platform", PLATFORM], id="a platform beside the app"),
        pytest.param(["--app", "empty", "--mode", "multi"], id="a mode beside the app"),
    ],
)
def test_what_cannot_be_checked_ends_with_2(messages: Messages, run: Any, models: Path, arguments: list[str]) -> None:
    (models.parent / "empty").mkdir()
    (models.parent / "empty" / "manifest.json").write_text('{"artifacts": {}}')
    outcome = run("validate", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton validate", outcome.said)
