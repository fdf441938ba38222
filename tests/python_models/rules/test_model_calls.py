"""The rules CT194 to CT199: requests of a Python model for another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

IMPORTS = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n"
CALLER = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'
A, B, RESULT = (
    'input { name: "A" data_type: TYPE_FP32 dims: 4 }',
    'input { name: "B" data_type: TYPE_FP32 dims: 4 optional: true }',
    'output { name: "RESULT" data_type: TYPE_FP32 dims: 4 }',
)
CALLED = A + B + RESULT
CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n"
ECHO = f"{CLASS}        return []\n"
ONNX = """
<ir_version: 8, opset_import: ["": 17]>
network (float[4] A) => (float[4] RESULT) { RESULT = Relu(A) }
"""
TENSOR = 'pb_utils.Tensor("A", np.zeros(4, np.float32))'
READ = 'pb_utils.get_output_tensor_by_name(response, "RESULT").as_numpy()'


def request(
    *, model: str = '"called"', inputs: str = f"[{TENSOR}]", outputs: str = '["RESULT"]', more: str = ""
) -> str:
    return f"pb_utils.InferenceRequest(model_name={model}, inputs={inputs}, requested_output_names={outputs}{more})"


def source(*lines: str, top: str = "") -> str:
    """A model whose `execute` runs these lines for each request, named `each`."""
    body = "".join(f"            {line}\n" for line in lines)
    return f"{IMPORTS}{top}{CLASS}        for each in requests:\n{body}        return []\n"


def files(
    code: str, config: str = CALLED, backend: str = 'backend: "python"', more: dict[str, Change] | None = None
) -> dict[str, Change]:
    called: dict[str, Change] = {"called/config.pbtxt": f"{backend}\n{config}"}
    called |= {"called/1/model.onnx": ONNX} if "onnx" in backend else {"called/1/model.py": ECHO}
    own: dict[str, Change] = {"caller/config.pbtxt": f'backend: "python"\n{CALLER}', "caller/1/model.py": code}
    return {**called, **own, **(more or {})}


def codes(messages: Messages, write: Write, given: dict[str, Change]) -> list[str]:
    repository = write(given, base={})
    found = messages.of(repository.check(default_model="caller", additional_models=["called"]))
    return [code for code, _, _ in found]


@pytest.mark.parametrize(
    "lines",
    [
        (f"{request()}.exec()",),
        (f"inputs = [{TENSOR}]", f"{request(inputs='inputs')}.exec()"),
        ("inputs = []", f"inputs.append({TENSOR})", f"{request(inputs='inputs')}.exec()"),
        (f"{request(inputs='[*each.inputs()]')}.exec()",),
        ("name = 'called' if each else 'unknown'", f"{request(model='name', outputs='[each]')}.exec()"),
        (f"call = {request()}", "call = each", "call.exec()"),
        ("name = 'unknown'", "def name(): ...", f"{request(model='name')}.exec()"),
        (f"{request(outputs='[name for name in [1]]')}.exec()",),
        ('tensor = pb_utils.Tensor("X", each)', f"tensor = {TENSOR}", f"{request(inputs='[tensor]')}.exec()"),
        (f"{request(more=', model_version=1')}.exec()", f"{request(more=', model_version=-1')}.exec()"),
        (f"response = {request()}.exec()", READ),
        (f"{request()}.exec(), {request(more=', model_version=1')}.exec()",),
    ],
    ids=[
        "fits",
        "a list in a variable",
        "a list that grows",
        "inputs that are spread",
        "a computed name",
        "a variable that is set twice",
        "a variable that is also a function",
        "computed outputs",
        "a tensor that is set twice",
        "versions",
        "an output on the CPU",
        "two requests in a line",
    ],
)
def test_requests_that_fit(messages: Messages, write: Write, lines: tuple[str, ...]) -> None:
    assert codes(messages, write, files(source(*lines))) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((f"{request(outputs='[`RESULTS`]')}.exec()",), ["CT194"]),
        ((f"{request(inputs='[pb_utils.Tensor(`X`, each)]')}.exec()",), ["CT194"]),
        (("tensor = pb_utils.get_input_tensor_by_name(each, `IN`)", f"{request(inputs='[tensor]')}.exec()"), ["CT194"]),
        ((f"{request(inputs='[]')}.exec()",), ["CT194"]),
        ((f"{request(inputs=f'[{TENSOR}, pb_utils.Tensor.from_dlpack(`C`, each)]')}.exec()",), ["CT194"]),
        (("names = [`RESULT`, `OTHER`]", f"{request(outputs='names')}.exec()"), ["CT194"]),
        (("version = 3", f"{request(more=', model_version=version')}.exec()"), ["CT196"]),
        (("model = `caled`", f"{request(model='model')}.exec()"), ["CT182"]),
        (("inputs = []", "inputs.append(pb_utils.Tensor(`X`, each))", f"{request(inputs='inputs')}.exec()"), ["CT194"]),
        (("self.model, outputs = `called`, [`X`]", f"{request(model='self.model', outputs='outputs')}.exec()"), []),
        (("name, outputs = `called`, [`X`]", f"{request(model='name', outputs='outputs')}.exec()"), ["CT194"]),
        (("self.model = `called`", f"{request(model='self.model', outputs='[`X`]')}.exec()"), ["CT194"]),
        (("self.model: str = `called`", f"{request(model='self.model', outputs='[`X`]')}.exec()"), ["CT194"]),
        (("model: str = `called`", f"{request(model='model', outputs='[`X`]')}.exec()"), ["CT194"]),
        (("model: str", "model = `called`", f"{request(model='model', outputs='[`X`]')}.exec()"), []),
        (("self.model = `called`", "self.model = each", f"{request(model='self.model', outputs='[`X`]')}.exec()"), []),
    ],
    ids=[
        "a misspelt output",
        "an input of another name",
        "an input of the request",
        "no input",
        "an input of DLPack",
        "a list in a variable",
        "a version",
        "a model in a variable",
        "a list that grows",
        "an attribute among variables",
        "variables that are set together",
        "an attribute",
        "an attribute with its type",
        "a variable with its type",
        "a variable after its type",
        "an attribute that is set twice",
    ],
)
def test_requests_that_do_not_fit(messages: Messages, write: Write, lines: tuple[str, ...], found: list[str]) -> None:
    assert codes(messages, write, files(source(*lines).replace("`", '"'))) == found


def test_a_name_at_the_top_of_the_file(messages: Messages, write: Write) -> None:
    code = source(f"{request(model='MODEL', outputs='[OUTPUT]')}.exec()", top="MODEL = 'called'\nOUTPUT = 'NOPE'\n")
    assert codes(messages, write, files(code)) == ["CT194"]


def test_a_model_that_completes_its_configuration(messages: Messages, write: Write) -> None:
    completing = ECHO.replace(
        "    def execute", "    @staticmethod\n    def auto_complete_config(config): return config\n    def execute"
    )
    given = files(
        source(f"{request(outputs='[`X`]')}.exec()".replace("`", '"')), more={"called/1/model.py": completing}
    )
    assert codes(messages, write, given) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((f"{request()}.exec()",), ["CT195"]),
        ((f"call = {request()}", "call.exec(decoupled=False)"), ["CT195"]),
        ((f"responses = {request()}.exec(decoupled=True)", "responses.has_error()"), ["CT195"]),
        ((f"for one in {request()}.exec(decoupled=True):", "    one.has_error()"), []),
        ((f"responses = {request()}.exec(decoupled=True)", "[one.has_error() for one in responses]"), []),
        ((f"{request()}.exec(decoupled=bool(each))",), []),
        ((f"{request()}.exec(each)",), []),
    ],
    ids=["plain", "not decoupled", "read as one", "a loop", "a comprehension", "a computed value", "by position"],
)
def test_a_decoupled_model(messages: Messages, write: Write, lines: tuple[str, ...], found: list[str]) -> None:
    config = f"{CALLED} model_transaction_policy {{ decoupled: true }}"
    sends = ECHO.replace(
        "        return []\n", "        for each in requests: each.get_response_sender().send(flags=1)\n"
    )
    assert codes(messages, write, files(source(*lines), config, more={"called/1/model.py": sends})) == found


@pytest.mark.parametrize(
    ("config", "more", "found"),
    [
        ("sequence_batching { }", "", ["CT197"]),
        ("sequence_batching { }", ", correlation_id=each.correlation_id()", []),
        ("sequence_batching { }", ", **each", []),
        ("sequence_batching { iterative_sequence: true }", "", []),
    ],
    ids=["none", "passed on", "perhaps", "a sequence of the model itself"],
)
def test_a_model_of_sequences(messages: Messages, write: Write, config: str, more: str, found: list[str]) -> None:
    given = files(source(f"{request(more=more)}.exec()"), f"{CALLED} {config}")
    assert codes(messages, write, given) == found


TEXT = 'output { name: "TEXT" data_type: TYPE_STRING dims: 1 }'


@pytest.mark.parametrize(
    ("lines", "config", "found"),
    [
        ((f"response = {request()}.exec()", READ), "", ["CT198"]),
        (
            (f"call = {request()}", "response = call.exec()", f"tensor = {READ[:-11]}", "tensor.as_numpy()"),
            "",
            ["CT198"],
        ),
        ((f"response = {request()}.exec()", "response.output_tensors()[0].as_numpy()"), "", ["CT198"]),
        (
            (f"tensors = {request()}.exec().output_tensors()", "[one.as_numpy() for one in tensors if one]"),
            "",
            ["CT198"],
        ),
        ((f"for one in {request()}.exec().output_tensors():", "    one.as_numpy()"), "", ["CT198"]),
        ((f"for one in {request(outputs='list(each)')}.exec().output_tensors():", "    one.as_numpy()"), "", ["CT198"]),
        ((f"for one in {request(outputs='list(each)')}.exec().output_tensors():", "    one.as_numpy()"), TEXT, []),
        ((f"response = {request(outputs='list(each)')}.exec()", READ.replace('"RESULT"', "str(each)")), "", ["CT198"]),
        ((f"response = {request()}.exec()", READ.replace('"RESULT"', "str(each)")), TEXT, ["CT198"]),
        ((f"response = {request()}.exec()", READ), "instance_group { kind: KIND_CPU }", []),
        ((f"response = {request(more=', preferred_memory=each')}.exec()", READ), "", []),
        ((f"response = {request()}.exec()", f"if {READ[:-11]}.is_cpu(): {READ}"), "", []),
        ((f"response = {request()}.exec()", "response.output_tensors()"), "", []),
    ],
    ids=[
        *("read", "in variables", "by its place", "of each", "in a loop", "unknown outputs", "perhaps a text"),
        *("an unknown name", "one of two by an unknown name"),
        *("on the CPU", "preferred memory", "asked", "passed on"),
    ],
)
def test_an_output_on_the_gpu(
    messages: Messages, write: Write, lines: tuple[str, ...], config: str, found: list[str]
) -> None:
    given = files(source(*lines), f"{A}{RESULT}{config}", 'backend: "onnxruntime"')
    findings = write(given, base={}).check(default_model="caller", additional_models=["called"])
    assert [code for code, _, _ in messages.of(each for each in findings if each.code == "CT198")] == found


ON_CPU = "instance_group { kind: KIND_CPU }"
ON_GPU = "instance_group { kind: KIND_GPU }"
THRESHOLD = 'parameters {{ key: "transfer_threshold" value {{ string_value: "{}" }} }}'


@pytest.mark.parametrize(
    ("backend", "config", "found"),
    [
        ("pytorch", "", ["CT198"]),
        ("pytorch", ON_CPU, []),
        ("pytorch", "instance_group { kind: KIND_MODEL }", []),
        ("fil", ON_GPU, ["CT198"]),
        ("fil", ON_GPU + THRESHOLD.format(0), ["CT198"]),
        ("fil", ON_GPU + THRESHOLD.format(64), []),
        ("fil", ON_CPU, []),
        ("fil", "", ["CT198"]),
    ],
)
def test_an_output_of_other_backends_on_the_gpu(
    messages: Messages, write: Write, backend: str, config: str, found: list[str]
) -> None:
    code = source(f"response = {request()}.exec()", READ)
    repository = write(files(code, f"{A}{RESULT}{config}", f'backend: "{backend}"'), base={})
    findings = repository.check(default_model="caller", additional_models=["called"])
    assert [code for code, _, _ in messages.of(each for each in findings if each.code == "CT198")] == found


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("np.array([0.5] * 4)", ["CT199"]),
        ("values", ["CT199"]),
        ("np.array([0.5] * 4, np.float32)", []),
        ("np.array(each)", []),
        ("np.array(numbers)", ["CT199"]),
    ],
)
def test_the_type_of_an_array_of_literals(messages: Messages, write: Write, values: str, found: list[str]) -> None:
    send = request(inputs=f'[pb_utils.Tensor("A", {values})]')
    code = source("values, numbers = np.zeros(4), [1, 2, 3, 4]; values[0] = 1", f"{send}.exec()")
    assert codes(messages, write, files(code)) == found


@pytest.mark.parametrize(
    ("kind", "values"),
    [("STRING", "np.zeros(4)"), ("BOOL", "np.zeros(4)"), ("BF16", "np.zeros(4, np.float32)")],
)
def test_the_type_that_the_other_model_expects(messages: Messages, write: Write, kind: str, values: str) -> None:
    send = request(inputs=f'[pb_utils.Tensor("A", {values})]')
    assert codes(messages, write, files(source(f"{send}.exec()"), CALLED.replace("FP32", kind, 1))) == ["CT199"]


@pytest.mark.parametrize(
    "lines",
    [
        ("numbers = [1, 2, 3, 4]", "numbers[0] = 0.5", "values = np.array(numbers)"),
        ("numbers = [0] * 4", "numbers[0] = each", "values = np.array(numbers)"),
        ("numbers = ([0, 0], [0, 0])", "numbers[0][0] = each", "values = np.array(numbers).reshape(4)"),
        ("numbers = [1]", "numbers.extend(each)", "numbers.append(2)", "values = np.array(numbers, np.float32)"),
        ("shape = [1]", "shape.append(each)", "values = np.zeros(shape, np.float32)"),
        ("values = np.empty((1, 0), np.float32)", "values.resize((4,))"),
        ("values = np.empty((2, 2), np.float32)", "values.shape = 4"),
        ("values = np.zeros(2)", "values.dtype = np.float32"),
    ],
)
def test_values_that_change_before_the_request(messages: Messages, write: Write, lines: tuple[str, ...]) -> None:
    send = request(inputs='[pb_utils.Tensor("A", values)]')
    assert codes(messages, write, files(source(*lines, f"{send}.exec()"))) == []


NOPE = request(inputs="[tensor]", outputs='["NOPE"]')


def test_a_request_in_a_lambda(messages: Messages, write: Write) -> None:
    code = source(f"send = lambda tensor: {NOPE}.exec()", "send(each)")
    assert codes(messages, write, files(code)) == ["CT194"]


def test_a_request_in_a_module_beside_the_model(messages: Messages, write: Write) -> None:
    helper = f"{IMPORTS}def ask(tensor):\n    return {NOPE}.exec()\n"
    given = files(source("ask(each)", top="from helpers import ask\n"), more={"caller/1/helpers.py": helper})
    repository = write(given, base={})
    found = messages.of(repository.check(default_model="caller", additional_models=["called"]))
    assert [(code, path) for code, path, _ in found] == [("CT194", "caller/1/helpers.py")]


DALI = """
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=8, num_threads=1, device_id=0)
def pipeline():
    pixels = fn.decoders.image(fn.external_source(name="A"), device="{}")
    return fn.crop_mirror_normalize(pixels, crop=(4, 4))
