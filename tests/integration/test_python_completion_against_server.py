"""CT190 before NVIDIA's own Python backend: what `auto_complete_config` may ask of a configuration, and what not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import indent

import pytest

from cdk_triton.triton import ModelRepository
from judging.server import Judge

CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""
BATCHES = "max_batch_size: 4\n"
SEQUENCES = (
    BATCHES + 'sequence_batching { control_input { name: "S" '
    "control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } } }\n"
)
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
EXECUTE = "    def execute(self, requests): return []\n"


def write(root: Path, more: str, body: str) -> ModelRepository:
    method = f"@staticmethod\ndef auto_complete_config(c):\n{indent(body, '    ')}\n    return c\n"
    (root / "model" / "1").mkdir(parents=True)
    (root / "model" / "config.pbtxt").write_text(CONFIG + more)
    (root / "model" / "1" / "model.py").write_text(f"class TritonPythonModel:\n{indent(method, '    ')}{EXECUTE}")
    return ModelRepository.from_directory(root)


def tensor(kind: str = "add_output", **changes: object) -> str:
    given = {"name": "OUT" if kind == "add_output" else "IN", "data_type": "TYPE_FP32", "dims": [4], **changes}
    return f"c.{kind}({ {name: value for name, value in given.items() if value is not None} })"


REJECTED: Mapping[str, tuple[str, str]] = {
    "another type": ("", tensor("add_input", data_type="TYPE_INT32")),
    "a number as type": ("", tensor(data_type=11)),
    "other dims": ("", tensor(dims=[-1])),
    "a tuple of dims": ("", tensor(dims=(4,))),
    "optional now": ("", tensor("add_input", optional=True)),
    "no name": ("", tensor(name=None)),
    "no type": ("", tensor(data_type=None)),
    "no dims": ("", tensor(dims=None)),
    "a list": ("", "c.add_output([{'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': [4]}])"),
    "two of a name": ("", tensor(name="NEW") + "; " + tensor(name="NEW", data_type="TYPE_INT8")),
    "a variable": ("", "new = dict(name='IN', data_type='TYPE_FP32', dims=[5])\nc.add_input(new)"),
    "a loop": ("", "new = [{'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [5]}]\nfor x in new:\n    c.add_input(x)"),
    "a lower batch size": (BATCHES, "c.set_max_batch_size(2)"),
    "a negative batch size": ("", "c.set_max_batch_size(-1)"),
    "a text as batch size": ("", "c.set_max_batch_size('8')"),
    "batches of sequences": (SEQUENCES, "c.set_dynamic_batching()"),
    "a policy that is no dict": ("", "c.set_model_transaction_policy(True)"),
    "a misspelt policy": ("", "c.set_model_transaction_policy({'decoupld': True})"),
    "another policy": (DECOUPLED, "c.set_model_transaction_policy({'decoupled': False})"),
    "another policy than the default": (
        "model_transaction_policy { }\n",
        "c.set_model_transaction_policy({'decoupled': True})",
    ),
}


@pytest.mark.parametrize(("more", "body"), REJECTED.values(), ids=REJECTED)
def test_what_the_configuration_cannot_become(tmp_path: Path, python_judge: Judge, more: str, body: str) -> None:
    repository = write(tmp_path / "repository", more, body)
    (finding,) = [each for each in repository.check() if each.code != "CT653"]  # that one is about being decoupled
    assert (finding.code, finding.severity.value) == ("CT190", "error")
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    assert finding.message.partition("'model': ")[2] in verdict.said


TAKEN: Mapping[str, tuple[str, str]] = {
    "the same": ("", tensor() + "; " + tensor("add_input", optional=False)),
    "new ones": ("", tensor(name="NEW", dims=(4,)) + "; " + tensor("add_input", name="NEW", optional=True)),
    "a greater batch size": (BATCHES, "c.set_max_batch_size(8)"),
    "dynamic batching": (BATCHES, "c.set_dynamic_batching()"),
    "the same policy": (DECOUPLED, "c.set_model_transaction_policy({'decoupled': True})"),
    "a policy": ("", "c.set_model_transaction_policy({'decoupled': True})\nc.set_model_transaction_policy({})"),
    "a condition": ("", f"if 'X' in c.as_dict():\n    {tensor(dims=[5])}"),
    "after a return": ("", f"if c.as_dict()['input']:\n    return c\n{tensor(dims=[5])}"),
    "in an attempt": ("", f"try:\n    {tensor(dims=[5])}\nexcept ValueError:\n    pass"),
    "a changed value": ("", "new = {'name': 'OUT', 'data_type': 'TYPE_FP32'}\nnew['dims'] = [4]\nc.add_output(new)"),
    "a value that a function changes": (
        "",
        "dims = [1, 2]\nlist(map(dims.remove, [1]))\ndims.append(4)\nlist(map(dims.remove, [2]))\n"
        "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': dims})",
    ),
    "a second value": ("", f"dims = [5]\ndims = [4]\n{tensor(dims='dims')}".replace("'dims'})", "dims})")),
    "a configuration that is changed": ("", f"c.as_dict()['output'][0]['dims'] = []\n{tensor(dims=[5])}"),
    "a new list": (
        "",
        "names = []\nfor x in c.as_dict()['input']:\n    names.append(x['name'])\n"
        "for x in [{'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [5]}]:\n"
        "    if x['name'] not in names:\n        c.add_input(x)",
    ),
}


@pytest.mark.parametrize(("more", "body"), TAKEN.values(), ids=TAKEN)
def test_what_it_can_become(tmp_path: Path, python_judge: Judge, more: str, body: str) -> None:
    repository = write(tmp_path / "repository", more, body)
    assert [each for each in repository.check() if each.code != "CT653"] == []
    assert python_judge(repository.root, ["model"]).loaded
