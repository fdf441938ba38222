"""The rule CT184: whether `initialize` of a Python model finds what it takes."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
parameters { key: "threshold" value { string_value: "0.5" } }
"""
HEAD = """import json
import os
from pathlib import Path
import triton_python_backend_utils as pb_utils
"""
EXECUTE = "    def execute(self, requests): return []\n"


def model(body: str, more: str = "") -> dict[str, str]:
    method = textwrap.indent(f"def initialize(self, args):\n{textwrap.indent(body, '    ')}\n", "    ")
    source = f"{HEAD}class TritonPythonModel:\n{method}{EXECUTE}{more}"
    return {
        "model/config.pbtxt": CONFIG,
        "model/1/model.py": source,
        "model/1/words.txt": "cat",
        "model/labels.txt": "cat",
    }


FAILS = {
    "an argument": "args['model_path']",
    "a text as an object": "args['model_config']['input']",
    "a text for the server's function": "pb_utils.get_input_config_by_name(args['model_config'], 'IN')",
    "no such tensor": "c = json.loads(args['model_config'])\npb_utils.get_output_config_by_name(c, 'out')['data_type']",
    "an attribute of nothing": (
        "c = json.loads(args['model_config'])\npb_utils.get_input_config_by_name(c, 'X').get('name')"
    ),
    "no such field": "json.loads(args['model_config'])['inputs']",
    "no such input": "self.c = json.loads(args['model_config'])\nself.c['input'][1]",
    "a list as an object": "json.loads(args['model_config'])['input']['IN']",
    "no such parameter": "c = json.loads(args['model_config'])\nc['parameters']['Threshold']",
    "a parameter without its value": "c = json.loads(args['model_config'])\nfloat(c['parameters']['threshold'])",
    "nothing as a number": "c = json.loads(args['model_config'])\nint(c['parameters'].get('size'))",
    "an object read again": "c = json.loads(args['model_config'])\njson.loads(c)",
    "a file above": "open(os.path.join(args['model_repository'], 'words.txt'))",
    "a file by a sum": "open(args['model_repository'] + '/words.txt')",
    "a file by a pattern": "with open(f\"{args['model_repository']}/words.txt\") as file: pass",
    "a file below": "Path(__file__).parent.joinpath\n(Path(__file__).parent / 'labels.txt').read_text()",
    "a file of codecs": "import codecs\ncodecs.open(os.path.join(args['model_repository'], 'words.txt'), 'r', 'utf-8')",
    "a file with an encoding": "open(os.path.join(args['model_repository'], 'words.txt'), encoding='utf-8')",
    "a file for a library": "import numpy as np\nnp.load(os.path.join(args['model_repository'], 'words.txt'))",
    "a table for a library": "import numpy as np\nnp.loadtxt(os.path.join(args['model_repository'], 'words.txt'))",
    "a module for a library": "import torch\ntorch.jit.load(os.path.join(args['model_repository'], 'words.txt'))",
    "a file beside": "open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'labels.txt'), 'rb')",
    "in an open file": "with open('/etc/hostname') as file:\n    args['path']",
    "in a condition": "if args['kind'] == 'GPU': pass",
    "after a condition": "if args: self.x = 1\nargs['path']",
}


@pytest.mark.parametrize("body", FAILS.values(), ids=FAILS)
def test_what_is_not_there(messages: Messages, write: Write, body: str) -> None:
    assert messages.of(write(model(body), base={}).check()) == [("CT184", "model/1/model.py", "")]


FINE = {
    "arguments": "args['model_name'], args['model_version'], int(args['model_instance_device_id'])",
    "a tensor": "c = json.loads(args['model_config'])\npb_utils.get_output_config_by_name(c, 'OUT')['data_type']",
    "fields": "c = json.loads(args['model_config'])\nc['input'][-1]['dims'], c['dynamic_batching'], c.get('x')",
    "a parameter": "c = json.loads(args['model_config'])\nfloat(c['parameters']['threshold']['string_value'])",
    "a default": "c = json.loads(args['model_config'])\nint(c['parameters'].get('size', {}).get('string_value', 1))",
    "a file of the version": (
        "open(os.path.join(args['model_repository'], args['model_version'], 'words.txt'))\n"
        "open(f\"{args['model_repository']}/{args['model_version']}/words.txt\")\n"
        "(Path(__file__).resolve().parent / 'words.txt').open()\n"
        "open(Path(args['model_repository']) / '1' / 'words.txt')"
    ),
    "a file of the model": "open(os.path.join(os.path.dirname(__file__), '..', 'labels.txt'))",
    "a file that it writes": (
        "open(os.path.join(args['model_repository'], 'words.txt'), 'w')\n"
        "open(os.path.join(args['model_repository'], 'words.txt'))"
    ),
    "a condition": "if 'path' in args:\n    args['path']",
    "an attempt": "try:\n    args['path']\nexcept KeyError:\n    pass",
    "after a return": "if args: return\nargs['path']",
    "either": "args.get('path') or args['model_name']\nTrue or args['path']",
    "a changed configuration": "c = json.loads(args['model_config'])\nc['x'] = 1\nc['x']",
    "a configuration that a function changes": "c = json.loads(args['model_config'])\nself.fill(c)\nc['x']",
    "an argument that is set": "args['path'] = 1\nargs['path']",
    "another value of the name": "args = {'path': 1}\nargs['path']",
    "an attribute that a method sets": ("self.c = json.loads(args['model_config'])\nself.fill(1)\nself.c['x']"),
    "a loop": "c = json.loads(args['model_config'])\nfor each in c['input']:\n    c = each['x']\nc['x']",
    "parts": "args[str(args)], [args[x] for x in args], lambda: args['path']",
}
FILL = "    def fill(self, c): self.c = {'x': 1}\n"


