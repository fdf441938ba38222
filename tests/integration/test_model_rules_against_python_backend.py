"""A tritonserver with its real Python backend as judge of rules whose faults a null backend does not meet."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from cdk_triton.triton import Finding, serve_arguments
from cdk_triton_local import process
from cdk_triton_local.triton.server_files import ServerFiles, arrange_server_files
from judging.composed import IN, MODEL_PY, OUT, Files, ensemble, python, step, write
from judging.server import named_memory

ZEROS = 'inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }'


def errors_of(root: Path, files: Files) -> list[Finding]:
    return [finding for finding in write(root, files).check() if finding.severity == "error"]


@pytest.fixture(scope="session")
def python_server(tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A server with a Python backend that works."""
    return arrange_server_files(tmp_path_factory.mktemp("python"))


def how_it_ends(server: ServerFiles, repository: Path) -> tuple[int, str]:
    """The exit status and the output, without paths, of a server that cannot load `model`: it does not stay."""
    variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "model", "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
    arguments = [
        argument.replace("/opt/ml/model", str(repository))
        for argument in serve_arguments(variables, ["model"])
        if not argument.startswith("--allow-sagemaker")
    ]
    option, memory = named_memory()
    libraries = {"LD_LIBRARY_PATH": str(server.libraries)} if server.libraries else {}
    child = process.start(
        [server.program, *arguments, option, f"--backend-directory={server.backends}", "--exit-timeout-secs=1"],
        environment={**libraries, "PATH": f"{server.python}:/usr/bin:/bin"},
        output=subprocess.PIPE,
        leftovers=memory,
    )
    assert child.stdout is not None
    watchdog = threading.Timer(60, child.kill)
    watchdog.start()
    try:
        said = child.stdout.read().decode(errors="replace")
        return child.wait(), re.sub(rf"{re.escape(str(repository))}/*(::)?", "", said)
    finally:
        watchdog.cancel()
        child.stdout.close()


OF_THE_PYTHON_BACKEND: Mapping[str, tuple[str, Files, str]] = {
    "a large warm-up": (
        "CT225",
        python(f'{IN}{OUT}model_warmup {{ name: "first" batch_size: 4 {ZEROS} }}'),
        "failed to run warmup sample 'first': batch size 4",
    ),
    "a plain text for a warm-up": (
        "CT249",
        {
            **python(
                f'input {{ name: "IN" data_type: TYPE_STRING dims: 1 }} {OUT} model_warmup {{ name: "w" batch_size: 1 '
                'inputs { key: "IN" value { data_type: TYPE_STRING dims: 1 input_data_file: "f" } } }'
            ),
            "model/warmup/f": "hello",
        },
        "incomplete string data for inference input 'IN', expecting string of length 1819043176 but only 1 bytes",
    ),
    "a parameter": (
        "CT228",
        python('parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "1" } }'),
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: 1",
    ),
    "inputs of a model without a configuration": (
        "CT332",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "bare"), name="model"), "bare/1/model.py": MODEL_PY},
        "in ensemble model, ensemble tensor IN is mapping to non-existing input IN in model bare",
    ),
}


@pytest.mark.parametrize(("code", "files", "words"), OF_THE_PYTHON_BACKEND.values(), ids=OF_THE_PYTHON_BACKEND)
def test_the_python_backend_rejects_what_the_null_backend_does_not(
    tmp_path: Path, python_server: ServerFiles, code: str, files: Files, words: str
) -> None:
    findings = errors_of(tmp_path / "repository", files)
    assert [words in finding.message for finding in findings if finding.code == code] == [True]
    for _ in range(10):  # Triton 24.10 sometimes ends before its log is written
        status, said = how_it_ends(python_server, tmp_path / "repository")
        assert status != 0
        if words in said:
            return
    pytest.fail(said)


def test_a_batch_output_without_target_ends_the_server(tmp_path: Path, python_server: ServerFiles) -> None:
    batch_output = 'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN" }'
    files = python(IN + OUT + batch_output)
    (finding,) = errors_of(tmp_path / "repository", files)
    assert finding.code == "CT215"
    assert "crash (SIGSEGV)" in finding.message
    status, _ = how_it_ends(python_server, tmp_path / "repository")
    assert status == 128 + 11
