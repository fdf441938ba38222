"""The rules CT118, CT182 and CT191: the models that a Python model calls or loads itself."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
IMPORTS = "import triton_python_backend_utils as pb_utils\n"
SENT = "pb_utils.InferenceRequest(model_name=NAME, inputs=requests, requested_output_names=[]).exec()"
CALL = f"{IMPORTS}{CLASS}    def execute(self, requests):\n        {SENT}\n"
ENDING = "        return []\n"
CALLER = "preprocess"


def calling(name: str, more: str = "") -> str:
    return CALL.replace("NAME", name) + more + ENDING


@pytest.mark.parametrize(
    ("name", "mode", "codes"),
    [
        pytest.param("'preproces'", "single", ["CT182"], id="misspelt"),
        pytest.param("'other'", "single", ["CT182"], id="unlike any"),
        pytest.param("'spare'", "single", ["CT182", "CT304"], id="never loaded"),
        pytest.param("'spare'", "multi", ["CT182", "CT304"], id="never loaded, among many"),
    ],
)
def test_a_model_that_is_not_loaded(
    messages: Messages, write: Write, name: str, mode: Literal["single", "multi"], codes: list[str]
) -> None:
    files = {f"{CALLER}/1/model.py": calling(name)}
    if "spare" in name:
        files |= {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    assert [code for code, _, _ in messages.of(write(files).check(mode=mode))] == codes


def test_a_file_that_another_library_loads(messages: Messages, write: Write) -> None:
    source = calling("'other'", "        booster = requests[0]\n        booster.load_model(requests[1])\n")
    found = messages.of(write({f"{CALLER}/1/model.py": source}).check())
    assert found == [("CT182", f"{CALLER}/1/model.py", "")]


@pytest.mark.parametrize(
    "source",
    [
        calling("'bert'"),
        calling("requests[0]"),
        calling("'other'", "        pb_utils.load_model(model_name='other')\n"),
        f"if __name__ == '__main__':\n    InferenceRequest(model_name='other')\n{CLASS}{EXECUTE}",
    ],
    ids=["a step", "a computed name", "a model that it loads", "as a program"],
)
def test_a_model_that_may_be_loaded(write: Write, source: str) -> None:
    assert write({f"{CALLER}/1/model.py": source}).check() == ()


def test_a_model_that_is_loaded_besides(write: Write) -> None:
    files = {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    repository = write({**files, f"{CALLER}/1/model.py": calling("'spare'")})
    assert repository.check(additional_models=["spare"]) == ()


FOUND = ("CT191", f"{CALLER}/1/model.py", "")
REQUEST = "pb_utils.InferenceRequest(model_name='bert', inputs=list(), requested_output_names=[])"
HELPERS = f"""
    def go(self): {REQUEST}.exec()
    async def wait(self): await {REQUEST}.async_exec()
    async def gather(self): await asyncio.gather({REQUEST}.async_exec(), {REQUEST}.async_exec())
    async def start(self): return {REQUEST}.async_exec()
    def load(self): pb_utils.load_model(model_name='spare')
