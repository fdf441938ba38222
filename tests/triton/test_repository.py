"""Reading a model repository from a directory."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write


def test_models_files_and_sizes(write: Write, sound: Mapping[str, str]) -> None:
    repository = write({"README.md": "hello"})
    assert repository.name == "repository"
    assert [str(file.path) for file in repository.files] == [
        "README.md",
        "bert/1/model.onnx",
        "bert/config.pbtxt",
        "ensemble/1/.gitkeep",
        "ensemble/config.pbtxt",
        "preprocess/1/model.py",
        "preprocess/config.pbtxt",
    ]
    assert [model.name for model in repository.models] == ["bert", "ensemble", "preprocess"]
    bert = repository.model("bert")
    assert bert is not None
    assert (bert.versions, bert.backend_name, bert.is_ensemble) == ((1,), "onnxruntime", False)
    assert bert.size == len(onnx.parser.parse_model(sound["bert/1/model.onnx"]).SerializeToString()) + len(
        sound["bert/config.pbtxt"]
    )
    assert repository.size == len("hello") + sum(model.size for model in repository.models)
    assert [model.name for model in repository.ensembles] == ["ensemble"]
    assert repository.model("nobody") is None
    assert repository.check() == repository.check("multi") == ()


def test_the_same_directory_reads_equal(write: Write) -> None:
    repository = write()
    assert ModelRepository.from_directory(repository.root) == repository


def test_litter_is_left_out(write: Write, sound: Mapping[str, str]) -> None:
    litter = (
        ".DS_Store",
        ".git/HEAD",
        "bert/._config.pbtxt",
        "bert/.config.pbtxt.swp",
        "bert/1/Thumbs.db",
        "preprocess/1/__pycache__/model.cpython-311.pyc",
        "preprocess/.ipynb_checkpoints/model.py",
        "__pycache__/x.py",
    )
    assert [str(file.path) for file in write(dict.fromkeys(litter, "x")).files] == sorted(sound)


def test_empty_version_directories_are_versions_and_empty_directories_are_no_models(write: Write) -> None:
    repository = write({"ensemble/1/.gitkeep": None, "ensemble/1/": "", "nothing/1/": ""})
    ensemble = repository.model("ensemble")
    assert ensemble is not None
    assert ensemble.versions == (1,)
    assert repository.model("nothing") is None


def test_versions_are_decimal_numbers(write: Write) -> None:
    repository = write({f"bert/{name}/x": "" for name in ("0", "2", "10", "01", "2b", "-3", "assets", "configs")})
    bert = repository.model("bert")
    assert bert is not None
    assert bert.versions == (0, 1, 2, 10)


@pytest.mark.parametrize(
    ("policy", "versions"),
    [
        pytest.param("", (10,), id="the latest one by default"),
        pytest.param("version_policy { }", (-3, 1, 2, 10), id="a policy without a choice is all"),
        pytest.param("version_policy { all { } }", (-3, 1, 2, 10), id="all"),
        pytest.param("version_policy { latest { num_versions: 2 } }", (2, 10), id="the latest two"),
        pytest.param("version_policy { latest { } }", (), id="the latest none"),
        pytest.param("version_policy { specific { versions: [ 7, 1 ] } }", (1,), id="those that are there"),
    ],
)
def test_the_version_policy_picks_of_what_the_server_takes_for_versions(
    write: Write, policy: str, versions: tuple[int, ...]
) -> None:
    files = {f"bert/{name}/x": "" for name in ("10", "2", "2_old", "-3", "03", "assets", "warmup")}
    bert = write({**files, "bert/config.pbtxt": ('name: "bert"', policy)}).model("bert")
    assert bert is not None
    assert bert.served_versions == versions


def test_steps_alone_make_no_ensemble(write: Write) -> None:
    bert = write({"bert/config.pbtxt": "ensemble_scheduling { step { } }"}).model("bert")
    assert bert is not None
    assert not bert.is_ensemble


@pytest.mark.parametrize(
    ("files", "backend"),
    [
        pytest.param({"m/config.pbtxt": 'backend: "python"'}, "python", id="named"),
        pytest.param({"m/config.pbtxt": 'platform: "tensorrt_plan"'}, "tensorrt", id="by platform"),
        pytest.param({"m/config.pbtxt": 'default_model_filename: "model.pt"'}, "pytorch", id="by file name"),
        pytest.param({"m/1/model.onnx": ""}, "onnxruntime", id="by file"),
        pytest.param({"m/1/model.onnx/weights": ""}, "onnxruntime", id="by directory"),
        pytest.param({"m/1/model.dali": ""}, None, id="not told by the file"),
        pytest.param({"m/config.pbtxt": 'platform: "ensemble"'}, None, id="an ensemble has none"),
    ],
)
def test_backend_is_what_the_server_would_complete(write: Write, files: dict[str, str], backend: str | None) -> None:
    assert write(files, base={}).models[0].backend_name == backend


def test_a_repository_can_be_one_model(write: Write) -> None:
    repository = write({"config.pbtxt": 'backend: "python"', "1/model.py": ""}, base={})
    (model,) = repository.models
    assert (model.name, str(model.directory), str(model.config_path)) == ("repository", ".", "config.pbtxt")
    assert (model.versions, model.backend_name) == ((1,), "python")
    assert repository.model_directories == ("1", "config.pbtxt")


def test_a_configuration_that_cannot_be_read_is_kept_with_its_error(messages: Messages, write: Write) -> None:
    bert = write({"bert/config.pbtxt": b"\xff"}).model("bert")
    assert bert is not None
    assert bert.config is None
    messages.record("ModelConfigError", str(bert.config_error))


class TestEntryModel:
    def test_the_ensemble_is_the_entry(self, write: Write) -> None:
        repository = write()
        assert repository.entry_model() is repository.entry_model("multi") is repository.model("ensemble")

    def test_a_single_model_is_the_entry(self, write: Write) -> None:
        repository = write({"m/config.pbtxt": 'backend: "python"', "m/1/model.py": ""}, base={})
        assert repository.entry_model() is repository.entry_model("multi") is repository.models[0]

    def test_the_only_directory_with_a_configuration_or_a_version_is_the_entry_of_a_single_model_endpoint(
        self, write: Write
    ) -> None:
        others = {"scripts/build.sh": "make", "code/inference.py": ""}
        repository = write({"m/1/model.py": "", **others}, base={})
        assert repository.entry_model() is repository.model("m")
        assert repository.entry_model("multi") is None  # the loader takes whichever is listed last

    def test_the_outer_ensemble_is_the_entry_of_a_single_model_endpoint_only(self, write: Write) -> None:
        outer = 'platform: "ensemble" ensemble_scheduling { step { model_name: "ensemble" model_version: -1 } }'
        repository = write({"outer/config.pbtxt": outer, "outer/1/.gitkeep": ""})
        assert repository.entry_model() is repository.model("outer")
        assert repository.entry_model("multi") is None  # the loader takes whichever is listed last

    def test_an_ensemble_that_runs_itself_is_still_the_entry(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": ('model_name: "bert"', 'model_name: "ensemble"')})
        assert repository.entry_model() is repository.model("ensemble")

    def test_several_plain_models_leave_it_open(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None})
        assert repository.entry_model() is repository.entry_model("multi") is None


class TestLinks:
    def test_a_link_within_the_repository_is_followed(self, write: Write) -> None:
        repository = write()
        (repository.root / "bert" / "2").symlink_to("1")
        (repository.root / "copy").symlink_to("bert", target_is_directory=True)
        again = ModelRepository.from_directory(repository.root)
        copy = again.model("copy")
        assert copy is not None
        assert copy.versions == (1, 2)
        assert PurePosixPath("copy/2/model.onnx") in [file.path for file in again.files]

    def test_the_repository_itself_may_be_a_link(self, write: Write, tmp_path: Path) -> None:
        write()
        (tmp_path / "link").symlink_to("repository", target_is_directory=True)
        assert ModelRepository.from_directory(tmp_path / "link").name == "repository"

    def test_a_link_out_of_the_repository_is_rejected(self, messages: Messages, write: Write, tmp_path: Path) -> None:
        repository = write()
        (tmp_path / "secret").write_text("x")
        (repository.root / "bert" / "1" / "key").symlink_to(tmp_path / "secret")
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(repository.root)

    @pytest.mark.parametrize(
        "target",
        [
            pytest.param("nowhere", id="nowhere"),
            pytest.param("link", id="itself"),
            pytest.param("..", id="above"),
        ],
    )
    def test_a_link_that_leads_nowhere_or_round_is_rejected(
        self, messages: Messages, write: Write, target: str
    ) -> None:
        repository = write()
        (repository.root / "bert" / "1" / "link").symlink_to(target)
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(repository.root)


class TestBadDirectories:
    def test_missing(self, messages: Messages, tmp_path: Path) -> None:
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(tmp_path / "nowhere")

    @pytest.mark.parametrize("path", ["", "${Token[AWS.Region.10]}"], ids=["empty", "a token"])
    def test_no_directory(self, messages: Messages, path: str) -> None:
        with messages.raises(ConfigurationError):
            ModelRepository.from_directory(path)

    def test_a_file(self, messages: Messages, tmp_path: Path) -> None:
        (tmp_path / "model.tar.gz").write_text("x")
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(tmp_path / "model.tar.gz")

    def test_empty(self, messages: Messages, tmp_path: Path) -> None:
        (tmp_path / "bert" / "1").mkdir(parents=True)
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(str(tmp_path))

    def test_neither_file_nor_directory(
        self, messages: Messages, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        repository = write()
        monkeypatch.chdir(repository.root)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("bert/socket")
            with messages.raises(RepositoryError):
                ModelRepository.from_directory(repository.root)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_unreadable(self, write: Write) -> None:
        repository = write()
        (repository.root / "bert").chmod(0)
        with pytest.raises(RepositoryError, match="Permission denied"):
            ModelRepository.from_directory(repository.root)

    @pytest.mark.parametrize("name", [b"caf\xe9", "model\u00a0.py".encode()], ids=["not UTF-8", "not visible"])
    def test_a_name_that_cannot_be_printed(self, messages: Messages, write: Write, name: bytes) -> None:
        repository = write()
        (repository.root / "bert" / os.fsdecode(name)).write_text("x")
        with messages.raises(RepositoryError):
            ModelRepository.from_directory(repository.root)

    def test_a_very_deep_directory(self, write: Write, sound: Mapping[str, str]) -> None:
        repository = write()
        deep = repository.root / "bert"
        for _ in range(600):
            deep = deep / "d"
        deep.mkdir(parents=True)
        (deep / "x").write_text("")
        assert len(ModelRepository.from_directory(repository.root).files) == len(sound) + 1


NAMES = st.sampled_from(["a", "ensemble", "1", "2", "01", "config.pbtxt", "model.py", "model.onnx", "2x", " "])
CONTENTS = st.sampled_from(
    [b"", b"\xff", b"name:", b'name: "a"', b'backend: "python"', b'platform: "ensemble"', b'# platform: "ensemble"']
    + [
        b'platform: "ensemble" ensemble_scheduling { step { model_name: "%b" model_version: %d } }' % (name, version)
        for name in (b"a", b"ensemble", b"1")
        for version in (-1, 0, 2)
    ]
)


@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), CONTENTS, min_size=1, max_size=8))
def test_any_repository_is_read_and_checked(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("generated")
    for name, content in files.items():
        path = root / name
        if path.exists() or any((root / parent).is_file() for parent in PurePosixPath(name).parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    repository = ModelRepository.from_directory(root)
    for mode in ("single", "multi"):
        codes = {finding.code for finding in repository.check(mode)}
        assert "CT001" not in codes  # no rule crashes
        if repository.entry_model(mode) is None:
            assert codes & {"CT402", "CT403", "CT501", "CT502", "CT503", "CT504", "CT507"}


@dataclass(frozen=True)
class Build:
    produces: tuple[str, ...]


def test_what_a_recipe_produces_is_as_good_as_there(tmp_path: Path) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.pbtxt").write_text("max_batch_size: 8")
    recipe = Build(produces=("bert/2/model.plan", "other/1/model.plan"))
    repository = ModelRepository.from_directory(tmp_path, recipes=[recipe])
    (model,) = repository.models
    assert model.served_versions == (2,)
    assert model.backend_name == "tensorrt"
    assert model.produced == (PurePosixPath("bert/2/model.plan"),)
    assert [str(file.path) for file in repository.files] == ["bert/config.pbtxt"]
    assert repository.recipes == (recipe,)


@dataclass(frozen=True)
class _Recipe:
    produces: tuple[str, ...] = ("bert/1/model.plan",)


@pytest.mark.parametrize(
    "recipes",
    [
        pytest.param("encoder", id="a text"),
        pytest.param(["encoder"], id="a list of texts"),
        pytest.param(_Recipe(), id="a recipe"),
        pytest.param([_Recipe], id="a class"),
        pytest.param(None, id="None"),
    ],
)
def test_recipes_have_to_be_a_list_of_recipes(messages: Messages, write: Write, recipes: object) -> None:
    root = write({}).root
    with messages.raises(ConfigurationError):
        ModelRepository.from_directory(root, recipes=recipes)  # type: ignore[arg-type]


def test_a_directory_is_read_by_from_directory(messages: Messages) -> None:
    with messages.raises(ConfigurationError) as caught:
        ModelRepository("models")  # type: ignore[arg-type]
    assert "from_directory('models')" in str(caught.value)
