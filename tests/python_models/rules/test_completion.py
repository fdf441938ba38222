"""The rule CT190: what `auto_complete_config` of a Python model asks of the configuration.

`integration/test_python_completion_against_server.py` asks the server about each kind of call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""
OTHER = "{'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [5]}"


def model(body: str, head: str = "@staticmethod\n    def auto_complete_config(c)", more: str = "") -> dict[str, str]:
    lines = "".join(f"        {line}\n" for line in [*body.split("\n"), "return c"])
    source = f"class TritonPythonModel:\n    {head}:\n{lines}    def execute(self, requests): return []\n{more}"
    return {"model/config.pbtxt": CONFIG, "model/1/model.py": source}


@pytest.mark.parametrize(
    "body",
    [
        f"c.add_input({OTHER})",
        f"c.add_input(input={OTHER})",
        f"new = [{OTHER}]\nfor each in new:\n    c.add_input(each)",
        "c.add_input({'name': 'IN', 'data_type': 11, 'dims': [4]})",
        "c.set_max_batch_size(4); c.set_max_batch_size(2)",
        "c.set_model_transaction_policy([])",
    ],
)
def test_what_contradicts_the_configuration(messages: Messages, write: Write, body: str) -> None:
    assert messages.of(write(model(body), base={}).check()) == [("CT190", "model/1/model.py", "")]


@pytest.mark.parametrize(
    "body",
    [
        f"new = {OTHER}\nnew.update(dims=[4])\nc.add_input(new)",
        f"new = {OTHER}\nalter(new)\nc.add_input(new)",
        f"fill(c)\nc.add_input({OTHER})",
        f"if c: return c\nc.add_input({OTHER})",
        f"if c: raise ValueError\nc.add_input({OTHER})",
        f"def later(): c.add_input({OTHER})",
        f"for name in c.as_dict():\n    c.add_input({OTHER})",
        f"for each in [{OTHER}]:\n    if each:\n        continue\n    c.add_input(each)",
        "c.add_input({**c.as_dict(), 'name': 'IN'})",
        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [N]})",
    ],
)
def test_what_is_open_is_not_judged(write: Write, body: str) -> None:
    files = model(body, more="N = 4\nalter = fill = print\n")
    assert write(files, base={}).check() == ()


@pytest.mark.parametrize(
    ("head", "more"),
    [
        ("@classmethod\n    def auto_complete_config(cls, c)", ""),
        ("@staticmethod\n    def auto_complete_config(c)", "TritonPythonModel.auto_complete_config = lambda c: c\n"),
    ],
)
def test_another_method_is_not_judged(write: Write, head: str, more: str) -> None:
    assert write(model(f"c.add_input({OTHER})", head, more), base={}).check() == ()


def test_nothing_is_said_where_the_server_completes_nothing(write: Write) -> None:
    environment = ContainerEnvironment(additional_args=("--disable-auto-complete-config",))
    assert write(model(f"c.add_input({OTHER})"), base={}).check(environment=environment) == ()