@pytest.mark.parametrize("body", FINE.values(), ids=FINE)
def test_what_may_be_there(write: Write, body: str) -> None:
    assert write(model(body, FILL), base={}).check() == ()


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("args['model_path']", 1),
        ("json.loads(args['model_config'])['parameters']['x']", 1),
        ("open(os.path.join(args['model_repository'], 'words.txt'))", 1),
        ("open(os.path.join(args['model_repository'], args['model_name'] + '.txt'))", 0),
        ("json.loads(args['model_config'])['name'] + args['model_name']", 0),
    ],
)
def test_the_entry_model_of_a_multi_model_endpoint(messages: Messages, write: Write, body: str, count: int) -> None:
    found = messages.of(write(model(body), base={}).check(mode="multi"))
    assert found == [("CT184", "model/1/model.py", "")] * count


def test_a_model_that_completes_its_configuration_is_not_judged(write: Write) -> None:
    more = "    @staticmethod\n    def auto_complete_config(c): return c\n"
    body = "json.loads(args['model_config'])['input'][1]"
    assert write(model(body, more), base={}).check() == ()


# What other code may change.

MORE = """import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
"""
LOADS = "def _load(self, n=0):\n    self.model = object()\n"
NONE = "self.model = None\n"
USES = "\nself.dim = self.model.hidden"
CONFIGURED = "config = json.loads(args['model_config'])\n"
THRESHOLD = "\nself.t = float(config['parameters']['threshold']['string_value'])"
HERE = "here = os.path.dirname(os.path.abspath(__file__))\n"


@dataclass(frozen=True)
class Sound:
    """A model that a server loads: the method's body, and what is around it."""

    body: str
    members: str = LOADS
    before: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