"""


def initializing(body: str, method: str = "initialize(self, args)") -> dict[str, str]:
    """The files of a model with this method, beside helpers."""
    head = f"import asyncio, c_python_backend_utils as c\n{IMPORTS}"
    source = f"{head}{CLASS}    def {method}:\n{textwrap.indent(body, ' ' * 8)}\n{HELPERS}{EXECUTE}"
    spare = {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    return {f"{CALLER}/1/model.py": source, **(spare if "load" in body else {})}


TOO_EARLY = {
    "at once": f"{REQUEST}.exec()",
    "by the module of the classes": f"{REQUEST.replace('pb_utils', 'c')}.exec()",
    "by a name": f"request = {REQUEST}\nself.first = request.exec()",
    "in a helper": "self.go()",
    "in a loop": "for _ in range(3):\n    self.go()",
    "without gradients": "import torch\nwith torch.no_grad():\n    self.go()",
    "without a loop of events": f"{REQUEST}.async_exec()",
    "in a coroutine": "asyncio.run(self.wait())",
    "in a coroutine of an own loop": "loop = asyncio.new_event_loop()\nloop.run_until_complete(self.wait())",
    "gathered": "asyncio.run(self.gather())",
    "another error caught": "try:\n    self.go()\nexcept ValueError: ...",
}


@pytest.mark.parametrize("mode", ["single", "multi"])
@pytest.mark.parametrize("body", TOO_EARLY.values(), ids=TOO_EARLY)
def test_a_request_before_execute(
    messages: Messages, write: Write, body: str, mode: Literal["single", "multi"]
) -> None:
    assert set(messages.of(write(initializing(body)).check(mode=mode))) == {FOUND}


@pytest.mark.parametrize("method", ["__init__(self)", "auto_complete_config(c)"])
def test_a_request_in_another_method(messages: Messages, write: Write, method: str) -> None:
    body = f"{REQUEST}.exec()\nreturn {'c' if '(c)' in method else None}"
    files = initializing(body, method)
    if "(c)" in method:
        files = {path: text.replace("    def auto", "    @staticmethod\n    def auto") for path, text in files.items()}
    assert messages.of(write(files).check()) == [FOUND]


@pytest.mark.parametrize("function", ["load_model", "unload_model", "is_model_ready"])
def test_what_a_server_answers_once_it_is_ready(messages: Messages, write: Write, function: str) -> None:
    repository = write(initializing(f"pb_utils.{function}(model_name='bert')"))
    assert messages.of(repository.check()) == [FOUND]
    assert repository.check(mode="multi") == ()


IN_TIME = {
    "an error that is caught": "try:\n    self.go()\nexcept Exception: ...",
    "a condition": "if args['model_instance_kind'] == 'GPU':\n    self.go()",
    "a function handed over": "import threading\nself.thread = threading.Thread(target=self.go)",
    "a request for later": f"self.request = {REQUEST}",
    "another object": f"request = {REQUEST}\nrequest = print\nrequest.exec()",
    "a coroutine for later": "self.later = self.wait()",
    "an error for later": "self.later = asyncio.run(self.start())",
    "a loop over nothing": "for _ in range(0):\n    self.go()",
}


@pytest.mark.parametrize("body", IN_TIME.values(), ids=IN_TIME)
def test_no_request_before_execute(write: Write, body: str) -> None:
    assert [finding for finding in write(initializing(body)).check() if finding.code == "CT191"] == []


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        pytest.param("pb_utils.load_model(model_name='spare')", [], id="by name"),
        pytest.param("pb_utils.load_model('spare')", [], id="by position"),
        pytest.param("pb_utils.load_model(model_name=requests[0])", [], id="by a computed name"),
        pytest.param("load = pb_utils.load_model", [], id="later"),
        pytest.param("from triton_python_backend_utils import load_model", [], id="by an import"),
        pytest.param("self.server = pb_utils\n        self.server.load_model('spare')", [], id="of another name"),
        pytest.param(
            "import c_python_backend_utils as server\n        server.load_model('spare')", [], id="of the classes"
        ),
        pytest.param("__import__('triton_python_backend_utils').load_model('spare')", [], id="without a name"),
        pytest.param("from helpers import pb_utils as pb\n        pb.load_model(requests[0])", [], id="of a helper"),
        pytest.param("pb_utils.load_model(model_name='other')", ["CT304"], id="another one"),
        pytest.param("import xgboost\n        xgboost.Booster().load_model(requests[0])", ["CT304"], id="of xgboost"),
        pytest.param(
            "self.booster = requests[0]\n        self.booster.load_model(requests[1])", ["CT304"], id="of an attribute"
        ),
        pytest.param("import keras\n        keras.models.load_model(requests[0])", ["CT304"], id="of keras"),
        pytest.param("from keras.models import load_model", ["CT304"], id="imported from keras"),
        pytest.param("self.load_model = print\n        self.load_model(requests[0])", ["CT304"], id="of the model"),
    ],
)
def test_a_model_that_another_one_loads(messages: Messages, write: Write, line: str, codes: list[str]) -> None:
    files = {f"{CALLER}/1/model.py": calling("'bert'", f"        {line}\n")}
    spare = {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    repository = write({**files, **spare})
    assert [code for code, _, _ in messages.of(repository.check())] == codes
    assert [code for code, _, _ in messages.of(repository.check(mode="multi"))] == codes


SELF = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        call = pb_utils.InferenceRequest(model_name="{}", inputs=[], requested_output_names=[])
        return [call.exec({}) for _ in requests]
"""


@pytest.mark.parametrize(
    ("config", "name", "argument", "found"),
    [
        pytest.param("", "model", "", ["CT118"], id="one instance"),
        pytest.param("instance_group { count: 1 kind: KIND_CPU }", "model", "", ["CT118"], id="one configured"),
        pytest.param("instance_group { count: 2 }", "model", "", [], id="two instances"),
        pytest.param("instance_group { count: 1 } instance_group { count: 1 }", "model", "", [], id="two groups"),
        pytest.param("model_transaction_policy { decoupled: true }", "model", "", [], id="decoupled"),
        pytest.param("", "other", "", [], id="another model"),
        pytest.param("", "model", "decoupled=how", [], id="unknown"),
    ],
)
def test_a_request_to_itself(
    messages: Messages, write: Write, config: str, name: str, argument: str, found: list[str]
) -> None:
    source = SELF.format(name, argument)
    repository = write({"model/config.pbtxt": f'backend: "python" {config}', "model/1/model.py": source}, base={})
    own = messages.of(each for each in repository.check() if each.code == "CT118")
    assert [code for code, *_ in own] == found


@pytest.mark.parametrize(
    ("config", "back", "found"),
    [("", "", ["CT118", "CT118"]), ("instance_group { count: 2 }", "", ["CT118"]), ("", "decoupled=True", [])],
    ids=["one instance", "two instances of one", "decoupled"],
)
def test_a_request_that_comes_back(messages: Messages, write: Write, config: str, back: str, found: list[str]) -> None:
    files = {
        "first/config.pbtxt": f'backend: "python" {config}',
        "first/1/model.py": SELF.format("second", ""),
        "second/config.pbtxt": 'backend: "python"',
        "second/1/model.py": SELF.format("third", ""),
        "third/config.pbtxt": 'backend: "python" instance_group { count: 2 }',
        "third/1/model.py": SELF.format("first", back),
    }
    checked = write(files, base={}).check(default_model="first", additional_models=["second", "third"])
    assert [code for code, *_ in messages.of(each for each in checked if each.code == "CT118")] == found
