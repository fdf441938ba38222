"""What the checks found is said again without a look into the models, for as long as nothing changes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import onnx
import pytest
from aws_cdk import aws_iam as iam
from inotify_simple import INotify, flags

from cdk_triton import GoldenRequest, ModelRepository, Rehearsal, TensorRTPlan, TritonModel, TritonMultiModel
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.artifacts.prepare import prepare
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages

LONG_AGO = (1_000_000_000, 1_000_000_000)
World = Any


@contextmanager
def opened(directory: Path) -> Iterator[list[str]]:
    """The names of the files in a directory that somebody opens."""
    found: list[str] = []
    with INotify(nonblocking=True) as watch:
        watch.add_watch(directory, flags.OPEN)
        yield found
        found += [event.name for event in watch.read(timeout=0) if event.name]


def leave_alone(root: Path) -> None:
    """Make files look as if nobody had written to them for long; those that do stay as they are, change times too."""
    for file in root.rglob("*"):
        if file.is_file() and file.stat().st_mtime != LONG_AGO[0]:
            os.utime(file, LONG_AGO)


@pytest.fixture(name="codes")
def _codes(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Check the repository `text` as it stands, with files that have been left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world.repository("text")

    def ask(mode: str = "single", environment: ContainerEnvironment | None = None, **options: Any) -> list[str]:
        root = world.directory / "repositories" / "text"
        leave_alone(root)
        repository = ModelRepository.from_directory(root, **options)
        settings = ContainerEnvironment() if environment is None else environment
        return [finding.code for finding in prepare(repository, mode, world.platform, settings).findings]  # type: ignore[arg-type]

    return ask


def test_models_are_looked_into_once(world: World, codes: Callable[..., list[str]]) -> None:
    models = world.directory / "repositories" / "text" / "network" / "1"
    with opened(models) as first:
        assert codes() == []
    with opened(models) as second:
        assert codes() == []
    assert "model.onnx" in first
    assert second == []


def test_findings_are_the_same_from_memory(world: World, codes: Callable[..., list[str]]) -> None:
    (world.directory / "repositories" / "text" / "network" / "1" / "model.onnx").write_bytes(b"not a model")
    assert codes() == codes() == ["CT130"]


def test_a_change_is_looked_at(world: World, codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    (world.directory / "repositories" / "text" / "preprocess" / "1" / "model.py").write_text("class Other: ...")
    assert codes() == ["CT142"]


def test_a_file_that_was_just_written_is_not_trusted(world: World, codes: Callable[..., list[str]]) -> None:
    model = world.directory / "repositories" / "text" / "network" / "1" / "model.onnx"
    assert codes() == []
    os.utime(model)
    with opened(model.parent) as again:
        prepare(world.repository_again("text"), "single", world.platform, ContainerEnvironment())
    assert "model.onnx" in again


def test_a_file_that_changed_after_its_repository_was_read_is_not_trusted(
    world: World, codes: Callable[..., list[str]]
) -> None:
    root = world.directory / "repositories" / "text"
    assert codes() == []
    config = root / "network" / "config.pbtxt"
    sound = config.read_text()
    config.write_text("platform: 1")
    os.utime(config, LONG_AGO)
    repository = ModelRepository.from_directory(root)
    config.write_text(sound)
    os.utime(config, LONG_AGO)
    checked = prepare(repository, "single", world.platform, ContainerEnvironment())
    assert "CT101" in [finding.code for finding in checked.findings]
    assert codes() == []


def test_another_name_of_a_link_is_looked_at(world: World, codes: Callable[..., list[str]]) -> None:
    version = world.directory / "repositories" / "text" / "preprocess" / "1"
    shared = version.parents[1] / "shared.py"
    (version / "model.py").rename(shared)
    (version / "model.py").symlink_to(shared)
    os.utime(shared, LONG_AGO)
    before = codes()
    (version / "model.py").rename(version / "modell.py")
    assert "CT120" in set(codes()) - set(before)


def test_golden_files_are_read_again_after_a_change(world: World, codes: Callable[..., list[str]]) -> None:
    root = world.directory / "repositories" / "text"
    (root / "golden").mkdir()

    def ask(text: str) -> tuple[str, list[str]]:
        request = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1, 1], "data": [text]}]}
        file = root / "golden" / "one.json"
        if not file.exists() or file.read_text() != json.dumps(request):
            file.write_text(json.dumps(request))
        leave_alone(root)
        repository = ModelRepository.from_directory(root, rehearsal=Rehearsal([GoldenRequest("golden/one.json")]))
        with opened(root / "golden") as files:
            found = prepare(repository, "single", world.platform, ContainerEnvironment(), rehearse=True)
        assert found.rehearsal is not None
        return found.rehearsal.golden, files

    first, second, changed = ask("good"), ask("good"), ask("dark")  # of the same size
    assert first[0] == second[0] != changed[0]
    assert [each != [] for each in (first[1], second[1], changed[1])] == [True, False, True]


@pytest.mark.parametrize("uncompressed", [True, False])
def test_archive_and_files_have_keys_of_their_own(
    world: World, codes: Callable[..., list[str]], uncompressed: bool
) -> None:
    assert codes() == []
    repository = ModelRepository.from_directory(world.directory / "repositories" / "text")
    key = artifact_key(repository, world.platform, uncompressed=uncompressed)
    found = prepare(repository, "single", world.platform, ContainerEnvironment(), uncompressed=uncompressed)
    assert (found.keys.source, found.keys.artifact) == (source_key(repository), key)


def test_other_questions_have_other_answers(codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    assert codes(environment=ContainerEnvironment(default_model_name="nobody")) == ["CT404"]
    assert codes("multi") == []


def test_a_damaged_memory_is_no_memory(tmp_path: Path, codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    change_cache(tmp_path, "UPDATE kept SET value = '[{\"code\": '")
    assert codes() == []


def test_an_error_of_the_question_is_not_told_as_one_of_the_memory(
    world: World, codes: Callable[..., list[str]]
) -> None:
    assert codes() == []  # the files are left alone now

    def answer() -> None:
        raise ConfigurationError("this cannot be")

    with pytest.raises(ConfigurationError) as caught:
        cached_answer([world.repository_again("text")], ["another question"], answer)
    assert caught.value.__context__ is None


def test_the_configurations_of_a_model_are_parsed_once(
    world: World, codes: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes() == []

    def model() -> TritonModel:
        stack = cdk.Stack(world.app(), "Stack")
        return TritonModel(stack, "Model", platform=world.platform, repository=world.repository_again("text"))

    first = model()
    monkeypatch.setattr("cdk_triton.triton.model_config.parse_model_config", refuse)
    again = model()
    variables = [
        world.only(cdk.Stack.of(each), "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Environment"]
        for each in (first, again)
    ]
    assert variables[0] == variables[1]
    assert variables[0]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "ensemble"


def refuse(*_: object, **__: object) -> None:
    """Say that a configuration was parsed."""
    raise AssertionError("parsed again")


class TestOfAFleet:
    """What an ensemble costs whose files stay as they are."""

    @pytest.fixture(autouse=True)
    def _fresh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    @staticmethod
    def fleet(world: World, *names: str) -> TritonMultiModel:
        """A fleet of repositories that are read now."""
        leave_alone(world.directory / "repositories")
        stack = cdk.Stack(world.app(), "Stack")
        return TritonMultiModel(
            stack, "Fleet", platform=world.platform, ensembles={name: world.repository_again(name) for name in names}
        )

    def test_no_configuration_is_parsed_again(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.repository("text")
        first = self.fleet(world, "text")
        monkeypatch.setattr("cdk_triton.triton.model_config.parse_model_config", refuse)
        assert self.fleet(world, "text").target_models == first.target_models

    def test_a_changed_ensemble_gets_another_target_model(self, world: World) -> None:
        world.repository("text")
        world.repository("image")
        first = self.fleet(world, "text", "image").target_models
        world.repository("image", weights="2")
        second = self.fleet(world, "text", "image").target_models
        assert second["text"] == first["text"]
        assert second["image"] != first["image"]
        assert second["image"] == f"image-{source_key(world.repository_again('image'))[:10]}.tar.gz"

    def test_archives_of_remembered_keys_are_published(self, world: World) -> None:
        world.repository("text")
        world.repository("image", weights="2")
        self.fleet(world, "text", "image")
        fleet = self.fleet(world, "text", "image")
        plan = world.plan(cdk.App.of(fleet), world.only(cdk.Stack.of(fleet), "Custom::TritonArtifacts"))
        manifest = json.loads((world.directory / "cdk.out" / "Stack.assets.json").read_text())
        published = {
            destination["objectKey"]
            for file in manifest["files"].values()
            for destination in file["destinations"].values()
        }
        assert {commit["asset"] for commit in plan["commits"]} <= published


class TestOfARepositoryWithRecipes:
    """Its recipes read the network as well: to be validated, for what is built, and for how long that takes."""

    @pytest.fixture(autouse=True)
    def _fresh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def synthesised(self, world: World, recipe: TensorRTPlan) -> tuple[list[str], dict[str, Any]]:
        """What is opened beside the network, and the plan."""
        root = self.root(world)
        if not root.exists():
            network = world.repository_with_plan().root / "network" / "network.onnx"
            document = onnx.load(network)
            document.doc_string = "a" * 20_000  # a small file would be read each time
            onnx.save(document, network)
        leave_alone(root)
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        with opened(root / "network") as files:
            repository = ModelRepository.from_directory(root, recipes=[recipe])
            TritonModel(stack, "Model", repository=repository, platform=world.platform)
        plan = world.plan(app, world.only(stack, "Custom::TritonArtifacts"))
        assert plan["commits"][0]["artifact_key"] == artifact_key(repository, world.platform)
        return [name for name in files if name == "network.onnx"], plan

    @staticmethod
    def root(world: World) -> Path:
        root: Path = world.directory / "repositories" / "text"
        return root

    def test_networks_are_looked_into_once(self, world: World) -> None:
        first, plan = self.synthesised(world, TensorRTPlan("network", onnx="network.onnx"))
        second, again = self.synthesised(world, TensorRTPlan("network", onnx="network.onnx"))
        assert first != []
        assert second == []
        assert plan == again

    def test_another_recipe_is_another_question(self, world: World) -> None:
        self.synthesised(world, TensorRTPlan("network", onnx="network.onnx"))
        opened_again, plan = self.synthesised(world, TensorRTPlan("network", onnx="network.onnx", precision="fp16"))
        assert opened_again != []
        (step,) = plan["commits"][0]["build"]["ensemble"]["steps"]
        assert "--fp16" in step["flags"]

    def test_a_recipe_of_ones_own_is_not_remembered(self, world: World) -> None:
        class Own(TensorRTPlan):
            """Its code may change between two runs."""

        self.synthesised(world, Own("network", onnx="network.onnx"))
        assert self.synthesised(world, Own("network", onnx="network.onnx"))[0] != []

    def test_everything_is_read_where_the_user_wants_it(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synthesised(world, TensorRTPlan("network", onnx="network.onnx"))
        monkeypatch.setenv("CDK_TRITON_NO_CACHE", "1")
        assert self.synthesised(world, TensorRTPlan("network", onnx="network.onnx"))[0] != []


def test_the_library_that_checks_decides_with_the_files(
    codes: Callable[..., list[str]], tmp_path: Path, world: World
) -> None:
    assert codes() == []
    change_cache(tmp_path, "UPDATE kept SET state = 'of another version'")
    models = world.directory / "repositories" / "text" / "network" / "1"
    with opened(models) as again:
        assert codes() == []
    assert "model.onnx" in again


def change_cache(directory: Path, statement: str) -> None:
    """Change the one file of the cache."""
    (file,) = (directory / "cache").rglob("*.sqlite")
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("name", "region", "role", "uncompressed", "refused"),
    [
        ("Bad Name!", "eu-west-1", None, False, "'Bad Name!'"),
        ("text", "xx-nowhere-1", None, False, "xx-nowhere-1"),
        ("text", "eu-west-1", "arn:aws:iam::444455556666:role/theirs", False, "444455556666"),
        ("text", "eu-west-1", None, True, "uncompressed=True"),
    ],
    ids=["name", "region", "role", "uncompressed"],
)
def test_no_weights_are_read_for_what_is_rejected_anyway(
    messages: Messages, name: str, region: str, role: str | None, uncompressed: bool, refused: str, world: World
) -> None:
    root = world.repository(name).root
    recipes = [TensorRTPlan("network", onnx="network.onnx")] if uncompressed else []
    repository = ModelRepository.from_directory(root, recipes=recipes)
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region=region))
    theirs = None if role is None else iam.Role.from_role_arn(stack, "Role", role)

    with opened(root / "network" / "1") as files, messages.raises(ConfigurationError) as caught:
        TritonModel(
            stack, "Model", repository=repository, platform=world.platform, role=theirs, uncompressed=uncompressed
        )
    assert refused in str(caught.value)
    assert files == []
