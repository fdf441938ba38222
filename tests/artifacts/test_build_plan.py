"""What the build of a repository is told: order, inputs, what is rejected."""

from __future__ import annotations

import json
import random
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.artifacts.plans import A10G, CONFIG, NETWORK, bert, onnx_bytes, written

from build_program.plan import read_plan
from cdk_triton import S3File, ServingPlatform, TensorRTPlan
from cdk_triton.artifacts import (
    artifact_key,
    ensemble_document,
    platform_document,
    source_key,
    sources_key,
    write_archive,
)
from cdk_triton.artifacts.build_plan import build_inputs, in_order, job_minutes, planned_build, s3_files
from cdk_triton.artifacts.digests import file_digests
from cdk_triton.artifacts.keys import keys_and_files
from cdk_triton.artifacts.recipes import recipes_of
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.plan import BuildInput
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


SHA256 = "0123456789abcdef" * 4
ON_S3 = S3File("models", "bert/model.onnx", SHA256)


@dataclass(frozen=True)
class Makes:
    """A recipe that exists for these tests only."""

    name: str
    produces: tuple[str, ...] = ()
    consumes: tuple[str, ...] = ()
    s3_files: Mapping[str, S3File] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"Makes({self.name!r})"

    def parameters(self) -> dict[str, object]:
        return {"recipe": "makes", "name": self.name}

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        if self.name == "refused":
            raise ConfigurationError("it does not fit")

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        return {"recipe": "makes", "name": self.name}

    def estimated_minutes(self, repository: ModelRepository) -> float:
        return 3.0


def document(repository: ModelRepository) -> dict[str, Any]:
    return ensemble_document(repository, A10G)


def inputs(repository: ModelRepository) -> tuple[BuildInput, ...]:
    return build_inputs(document(repository), s3_files(recipes_of(repository)), "asset.tar.gz")


def minutes(repository: ModelRepository) -> float:
    return planned_build(repository, A10G, *keys_and_files(repository, A10G)).minutes


def rejected(messages: Messages, root: Path, *recipes: Makes | TensorRTPlan) -> None:
    with messages.raises(ConfigurationError):
        document(bert(root / "repository", *recipes))


