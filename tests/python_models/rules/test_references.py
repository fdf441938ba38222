"""The rules CT185 and CT186: whether what a Python model names is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
IMPORTS = "import triton_python_backend_utils as pb_utils\n"
CALLER = "preprocess"
IMAGE = f"example.com/triton@sha256:{'0' * 64}"


OWN = "class Base:\n    x = 1\n    def answer(self): return self.y\n"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(
            CLASS + "    def execute(self, requests): return [self.anwser(r) for r in requests]", 1, id="a method"
        ),
        pytest.param(CLASS + EXECUTE + "    def initialize(this, args): print(this.name)", 1, id="in initialize"),
        pytest.param(f"{OWN}class TritonPythonModel(Base):\n{EXECUTE}", 1, id="of a base"),
        pytest.param(CLASS + EXECUTE + "    def a(self): return self.b, self.c", 2, id="two"),
        pytest.param(CLASS + EXECUTE + "    def a(self): self.b = 1\n    def c(self): return self.b", 0, id="set"),
        pytest.param(CLASS + EXECUTE + "    b: int\n    def c(self): return self.b", 0, id="declared"),
        pytest.param(CLASS + EXECUTE + "    def c(self): return self.__class__, self.execute", 0, id="of every object"),
        pytest.param(CLASS + EXECUTE + "    def c(self): return hasattr(self, 'b') and self.b", 0, id="asked for"),
        pytest.param(
            CLASS + EXECUTE + "    def c(self): fill(self); return self.b\ndef fill(x): x.d = 1", 0, id="filled"
        ),
        pytest.param(CLASS + EXECUTE + "    def __getattr__(self, n): ...\n    def c(self): self.b", 0, id="computed"),
        pytest.param(
            CLASS + EXECUTE + "    def c(self):\n        try: self.b\n        except AttributeError: ...", 0, id="tried"
        ),
        pytest.param(
            f"from dataclasses import dataclass\n@dataclass\n{CLASS}    b: int = 1\n{EXECUTE}    def c(self): self.b",
            0,
            id="a field",
        ),
        pytest.param(
            f"import json\nclass TritonPythonModel(json.JSONDecoder):\n{EXECUTE}    def c(self): self.b", 0, id="b"
        ),
    ],
)
def test_an_attribute_of_its_own(messages: Messages, write: Write, source: str, count: int) -> None:
    found = messages.of(write({f"{CALLER}/1/model.py": source}).check())
    assert found == [("CT185", f"{CALLER}/1/model.py", "")] * count


ASK = "call = pb_utils.InferenceRequest(model_name='bert', inputs=[t], requested_output_names=['OUT'])"
REQUEST = "pb_utils.InferenceRequest(model_name='bert', requested_output_names=['OUT'], inputs="
VALUES = "pb_utils.get_input_tensor_by_name(t, 'IN').as_numpy()"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param("raise pb_utils.TritonError('text')", 1, id="raises an error of the server"),
        pytest.param("raise pb_utils.TritonError", 1, id="raises its class"),
        pytest.param("e = pb_utils.TritonError('text'); raise e", 1, id="raises a variable"),
        pytest.param("raise pb_utils.TritonModelException('text')", 0, id="raises an exception"),
        pytest.param("e = pb_utils.TritonError('text'); e = other(e); raise e", 0, id="raises something else"),
        pytest.param(f"{ASK}; r = call.exec(); r.as_numpy('OUT')", 1, id="as_numpy of a response"),
        pytest.param(f"{ASK}; call.exec().get('OUT')", 1, id="a method that responses do not have"),
        pytest.param(f"{ASK}; r = call.exec(); r.has_error(); r.error(); r.output_tensors()", 0, id="a response"),
        pytest.param(f"{ASK}; r = call.exec(decoupled=True); r.close()", 0, id="an iterator of responses"),
        pytest.param(f"{ASK}; r = call.exec(); r = wrap(r); r.as_numpy('OUT')", 0, id="something else"),
        pytest.param(f"x = {VALUES}; {REQUEST}[x])", 1, id="arrays as inputs"),
        pytest.param(f"{REQUEST}{{'IN': t}})", 1, id="a dictionary of inputs"),
        pytest.param(f"{REQUEST}pb_utils.Tensor('IN', t))", 1, id="one tensor as inputs"),
        pytest.param(f"x = pb_utils.Tensor('IN', t); {REQUEST}[x])", 0, id="tensors as inputs"),
        pytest.param(f"{REQUEST}(pb_utils.Tensor('IN', t),))", 0, id="a tuple of tensors"),
        pytest.param(f"{REQUEST}t.inputs())", 0, id="the inputs of a request"),
        pytest.param(f"x = {VALUES}; x = pb_utils.Tensor('IN', x); {REQUEST}[x])", 0, id="a variable set twice"),
        pytest.param(
            "pb_utils.InferenceRequest(model_name='bert', inputs=[t], requested_output_names='OUT')", 1, id="a text"
        ),
        pytest.param(
            "pb_utils.InferenceRequest(model_name='bert', inputs=[t], requested_output_names=('OUT',))", 0, id="a tuple"
        ),
        pytest.param(f"{REQUEST}[t], model_version='1')", 1, id="a version as text"),
        pytest.param(f"{REQUEST}[t], timeout=0.5)", 1, id="a fraction of a microsecond"),
        pytest.param(
            f"import c_python_backend_utils as c\n        {REQUEST.replace('pb_utils', 'c')}[t], request_id=1)",
            1,
            id="a number as identifier, in the module of the classes",
        ),
        pytest.param(f"{REQUEST}[t], model_version=-1, timeout=5, request_id='1')", 0, id="numbers"),
        pytest.param("pb_utils.InferenceResponse(output_tensors=pb_utils.Tensor('O', t))", 1, id="no list"),
        pytest.param("pb_utils.InferenceResponse([], 'text')", 1, id="a message by position"),
        pytest.param("pb_utils.InferenceResponse(output_tensors=[], error=f'{t}')", 1, id="a message"),
        pytest.param(
            "try: pass\n        except ValueError as e: pb_utils.InferenceResponse(output_tensors=[], error=e)",
            1,
            id="an exception",
        ),
        pytest.param(
            "try: pass\n        except ValueError as e: e = self.as_error(e); pb_utils.InferenceResponse([], error=e)",
            0,
            id="an exception made into an error",
        ),
        pytest.param("pb_utils.InferenceResponse([], pb_utils.TritonError('text'))", 0, id="an error"),
        pytest.param("pb_utils.InferenceResponse([], error=self.error(t))", 0, id="any error"),
        pytest.param(f"{REQUEST}[t], parameters={{'share': 0.5}})", 1, id="a parameter with a point"),
        pytest.param(f"x = {{'names': ['a']}}; {REQUEST}[t], parameters=x)", 1, id="a list as parameter"),
        pytest.param(
            f"x = {{'mean': 0.5}}; x['mean'] = str(t); {REQUEST}[t], parameters=x)", 0, id="a parameter that changes"
        ),
        pytest.param(f"{REQUEST}[t], parameters={{'a': 1, 'b': True, 'c': '0.5', 'd': t}})", 0, id="parameters"),
        pytest.param("pb_utils.InferenceResponse([], parameters={'share': 0.5})", 1, id="a parameter of a response"),
        pytest.param("x = pb_utils.get_input_tensor_by_name(t, 'I').as_numpy; pb_utils.Tensor('O', x)", 1, id="method"),
        pytest.param("x = pb_utils.get_input_tensor_by_name(t, 'I').as_numpy(); pb_utils.Tensor('O', x)", 0, id="call"),
        pytest.param("pb_utils.Tensor('O', np.array([['cat']] * 2))", 1, id="an array of texts"),
        pytest.param("x = np.array([f'{i}' for i in t]); pb_utils.Tensor('O', x)", 1, id="an array of formatted texts"),
        pytest.param("pb_utils.Tensor('O', np.array(t, dtype=str))", 1, id="an array of a type of texts"),
        pytest.param("pb_utils.Tensor('O', t.astype(np.str_))", 1, id="made texts"),
        pytest.param("pb_utils.Tensor('O', np.array([['cat']] * 2, dtype=object))", 0, id="an array of objects"),
        pytest.param("pb_utils.Tensor('O', np.array([b'cat']))", 0, id="an array of bytes"),
        pytest.param("pb_utils.Tensor('O', np.array(['cat']).astype(object))", 0, id="made objects"),
        pytest.param("pb_utils.Tensor('O', np.array([1.0]))", 0, id="an array of numbers"),
    ],
)
def test_arguments_that_the_servers_classes_reject(messages: Messages, write: Write, body: str, count: int) -> None:
    source = f"import numpy as np\n{IMPORTS}{CLASS}{EXECUTE}    def a(self, t, other, wrap):\n        {body}\n"
    findings = write({f"{CALLER}/1/model.py": source}).check()
    found = messages.of(each for each in findings if each.code == "CT186")
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


@pytest.mark.parametrize(
    ("method", "body", "count"),
    [
        pytest.param("def execute", f"{ASK}; call.async_exec()", 1, id="async_exec without a loop"),
        pytest.param("async def execute", f"{ASK}; await call.async_exec()", 0, id="async_exec in a loop"),
        pytest.param("def helper", f"{ASK}; return call.async_exec()", 0, id="a function that a coroutine may call"),
        pytest.param("async def execute", f"{ASK}; await call.exec()", 1, id="await with exec"),
        pytest.param("async def execute", f"{ASK}; r = call.exec(); await r", 1, id="await with its response"),
        pytest.param("async def execute", "asyncio.run(self.ask(t))", 1, id="a loop in a loop"),
        pytest.param("async def execute", "asyncio.get_event_loop().run_until_complete(t)", 1, id="a running loop"),
        pytest.param("def execute", "asyncio.run(self.ask(t))", 0, id="a loop"),
        pytest.param("async def execute", "import nest_asyncio; asyncio.run(self.ask(t))", 0, id="a loop that nests"),
        pytest.param("async def execute", "f = lambda: asyncio.run(self.ask(t))", 0, id="for another thread"),
    ],
)
def test_calls_that_need_an_event_loop(messages: Messages, write: Write, method: str, body: str, count: int) -> None:
    source = f"import asyncio\n{IMPORTS}{CLASS}    {method}(self, t):\n        {body}\n"
    findings = write({f"{CALLER}/1/model.py": source}).check()
    found = messages.of(each for each in findings if each.code == "CT186")
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


COMPLETE = f"{CLASS}{EXECUTE}    @staticmethod\n    def auto_complete_config(c):\n        "


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(
            f"{CLASS}    def execute(self, r): return [pb_utils.InferenceResponse(outputs=[])]", 1, id="response"
        ),
        pytest.param(f"{CLASS}    def execute(self, r): return [pb_utils.Tensor(name='x', array=r)]", 2, id="tensor"),
        pytest.param(f"{CLASS}{EXECUTE}    def a(self): pb_utils.InferenceRequest(model='x')", 1, id="request"),
        pytest.param(
            f"{CLASS}{EXECUTE}    def a(self): pb_utils.InferenceRequest(model_name='bert', inputs=OTHERS)",
            1,
            id="a request without outputs",
        ),
        pytest.param(
            f"{CLASS}{EXECUTE}    def a(self): pb_utils.InferenceRequest(model_name='bert', **OTHERS)",
            0,
            id="any request",
        ),
        pytest.param(f"{CLASS}    def execute(self, r): return pb_utils.Tensor(r, 'OUT')", 1, id="exchanged"),
        pytest.param(
            f"{CLASS}{EXECUTE}    def a(self, t): pb_utils.InferenceResponse(pb_utils.Tensor('o', t))", 1, id="one"
        ),
        pytest.param(f"{CLASS}    def execute(self, r): pb_utils.get_input_tensor_by_name(r, 'IN')", 1, id="of all"),
        *(
            pytest.param(f"{CLASS}{EXECUTE}    def a(self, r): pb_utils.Tensor({given})", count, id=given)
            for given, count in {
                "'OUT', [1.0]": 1,
                "'OUT', (1.0,)": 1,
                "'OUT', 1": 1,
                "'OUT', 'text'": 1,
                "'OUT', [x for x in r]": 1,
                "'OUT', r.tolist()": 1,
                "'OUT', list(r)": 1,
                "'OUT', pb_utils.get_input_tensor_by_name(r, 'IN')": 1,
                "'OUT', pb_utils.Tensor('OUT', r)": 1,
                "'OUT', r, [4]": 1,
                "'OUT'": 1,
                "": 1,
                "*r": 0,
                "'OUT', *r": 0,
                "'OUT', r": 0,
                "'OUT', pb_utils.get_input_tensor_by_name(r, 'IN').as_numpy()": 0,
            }.items()
        ),
        *(
            pytest.param(
                f"{CLASS}{EXECUTE}    def a(self, r):\n        {body}\n        pb_utils.Tensor('OUT', t)",
                count,
                id=body,
            )
            for body, count in {
                "t = pb_utils.get_input_tensor_by_name(r, 'IN')": 1,
                "t = pb_utils.Tensor('IN', r)": 1,
                "t = pb_utils.get_input_tensor_by_name(r, 'IN'); t = t.as_numpy()": 0,
                "t = pb_utils.get_input_tensor_by_name(r, 'IN').as_numpy()": 0,
                "t = pb_utils.get_input_tensor_by_name(r, 'IN'); (t := t.as_numpy())": 0,
                "t = pb_utils.get_input_tensor_by_name(r, 'IN'); [t for t in r]": 0,
            }.items()
        ),
        pytest.param(
            f"{CLASS}{EXECUTE}    def a(self, r): pb_utils.get_input_tensor_by_name(r, 'IDS').numpy()",
            1,
            id="a tensor's",
        ),
        pytest.param(
            f"{CLASS}{EXECUTE}    def a(self, t):\n        with t.assertRaises(TypeError): pb_utils.Tensor('OUT', 1)",
            0,
            id="expected",
        ),
        pytest.param(f"{COMPLETE}c.set_batch_size(8); return c", 1, id="a method of the configuration"),
        pytest.param(f"{COMPLETE}c.add_input({{'name': 'x', 'dtype': 'TYPE_FP32'}}); return c", 1, id="of an input"),
        pytest.param(f"{COMPLETE}c.add_output({{'name': 'x', 'optional': 1}}); return c", 1, id="of an output"),
        pytest.param(
            f"{COMPLETE}c.add_input({{'name': 'x', **OTHERS}}); c.set_max_batch_size(64); return c", 0, id="fine"
        ),
        pytest.param(
            f"{CLASS}    def execute(self, r): return [pb_utils.InferenceResponse(output_tensors=[], error=None)]",
            0,
            id="a response that is fine",
        ),
    ],
)
def test_names_of_the_servers_classes(messages: Messages, write: Write, source: str, count: int) -> None:
    findings = write({f"{CALLER}/1/model.py": f"{IMPORTS}OTHERS = {{}}\n{source}\n"}).check()
    found = messages.of(each for each in findings if each.code not in ("CT150", "CT177"))
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


LOOP = f"{CLASS}    def execute(self, requests):\n        for request in requests:\n            "


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(f"{LOOP}request.as_numpy()", 1, id="of a tensor"),
        pytest.param(f"{LOOP}print(request.model_name())", 1, id="of nothing"),
        pytest.param(f"{LOOP}if request.is_canceled(): pass", 1, id="asked by a condition"),
        pytest.param(f"{CLASS}    def execute(self, r): return [one.as_numpy() for one in r]", 1, id="comprehension"),
        pytest.param(
            f"{CLASS}    def execute(self, r): return [a.as_numpy() for i, a in enumerate(r)]", 1, id="enumerate"
        ),
        pytest.param(f"{CLASS}    def execute(self, r): return r[0].as_numpy()", 1, id="an index"),
        pytest.param(f"{CLASS}    async def execute(self, r): return [one.as_numpy() for one in r]", 1, id="async"),
        pytest.param(f"{LOOP}request.inputs(); request.request_id(); request.trace()", 0, id="methods of requests"),
        pytest.param(f"{LOOP}request.__class__", 0, id="of every object"),
        pytest.param(f"{LOOP}request = request.inputs()[0]; request.as_numpy()", 0, id="another value"),
        pytest.param(f"{LOOP}if requests: request.as_numpy()", 0, id="under a condition"),
        pytest.param(f"{LOOP}hasattr(request, 'labels') or exit(); request.labels()", 0, id="asked before"),
        pytest.param(
            f"{CLASS}    def execute(self, r):\n        try: r[0].labels()\n        except Exception: pass", 0, id="try"
        ),
        pytest.param(f"{LOOP}if self.old: continue\n            request.labels()", 0, id="after a way out"),
        pytest.param(f"{LOOP}with suppress(AttributeError): request.labels()", 0, id="an error suppressed"),
        pytest.param(
            f"{CLASS}    def execute(self, r): r = self.all(r); return [one.shape for one in r]", 0, id="other requests"
        ),
        pytest.param(f"{CLASS}{EXECUTE}    def a(self, r): return [one.shape for one in r]", 0, id="another method"),
    ],
)
def test_methods_of_requests(messages: Messages, write: Write, source: str, count: int) -> None:
    findings = write({f"{CALLER}/1/model.py": f"{IMPORTS}{source}\n"}).check()
    found = messages.of(each for each in findings if each.code == "CT186")
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


@pytest.mark.parametrize(("release", "count"), [("23.09", 1), ("23.10", 0), ("26.07", 0)])
def test_a_method_of_requests_that_came_with_a_release(
    messages: Messages, write: Write, release: str, count: int
) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    findings = write({f"{CALLER}/1/model.py": f"{IMPORTS}{LOOP}request.is_cancelled()\n"}).check(platform=platform)
    found = messages.of(each for each in findings if each.code == "CT186")
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


@pytest.mark.parametrize(
    ("call", "since"),
    [
        ("pb_utils.InferenceRequest('m', [], []).exec(decoupled=True)", "23.03"),
        ("self.asked.async_exec(decoupled=True)", "23.03"),
        ("pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], parameters={})", "23.11"),
        ("pb_utils.InferenceResponse(output_tensors=[], parameters={})", "25.02"),
    ],
)
def test_a_parameter_that_came_with_a_release(messages: Messages, write: Write, call: str, since: str) -> None:
    repository = write({f"{CALLER}/1/model.py": f"{IMPORTS}{CLASS}{EXECUTE}    def ask(self): return {call}\n"})
    assert [each for each in repository.check() if each.code == "CT186"] == []
    for release, count in (("23.02", 1), (since, 0)):
        platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
        found = messages.of(each for each in repository.check(platform=platform) if each.code == "CT186")
        assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count


@pytest.mark.parametrize(("release", "count"), [("26.07", 1), ("26.08", 0)])
def test_newer_releases_may_have_more_methods(messages: Messages, write: Write, release: str, count: int) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    findings = write({f"{CALLER}/1/model.py": f"{IMPORTS}{LOOP}request.labels()\n"}).check(platform=platform)
    found = messages.of(each for each in findings if each.code == "CT186")
    assert found == [("CT186", f"{CALLER}/1/model.py", "")] * count
