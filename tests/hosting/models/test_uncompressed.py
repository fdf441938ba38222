"""`TritonModel(uncompressed=True)`: SageMaker downloads the repository's files as they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import TritonModel
from cdk_triton.artifacts import artifact_key
from cdk_triton.errors import ArchiveError, ConfigurationError
from cdk_triton.protocol.plan import StackPlan

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

MODEL, DELIVERY = "AWS::SageMaker::Model", "Custom::TritonArtifacts"


@pytest.fixture(name="app")
def _app(world: World) -> cdk.App:
    return world.app()


@pytest.fixture(name="stack")
def _stack(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Stack")


def make(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, uncompressed=True)


def files(world: World, app: cdk.App, stack: cdk.Stack) -> dict[str, dict[str, Any]]:
    """Path to what the plan says of a file."""
    (commit,) = world.plan(app, world.only(stack, DELIVERY))["commits"]
    return {file["path"]: file for file in commit["files"]}


def test_the_model_names_the_prefix_of_the_files(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    model = make(world, stack)

    container = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]
    source = container["ModelDataSource"]["S3DataSource"]
    (bucket,) = world.resources(stack, "AWS::S3::Bucket")
    key = artifact_key(model.repository, world.platform, uncompressed=True)
    assert flattened(source["S3Uri"]) == f"s3://<{bucket}>/artifacts/text/{key}/files/"
    assert (source["S3DataType"], source["CompressionType"]) == ("S3Prefix", "None")
    assert "ModelDataUrl" not in container


def test_every_file_is_an_asset_named_by_its_content(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    model = make(world, stack)
    root = model.repository.root

    found = files(world, app, stack)

    assert set(found) == {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    for path, file in found.items():
        content = (root / path).read_bytes()
        assert file["size"] == len(content)
        if not content:
            assert file["asset"] is None
            continue
        assert file["asset"] == f"triton-file-{hashlib.sha256(content).hexdigest()}.bin"
        assert (Path(app.outdir) / f"asset.{file['asset']}").read_bytes() == content
    assert not list(Path(app.outdir).glob("asset.triton-*.tar.gz"))


def test_an_archive_of_the_same_files_has_another_key(world: World, stack: cdk.Stack) -> None:
    model = make(world, stack)
    keys = {artifact_key(model.repository, world.platform, uncompressed=form) for form in (False, True)}
    assert len(keys) == 2


def test_the_handler_reads_the_plan_as_it_was_meant(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    make(world, stack)
    resource = world.only(stack, DELIVERY)["Properties"]
    content = (Path(app.outdir) / f"asset.{resource['PlanKey']}").read_bytes()

    (commit,) = StackPlan.parse(content).commits

    assert commit.archive.endswith("/files/")
    assert commit.asset is None
    assert {file.path for file in commit.files or ()} == set(files(world, app, stack))


def test_a_change_of_one_file_copies_one_file(world: World) -> None:
    def synthesised(name: str, weights: str) -> set[str]:
        app = world.app(name)
        stack = cdk.Stack(app, "Stack")
        repository = world.repository(weights=weights)
        TritonModel(stack, "Model", repository=repository, platform=world.platform, uncompressed=True)
        return {str(file["asset"]) for file in files(world, app, stack).values()}

    before, after = synthesised("before", "1"), synthesised("after", "2")
    assert len(after - before) == 1


def test_a_second_synthesis_copies_nothing(world: World) -> None:
    def synthesised() -> dict[str, int]:
        app = world.app()
        stack = cdk.Stack(app, "Stack")
        make(world, stack)
        world.template(stack)
        return {path.name: path.stat().st_ino for path in Path(app.outdir).glob("asset.triton-file-*")}

    assert synthesised() == synthesised()


def test_the_role_reads_the_files_by_the_repositorys_prefix(world: World, stack: cdk.Stack) -> None:
    make(world, stack)

    assert "/artifacts/text/*" in json.dumps(world.template(stack))


def test_cdks_validation_of_templates_finds_nothing(world: World) -> None:
    stack = cdk.Stack(world.app(validated=True), "Stack")
    make(world, stack)

    assert world.template(stack)  # an error would be raised


class TestIsRefused:
    def test_with_recipes(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        repository = world.repository_with_plan()
        with messages.raises(ConfigurationError):
            TritonModel(stack, "Model", repository=repository, platform=world.platform, uncompressed=True)

    def test_with_a_path_that_makes_no_object_key(self, messages: Messages, world: World, stack: cdk.Stack) -> None:
        directory = world.repository().root / "network/1"
        for part in range(4):
            directory = directory / f"{part}".ljust(240, "x")
        directory.mkdir(parents=True)
        (directory / "weights.bin").write_text("1")
        repository = world.repository_again("text")
        with messages.raises(ConfigurationError):
            TritonModel(stack, "Model", repository=repository, platform=world.platform, uncompressed=True)

    def test_while_somebody_writes_a_file(
        self, messages: Messages, world: World, stack: cdk.Stack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def other_digests(files: Iterable[Path], **_: object) -> dict[Path, str]:
            return dict.fromkeys(files, "0" * 64)

        monkeypatch.setattr("cdk_triton.artifacts.keys.file_digests", other_digests)
        with messages.raises(ArchiveError):
            make(world, stack)