def test_an_ensemble_is_described_by_its_files_and_steps(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert")
    repository = bert(tmp_path / "sentences", recipe)
    told = document(repository)
    assert told["steps"] == [recipe.step(repository, A10G)]
    assert {name: value for name, value in told.items() if name not in ("files", "steps")} == {
        "repository": "sentences",
        "artifact_key": artifact_key(repository, A10G),
        "sources": f"sources/{sources_key(repository)}.tar.gz",
        "inputs": [],
        "remove": ["bert/model.onnx"],
    }
    assert sorted(told["files"]) == ["bert/config.pbtxt", "bert/model.onnx"]
    assert json.loads(json.dumps(told)) == told


def test_the_keys_of_a_build_are_those_of_their_own_and_take_one_look_at_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = bert(tmp_path / "sentences", TensorRTPlan("bert"))
    expected = (source_key(repository), artifact_key(repository, A10G), sources_key(repository))
    looks: list[Any] = []

    def counted(files: Any, **named: Any) -> Any:
        looks.append(files)
        return file_digests(files, **named)

    monkeypatch.setattr("cdk_triton.artifacts.keys.file_digests", counted)

    keys, files = keys_and_files(repository, A10G)
    told = planned_build(repository, A10G, keys, files).ensemble

    assert keys == expected
    assert told["files"] == {file.path: sha256 for file, sha256 in files.items()}
    assert len(looks) == 1


def test_the_build_program_reads_what_is_written(tmp_path: Path) -> None:
    recipes = TensorRTPlan("bert", onnx=ON_S3), Makes("a", ("bert/a",))
    repository = bert(tmp_path / "sentences", *recipes, network=None)
    plan = {"schema": 1, "build": "cdk-triton-0123456789abcdef", "deadline_seconds": 6900}
    told = {**plan, "platform": platform_document(A10G), "ensembles": [document(repository)]}
    (tmp_path / "plan.json").write_text(json.dumps(told))
    read = read_plan(tmp_path / "plan.json")
    (ensemble,) = read.ensembles
    assert ensemble.artifact_key == artifact_key(repository, A10G)
    assert [each.to for each in ensemble.inputs] == list(ensemble.remove) == ["bert/model.onnx"]
    assert sorted(step["name"] for step in ensemble.steps) == ["a", "the TensorRT plan of bert"]


def test_the_files_are_those_of_the_archive_of_the_sources(tmp_path: Path) -> None:
    ensemble = {"pipeline/config.pbtxt": b'platform: "ensemble"', "bert/config.pbtxt": CONFIG.encode()}
    repository = written(tmp_path / "r", {**ensemble, "bert/model.onnx": onnx_bytes()}, [TensorRTPlan("bert")])
    target = write_archive(repository, tmp_path / "sources.tar.gz").path
    with tarfile.open(target) as archive:
        packed = sorted(member.name for member in archive if member.isfile())
    assert packed == sorted(document(repository)["files"])
    assert packed == ["bert/config.pbtxt", "bert/model.onnx", "pipeline/1/.keep", "pipeline/config.pbtxt"]


def test_a_file_in_s3_is_an_input_of_its_own(tmp_path: Path) -> None:
    repository = bert(tmp_path, TensorRTPlan("bert", onnx=ON_S3), network=None)
    told = document(repository)
    assert told["inputs"] == [{"path": f"inputs/{SHA256}", "sha256": SHA256, "to": "bert/model.onnx"}]
    assert told["remove"] == ["bert/model.onnx"]
    assert inputs(repository) == (
        BuildInput(None, "asset.tar.gz", told["sources"]),
        BuildInput("models", ON_S3.key, f"inputs/{SHA256}", sha256=SHA256),
    )


def test_one_file_in_s3_for_two_plans_is_copied_once(tmp_path: Path) -> None:
    two = (TensorRTPlan("bert", onnx=ON_S3), TensorRTPlan("bert", onnx=ON_S3, version=2))
    repository = bert(tmp_path, *two, network=None)
    assert len(inputs(repository)) == 2
    assert len(document(repository)["inputs"]) == 1


def test_external_data_is_left_out_with_its_network(messages: Messages, tmp_path: Path) -> None:
    model = onnx.load_model_from_string(onnx_bytes(NETWORK))
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones(300, np.float32), "w"))
    path = tmp_path / "r" / "bert" / "model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save_model(model, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    repository = written(tmp_path / "r", {"bert/config.pbtxt": CONFIG.encode()}, [TensorRTPlan("bert")])
    assert document(repository)["remove"] == ["bert/model.onnx", "bert/model.onnx.data"]
    path.with_name("model.onnx.data").unlink()
    repository = ModelRepository.from_directory(tmp_path / "r", recipes=[TensorRTPlan("bert")])
    with messages.raises(ConfigurationError):
        document(repository)


def test_recipes_run_after_those_that_make_what_they_read(tmp_path: Path) -> None:
    export = Makes("z export", ("bert/exported.onnx",), ("bert/model.onnx",))
    plan = TensorRTPlan("bert", onnx="exported.onnx")
    for recipes in ((plan, export), (export, plan)):
        told = document(bert(tmp_path, *recipes))
        assert [step["name"] for step in told["steps"]] == ["z export", "the TensorRT plan of bert"]
        assert told["remove"] == ["bert/exported.onnx", "bert/model.onnx"]


@settings(max_examples=60)
@given(st.integers(1, 6), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.randoms(use_true_random=False))
def test_any_order_is_one_that_works(count: int, pairs: set[tuple[int, int]], order: random.Random) -> None:
    recipes = [
        Makes(str(n), (f"m/{n}",), tuple(f"m/{first}" for first, after in sorted(pairs) if first < after == n))
        for n in range(count)
    ]
    order.shuffle(recipes)
    done: set[str] = set()
    for recipe in in_order(recipes):
        assert done >= set(recipe.consumes)
        done |= set(recipe.produces)
    assert len(done) == count


def test_the_order_of_the_recipes_is_in_nothing(tmp_path: Path) -> None:
    recipes = [Makes("a", ("bert/a",)), TensorRTPlan("bert"), Makes("b", ("bert/b",))]
    one, other = (bert(tmp_path, *each) for each in (recipes, reversed(recipes)))
    assert json.dumps(document(one)) == json.dumps(document(other))


