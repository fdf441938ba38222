"""The real tritonserver as judge of the rules about loading: CT401 to CT406, CT501 to CT510, CT601 to CT653.

What it cannot judge here: releases other than 24.10 (CT406, CT508, CT509, CT601's border, CT602 to CT605), GPUs and
their plans (CT602 to CT604, CT611, CT612), shared memory (CT621: a null backend takes none), what is SageMaker's own
(CT620, CT650, CT651), and a config.pbtxt at the top of an archive (CT506), which the loader knows only below the
literal path /opt/ml/models.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cdk_triton.artifacts import write_archive
from cdk_triton.errors import ServeError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository, serve_arguments
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import ServerFiles
from judging.server import Judge

PIPELINE = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=1, num_threads=1, device_id=0)
def pipeline():
    return fn.external_source(name="IN", dtype=types.FLOAT, ndim=1)
"""
IO = """
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""
PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""


def python_model(name: str, text: str = "") -> dict[str, str]:
    return {f"{name}/config.pbtxt": f'backend: "python" {IO} {text}', f"{name}/1/model.py": PYTHON_MODEL}


def ensemble(name: str, *steps: str) -> dict[str, str]:
    """Steps one after the other."""
    tensors = ["IN", *steps[:-1], "OUT"]
    each = "".join(
        f'step {{ model_name: "{step}" model_version: -1 input_map {{ key: "IN" value: "{tensors[n]}" }} '
        f'output_map {{ key: "OUT" value: "{tensors[n + 1]}" }} }}'
        for n, step in enumerate(steps)
    )
    text = f'platform: "ensemble" {IO} ensemble_scheduling {{ {each} }}'
    return {f"{name}/config.pbtxt": text, f"{name}/1/.gitkeep": ""}


def write(root: Path, files: Mapping[str, str]) -> ModelRepository:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return ModelRepository.from_directory(root)


def errors(repository: ModelRepository, mode: str = "single") -> dict[str, str]:
    findings = repository.check("multi" if mode == "multi" else "single")
    return {finding.code: finding.message for finding in findings if finding.severity == "error"}


class TestStart:
    """Facts about the start script: `serve_arguments` is that script as a function."""

    @pytest.mark.parametrize(
        ("files", "default_model", "code"),
        [
            pytest.param({"config.pbtxt": "", "1/model.py": PYTHON_MODEL}, None, "CT401", id="config.pbtxt at the top"),
            pytest.param({"README.md": ""}, None, "CT402", id="no directory"),
            pytest.param({**python_model("a"), **python_model("b")}, None, "CT403", id="several directories, no name"),
            pytest.param(python_model("a"), "b", "CT404", id="a name without its directory"),
        ],
    )
    def test_the_script_ends_in_the_words_quoted(
        self, tmp_path: Path, files: Mapping[str, str], default_model: str | None, code: str
    ) -> None:
        repository = write(tmp_path / "repository", files)
        variables = {} if default_model is None else {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": default_model}
        with pytest.raises(ServeError) as caught:
            serve_arguments(variables, repository.model_directories)
        said = " ".join(str(caught.value).removeprefix("ERROR: ").split()).partition(". Either")[0]
        (finding,) = (f for f in repository.check(default_model=default_model) if f.code == code)
        assert said in finding.message

    def test_one_directory_without_a_name_is_used(self, tmp_path: Path) -> None:
        repository = write(tmp_path / "repository", python_model("a"))
        assert errors(repository) == {}
        assert "--load-model=a" in serve_arguments({}, repository.model_directories)

    def test_a_name_is_split(self, tmp_path: Path) -> None:
        repository = write(tmp_path / "repository", python_model("two words"))
        assert set(errors(repository)) == {"CT405"}
        arguments = serve_arguments({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "two words"}, repository.model_directories)
        assert arguments[-2:] == ["--load-model=two", "words"]

    def test_an_additional_model_that_is_missing(self, tmp_path: Path, judge: Judge) -> None:
        repository = write(tmp_path / "repository", python_model("a"))
        verdict = judge(repository.root, ["a", "nowhere"])
        (finding,) = repository.check(additional_models=["nowhere"])
        words = "failed to poll model 'nowhere': model not found in any model repository"
        assert not verdict.loaded
        assert words in verdict.said
        assert words in finding.message

    def test_a_model_that_the_repository_does_not_need_does_no_harm(self, tmp_path: Path, judge: Judge) -> None:
        repository = write(tmp_path / "repository", {**python_model("a"), "b/config.pbtxt": "oops"})
        assert judge(repository.root, ["a"]).loaded
        assert {f.code for f in repository.check(default_model="a")} == {"CT304"}


@pytest.fixture
def loader(server_files: ServerFiles, tmp_path: Path) -> Iterator[TritonServer]:
    """A server as in a multi-model endpoint."""
    (tmp_path / "empty").mkdir()
    settings = ServerSettings(server_files, loopback_library(), free_port)
    variables = {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_PING_MODE": "x"}
    server = TritonServer(settings, variables, tmp_path / "empty", tmp_path / "log")
    try:
        yield server
    finally:
        server.kill()


Load = Callable[[str, Path], tuple[int, str, list[str]]]


@pytest.fixture
def load(loader: TritonServer) -> Load:
    """Load an archive that was unpacked into a directory: the status, the answer, and the ensembles that were seen."""

    def ask(name: str, directory: Path) -> tuple[int, str, list[str]]:
        before = len(loader.log_file.read_text()) if loader.log_file.exists() else 0
        body = json.dumps({"model_name": name, "url": str(directory)}).encode()
        headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": f"{name}.tar.gz"}
        reply = loader.request("POST", "/models", body, headers, timeout=60)
        seen = re.findall(
            rf"detected an Ensemble config at path: {directory}/(\w+)/config", loader.log_file.read_text()[before:]
        )
        return reply.status, reply.body.decode(), sorted(set(seen))

    return ask


ONE, TWO = python_model("one"), python_model("two")


class TestArchives:
    """One test per row of what the loader makes of an archive's layout."""

    @pytest.mark.parametrize(
        ("files", "codes"),
        [
            pytest.param(ONE, set(), id="one directory"),
            pytest.param({**ONE, **TWO, **ensemble("both", "one", "two")}, set(), id="one ensemble"),
            pytest.param(
                {**ONE, **ensemble("inner", "one"), **ensemble("outer", "inner")}, {"CT501"}, id="a nested ensemble"
            ),
            pytest.param(
                {**ONE, **ensemble("first", "one"), **ensemble("second", "one")}, {"CT501"}, id="two ensembles"
            ),
            pytest.param({**ONE, **TWO}, {"CT502"}, id="no ensemble"),
            pytest.param({**python_model("one", '# platform: "ensemble"'), **TWO}, {"CT504"}, id="a comment"),
        ],
    )
    def test_it_serves_something_without_an_error(
        self, tmp_path: Path, load: Load, files: Mapping[str, str], codes: set[str]
    ) -> None:
        repository = write(tmp_path / "archive" / "model", files)
        status, said, seen = load("archive", repository.root)
        assert (status, said) == (200, "")
        assert seen == [model.name for model in repository.models if model.is_literally_ensemble]
        assert set(errors(repository, "multi")) == codes

    def test_nothing_to_load(self, tmp_path: Path, load: Load) -> None:
        repository = write(tmp_path / "archive" / "model", {"README.md": ""})
        status, said, _ = load("archive", repository.root)
        words = "at least one version must be available under the version policy of model"
        assert status == 400
        assert words in said
        assert words in errors(repository, "multi")["CT507"]

    def test_many_directories(self, tmp_path: Path, load: Load, loader: TritonServer) -> None:
        names = ["a", "b", "c", "d", "e"]
        files = {path: text for name in names[:-1] for path, text in python_model(name).items()}
        files |= {"e/config.pbtxt": f'backend: "dali" {IO}', "e/1/dali.py": PIPELINE}
        repository = write(tmp_path / "archive" / "model", {**files, **ensemble("all", *names)})
        assert load("archive", repository.root)[0] == 200
        (finding,) = repository.check("multi")
        words = "smaller ensembles are recommended for better memory management"
        assert finding.code == "CT505"
        assert words in finding.message
        assert words in loader.log_file.read_text()

    def test_a_link_to_a_directory_is_overlooked_and_never_packed(self, tmp_path: Path, load: Load) -> None:
        repository = write(tmp_path / "archive" / "model", {**ONE, **TWO, **ensemble("both", "one", "two")})
        (repository.root / "both").rename(repository.root / "one" / "shared")
        (repository.root / "both").symlink_to(repository.root / "one" / "shared")
        assert load("linked", repository.root)[2] == []

        linked = ModelRepository.from_directory(repository.root)
        assert errors(linked, "multi") == {}
        write_archive(linked, tmp_path / "model.tar.gz")
        unpacked = tmp_path / "unpacked" / "model"
        unpacked.mkdir(parents=True)
        subprocess.run(["tar", "--extract", "--gzip", "--file", tmp_path / "model.tar.gz"], cwd=unpacked, check=True)
        assert load("unpacked", unpacked) == (200, "", ["both"])

    @pytest.mark.parametrize(("name", "status"), [("room", 400), ("ROOM", 507)])
    def test_a_name_that_looks_like_a_lack_of_memory(self, tmp_path: Path, load: Load, name: str, status: int) -> None:
        files = {**python_model(name, "max_batch_size: -1"), **ensemble("ensemble", name)}
        repository = write(tmp_path / "archive" / "model", files)
        assert load("archive", repository.root)[0] == status
        found = {finding.code for finding in repository.check("multi")}
        assert ("CT510" in found) == (status == 507)

    def test_a_decoupled_model_is_rejected_at_every_invocation(
        self, tmp_path: Path, load: Load, loader: TritonServer
    ) -> None:
        model = python_model("one", "model_transaction_policy { decoupled: true }")
        repository = write(tmp_path / "archive" / "model", model)
        assert load("archive", repository.root)[0] == 200
        tensor = {"name": "IN", "datatype": "FP32", "shape": [4], "data": [0, 0, 0, 0]}
        reply = loader.request(
            "POST",
            "/models/archive/invoke",
            json.dumps({"inputs": [tensor]}).encode(),
            {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": "archive.tar.gz"},
            timeout=60,
        )
        assert reply.status == 400
        assert json.loads(reply.body)["error"] in errors(repository, "multi")["CT652"]


def test_a_backend_that_is_not_there(tmp_path: Path, server_files: ServerFiles) -> None:
    backends = tmp_path / "backends"
    backends.mkdir()
    for backend in server_files.backends.iterdir():
        if backend.name != "tensorflow":
            (backends / backend.name).symlink_to(backend)
    files = {"model/config.pbtxt": f'platform: "tensorflow_graphdef" {IO}', "model/1/model.graphdef": ""}
    repository = write(tmp_path / "repository", files)
    verdict = Judge(replace(server_files, backends=backends))(repository.root, ["model"])
    (finding,) = repository.check(platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"))
    assert not verdict.loaded
    said = next(line for line in verdict.said.splitlines() if "unable to find backend library" in line)
    words = said[said.index("unable to find") :].rstrip(' |"')
    assert words.rstrip(".") in finding.message
    assert finding.code == "CT601"


@pytest.mark.parametrize("kind", ["KIND_AUTO", "KIND_GPU"])
def test_a_gpu_that_is_not_there(tmp_path: Path, judge: Judge, kind: str) -> None:
    """This machine has none at all, which the server treats like a GPU beyond the last one."""
    repository = write(tmp_path / "repository", python_model("model", f"instance_group {{ kind: {kind} gpus: 7 }}"))
    verdict = judge(repository.root, ["model"])
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    (finding,) = repository.check(platform=platform)
    assert not verdict.loaded
    assert finding.code == "CT610"
    # The server lists the GPUs that it has; the finding does not know which these would be.
    quoted = finding.message[finding.message.index("instance group model_0") :]
    assert quoted.partition(" … ")[0] in verdict.said