"""


@pytest.mark.parametrize(
    ("device", "config", "found"),
    [("mixed", "", ["CT198"]), ("cpu", "", []), ("cpu", "model_transaction_policy { decoupled: true }", ["CT195"])],
    ids=["on the GPU", "on the CPU", "decoupled"],
)
def test_dali_as_the_other_model(messages: Messages, write: Write, device: str, config: str, found: list[str]) -> None:
    inputs = 'input { name: "A" data_type: TYPE_UINT8 dims: -1 } max_batch_size: 8'
    given = files(
        source(f"response = {request()}.exec()", READ),
        f"{inputs} {RESULT} {config}",
        'backend: "dali"',
        {"called/1/dali.py": DALI.format(device)},
    )
    repository = write(given, base={})
    findings = repository.check(default_model="caller", additional_models=["called"])
    assert [code for code, _, _ in messages.of(each for each in findings if each.code in ("CT195", "CT198"))] == found


OTHER = READ.replace("RESULT", "RESULTS")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((f"response = {request()}.exec()", OTHER), ["CT194"]),
        ((f"call = {request()}", "response = call.exec()", f"t = {OTHER[:-11]}", "t.as_numpy()"), ["CT194"]),
        ((f"response = {request()}.exec()", f"t = {OTHER[:-11]}", "if t is not None: t.as_numpy()"), []),
        ((f"response = {request()}.exec()", READ), []),
        ((f"response = {request(outputs='[]')}.exec()", OTHER), []),
        ((f"response = {request(outputs='list(each)')}.exec()", OTHER), []),
    ],
)
def test_an_output_that_the_request_does_not_ask_for(
    messages: Messages, write: Write, lines: tuple[str, ...], found: list[str]
) -> None:
    assert codes(messages, write, files(source(*lines))) == found


ONE = 'input { name: "A" data_type: TYPE_FP32 dims: 4 }'
MORE = ONE.replace('"A"', '"MORE"')
BATCHES = "max_batch_size: 8 "
TAKEN = 'inputs = [pb_utils.get_input_tensor_by_name(each, "A")]'
ALL = "inputs = each.inputs()"


@pytest.mark.parametrize(
    ("own", "called", "line", "found"),
    [
        (ONE, ONE, TAKEN, []),
        (ONE, BATCHES + ONE, TAKEN, ["CT199"]),
        (BATCHES + ONE, ONE, TAKEN, ["CT199"]),
        (BATCHES + ONE, BATCHES + ONE, TAKEN, []),
        (BATCHES + ONE, ONE.replace("4", "[ -1, 4 ]"), TAKEN, []),
        (ONE.replace("FP32", "FP16"), ONE, TAKEN, ["CT199"]),
        (ONE.replace("4", "5"), ONE, TAKEN, ["CT199"]),
        (ONE.replace("4", "-1"), ONE, TAKEN, []),
        (ONE.replace("4", "4 reshape { shape: [ 2, 2 ] }"), ONE, TAKEN, []),
        (ONE, BATCHES + ONE, ALL, ["CT199"]),
        (ONE + MORE, ONE, ALL, ["CT194"]),
        (ONE + MORE.replace("}", "optional: true }"), ONE, ALL, []),
        (ONE, ONE + MORE, ALL, ["CT194"]),
        (ONE + MORE, ONE + " sequence_batching { }", f"{ALL}, each", ["CT197"]),
    ],
    ids=[
        "equal",
        "batches of the other model",
        "batches of its own",
        "batches of both",
        "batches in the dims",
        "another type",
        "another size",
        "any size",
        "a reshaped input",
        "all inputs, without batches",
        "an input too many",
        "an optional input",
        "an input too few",
        "more than all inputs",
    ],
)
def test_an_input_that_is_passed_on(
    messages: Messages, write: Write, own: str, called: str, line: str, found: list[str]
) -> None:
    given = files(source(line, f"{request(inputs='inputs')}.exec()"), called + RESULT)
    given["caller/config.pbtxt"] = f'backend: "python" {own} {RESULT}'
    assert codes(messages, write, given) == found


@pytest.mark.parametrize(
    ("values", "called", "found"),
    [
        ("np.zeros(4, np.float32)", ONE, []),
        ("np.zeros(4, np.float32)", BATCHES + ONE, ["CT199"]),
        ("np.zeros((1, 4), np.float32)", BATCHES + ONE, []),
        ("np.zeros((9, 4), np.float32)", BATCHES + ONE, ["CT199"]),
        ("np.zeros((len(each), 4), np.float32)", BATCHES + ONE, []),
        ("np.array(each, np.float32).reshape(1, 1, -1)", BATCHES + ONE, ["CT199"]),
        ("np.zeros(each, np.float32)", BATCHES + ONE, []),
    ],
    ids=["fits", "no batch", "a batch", "too many rows", "any number of rows", "a dimension too many", "any shape"],
)
def test_the_shape_of_an_input(messages: Messages, write: Write, values: str, called: str, found: list[str]) -> None:
    lines = (f"values = {values}", f"{request(inputs='[pb_utils.Tensor(`A`, values)]')}.exec()".replace("`", '"'))
    assert codes(messages, write, files(source(*lines), called + RESULT)) == found
