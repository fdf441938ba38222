"""Answers: tensors (CT150, CT186, CT193), labels (CT298), no list (CT177), missing models (CT182), a star (CT180)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import arrange_server_files
from judging.composed import IN, OUT, Files, ensemble, python, step, write

TAKE = 'pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()'
MAKE = 'pb_utils.Tensor("OUT", values)'
SOURCE = f"""
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        values = {TAKE}
        return pb_utils.InferenceResponse([{MAKE}])
"""

CLASS = "class TritonPythonModel:\n"
ONE = IN.replace("4", "1") + OUT.replace("4", "1")
MADE = "pb_utils.InferenceResponse([])"

Serve = Callable[[Path, str], TritonServer]


@pytest.fixture(name="serve")
def _serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for a model of a repository, or that of a multi-model endpoint if the model has no name."""
    pytest.importorskip("pytriton")
    (tmp_path / "server").mkdir()
    settings = ServerSettings(arrange_server_files(tmp_path / "server"), loopback_library(), free_port)
    servers: list[TritonServer] = []

    def serve(repository: Path, model: str) -> TritonServer:
        variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model, "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
        if not model:
            variables = {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
        servers.append(TritonServer(settings, variables, repository, tmp_path / "log"))
        return servers[-1]

    yield serve
    for server in servers:
        server.kill()


def model(old: str = "", new: str = "", name: str = "model") -> Files:
    return {**python(name=name), f"{name}/1/model.py": SOURCE.replace(old, new) if old else SOURCE}


def ask(server: TritonServer, timeout: float = 60, **parameters: int) -> tuple[int, Any]:
    tensor = {"name": "IN", "shape": [4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    body = json.dumps({"inputs": [tensor], "outputs": [{"name": "OUT", "parameters": parameters}]}).encode()
    reply = server.request("POST", "/invocations", body, {"Content-Type": "application/json"}, timeout=timeout)
    return reply.status, json.loads(reply.body)


def test_an_input_that_is_not_there_is_an_error(tmp_path: Path, serve: Serve) -> None:
    repository = write(tmp_path / "repository", model('"IN"', '"INN"'))
    (finding,) = repository.check()
    assert finding.code == "CT150"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "AttributeError: 'NoneType' object has no attribute"
    assert words in answer["error"]
    assert words in finding.message


def test_a_list_of_names_finds_no_tensor(tmp_path: Path, serve: Serve) -> None:
    repository = write(tmp_path / "repository", model('"IN"', '["IN"]'))
    (finding,) = repository.check()
    assert finding.code == "CT150"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    assert "AttributeError: 'NoneType' object has no attribute 'as_numpy'" in answer["error"]


@pytest.mark.parametrize(
    ("data_type", "labels", "is_found", "classes"),
    [
        ("FP32", "a b c d", False, ["4.000000:3:d", "3.000000:2:c", "2.000000:1:b", "1.000000:0:a"]),
        ("FP32", "a b", True, ["4.000000:3", "3.000000:2", "2.000000:1:b", "1.000000:0:a"]),
        ("FP16", "a b c d", True, None),
    ],
    ids=["a label for each", "a label for some", "a type without classes"],
)
def test_labels_name_elements_by_their_positions(
    tmp_path: Path, serve: Serve, data_type: str, labels: str, is_found: bool, classes: list[str] | None
) -> None:
    files = model('Tensor("OUT", values)', f"Tensor(\"OUT\", values.astype('float{data_type[2:]}'))")
    output = OUT.replace("FP32", data_type).replace("}", 'label_filename: "labels.txt" }')
    files = {**files, "model/config.pbtxt": f'backend: "python"\n{IN}{output}'}
    repository = write(tmp_path / "repository", {**files, "model/labels.txt": "\n".join(labels.split())})
    found = [each for each in repository.check() if each.code == "CT298"]

    status, answer = ask(serve(repository.root, "model"), classification=4)

    assert bool(found) == is_found
    if classes is not None:
        assert answer["outputs"][0]["data"] == classes
    else:
        assert status == 400
        assert answer["error"] in found[0].message


def test_an_optional_input_that_is_left_out_is_an_error(tmp_path: Path, serve: Serve) -> None:
    spare = IN.replace('"IN"', '"SPARE"').replace("}", "optional: true }")
    take = TAKE.replace('"IN"', '"SPARE"')
    source = (
        "import triton_python_backend_utils as pb_utils\n"
        f"{CLASS}    def execute(self, requests): return [{take} for request in requests]\n"
    )
    files = {**python(), "model/1/model.py": source}
    files["model/config.pbtxt"] += spare
    repository = write(tmp_path / "repository", files)
    (finding,) = repository.check()
    assert finding.code == "CT193"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "AttributeError: 'NoneType' object has no attribute"
    assert words in answer["error"]
    assert words in finding.message


def test_an_output_that_is_not_there_is_left_out_without_a_word(tmp_path: Path, serve: Serve) -> None:
    repository = write(tmp_path / "repository", model('"OUT"', '"OUTT"'))
    (finding,) = repository.check()
    assert finding.code == "CT150"
    server = serve(repository.root, "model")

    status, answer = ask(server)

    assert (status, answer["outputs"]) == (200, [])
    assert "OUTT" not in server.log_file.read_text()


def test_the_next_step_lacks_its_input(tmp_path: Path, serve: Serve) -> None:
    steps = step({"IN": "IN"}, {"OUT": "between"}) + step({"IN": "between"}, {"OUT": "OUT"}, "last")
    files = {**ensemble(IN + OUT, steps), **model('"OUT"', '"OUTT"'), **model(name="last")}
    repository = write(tmp_path / "repository", files)
    (finding,) = repository.check(default_model="pipeline")
    assert finding.code == "CT150"

    status, answer = ask(serve(repository.root, "pipeline"))

    assert status == 400
    assert "missing required input(s) ['IN']" in answer["error"]


def test_the_caller_gets_the_type_of_the_array(tmp_path: Path, serve: Serve) -> None:
    repository = write(tmp_path / "repository", model(TAKE, f"{TAKE}.astype(float)"))
    (finding,) = repository.check()
    assert finding.code == "CT150"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 200
    assert [output["datatype"] for output in answer["outputs"]] == ["FP64"]


def test_the_next_step_rejects_the_type_of_the_array(tmp_path: Path, serve: Serve) -> None:
    steps = step({"IN": "IN"}, {"OUT": "between"}) + step({"IN": "between"}, {"OUT": "OUT"}, "last")
    files = {**ensemble(IN + OUT, steps), **model(TAKE, f"{TAKE}.astype(float)"), **model(name="last")}
    repository = write(tmp_path / "repository", files)
    (finding,) = repository.check(default_model="pipeline")
    assert finding.code == "CT150"

    status, answer = ask(serve(repository.root, "pipeline"))

    assert status == 400
    assert "inference input 'IN' data-type is 'FP64', but model 'last' expects 'FP32'" in answer["error"]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("return {}", "Expected a list in the execute return, found type '<class 'dict'>'."),
        (
            "return pb_utils.InferenceResponse([])",
            "Expected a list in the execute return, found type '<class 'c_python_backend_utils.InferenceResponse'>'.",
        ),
        ("return tuple(requests)", "Expected a list in the execute return, found type '<class 'tuple'>'."),
        (
            "return [pb_utils.Tensor('OUT', request) for request in [__import__('numpy').zeros(4)]]",
            "Expected an 'InferenceResponse' object in the execute function return list, found type "
            "'<class 'c_python_backend_utils.Tensor'>'.",
        ),
        ("yield pb_utils.InferenceResponse([])", ""),
        ("return (pb_utils.InferenceResponse([]) for r in requests)", ""),
    ],
)
def test_no_list_of_responses_is_an_error(tmp_path: Path, serve: Serve, result: str, words: str) -> None:
    source = f"import triton_python_backend_utils as pb_utils\n{CLASS}    def execute(self, requests): {result}\n"
    repository = write(tmp_path / "repository", {**python(), "model/1/model.py": source})
    (finding,) = repository.check()
    assert finding.code == "CT177"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    assert words in answer["error"]
    assert words in finding.message


@pytest.mark.parametrize("name", ["as_numpy", "model_name"])
def test_a_method_that_requests_do_not_have_is_an_error(tmp_path: Path, serve: Serve, name: str) -> None:
    source = f"{CLASS}    def execute(self, requests): return [request.{name}() for request in requests]\n"
    repository = write(tmp_path / "repository", {**python(), "model/1/model.py": source})
    (finding,) = repository.check()
    assert finding.code == "CT186"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = f"AttributeError: 'c_python_backend_utils.InferenceRequest' object has no attribute '{name}'"
    assert words in answer["error"]
    assert words in finding.message


def test_a_parameter_with_a_point_is_an_error(tmp_path: Path, serve: Serve) -> None:
    call = "pb_utils.InferenceRequest(model_name='model', inputs=[], requested_output_names=[], parameters={'a': 0.5})"
    repository = write(tmp_path / "repository", model(MAKE, call))
    (finding,) = (each for each in repository.check() if each.code == "CT186")

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "Expect parameters values to have type bool/int/str, found type <class 'float'>"
    assert words in answer["error"]
    assert words in finding.message


@pytest.mark.parametrize(
    "given", ["'OUT', [1.0]", "'OUT', TENSOR", "'OUT', values, [4]", "'OUT'", "'OUT', values.tolist()"]
)
def test_a_tensor_of_anything_but_an_array_is_an_error(tmp_path: Path, serve: Serve, given: str) -> None:
    given = given.replace("TENSOR", TAKE.removesuffix(".as_numpy()"))
    repository = write(tmp_path / "repository", model(MAKE, f"pb_utils.Tensor({given})"))
    (finding,) = repository.check()
    assert finding.code == "CT186"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "TypeError: __init__(): incompatible constructor arguments"
    assert words in answer["error"]
    assert words in finding.message


def test_a_name_that_a_star_does_not_bring_is_an_error(tmp_path: Path, serve: Serve) -> None:
    source = f"from triton_python_backend_utils import *\n{CLASS}    def execute(self, requests):\n        "
    result = "return [InferenceResponse([]) for request in requests]\n"
    repository = write(tmp_path / "repository", {**python(), "model/1/model.py": source + result})
    (finding,) = repository.check()
    assert finding.code == "CT180"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "NameError: name 'InferenceResponse' is not defined"
    assert words in answer["error"]
    assert words in finding.message


def test_a_request_is_never_answered_where_the_return_is_missing(tmp_path: Path, serve: Serve) -> None:
    source = SOURCE.replace("return [self.answer", "[self.answer").replace("self.answer(request)", MADE)
    repository = write(tmp_path / "repository", {**python(), "model/1/model.py": source})
    (finding,) = repository.check()
    assert finding.code == "CT177"

    with pytest.raises(TimeoutError):
        ask(serve(repository.root, "model"), timeout=3)


CALL = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        inputs = [pb_utils.Tensor("IN", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy())]
        answer = pb_utils.InferenceRequest(model_name="other", requested_output_names=["OUT"], inputs=inputs).exec()
        if answer.has_error():
            raise pb_utils.TritonModelException(answer.error().message())
        return pb_utils.InferenceResponse(answer.output_tensors())
"""


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "there, and not loaded"])
def test_a_called_model_that_is_not_loaded_is_an_error(tmp_path: Path, serve: Serve, is_there: bool) -> None:
    other: Files = model(name="other") if is_there else {}
    repository = write(tmp_path / "repository", {**model(), "model/1/model.py": CALL, **other})
    (finding,) = [finding for finding in repository.check(default_model="model") if finding.code != "CT304"]
    assert finding.code == "CT182"

    status, answer = ask(serve(repository.root, "model"))

    assert status == 500
    words = "Failed for execute the inference request. Model 'other' is not ready"
    assert words in answer["error"]
    assert words in finding.message


def load(server: TritonServer, archive: Path) -> tuple[int, str]:
    body = json.dumps({"model_name": "archive", "url": str(archive)}).encode()
    headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": "archive.tar.gz"}
    reply = server.request("POST", "/models", body, headers, timeout=60)
    return reply.status, reply.body.decode()


def test_a_model_of_a_multi_model_endpoint_may_load_another_one(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "empty").mkdir()
    loads = "    def initialize(self, args): pb_utils.load_model(model_name='other')\n    def execute("
    files = {**model(), "model/1/model.py": CALL.replace("    def execute(", loads), **model(name="other")}
    repository = write(
        tmp_path / "archive" / "model", {**files, **ensemble(IN + OUT, step({"IN": "IN"}, {"OUT": "OUT"}))}
    )
    assert repository.check(mode="multi") == ()
    assert [finding.code for finding in repository.check(default_model="pipeline")] == ["CT191"]
    server = serve(tmp_path / "empty", "")

    assert load(server, repository.root) == (200, "")

    tensor = {"name": "IN", "shape": [4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": "archive.tar.gz"}
    body = json.dumps({"inputs": [tensor]}).encode()
    reply = server.request("POST", "/models/archive/invoke", body, headers, timeout=60)
    assert reply.status == 200
    assert json.loads(reply.body)["outputs"][0]["data"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("args['model_path']", "KeyError: 'model_path'"),
        ("json.loads(args['model_config'])['input'][1]", "IndexError: list index out of range"),
        ("open(args['model_repository'] + '/words.txt')", "FileNotFoundError"),
        ("open(args['model_repository'] + '/1/words.txt'), json.loads(args['model_config'])['name']", ""),
    ],
)
def test_the_entry_model_of_an_archive(tmp_path: Path, serve: Serve, line: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    source = f"import json\n{SOURCE}    def initialize(self, args): {line}\n"
    files = {**model(), "model/1/model.py": source, "model/1/words.txt": "cat"}
    repository = write(tmp_path / "archive" / "model", files)
    findings = repository.check(mode="multi")

    status, said = load(serve(tmp_path / "empty", ""), repository.root)

    assert status == (400 if words else 200)
    assert [finding.code for finding in findings] == ["CT184"] * bool(words)
    assert words in said
    assert all(words in finding.message for finding in findings)


def test_the_sequence_batcher_writes_over_what_callers_send(tmp_path: Path, serve: Serve) -> None:
    signal = 'control_input { name: "IN" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }'
    repository = write(
        tmp_path / "repository",
        {**python(f"max_batch_size: 1 {ONE} sequence_batching {{ {signal} }}"), "model/1/model.py": SOURCE},
    )
    (finding,) = repository.check()
    assert finding.code == "CT289"

    tensor = {"name": "IN", "shape": [1, 1], "datatype": "FP32", "data": [5]}
    body = json.dumps({"inputs": [tensor], "parameters": {"sequence_id": 7, "sequence_start": True}}).encode()
    server = serve(repository.root, "model")
    reply = server.request("POST", "/invocations", body, {"Content-Type": "application/json"}, timeout=60)

    assert json.loads(reply.body)["outputs"][0]["data"] == [1]
