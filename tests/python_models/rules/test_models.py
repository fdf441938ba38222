"""The rules CT140, CT141, CT160, CT161 and CT181: whether Python understands a model's source and what it imports."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
SMALL = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""


MATCH = CLASS + "    def execute(self, requests):\n        match requests:\n            case []: return []"


@pytest.mark.parametrize(("release", "codes"), [("23.03", ["CT141"]), ("23.05", []), ("25.09", []), (None, [])])
def test_syntax_of_a_newer_python(write: Write, release: str | None, codes: list[str]) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write({"preprocess/1/model.py": MATCH}).check(platform=platform)
    assert [finding.code for finding in findings if finding.code.startswith("CT14")] == codes


NEWER = ["type Requests = list", "def first[T](x: list[T]) -> T: ...", 'name = f"{", ".join([])}"']
DEEP = ["x = " + "-" * 100_000 + "1", "x = " + "+".join("1" * 100_000)]


@pytest.mark.parametrize("source", [*NEWER, *DEEP], ids=lambda source: source[:12])
def test_what_this_python_cannot_judge(write: Write, source: str) -> None:
    findings = write({"preprocess/1/model.py": f"{CLASS}{EXECUTE}{source}"}).check()
    known = ["CT140"] if source in DEEP else []
    assert [finding.code for finding in findings] == (known if sys.version_info >= (3, 12) else ["CT160"])


@pytest.mark.parametrize(("release", "codes"), [("24.09", ["CT140"]), ("25.09", ["CT160"])])
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the limits of this Python are others")
def test_what_exhausts_the_compiler(write: Write, release: str, codes: list[str]) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write({"preprocess/1/model.py": f"{CLASS}{EXECUTE}{DEEP[0]}"}).check(platform=platform)
    assert [finding.code for finding in findings if finding.code.startswith("CT1")] == codes


@pytest.mark.parametrize(
    "source",
    [
        "class TritonPythonModel\n    pass",
        *(
            f"{CLASS}{EXECUTE}{line}"
            for line in (
                "return 1",
                "await x",
                "break",
                "yield 1",
                "from __future__ import division",
                "def f(a, a): pass",
                "def f():\n    x = 1\n    global x",
                "def f():\n    await g()",
                "nonlocal x",
                "def f():\n    from x import *",
                "match x:\n    case a: pass\n    case b: pass",
                "f(a=1, a=2)",
                "*a",
                "x = (",
                'f"{}"',
                'f"{a b}"',
                'f"{x!z}"',
                'f"{x"',
                "x = '\\x'",
                "a\0",
            )
        ),
    ],
    ids=repr,
)
def test_syntax_errors(write: Write, source: str) -> None:
    assert [finding.code for finding in write({"preprocess/1/model.py": source}).check()] == ["CT140"]


@pytest.mark.parametrize(
    ("line", "files", "code", "path"),
    [
        pytest.param("from .text import clean", {}, "CT161", "1/model.py", id="missing"),
        pytest.param("from . import text", {}, "CT161", "1/model.py", id="missing, by name"),
        pytest.param("from .text import clean", {"1/text.py": "x = 1"}, "CT161", "1/model.py", id="lacks the name"),
        pytest.param("from ..text import clean", {"text.py": "clean = 1"}, "CT161", "1/model.py", id="beyond the top"),
        pytest.param("import p.text", {"p/__init__.py": ""}, "CT161", "1/model.py", id="missing in a package"),
        pytest.param("import text", {"1/text.py": "from . import x"}, "CT161", "1/text.py", id="no package"),
        pytest.param("from . import a", {"1/a.py": "from .b import c"}, "CT161", "1/a.py", id="missing, one further"),
        pytest.param("", {"1/__init__.py": "from .nope import x"}, "CT161", "1/__init__.py", id="of the package"),
        pytest.param("import text", {"1/text.py": "return"}, "CT140", "1/text.py", id="beside, wrong"),
        pytest.param("import text", {"text.py": "return"}, "CT140", "text.py", id="above, wrong"),
        pytest.param("from p import q", {"p/q.py": "return"}, "CT140", "p/q.py", id="in a directory, wrong"),
        pytest.param(
            "from p import q", {"p/__init__.py": "", "p/q.py": "return"}, "CT140", "p/q.py", id="module, wrong"
        ),
        pytest.param("import a", {"a.py": "import b", "b.py": "return"}, "CT140", "b.py", id="one further, wrong"),
        pytest.param("", {"1/__init__.py": "return"}, "CT140", "1/__init__.py", id="the package, wrong"),
    ],
)
def test_what_a_model_imports(
    messages: Messages, write: Write, line: str, files: Mapping[str, str], code: str, path: str
) -> None:
    named = {f"preprocess/{name}": text for name, text in files.items()}
    findings = write({"preprocess/1/model.py": f"{line}\n{CLASS}{EXECUTE}", **named}).check()
    assert messages.of(findings) == [(code, f"preprocess/{path}", "")]


@pytest.mark.parametrize(
    "body",
    [
        "    def initialize(self, args):\n        from .text import clean",
        "    def finalize(self):\n        from . import text",
        "    def __init__(self): self.load()\n    def load(self):\n        from .text import clean",
    ],
)
def test_an_import_in_a_method(messages: Messages, write: Write, body: str) -> None:
    findings = write({"preprocess/1/model.py": f"{CLASS}{EXECUTE}{body}\n"}).check()
    assert messages.of(findings) == [("CT161", "preprocess/1/model.py", "")]


@pytest.mark.parametrize(
    "body",
    [
        "    def other(self):\n        from .text import clean",
        "    def initialize(self, args):\n        if args:\n            from .text import clean",
        "    def initialize(self, args):\n        try:\n            from .text import clean\n"
        "        except ImportError: pass",
    ],
)
def test_an_import_that_may_never_run(write: Write, body: str) -> None:
    assert write({"preprocess/1/model.py": f"{CLASS}{EXECUTE}{body}\n"}).check() == ()


REFUSED = {
    "a built-in class": "class A(bool): pass",
    "order": "class A: pass\nclass B(object, A): pass",
    "twice": "class A: pass\nclass B(A, A): pass",
    "layouts": "class A(dict, list): pass",
    "slots": "class A:\n    __slots__ = ('a',)\n    def a(self): pass",
    "a function as a base": "def f(): pass\nclass A(f): pass",
    "an option": "class A(x=1): pass",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("file", ["model.py", "text.py"])
def test_a_class_that_python_rejects(messages: Messages, write: Write, source: str, file: str) -> None:
    files = {"preprocess/1/model.py": f"from . import text\n{CLASS}{EXECUTE}", "preprocess/1/text.py": ""}
    files[f"preprocess/1/{file}"] += f"{source}\n"
    assert messages.of(write(files).check()) == [("CT181", f"preprocess/1/{file}", "")]


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("from .text import clean", {"1/text.py": "clean = 1"}),
        ("from . import text", {"1/text.py": ""}),
        ("from . import text", {"1/__init__.py": "text = 1"}),
        ("from .p import q", {"1/p/q.py": ""}),
        ("from .text import a", {"1/text.py": "globals()['a'] = 1"}),
        ("from .text import a", {"1/text.py": "from .other import *", "1/other.py": "a = 1"}),
        ("from .text import a", {"1/text.py": "def __getattr__(name): return 1"}),
        ("from .text import a", {"1/__init__.py": "__path__ = ['x']"}),
        ("import text\ntext.a = 1\nfrom text import a", {"text.py": ""}),
        ("from p import Name", {"1/p/__init__.py": "from . import q", "1/p/q.py": "import p\np.Name = 1"}),
        ("import text", {"1/text.py": "", "text.py": "return"}),
        ("import sys\nsys.path.insert(0, 'x')\nimport text", {"1/text.py": "return"}),
        ("try:\n    from .text import clean\nexcept ImportError: pass", {}),
        ("def later():\n    import text", {"1/text.py": "return"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .text import clean", {}),
        ("import unknown.text", {}),
        (
            "import p.q.r",
            {"p/__init__.py": "", "p/q/__init__.py": "", "p/q/r.py": "from ..s import a", "p/s.py": "a = 1"},
        ),
    ],
)
def test_imports_that_may_be_right(write: Write, line: str, files: Mapping[str, str]) -> None:
    named = {f"preprocess/{name}": text for name, text in files.items()}
    assert write({"preprocess/1/model.py": f"{line}\n{CLASS}{EXECUTE}", **named}).check() == ()


# Sound models, in ways in which people write them.

HEAD = """import contextlib, json, logging, os
from dataclasses import dataclass
import numpy as np
import triton_python_backend_utils as pb_utils
"""
ANSWERS = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", self.take(each))]) for each in requests]

    def take(self, request):
        return pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
"""
SOUND = {
    "a class within a method": (
        "",
        "def initialize(self, args):\n    from http.server import BaseHTTPRequestHandler\n"
        "    class Handler(BaseHTTPRequestHandler):\n        def do_GET(self): self.send_response(200)\n"
        "    self.handler = Handler",
    ),
    "a function of the class": (
        "",
        "def _clean(text): return text.strip()\nNAMES = [_clean(' a ')]\n"
        "def initialize(self, args): self.n = TritonPythonModel._clean(' x ')",
    ),
    "a lambda with a self": (
        "",
        "def initialize(self, args): self.c = type('C', (), {'run': lambda self: self.speed, 'speed': 3})()",
    ),
    "a private attribute": (
        "",
        "def initialize(self, args):\n    self.__a = 1\n    self.b = self._TritonPythonModel__a",
    ),
    "an attempt in the end": (
        "",
        "def finalize(self):\n    try: self.server.stop()\n    except Exception: pass\n"
        "    with contextlib.suppress(Exception): self.pool.stop()",
    ),
    "loggers of the standard library": (
        "",
        "def initialize(self, args): list(logging.Logger.manager.loggerDict)",
    ),
    "tensors of another library": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "def initialize(self, args): self.x = torch and torch.Tensor([1.0], device='cpu')",
    ),
    "an execute of another class": (
        "class Step:\n    def execute(self, request): return pb_utils.get_input_tensor_by_name(request, 'IN')\n",
        "def initialize(self, args): self.step = Step()",
    ),
    "a default of auto_complete_config": (
        "TENSORS = {'IN': 1}\n",
        "@staticmethod\ndef auto_complete_config(c, tensors=TENSORS):\n    tensors.keys()\n    return c",
    ),
    "a second place for a file": (
        "",
        "def initialize(self, args):\n    try: self.f = open('labels.txt')\n"
        "    except FileNotFoundError: self.f = open(os.path.join(os.path.dirname(__file__), 'labels.txt'))",
    ),
    "a standard module, and one beside it": (
        "import tokenize\ntry:\n    from .tokenize import bpe\nexcept ImportError:\n    bpe = None\n",
        "def initialize(self, args):\n    from .tokenize import bpe as own\n    self.t = own, tokenize.tok_name",
    ),
    "slots and another name": (
        "",
        "__qualname__ = 'X'\n__slots__ = ('model',)\ndef initialize(self, args): self.model = 1",
    ),
}


