"""The real Python backend as judge of CT194 to CT197 and CT199, the requests of Python models. CT198 needs a GPU.

The fault of CT118 cannot be compared, because the server waits for ever.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import arrange_server_files
from judging.composed import DECOUPLED, IN, OUT, Files, python, write

OPTIONAL = IN.replace('"IN"', '"MORE"').replace("}", "optional: true }")
ECHO = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values)]) for values in given]
"""
STREAM = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            sender = request.get_response_sender()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CALLER = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        given = pb_utils.get_input_tensor_by_name(request, "IN")
        other = pb_utils.Tensor("OTHER", given.as_numpy())
        said = []
SENDS
        raise pb_utils.TritonModelException(" | ".join(said))
    def said(self, response):
        return response.error().message() if response.has_error() else ""
"""
SOUND = (
    ask := "pb_utils.InferenceRequest(model_name='echo', requested_output_names=['OUT'], inputs=[given])",
    "pb_utils.InferenceRequest(model_name='echo', model_version=1, requested_output_names=['OUT'], inputs=[given])",
    "pb_utils.InferenceRequest(model_name='sequence', requested_output_names=['OUT'], inputs=[given], "
    "correlation_id=7, flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)",
    ask.replace("given]", "pb_utils.Tensor('IN', np.array([0.5, 1, 2, 3], np.float32))]"),
    (batches := ask.replace("'echo'", "'batches'")).replace(
        "given]", "pb_utils.Tensor('IN', np.zeros((8, 4), np.float32))]"
    ),
)
FAULTY = {
    ask.replace("'OUT'", "'NOPE'"): "CT194",
    ask.replace("[given]", "[given, other]"): "CT194",
    ask.replace("[given]", "[other]"): "CT194",
    ask.replace("[given]", "[]"): "CT194",
    ask.replace("'echo'", "'optional'").replace("[given]", "[]"): "CT194",
    ask.replace("'echo'", "'stream'"): "CT195",
    ask.replace("'echo'", "'echo', model_version=7"): "CT196",
    ask.replace("'echo'", "'sequence'"): "CT197",
    batches: "CT199",
    ask.replace("'echo'", "'numbers'"): "CT199",
    ask.replace("given]", "pb_utils.Tensor('IN', np.array([0.5, 1, 2, 3]))]"): "CT199",
    ask.replace("given]", "pb_utils.Tensor('IN', np.array([1, 2, 3, 4]))]"): "CT199",
    ask.replace("given]", "pb_utils.Tensor('IN', np.zeros(5, np.float32))]"): "CT199",
    batches.replace("given]", "pb_utils.Tensor('IN', np.zeros((9, 4), np.float32))]"): "CT199",
    batches.replace("given]", "pb_utils.Tensor('IN', np.zeros((1, 1, 4), np.float32))]"): "CT199",
}
"""Request → the code of its finding."""


def caller(*requests: str) -> Files:
    sends = [f"        said.append(self.said({request}.exec()))" for request in requests]
    return {
        "caller/config.pbtxt": f'backend: "python"\n{IN}{OUT}',
        "caller/1/model.py": CALLER.replace("SENDS", "\n".join(sends)),
        **python(f"max_batch_size: 8\n{IN}{OUT}", name="batches"),
        "batches/1/model.py": ECHO,
        **python(IN.replace("FP32", "INT32") + OUT, name="numbers"),
        "numbers/1/model.py": ECHO,
        **python(name="echo"),
        "echo/1/model.py": ECHO,
        **python(IN + OPTIONAL + OUT, name="optional"),
        "optional/1/model.py": ECHO,
        **python(IN + OUT + DECOUPLED, name="stream"),
        "stream/1/model.py": STREAM,
        **python(f"{IN}{OUT}sequence_batching {{ }}", name="sequence"),
        "sequence/1/model.py": ECHO,
    }


OTHERS = ("echo", "optional", "stream", "sequence", "batches", "numbers")


@pytest.mark.slow
@pytest.mark.server
def test_the_server_answers_as_the_rules_say(tmp_path: Path) -> None:
    pytest.importorskip("pytriton")
    repository = write(tmp_path / "repository", caller(*SOUND, *FAULTY))
    findings = repository.check(default_model="caller", additional_models=OTHERS)
    assert [finding.code for finding in findings] == sorted(FAULTY.values())

    (tmp_path / "server").mkdir()
    settings = ServerSettings(arrange_server_files(tmp_path / "server"), loopback_library(), free_port)
    variables = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "caller",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": str(2**20),
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "".join(f" --load-model={name}" for name in OTHERS),
    }
    server = TritonServer(settings, variables, repository.root, tmp_path / "log")
    try:
        tensor = {"name": "IN", "datatype": "FP32", "shape": [4], "data": [1.0, 2.0, 3.0, 4.0]}
        body = json.dumps({"inputs": [tensor]}).encode()
        reply = server.request("POST", "/invocations", body, {"Content-Type": "application/json"}, timeout=60)
    finally:
        server.kill()
    said = json.loads(reply.body)["error"].partition("message: ")[2].split(" | ")
    assert [text for text in said[: len(SOUND)] if text.removeprefix("TritonModelException: ")] == []
    faults = said[len(SOUND) :]
    for text, code in zip(faults, FAULTY.values(), strict=True):
        words = [finding.message.partition("gets an error: ")[2] for finding in findings if finding.code == code]
        assert any(each in text for each in words), (code, text, words)
