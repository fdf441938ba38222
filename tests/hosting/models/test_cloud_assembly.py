"""What gets into the cloud assembly, when, and from where the CDK CLI publishes it."""

from __future__ import annotations

import json
import os
import random
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from constructs import Construct
from inotify_simple import INotify, flags

from cdk_triton import TritonArtifactStore, TritonModel, TritonMultiModel
from cdk_triton.artifacts import artifact_key
from cdk_triton.artifacts.archive import pack_prepared
from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.errors import ArchiveError, ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

LARGE = 1 << 20


def manifest(app: cdk.App, stack: str) -> dict[str, Any]:
    files: dict[str, Any] = json.loads((Path(app.outdir) / f"{stack}.assets.json").read_text())["files"]
    return files


def test_an_archive_is_published_under_its_artifact_key(world: World) -> None:
    app = world.app()
    repository = world.repository("text")
    TritonModel(cdk.Stack(app, "Stack"), "Model", repository=repository, platform=world.platform)
    app.synth()

    key = artifact_key(repository, world.platform)
    asset = manifest(app, "Stack")[f"triton-{key}"]
    assert asset["displayName"] == "Triton repository text"
    assert asset["source"] == {"path": f"asset.triton-{key}.tar.gz", "packaging": "file"}
    (destination,) = asset["destinations"].values()
    assert destination["objectKey"] == f"triton-{key}.gz"
    with tarfile.open(Path(app.outdir) / asset["source"]["path"]) as archive:
        assert "ensemble/config.pbtxt" in archive.getnames()


def test_a_nested_stage_refers_to_the_apps_assets(world: World) -> None:
    app = world.app()
    stage = cdk.Stage(app, "Production")
    store = TritonArtifactStore(cdk.Stack(stage, "Artifacts"), "Store")
    stack = cdk.Stack(stage, "Stack")
    TritonMultiModel(stack, "Fleet", store=store, ensembles={"text": world.repository()}, platform=world.platform)
    app.synth()

    below = Path(app.outdir) / "assembly-Production"
    (assets,) = below.glob("*Stack*.assets.json")
    files = json.loads(assets.read_text())["files"]
    paths = [asset["source"]["path"] for name, asset in files.items() if name.startswith("triton-")]
    assert len(paths) == 2
    assert all(path.startswith("../asset.triton-") and (below / path).is_file() for path in paths)


def add_models(world: World, scope: Construct, weights: str, *names: str) -> list[str]:
    """Add a stack with a model of each name, and return the warnings of the scope about pipelines."""
    stack = cdk.Stack(scope, "Stack")
    store = TritonArtifactStore(stack, "Store")
    for name in names:
        repository = world.repository(name, weights=weights, below=weights[:1])
        TritonModel(stack, name, repository=repository, platform=world.platform, store=store)
    warnings = [str(entry.data) for entry in scope.node.metadata if entry.type == "aws:cdk:warning"]
    return [warning for warning in warnings if "[ack: cdk-triton:PipelineAssets]" in warning]


NOISE = random.Random(0).randbytes(5000).hex()