MODELS = {
    **{
        name: Sound(f"{NONE}{body}{USES}")
        for name, body in {
            "in both branches": "if args['model_instance_kind'] == 'GPU':\n    self._load()\nelse:\n    self._load(1)",
            "in a loop": "for n in range(2):\n    self._load(n)",
            "while": "while self.model is None:\n    self._load()",
            "in an attempt": "try:\n    self._load()\nexcept RuntimeError as error:\n    print(error)",
            "in a pool": "with ThreadPoolExecutor() as pool:\n    pool.submit(self._load)",
            "under a lock": "with threading.Lock():\n    self._load()",
            "with an open file": "with open('/etc/hosts') as file:\n    self._load(file)",
            "in a match": "match args:\n    case {'x': 1}:\n        self._load()\n    case _:\n        self._load(2)",
            "in a conditional expression": "self._load() if args else self._load(1)",
            "after or": "args.get('foo') or self._load()",
            "in an assertion": "assert self._load() is None",
            "in a comprehension": "[self._load(n) for n in range(1)]",
            "in +=": "n = 0\nn += self._load() or 0",
            "in a text": "print(f'{self._load()!r:>10}')",
            "in a subscript": "d = {}\nd[self._load()] = 1",
            "in a key": "d = {self._load(): 1}",
            "by another name": "me = self\nme._load()",
            "by a function": "def go():\n    self.model = object()\ngo()",
            "by a lambda": "(lambda: self._load())()",
        }.items()
    },
    "a method taken before": Sound(f"load = self._load\n{NONE}load(){USES}"),
    "a thread made before": Sound(f"t = threading.Thread(target=self._load)\n{NONE}t.start()\nt.join(){USES}"),
    "a function defined before": Sound(f"def go():\n    self.model = object()\n{NONE}go(){USES}"),
    "a property": Sound(
        f"{NONE}self.kind = 'x'{USES}",
        "@property\ndef kind(self): return 1\n@kind.setter\ndef kind(self, value): self.model = object()\n",
    ),
    "a variable of a function": Sound(
        "found = None\ndef work():\n    nonlocal found\n    found = object()\nwork()\nself.m = found.model"
    ),
    "a global variable": Sound(
        "global MODEL\nMODEL = None\nmake()\nself.m = MODEL.model",
        before="MODEL = None\ndef make():\n    global MODEL\n    MODEL = object()\n",
    ),
    "objects of another kind": Sound(
        "self.c = json.loads(args['model_config'], object_hook=lambda d: SimpleNamespace(**d))\nself.c.max_batch_size"
    ),
    "a loads of its own": Sound(
        "self.c = Config.loads(args['model_config'])\nself.b = self.c.batch",
        before="class Config:\n    batch = 1\n    @classmethod\n    def loads(cls, text): return cls()\n",
    ),
    "a loads of a helper": Sound(
        "self.c = loads(args['model_config'])\nself.b = self.c.batch",
        before="from helper import loads\n",
        files={"1/helper.py": "from types import SimpleNamespace\ndef loads(t): return SimpleNamespace(batch=1)\n"},
    ),
    "defaults by another name": Sound(
        f"{CONFIGURED}params = config['parameters']\nparams.setdefault('threshold', {{}}){THRESHOLD}"
    ),
    "a default by another name": Sound(
        f"{CONFIGURED}params = config['parameters']\nif 'threshold' not in params:\n    params['threshold'] = {{}}"
        f"{THRESHOLD}"
    ),
    "defaults in a loop": Sound(
        f"{CONFIGURED}for k, v in {{'threshold': 1}}.items():\n    config['parameters'].setdefault(k, v){THRESHOLD}"
    ),
    "defaults of a method": Sound(
        f"self.config = {CONFIGURED}self._fill(){THRESHOLD}",
        "def _fill(self):\n    self.config['parameters'].setdefault('threshold', {})\n",
    ),
    "defaults in an attempt": Sound(
        f"{CONFIGURED}try:\n    fill(config)\nexcept OSError:\n    pass{THRESHOLD}",
        before="def fill(c): c['parameters']['threshold'] = {}\n",
    ),
    "a file that it copies": Sound(
        f"{HERE}shutil.copy(os.path.join(here, '..', 'a.txt'), os.path.join(here, 'a.txt'))\n"
        "open(os.path.join(here, 'a.txt'))",
        files={"a.txt": "a"},
    ),
    "a file that it writes": Sound(
        f"{HERE}open(os.path.join(here, 'a.txt'), mode='w')\n(Path(__file__).parent / 'a.txt').open(mode='w')",
        files={"a.txt": "a"},
    ),
    "a file that it writes by keywords": Sound(
        "path = Path(__file__).parent / 'a.txt'\npath.write_text('a', encoding='utf-8')\npath.read_text()",
        files={"a.txt": "a"},
    ),
    "a file that it writes in another way": Sound(
        f"import io\n{HERE}path = os.path.join(here, 'a.txt')\nio.open(path, 'w').close()\nio.open(path)",
        files={"a.txt": "a"},
    ),
    "a value that may be missing": Sound(
        f"{CONFIGURED}found = config['parameters'].get('k')\nself.k = found['string_value'] if found else 'x'"
    ),
    "a value that is replaced": Sound("x = None\nif x is None:\n    x = object()\nself.c = x.__class__"),
}


@pytest.mark.parametrize("sound", MODELS.values(), ids=MODELS)
def test_what_other_code_may_change_is_open(write: Write, sound: Sound) -> None:
    method = f"def initialize(self, args):\n{textwrap.indent(sound.body, '    ')}\n"
    members = textwrap.indent(method + sound.members, "    ") + EXECUTE
    files = {
        "model/config.pbtxt": CONFIG,
        "model/1/model.py": f"{HEAD}{MORE}{sound.before}class TritonPythonModel:\n{members}",
        **{f"model/{name}": text for name, text in sound.files.items()},
    }
    assert [each for each in write(files, base={}).check() if each.severity.value == "error"] == []


@pytest.mark.parametrize("function", ["numpy.load", "numpy.loadtxt", "onnxruntime.InferenceSession", "os.listdir"])
def test_the_words_of_a_library(write: Write, function: str) -> None:
    module, _, name = function.rpartition(".")
    library = importlib.import_module(module)
    with pytest.raises(Exception) as raised:  # noqa: PT011  # its type is what the test compares
        getattr(library, name)("model/words.txt")
    repository = write(model(f"import {module}\n{function}(args['model_repository'] + '/words.txt')"), base={})
    (finding,) = repository.check()
    assert f": {raised.type.__name__}: {str(raised.value).rstrip('.')}" in finding.message