def test_recipes_that_wait_for_each_other_are_rejected(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, Makes("a", ("bert/a",), ("bert/b",)), Makes("b", ("bert/b",), ("bert/a",)))


def test_a_file_is_written_once(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, Makes("a", ("bert/x",)), Makes("b", ("bert/x",)))


def test_a_file_that_is_there_is_not_written(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, Makes("a", ("bert/config.pbtxt",)))


def test_a_file_from_s3_takes_nobodys_place(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, Makes("a", s3_files={"bert/model.onnx": ON_S3}))
    other = S3File("models", "other.onnx", SHA256[::-1])
    rejected(messages, tmp_path, Makes("a", s3_files={"bert/x": ON_S3}), Makes("b", s3_files={"bert/x": other}))
    rejected(messages, tmp_path, Makes("a", ("bert/x",)), Makes("b", s3_files={"bert/x": other}))


def test_a_file_that_nobody_has_is_not_read(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, TensorRTPlan("bert", onnx="bert.onnx"))


def test_a_recipe_has_the_last_word_on_its_model(messages: Messages, tmp_path: Path) -> None:
    rejected(messages, tmp_path, Makes("refused"))
    rejected(messages, tmp_path, TensorRTPlan("bart"))


def test_what_cannot_be_built_is_no_recipe(messages: Messages, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Promise:
        produces: tuple[str, ...] = ("bert/1/model.plan",)

    repository = written(tmp_path, {"bert/config.pbtxt": b""})
    repository = ModelRepository.from_directory(tmp_path, recipes=[Promise()])
    with messages.raises(ConfigurationError):
        artifact_key(repository, A10G)


def test_a_promise_that_nobody_keeps_is_rejected(messages: Messages, tmp_path: Path) -> None:
    promise = {"cdk-triton.toml": b'produced = ["bert/1/model.plan"]\n'}
    repository = written(tmp_path, {"bert/config.pbtxt": CONFIG.encode(), **promise})
    with messages.raises(ConfigurationError):
        artifact_key(repository, A10G)
    assert document(bert(tmp_path, TensorRTPlan("bert")))["steps"]
    kept = written(tmp_path / "kept", {"bert/config.pbtxt": CONFIG.encode(), "bert/1/model.plan": b"plan", **promise})
    alone = written(tmp_path / "alone", {"bert/config.pbtxt": CONFIG.encode(), "bert/1/model.plan": b"plan"})
    assert artifact_key(kept, A10G) == artifact_key(alone, A10G)


def test_a_platform_is_what_the_tables_know(tmp_path: Path) -> None:
    assert platform_document(A10G) == {
        "image": "sagemaker-tritonserver:25.09-py3",
        "release": "25.09",
        "gpu": "NVIDIA A10G",
        "compute_capability": "8.6",
        "tensorrt": "10.13.3.9",
        "dali": "1.51.2",
        "python": "3.12",
    }
    own = ServingPlatform(image=f"registry/triton@sha256:{SHA256}", instance_type="ml.g6.xlarge")
    assert platform_document(own) == {
        "image": f"sha256:{SHA256}",
        "release": None,
        "gpu": "NVIDIA L4",
        "compute_capability": "8.9",
        "tensorrt": None,
        "dali": None,
        "python": None,
    }


@pytest.mark.parametrize("release", ["26.11", "27.01"])
def test_a_build_expects_nothing_that_nobody_has_read(release: str) -> None:
    image = f"example.com/triton@sha256:{SHA256}"
    newest = ServingPlatform(release=release, image=image, instance_type="ml.g6.xlarge")
    document = platform_document(newest)
    assert (document["tensorrt"], document["dali"], document["python"]) == (None, None, None)


def test_a_job_takes_as_long_as_its_start_and_all_of_its_steps(tmp_path: Path) -> None:
    one = minutes(bert(tmp_path, Makes("a")))
    assert job_minutes([]) == 0
    assert 3 < one < job_minutes([one]) < job_minutes([one, one]) < 2 * job_minutes([one])
