"""The keys of repositories with recipes: what changes them, what does not, and that they never change by themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.artifacts.plans import A10G, CONFIG, bert, written

from cdk_triton import Parity, S3File, TensorRTPlan, Tolerance
from cdk_triton.artifacts import artifact_key, program, source_key, sources_key
from cdk_triton.artifacts.recipes.precision import PRECISIONS
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


SHA256 = "0123456789abcdef" * 4
GOLDEN_PLAIN = ["c361ec76f479c1da", "5c7eb0bb18a9e119"]
GOLDEN_BOTH = ["5973b4856e5c983e", "c70252812c1bc78c"]
FILES = {"bert/config.pbtxt": CONFIG.encode(), "bert/bert.onnx": b"a network"}


def keys_of(root: Path, *recipes: TensorRTPlan) -> tuple[str, str]:
    repository = ModelRepository.from_directory(root, recipes=recipes)
    return source_key(repository), artifact_key(repository, A10G)


def test_keys_are_the_same_in_every_version_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, an upgrade of the library makes everybody build every plan again.

    Undo the change. A build program that gives other plans raises PROGRAM_VERSION instead, which this test fixes.
    """
    monkeypatch.setattr("cdk_triton.artifacts.keys.PROGRAM_VERSION", 1)
    written(tmp_path, FILES)
    everything = TensorRTPlan(
        "bert",
        onnx=S3File("models", "bert.onnx", SHA256),
        version=2,
        profiles=[{"ids": ((1, 128), (8, 128), (16, 128))}],
        precision="fp16",
        workspace_mib=2000,
        optimization_level=3,
        hardware_compatibility="ampere+",
        parity=Parity(Tolerance(0.1, 0.2), ranges={"ids": (0, 30521)}, seed=1),
    )
    assert [key[:16] for key in keys_of(tmp_path, TensorRTPlan("bert", onnx="bert.onnx"))] == GOLDEN_PLAIN
    assert [key[:16] for key in keys_of(tmp_path, everything, TensorRTPlan("bert", onnx="bert.onnx"))] == GOLDEN_BOTH


def test_a_build_program_that_gives_something_else_changes_the_keys_of_what_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, FILES)
    before = *keys_of(tmp_path), *keys_of(tmp_path, TensorRTPlan("bert", onnx="bert.onnx"))
    monkeypatch.setattr("cdk_triton.artifacts.keys.PROGRAM_VERSION", program.PROGRAM_VERSION + 1)
    after = *keys_of(tmp_path), *keys_of(tmp_path, TensorRTPlan("bert", onnx="bert.onnx"))
    assert before[:2] == after[:2]
    assert len({*before[2:], *after[2:]}) == 4


def test_the_sources_have_the_key_of_their_files_alone(tmp_path: Path) -> None:
    plain = sources_key(written(tmp_path, FILES))
    for recipes in ([TensorRTPlan("bert")], [TensorRTPlan("bert"), TensorRTPlan("bert", version=2)]):
        assert sources_key(ModelRepository.from_directory(tmp_path, recipes=recipes)) == plain
    (tmp_path / "bert" / "bert.onnx").write_bytes(b"another network")
    assert sources_key(ModelRepository.from_directory(tmp_path)) != plain


SHAPES = st.integers(1, 8).map(lambda batch: ((1, 128), (batch, 128), (16, 128)))
TOLERANCES = st.builds(Tolerance, st.sampled_from([0, 0.0, 0.1, 1]), st.sampled_from([0, 0.5, 1.0]))
RANGES = st.dictionaries(st.sampled_from(["ids", "mask"]), st.sampled_from([(0, 1), (0, 30521)]))
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["bert", "vit"]),
    "onnx": st.sampled_from(["bert.onnx", "1/model.onnx"])
    | st.builds(S3File, st.just("models"), st.just("a"), st.sampled_from([SHA256, SHA256[::-1]])),
    "version": st.integers(1, 3),
    "profiles": st.none()
    | st.lists(st.dictionaries(st.sampled_from(["ids", "mask"]), SHAPES, min_size=1), min_size=1, max_size=2),
    "precision": st.sampled_from(PRECISIONS),
    "workspace_mib": st.none() | st.integers(1, 3),
    "optimization_level": st.none() | st.integers(0, 5),
    "hardware_compatibility": st.sampled_from([None, "ampere+", "same_compute_capability"]),
    "parity": st.none() | st.builds(Parity, st.none() | TOLERANCES, RANGES, st.integers(0, 2)),
}
PLANS = st.fixed_dictionaries(dict(VALUES))


def plan(values: Mapping[str, Any], *, backwards: bool = False) -> TensorRTPlan:
    """A recipe; everything that has no order is given in the reverse one if asked."""

    def turned(mapping: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sorted(mapping.items(), reverse=backwards))

    given = turned(values)
    if given["profiles"] is not None:
        given["profiles"] = [turned(profile) for profile in given["profiles"]]
    if given["parity"] is not None:
        given["parity"] = dataclasses.replace(given["parity"], ranges=turned(given["parity"].ranges))
    return TensorRTPlan(**given)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> ModelRepository:
    return written(tmp_path_factory.mktemp("keys"), FILES)


@pytest.mark.slow
@settings(max_examples=100)
@given(one=PLANS, other=PLANS, changed=st.sampled_from(sorted(VALUES)))
def test_keys_are_equal_exactly_where_recipes_are(
    repository: ModelRepository, one: dict[str, Any], other: dict[str, Any], changed: str
) -> None:
    def key_of(*recipes: TensorRTPlan) -> str:
        return source_key(dataclasses.replace(repository, recipes=recipes))

    first = plan(one)
    assert key_of(first) == key_of(plan(one, backwards=True))
    for second in (plan(other), plan({**one, changed: other[changed]})):
        same = first == second
        assert (first.parameters() == second.parameters()) is same
        assert (key_of(first) == key_of(second)) is same
    assert key_of(first, plan(other)) == key_of(plan(other), first)


def test_recipes_make_another_artifact_of_the_same_files(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    plain, one = keys_of(tmp_path), keys_of(tmp_path, TensorRTPlan("bert"))
    two = keys_of(tmp_path, TensorRTPlan("bert"), TensorRTPlan("bert", version=2))
    assert len({*plain, *one, *two}) == 6


def test_where_a_file_in_s3_lies_is_not_in_the_key(tmp_path: Path) -> None:
    files = [S3File("models", "a.onnx", SHA256), S3File("copies", "b.onnx", SHA256)]
    one, other = (bert(tmp_path, TensorRTPlan("bert", onnx=file), network=None) for file in files)
    assert artifact_key(one, A10G) == artifact_key(other, A10G)


@dataclasses.dataclass(frozen=True)
class OfToken(TensorRTPlan):
    """A recipe that does not look at its own values."""

    def parameters(self) -> dict[str, object]:
        return {"recipe": "of token", "region": "${Token[AWS.Region.4]}"}


def test_a_token_in_a_recipe_is_rejected(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(ConfigurationError):
        keys_of(written(tmp_path, FILES).root, OfToken("bert"))