@pytest.mark.parametrize(("before", "members"), SOUND.values(), ids=SOUND)
def test_nothing_is_said_of_a_sound_model(write: Write, before: str, members: str) -> None:
    body = indent(members, "    ")
    files = {"model.py": f"{HEAD}{before}class TritonPythonModel:\n{body}{ANSWERS}", "tokenize.py": "bpe = 1\n"}
    named = {f"model/1/{name}": text for name, text in {**files, "labels.txt": "a"}.items()}
    assert write({**named, "model/config.pbtxt": SMALL}, base={}).check() == ()


@pytest.mark.parametrize(
    "source",
    [
        "@dataclass\nclass Base:\n    path: str\n@dataclass\nclass TritonPythonModel(Base):\n    path: str = 'x'\n",
        "class Base:\n    def initialize(self, args): self.prepare()\n"
        "    def prepare(self):\n        import no_such_package\n        undefined()\n"
        "class TritonPythonModel(Base):\n    def initialize(self, args): Base.initialize(self, args)\n"
        "    def prepare(self): pass\n",
        f"class Impl:{ANSWERS}def make():\n    global TritonPythonModel\n    TritonPythonModel = Impl\n"
        "TritonPythonModel = None\nmake()\nclass Other:\n    pass\n",
    ],
    ids=["a default for a field of the base", "a method of the base that is replaced", "a class that a function makes"],
)
def test_nothing_is_said_of_a_sound_class(write: Write, source: str) -> None:
    files = {"model/1/model.py": f"{HEAD}{source}{ANSWERS}", "model/config.pbtxt": SMALL}
    assert write(files, base={}).check(platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")) == ()


@pytest.mark.parametrize("encoding", ["rot13", "base64", "undefined"])
def test_an_encoding_that_is_none_of_texts_is_an_error(messages: Messages, write: Write, encoding: str) -> None:
    files = {"model/1/model.py": f"# coding: {encoding}\n{HEAD}", "model/config.pbtxt": SMALL}
    assert messages.of(write(files, base={}).check()) == [("CT140", "model/1/model.py", "")]
