"""The rule CT184: whether `initialize` of a Python model finds what it takes."""

from __future__ import annotations

import textwrap
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
    "a file that it writes": "open(os.path.join(args['model_repository'], 'words.txt'), 'w')",
    "a file that is nowhere": "open(os.path.join(args['model_repository'], 'made.txt'))",
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


def test_a_model_that_completes_its_configuration_is_not_judged(write: Write) -> None:
    more = "    @staticmethod\n    def auto_complete_config(c): return c\n"
    body = "json.loads(args['model_config'])['input'][1]"
    assert write(model(body, more), base={}).check() == ()
