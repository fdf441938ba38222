"""The rule CT198: outputs of another model that a Python model reads, and that are on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.python_models.rules.test_model_calls import READ, RESULT, A, codes, files, request, source

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

TEXT = 'output { name: "TEXT" data_type: TYPE_STRING dims: 1 }'
NAME = "self.names[0]"
BY_NAME = request(outputs=f"[{NAME}]")


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
        (("self.names = ['RESULT']", f"response = {BY_NAME}.exec()", READ.replace('"RESULT"', NAME)), TEXT, ["CT198"]),
        (("self.names = ['TEXT']", f"response = {BY_NAME}.exec()", READ.replace('"RESULT"', NAME)), TEXT, []),
        ((f"response = {request()}.exec()", READ, "response = each"), "", ["CT198"]),
        ((f"response = {request()}.exec()", "response = each", READ), "", []),
        ((f"response = {request()}.exec()", "if each: response = each", READ), "", []),
        ((f"response = {request()}.exec()", f"if {READ}: response = each"), "", ["CT198"]),
        ((f"response = {request()}.exec()", "with each as response:", f"    {READ}"), "", []),
        ((f"response = {request()}.exec()", f"[{READ} for response in each]"), "", []),
        ((f"response = {request()}.exec()", "while each:", f"    {READ}", "    response = each"), "", []),
        ((f"response = {request()}.exec()", READ), "instance_group { kind: KIND_CPU }", []),
        ((f"response = {request(more=', preferred_memory=each')}.exec()", READ), "", []),
        ((f"response = {request()}.exec()", f"if {READ[:-11]}.is_cpu(): {READ}"), "", []),
        ((f"response = {request()}.exec()", "response.output_tensors()"), "", []),
    ],
    ids=[
        *("read", "in variables", "by its place", "of each", "in a loop", "unknown outputs", "perhaps a text"),
        *("an unknown name", "one of two by an unknown name", "a name in a list", "the name of a text in a list"),
        *("set again", "set before", "perhaps set before", "set after", "set by with", "set by a loop", "set later"),
        *("on the CPU", "preferred memory", "asked", "passed on"),
    ],
)
def test_an_output_on_the_gpu(
    messages: Messages, write: Write, lines: tuple[str, ...], config: str, found: list[str]
) -> None:
    given = files(source(*lines), f"{A}{RESULT}{config}", 'backend: "onnxruntime"')
    findings = write(given, base={}).check(default_model="caller", additional_models=["called"])
    assert [code for code, _, _ in messages.of(each for each in findings if each.code == "CT198")] == found


ASK = f"""
def ask(model, {{}}):
    request = {request(model="model")}
    response = request.exec()
    if response.has_error(): raise ValueError
    return {{}}
"""


@pytest.mark.parametrize(
    ("arguments", "returned", "lines", "found"),
    [
        ("x", "response", ("response = ask('called', each)", READ), ["CT198"]),
        ("x", "request", ("response = ask('called', each).exec()", READ), ["CT198"]),
        ("x", "response", ("response = ask(x=each, model='called')", READ), ["CT198"]),
        ("x", READ, ("values = ask('called', each)",), ["CT198"]),
        ("x", "response", ("ask('called', each)",), []),
        ("*x", "response", ("response = ask('called')", READ), []),
        ("x", "response", ("response = ask(each, each)", READ), []),
        ("x", "response if x else None", ("response = ask('called', each)", READ), []),
        ("x", "response\n    return None", ("response = ask('called', each)", READ), []),
    ],
    ids=[
        *("a response", "a request", "arguments by name", "an array", "not read"),
        *("any arguments", "any model", "one of two values", "two returns"),
    ],
)
def test_an_output_on_the_gpu_of_a_request_of_another_function(
    messages: Messages, write: Write, arguments: str, returned: str, lines: tuple[str, ...], found: list[str]
) -> None:
    code = source(*lines, top=ASK.format(arguments, returned))
    assert codes(messages, write, files(code, f"{A}{RESULT}", 'backend: "onnxruntime"')) == found


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