def test_archives_too_large_for_a_pipeline_are_warned_about_once(
    messages: Messages, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.hosting.models.assets.PIPELINE_BYTES", 1_000_000)
    app, large = world.app(), random.Random(0).randbytes(1_000_000).hex()

    assert add_models(world, cdk.Stage(app, "Small"), "s", "first", "second") == []
    (warning,) = add_models(world, cdk.Stage(app, "Large"), large, "first", "second")
    messages.record("cdk-triton:PipelineAssets", warning)
    assert add_models(world, cdk.Stage(app, "Larger"), large, "third") == []  # it was said


def test_the_stages_of_a_pipeline_share_its_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.hosting.models.assets.PIPELINE_BYTES", 8000)
    app = world.app()

    assert add_models(world, cdk.Stage(app, "Test"), NOISE, "first") == []
    assert add_models(world, cdk.Stage(app, "Live"), NOISE, "first") == []  # the same archive
    assert add_models(world, cdk.Stage(app, "Other"), NOISE[::-1], "second") != []


def test_what_no_pipeline_deploys_may_be_large(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.hosting.models.assets.PIPELINE_BYTES", 5000)

    assert add_models(world, world.app(), NOISE, "first", "second") == []


def test_a_nested_stack_publishes_through_its_parent(world: World) -> None:
    app = world.app()
    parent = cdk.Stack(app, "Parent")
    nested = cdk.NestedStack(parent, "Nested")
    TritonModel(nested, "Model", repository=world.repository(), platform=world.platform)
    app.synth()

    assert [name for name in manifest(app, "Parent") if name.startswith("triton-")]


def test_a_synthesizer_of_the_users_own_gets_the_assets(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    app = world.app()
    synthesizer = cdk.DefaultStackSynthesizer(qualifier="team", bucket_prefix="apps/")
    stack = cdk.Stack(app, "Stack", synthesizer=synthesizer)
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    app.synth()

    destinations = [d for a in manifest(app, "Stack").values() for d in a["destinations"].values()]
    assert {d["bucketName"] for d in destinations} == {"cdk-team-assets-${AWS::AccountId}-${AWS::Region}"}
    assert world.only(stack, "Custom::TritonArtifacts")["Properties"]["PlanKey"].startswith("apps/triton-plan-")
    assert [child.node.id for child in stack.node.children if "Nested" in child.node.id] == []
    assert "jsii" not in capfd.readouterr().err


def own_place(source_hash: str, file_name: str | None) -> cdk.FileAssetLocation:
    name = f"apps/{source_hash}{Path(file_name or '').suffix}"
    return cdk.FileAssetLocation(bucket_name="own", object_key=name, http_url="", s3_object_url="")


class OfKeywords(cdk.DefaultStackSynthesizer):
    """As the types of CDK have it."""

    def add_file_asset(self, *, source_hash: str, file_name: str | None = None, **_: Any) -> cdk.FileAssetLocation:
        return own_place(source_hash, file_name)


class OfStruct(cdk.DefaultStackSynthesizer):
    """As jsii calls it, too."""

    def add_file_asset(self, asset: cdk.FileAssetSource) -> cdk.FileAssetLocation:  # type: ignore[override]
        return own_place(asset.source_hash, asset.file_name)


@pytest.mark.parametrize("synthesizer", [OfKeywords, OfStruct])
def test_a_synthesizer_may_be_written_in_python(world: World, synthesizer: type[cdk.DefaultStackSynthesizer]) -> None:
    stack = cdk.Stack(world.app(), "Stack", synthesizer=synthesizer())
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    delivered = world.only(stack, "Custom::TritonArtifacts")["Properties"]
    assert delivered["PlanBucket"] == "own"
    assert delivered["PlanKey"].startswith("apps/triton-plan-")


@pytest.mark.parametrize("name", ["Assets", "Synthesizer", "Triton", "TritonAssets", "TritonSynthesizer"])
def test_no_id_that_a_user_would_choose_is_taken(world: World, name: str) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    cdk.NestedStack(stack, name)
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    assert stack.node.try_find_child(name) is not None
    assert {child.node.id for child in stack.node.children} >= {name, f"{name}.NestedStack"}


def test_a_synthesizer_that_names_assets_late_is_rejected(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", synthesizer=cdk.LegacyStackSynthesizer())

    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)


def test_a_file_that_is_rewritten_before_it_is_packed_is_noticed(
    messages: Messages, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key was computed from the old content, and the size, which the archive's writer compares, is the same."""
    repository = world.repository(weights="old")

    def interfered(prepared: Prepared, target: Path) -> None:
        (repository.root / "network" / "1" / "weights.bin").write_text("new")
        pack_prepared(prepared, target)

    app = world.app()
    stack = cdk.Stack(app, "Stack")
    with monkeypatch.context() as during:
        during.setattr("cdk_triton.artifacts.archive.pack_prepared", interfered)
        with messages.raises(ArchiveError):
            TritonModel(stack, "Model", repository=repository, platform=world.platform)

    assert list(Path(app.outdir).glob("asset.triton-*")) == []


@contextmanager
def opened(*directories: Path) -> Iterator[list[Path]]:
    """The files of at least 1 MB below these directories that somebody opens."""
    found: list[Path] = []
    with INotify(nonblocking=True) as watch:
        names = {
            watch.add_watch(directory, flags.OPEN): Path(directory)
            for top in directories
            for directory, _, _ in os.walk(top)
        }
        yield found
        for event in watch.read(timeout=0):
            path = names[event.wd] / event.name
            if path.is_file() and path.stat().st_size >= LARGE:
                found.append(path)


def test_nothing_large_is_opened_when_everything_is_packed_already(world: World) -> None:
    def synthesise() -> None:
        app = world.app()
        TritonModel(
            cdk.Stack(app, "Stack"), "Model", repository=world.repository_again("text"), platform=world.platform
        )
        app.synth()

    repository = world.repository("text", weights="w" * (2 * LARGE))
    weights = repository.root / "network" / "1" / "weights.bin"
    os.utime(weights, (1_000_000_000, 1_000_000_000))  # a file that was just written is hashed again
    with opened(repository.root) as cold:
        synthesise()

    with opened(repository.root, world.directory / "cdk.out") as warm:
        synthesise()

    assert weights in cold
    assert warm == []
