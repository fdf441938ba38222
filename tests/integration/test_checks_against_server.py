"""The real tritonserver as judge of the rules: it refuses what they call an error, in the words that they quote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from cdk_triton.triton import ModelRepository
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import ServerFiles

MODEL = """
backend: "null"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""

ENSEMBLE = """
platform: "ensemble"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "model" model_version: -1
    input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
  }
}
"""

SOUND = {
    "ensemble/config.pbtxt": ENSEMBLE,
    "ensemble/1/.gitkeep": "",
    "model/config.pbtxt": MODEL,
    "model/1/weights": "",
}

Change = Mapping[str, str | bytes | None]


def write(root: Path, change: Change, base: Mapping[str, str] = SOUND) -> ModelRepository:
    for name, content in {**base, **change}.items():
        path = root / name
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ModelRepository.from_directory(root)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        pytest.param(
            {"model/config.pbtxt": MODEL + "max_batchsize: 8"},
            "CT101",
            ["failed to read text proto from model/config.pbtxt"],
            id="unknown field",
        ),
        *(
            pytest.param({"model/config.pbtxt": MODEL + text}, "CT101", ["failed to read text proto"], id=name)
            for name, text in {
                "no-break space": "max_batch_size:\u00a00",
                "byte order mark": "\ufeff",
                "plus": "max_batch_size: +0",
                "underscore": "max_batch_size: 0_0",
                "escape": 'name: "mo\\del"',
                "zero": "# \0",
                "truncated": "input {",
                "comma": 'metric_tags [ { key: "a" value: "b" }, ]',
            }.items()
        ),
        pytest.param(
            {"model/config.pbtxt": None, "model/config.pbtxt/x": ""},
            "CT101",
            ["basic_string::_M_replace_aux"],
            id="config.pbtxt is a directory",
        ),
        pytest.param(
            {"model/config.pbtxt": MODEL + 'name: "other"'},
            "CT104",
            ["unexpected directory name 'model' for model 'other', directory name must equal model name"],
            id="another name",
        ),
        pytest.param(
            {"model/config.pbtxt": "max_batch_size: 0"},
            "CT105",
            ["Could not determine backend for model 'model' with no backend in model configuration"],
            id="no backend",
        ),
        pytest.param(
            {"model/1/weights": None},
            "CT110",
            ["at least one version must be available under the version policy of model 'model'"],
            id="no version",
        ),
        pytest.param(
            {"ensemble/1/.gitkeep": None},
            "CT110",
            ["at least one version must be available under the version policy of model 'ensemble'"],
            id="no version of the ensemble",
        ),
        pytest.param(
            {"model/config.pbtxt": MODEL + "version_policy { latest { } }"},
            "CT110",
            ["at least one version must be available under the version policy of model 'model'"],
            id="a policy for none",
        ),
        pytest.param(
            {"model/9223372036854775808/weights": ""}, "CT113", ["std::out_of_range", "stoll"], id="a huge version"
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ENSEMBLE.replace('"model"', '"modell"')},
            "CT301",
            ["ensemble ensemble contains models that are not available or ambiguous: modell"],
            id="a step without a model",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ENSEMBLE.replace('"model"', '"ensemble"'), "model/config.pbtxt": None}
            | {"model/1/weights": None},
            "CT302",
            ["circular dependency between ensembles: ensemble -> ... -> ensemble -> ensemble"],
            id="a circle",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ENSEMBLE.replace("model_version: -1", "")},
            "CT303",
            ["ensemble 'ensemble' depends on 'model' whose required version 0 is not loaded"],
            id="no version in a step",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ENSEMBLE.replace("-1", "1"), "model/2/weights": ""},
            "CT303",
            ["ensemble 'ensemble' depends on 'model' whose required version 1 is not loaded"],
            id="an older version in a step",
        ),
    ],
)
def test_the_server_rejects_what_is_an_error(
    tmp_path: Path,
    refusal: Callable[[ModelRepository], str | None],
    change: Change,
    code: str,
    words: list[str],
) -> None:
    repository = write(tmp_path / "repository", change)
    (finding,) = (finding for finding in repository.check() if finding.severity == "error")
    assert finding.code == code
    said = refusal(repository)
    assert said is not None, "the server loaded it"
    for text in words:
        assert text in said
        assert text in finding.message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="sound"),
        pytest.param({"ensemble/config.pbtxt": ENSEMBLE.replace("-1", "1")}, id="the version that is there"),
        pytest.param(
            {"ensemble/config.pbtxt": ENSEMBLE.replace("model_version: -1", ""), "model/0/weights": ""}
            | {"model/1/weights": None},
            id="version 0",
        ),
        pytest.param({"model/config.pbtxt": MODEL + "version_policy { }", "model/3/weights": ""}, id="an empty policy"),
        pytest.param({"model/config.pbtxt": MODEL + "version_policy { specific { versions: [ 1, 7 ] } }"}, id="CT114"),
        pytest.param({"model/02/weights": "", "model/assets/vocabulary": ""}, id="CT112"),
        pytest.param({"unused/config.pbtxt": "oops"}, id="CT304: what is not loaded does no harm"),
        pytest.param({"ensemble/config.pbtxt": ENSEMBLE.replace('"ensemble"', "'ensemble'")}, id="single quotes"),
        pytest.param(
            {"model/config.pbtxt": MODEL.replace("4", "0x4;") + "# é\fmax_batch_size\v:\f0"}, id="odd and fine"
        ),
    ],
)
def test_the_server_loads_what_is_no_error(
    tmp_path: Path, refusal: Callable[[ModelRepository], str | None], change: Change
) -> None:
    repository = write(tmp_path / "repository", change)
    assert [str(finding) for finding in repository.check() if finding.severity == "error"] == []
    assert refusal(repository) is None


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


def test_the_loader_recognises_an_ensemble_by_its_text(tmp_path: Path, loader: TritonServer) -> None:
    """What it does not recognise it serves all the same, and nobody hears of it."""
    archives = {
        "sound": {},
        "mapped_name": {"ensemble/config.pbtxt": ENSEMBLE + 'name: "any"'},
        "tabs": {"ensemble/config.pbtxt": ENSEMBLE.replace(": ", ":\t", 1)},
        "single_quotes": {"ensemble/config.pbtxt": ENSEMBLE.replace('"ensemble"', "'ensemble'")},
        "space": {"ensemble/config.pbtxt": ENSEMBLE.replace(":", " :", 1)},
        "comment": {"model/config.pbtxt": MODEL + '# not platform: "ensemble"'},
        "no_ensemble": {"ensemble/config.pbtxt": MODEL},
    }
    for name, change in archives.items():
        directory = tmp_path / name / "model"
        repository = write(directory, change)
        body = json.dumps({"model_name": name, "url": str(directory)}).encode()
        headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": f"{name}.tar.gz"}
        assert loader.request("POST", "/models", body, headers, timeout=60).status == 200, name
        found = re.findall(
            rf"detected an Ensemble config at path: {directory}/(\w+)/config", loader.log_file.read_text()
        )
        assert set(found) == {model.name for model in repository.models if model.is_literally_ensemble}, name
        codes = {finding.code for finding in repository.check("multi") if finding.severity == "error"}
        expected = {"single_quotes": "CT503", "space": "CT503", "comment": "CT504", "no_ensemble": "CT502"}.get(name)
        assert (expected in codes) if expected else (codes == set()), name
