"""The rules CT142 to CT144, CT162, CT163 and CT177: whether the server can use the class of a Python model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

IMAGE = f"example.com/triton@sha256:{'0' * 64}"
NAMES = "import shared; from shared import change, fix, make, other, run, traced, x\n"
EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
INITIALIZE = "    def initialize(self): pass\n"
COMPLETE = "    @staticmethod\n    def auto_complete_config(c):\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(CLASS + EXECUTE, id="the least"),
        pytest.param(CLASS + "    async def execute(self, requests): return []", id="a coroutine"),
        pytest.param(CLASS + "    def execute(self, requests, *, log=None): return []", id="a default"),
        pytest.param(CLASS + "    def execute(*args): return []", id="any number"),
        pytest.param(CLASS + "    @traced\n    def execute(self): return []", id="a decorator may do anything"),
        pytest.param(CLASS + "    execute = run", id="assigned"),
        pytest.param("from shared import Base\nclass TritonPythonModel(Base): pass", id="inherited"),
        pytest.param("from shared import TritonPythonModel", id="imported"),
        pytest.param("from shared import Model as TritonPythonModel", id="imported under the name"),
        pytest.param("from shared import *", id="everything imported"),
        pytest.param("TritonPythonModel = make()", id="made"),
        pytest.param("globals()['TritonPythonModel'] = object", id="made in a roundabout way"),
        pytest.param("class Model: pass\nlocals()['Triton' + 'PythonModel'] = Model", id="made with locals"),
        pytest.param("class Model: pass\nvars()['TritonPythonModel'] = Model", id="made with vars"),
        pytest.param("import sys\nsetattr(sys.modules[__name__], 'TritonPythonModel', object)", id="made with setattr"),
        pytest.param("import shared\ndef __getattr__(name): return getattr(shared, name)", id="made when asked for"),
        *(
            pytest.param(f"{CLASS}{EXECUTE}    def __getattr__(self, name): {body}", id=f"any attribute: {body}")
            for body in ("return lambda *given: None", "raise AttributeError(name)", "return getattr(dict, name)")
        ),
        pytest.param("with shared.make() as TritonPythonModel: pass", id="made by a statement with a body"),
        pytest.param(
            CLASS + "    def initialize(self, args): self.execute = self._gpu if args else self._cpu\n"
            "    def _gpu(self, requests): return []\n    def _cpu(self, requests): return []",
            id="a method of the instance",
        ),
        pytest.param(
            CLASS + "    def initialize(self, args): setattr(self, 'exe' + 'cute', print)",
            id="an attribute of some name",
        ),
        pytest.param(
            CLASS + "    def execute(self): pass\nTritonPythonModel.execute = lambda self, requests: []",
            id="a method that is replaced",
        ),
        pytest.param(f"if True:\n    {CLASS}        def execute(self, requests): return []", id="in a condition"),
        pytest.param(
            CLASS
            + "    limit: int = 3\n    @staticmethod\n    def auto_complete_config(config): return config\n"
            + "    def initialize(self, args): pass\n    def finalize(self): pass\n"
            + EXECUTE,
            id="all methods",
        ),
        pytest.param(CLASS + EXECUTE + r"    pattern = '\d'", id="what is only a warning"),
        pytest.param("\ufeff# -*- coding: utf-8 -*-\n" + CLASS + EXECUTE, id="a byte order mark"),
        pytest.param(
            "def make():\n    global TritonPythonModel\n    class TritonPythonModel: pass\nmake()", id="made global"
        ),
        pytest.param("match object:\n    case TritonPythonModel: pass", id="captured"),
        pytest.param("class A: pass\n(TritonPythonModel := A)", id="assigned in an expression"),
        pytest.param("import sys\nsys.modules[__name__].TritonPythonModel = object", id="set on the module"),
        pytest.param(CLASS + "    pass\nsetattr(TritonPythonModel, 'execute', print)", id="set afterwards"),
        pytest.param(CLASS + INITIALIZE + EXECUTE + "    del initialize", id="deleted"),
        pytest.param(
            CLASS + EXECUTE + "    if x:\n        def initialize(self, a): pass\n    else:\n    " + INITIALIZE,
            id="one of two",
        ),
        pytest.param("class M(type): pass\nclass TritonPythonModel(metaclass=M):\n" + INITIALIZE, id="a metaclass"),
        pytest.param(CLASS + INITIALIZE + "    def __getattribute__(self, name): return print", id="__getattribute__"),
        pytest.param("@change\n" + CLASS + INITIALIZE, id="a decorator of the class"),
        pytest.param(CLASS + INITIALIZE + "change(TritonPythonModel)", id="given to a function"),
        pytest.param(CLASS + INITIALIZE + "for c in [TritonPythonModel]: c.initialize = print", id="set in a loop"),
        pytest.param(
            "class Base:\n    def __init_subclass__(cls): cls.initialize = print\nclass TritonPythonModel(Base):\n"
            + INITIALIZE,
            id="changed by its base",
        ),
        pytest.param(CLASS + "    def __new__(cls): return Other()\n" + INITIALIZE, id="another object"),
        pytest.param(
            "from shared import Base\nclass TritonPythonModel(Base):\n" + INITIALIZE, id="a base from elsewhere"
        ),
        pytest.param(
            "from dataclasses import dataclass, field\nfrom typing import ClassVar\n@dataclass\n"
            + CLASS
            + "    a: ClassVar[int]\n    b: int = 1\n    c: int = field(init=False)\n"
            + EXECUTE,
            id="a dataclass that needs nothing",
        ),
        pytest.param(
            "import abc\nclass Base(abc.ABC):\n    @abc.abstractmethod\n    def execute(self, r): ...\n"
            + "class TritonPythonModel(Base):\n"
            + EXECUTE,
            id="abstract, and defined",
        ),
        *(
            pytest.param(CLASS + EXECUTE + COMPLETE + f"        {body}", id=body)
            for body in (
                "return c",
                "if c: return c",
                "raise ValueError",
                "import sys; sys.exit(1)",
                "while True:\n            return c",
                "with open('x'): return c",
                "c = fix(c); return c",
                "return (c)",
                "return fix(c)",
                "return c or None",
            )
        ),
        pytest.param(
            CLASS + EXECUTE + COMPLETE + "        pass\n" + COMPLETE + "        return c", id="the second counts"
        ),
        pytest.param(
            CLASS
            + EXECUTE
            + COMPLETE
            + "        pass\ntype.__setattr__(TritonPythonModel, 'auto_complete_config', print)",
            id="set in a roundabout way",
        ),
    ],
)
def test_sound(write: Write, source: str) -> None:
    assert write({"preprocess/1/model.py": f"{source}\n{NAMES}"}).check() == ()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param("import numpy", "CT142", id="CT142 no class"),
        pytest.param(CLASS + "    limit = 3", "CT143", id="CT143 no execute"),
        pytest.param(CLASS + "    def execute(requests): return []", "CT144", id="CT144 execute without self"),
        pytest.param(
            CLASS + EXECUTE + "    def initialize(self): pass", "CT144", id="CT144 initialize without arguments"
        ),
        pytest.param(
            CLASS + EXECUTE + "    def auto_complete_config(self, config): return config",
            "CT144",
            id="CT144 auto_complete_config that is not static",
        ),
        pytest.param(
            CLASS + EXECUTE + "    def __init__(self, *, path): pass",
            "CT144",
            id="CT144 a constructor with an argument",
        ),
        *(
            pytest.param(source, "CT142", id=f"CT142 {name}")
            for name, source in {
                "deleted": CLASS + EXECUTE + "del TritonPythonModel",
                "never": "if False:\n    class TritonPythonModel: pass",
                "as a program": "if __name__ == '__main__':\n    class TritonPythonModel: pass",
                "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    class TritonPythonModel: pass",
                "in a class": "class A:\n    class TritonPythonModel: pass",
                "in a function": "def make():\n    class TritonPythonModel: pass\nmake()",
                "a method called eval": "class A:\n    def execute(self, requests): self.network.eval()",
            }.items()
        ),
        pytest.param("class Base: pass\nclass TritonPythonModel(Base): pass", "CT143", id="CT143 inherited"),
        *(
            pytest.param(source, "CT144", id=f"CT144 {name}")
            for name, source in {
                "a lambda": CLASS + EXECUTE + "    initialize = lambda self: None",
                "a function": "def start(self): pass\n" + CLASS + EXECUTE + "    initialize = start",
                "inherited": "class Base:\n" + INITIALIZE + "class TritonPythonModel(Base):\n" + EXECUTE,
                "of the second base": "class A:\n"
                + EXECUTE
                + "class B:\n"
                + INITIALIZE
                + "class TritonPythonModel(A, B): pass",
                "another name": "class Model:\n" + EXECUTE + INITIALIZE + "TritonPythonModel = Model",
                "used in the file": CLASS + EXECUTE + INITIALIZE + "if __name__ == '__main__': TritonPythonModel()",
                "__new__": CLASS + EXECUTE + "    def __new__(cls, path): return object.__new__(cls)",
                "a dataclass": "from dataclasses import dataclass\n@dataclass\n" + CLASS + "    path: str\n" + EXECUTE,
            }.items()
        ),
        *(
            pytest.param(CLASS + EXECUTE + COMPLETE + f"        {body}", "CT162", id=f"CT162 {body}")
            for body in (
                "pass",
                "return",
                "return 5",
                "return {}",
                "return c.add_input({})",
                "return c.as_dict()",
                "yield c",
                "c.set_max_batch_size(8)",
                "def inner(): return c",
                "return not c",
                "return lambda: c",
            )
        ),
        pytest.param(
            CLASS + EXECUTE + COMPLETE.replace("def", "async def") + "        return c", "CT162", id="CT162 a coroutine"
        ),
        *(
            pytest.param(source, "CT163", id=f"CT163 {name}")
            for name, source in {
                "a number": "TritonPythonModel = 5",
                "a module": "import json as TritonPythonModel",
                "an object": "class Model: pass\nTritonPythonModel = Model()",
                "an abstract class": "import abc\nclass Base(abc.ABC):\n    @abc.abstractmethod\n"
                "    def execute(self, r): ...\nclass TritonPythonModel(Base):\n    limit = 3",
                "an abstract property": "import abc\nclass TritonPythonModel(metaclass=abc.ABCMeta):\n    @property\n"
                "    @abc.abstractmethod\n    def path(self): ...\n" + EXECUTE,
                "a protocol": "from typing import Protocol\nclass TritonPythonModel(Protocol):\n" + EXECUTE,
                "an enumeration": "import enum\nclass TritonPythonModel(enum.Enum):\n" + EXECUTE,
                "any attribute": CLASS + EXECUTE + "    def __getattr__(self, name): return None",
                "an asynchronous constructor": CLASS + EXECUTE + "    async def __init__(self): pass",
                "a constructor that returns": CLASS + EXECUTE + "    def __init__(self): return []",
                "no function": CLASS + EXECUTE + "    initialize = None",
                "no execute": CLASS + "    execute = None",
            }.items()
        ),
    ],
)
def test_faults(messages: Messages, write: Write, source: str, code: str) -> None:
    findings = write({"preprocess/1/model.py": source}).check()
    assert messages.of(findings) == [(code, "preprocess/1/model.py", "")]


@pytest.mark.parametrize("count", [10, 900, 2000])
def test_a_long_chain_of_conditions_is_sound(write: Write, count: int) -> None:
    chain = "        if c == 0: return c\n" + "".join(f"        elif c == {each}: return c\n" for each in range(count))
    assert write({"preprocess/1/model.py": f"{CLASS}{EXECUTE}{COMPLETE}{chain}        else: return c\n"}).check() == ()


@pytest.mark.parametrize(
    ("argument", "codes"), [("--disable-auto-complete-config", []), ("--exit-timeout-secs=9", ["CT162"])]
)
def test_a_server_that_completes_nothing(write: Write, argument: str, codes: list[str]) -> None:
    environment = ContainerEnvironment(additional_args=(argument,))
    findings = write({"preprocess/1/model.py": CLASS + EXECUTE + COMPLETE + "        pass"}).check(
        environment=environment
    )
    assert [finding.code for finding in findings] == codes


UTILS = "import triton_python_backend_utils as pb\n"
MAKE = "[pb.InferenceResponse([]) for _ in requests]"


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        pytest.param(f"responses = {MAKE}", True, id="a forgotten return"),
        pytest.param("for r in requests: print(r); pb.InferenceResponse([])", True, id="in a loop"),
        pytest.param(f"return ({MAKE},)", True, id="a tuple"),
        pytest.param("return {}", True, id="a dictionary"),
        pytest.param(f"return tuple({MAKE})", True, id="made a tuple"),
        pytest.param("return pb.InferenceResponse([])", True, id="one response"),
        pytest.param(
            "out = []\n        for r in requests: out.append(pb.Tensor('x', r))\n        return out",
            True,
            id="collected",
        ),
        pytest.param(
            "out = []\n        for r in requests: out.append(pb.Tensor('x', r)); fix(out)\n        return out",
            False,
            id="collected, and changed elsewhere",
        ),
        pytest.param("return [pb.Tensor('x', r) for r in requests]", True, id="a list of tensors"),
        pytest.param("return [{'OUT': r} for r in requests]", True, id="a list of dictionaries"),
        pytest.param("for r in requests: yield pb.InferenceResponse([])", True, id="a generator"),
        pytest.param("return (pb.InferenceResponse([]) for r in requests)", True, id="a generator in brackets"),
        pytest.param("if requests: return {}\n        return ''", True, id="one of two wrong types"),
        pytest.param("if requests: return {}\n        return []", False, id="a list in some cases"),
        pytest.param(f"return {MAKE}", False, id="a list"),
        pytest.param("return self.answer(requests)", False, id="what a method returns"),
        pytest.param("pass", False, id="no response"),
        pytest.param("for r in requests: r.get_response_sender().send(pb.InferenceResponse([]), 1)", False, id="sent"),
        pytest.param("for r in requests: self.put(r, pb.InferenceResponse([]))", False, id="a request is handed on"),
        pytest.param("for i, r in enumerate(requests): self.put(r=r, x=pb.InferenceResponse)", False, id="by name"),
        pytest.param("self.requests = requests; pb.InferenceResponse([])", False, id="the requests are kept"),
        pytest.param("self.all += [(r, pb.InferenceResponse([])) for r in requests]", False, id="kept in pairs"),
        pytest.param("for r in requests: self.put((r, pb.InferenceResponse([])))", False, id="handed on in a pair"),
        pytest.param("pb.InferenceResponse([]); self.all += requests", False, id="added to a list"),
        pytest.param("pb.InferenceResponse([]); self.all = self.all + requests", False, id="in a longer list"),
        pytest.param("pb.InferenceResponse([]); self.all = requests.copy()", False, id="a copy is kept"),
        pytest.param("pb.InferenceResponse([]); self.all = requests if self.ok else []", False, id="perhaps kept"),
        pytest.param("pb.InferenceResponse([]); self.all = self.ok and requests", False, id="kept by a word"),
        pytest.param(
            "pb.InferenceResponse([]); self.all = {r.request_id(): r for r in requests}",
            False,
            id="kept by their names",
        ),
        pytest.param(
            "for r in requests: self.all.update({r.request_id(): r}); pb.InferenceResponse([])",
            False,
            id="kept one by one",
        ),
        pytest.param("pb.InferenceResponse([]); self.all = list(enumerate(requests))", False, id="kept with numbers"),
        pytest.param("pb.InferenceResponse([]); self.later = lambda: requests", False, id="kept by a function"),
        pytest.param("pb.InferenceResponse([]); self.all = requests[1:]", False, id="some are kept"),
        pytest.param("for r in requests: pb.InferenceResponse([]); self.log.write(r)", False, id="another method"),
        pytest.param(
            "print(len(requests), requests[0].request_id())\n        for r in requests[:9]:\n"
            "            x = pb.get_input_tensor_by_name(r, 'IN'); pb.InferenceResponse(r.inputs())",
            True,
            id="read in all ways",
        ),
        pytest.param(
            "for i, r in enumerate(requests): pb.get_input_tensor_by_name(r, 'IN'); pb.InferenceResponse([])",
            True,
            id="with numbers",
        ),
        pytest.param(f"raise ValueError({MAKE})", False, id="no end"),
    ],
)
def test_what_execute_returns(messages: Messages, write: Write, body: str, *, is_found: bool) -> None:
    source = f"{UTILS}{CLASS}    def execute(self, requests):\n        {body}\n"
    files = {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": source}
    found = messages.of(each for each in write(files, base={}).check() if each.code == "CT177")
    assert found == ([("CT177", "model/1/model.py", "")] if is_found else [])


SENDS = "for r in requests: r.get_response_sender().send(pb.InferenceResponse([]), 1)"


@pytest.mark.parametrize(
    ("body", "release", "is_found"),
    [
        pytest.param(SENDS, "24.05", True, id="the last release that refuses"),
        pytest.param(SENDS, "24.06", False, id="the first release that sends"),
        pytest.param("self.all = requests", "24.05", True, id="kept"),
        pytest.param(
            f"if self.decoupled: {SENDS.replace('for r in requests: ', '')}\n        return []",
            "24.05",
            False,
            id="a list",
        ),
        pytest.param(f"if self.decoupled: return\n        return {MAKE}", "24.05", False, id="a list in some cases"),
        pytest.param("raise NotImplementedError", "24.05", False, id="no end"),
    ],
)
def test_a_model_that_sends_its_responses(
    messages: Messages, write: Write, body: str, release: str, *, is_found: bool
) -> None:
    source = f"{UTILS}{CLASS}    def execute(self, requests):\n        {body}\n"
    files = {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": source}
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    found = messages.of(each for each in write(files, base={}).check(platform=platform) if each.code == "CT177")
    assert found == ([("CT177", "model/1/model.py", "")] if is_found else [])


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        pytest.param(f"return {MAKE}", True, id="a list"),
        pytest.param(
            "out = []\n        for r in requests: out.append(pb.InferenceResponse([]))\n        return out",
            True,
            id="x",
        ),
        pytest.param("return None", False, id="nothing"),
        pytest.param("if requests: return []", False, id="nothing in some cases"),
        pytest.param("return self.execute(requests)", False, id="what a method returns"),
    ],
)
def test_what_execute_returns_in_decoupled_mode(messages: Messages, write: Write, body: str, *, is_found: bool) -> None:
    source = f"{UTILS}{CLASS}    def execute(self, requests):\n        {body}\n"
    config = 'backend: "python" model_transaction_policy { decoupled: true }'
    files = {"model/config.pbtxt": config, "model/1/model.py": source}
    found = messages.of(each for each in write(files, base={}).check() if each.code == "CT177")
    assert found == ([("CT177", "model/1/model.py", "")] if is_found else [])


@pytest.mark.parametrize(
    ("config", "more"),
    [
        pytest.param("model_transaction_policy { decoupled: true }", "", id="decoupled"),
        pytest.param("", f"{COMPLETE}        return c", id="perhaps decoupled"),
    ],
)
def test_a_model_that_may_be_decoupled(write: Write, config: str, more: str) -> None:
    source = f"{UTILS}{CLASS}    def execute(self, requests):\n        x = {MAKE}\n{more}"
    files = {"model/config.pbtxt": f'backend: "python" {config}', "model/1/model.py": source}
    assert "CT177" not in [finding.code for finding in write(files, base={}).check()]
