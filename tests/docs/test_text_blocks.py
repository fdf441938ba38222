"""The texts of the pages hold: the output of commands, messages, requirements, and formulas with their results."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from tests.docs.blocks import ROOT, Block, is_shown, of_kind
from tests.hosting.conftest import PLAN_NETWORK, PLAN_SOURCE

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.resource_types.base import find
from sample_repositories import write

if TYPE_CHECKING:
    from sample_repositories import Write

__all__ = ["write"]  # a fixture

MESSAGE, REQUIREMENT, PUBLISHING, BUILDS, SERVING, COST, FINDINGS = of_kind("docs/test_text_blocks.py")
MODELS = {
    "bert/config.pbtxt": """
name: "bert"
platform: "onnxruntime_onnx"

input {
  name: "VECTOR"
  data_type: TYPE_FP32
  dims: 4
}
output { name: "SCORE" data_type: TYPE_FP32 dims: 1 }

max_batch_siz: 16
""".lstrip(),
    "network/config.pbtxt": PLAN_NETWORK,
    "network/1/model.onnx": PLAN_SOURCE,
    "cdk-triton.toml": 'produced = ["network/1/model.plan"]',
    "bert/1/model.onnx": "",
    "ensemble/config.pbtxt": """
platform: "ensemble"
max_batch_size: 8
input { name: "IDS" data_type: TYPE_INT32 dims: 4 }
output { name: "SCORE" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling {
  step {
    model_name: "network"
    model_version: -1
    input_map { key: "IDS" value: "IDS" }
    output_map { key: "VECTOR" value: "vector" }
  }
  step {
    model_name: "bert"
    model_version: -1
    input_map { key: "VECTOR" value: "vector" }
    output_map { key: "SCORE" value: "SCORE" }
  }
}
""",
    "ensemble/1/.gitkeep": "",
}
"""A repository whose text has each part of the page's: the misspelt field, and a plan with its network."""
COST_TABLE = "a first publication of 1 MB archives"
SECONDS = {"s": 1, "min": 60, "h": 3600}


def test_a_pipe_gets_the_text_of_the_page(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")  # a locale that is not installed, of which bash warns
    repository = write(MODELS, base={}).root
    repository.rename(repository.with_name("models"))
    command, shown = FINDINGS.text.removeprefix("$ ").split("\n", 1)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "CDK_TRITON_NO_CACHE": "1", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=repository.parent, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (shown, "")


def test_a_resource_type_that_is_not_modelled_has_the_message_of_the_page() -> None:
    (name,) = re.findall("'(.*?)'", MESSAGE.text)
    with pytest.raises(TemplateError) as raised:
        find(name)
    assert is_shown(str(raised.value), " ".join(MESSAGE.text.split())), raised.value


def test_the_requirement_allows_this_version_and_not_the_next_minor_one() -> None:
    requirement = Requirement(REQUIREMENT.text.strip())
    here = Version(version("cdk-triton"))
    assert requirement.name == "cdk-triton"
    assert here in requirement.specifier
    assert f"{here.major}.{here.minor + 1}.0" not in requirement.specifier


def formulas(block: Block) -> dict[str, str]:
    """Return the name and the expression of each formula; two spaces end it."""
    lines = (re.fullmatch(r"(\w+(?: \w+)?) *= (.+?)(?:  .*)?", line) for line in block.text.splitlines())
    return {match[1]: match[2] for match in lines if match}


def result(block: Block, name: str, symbols: Mapping[str, float]) -> float:
    return float(eval(formulas(block)[name], {"min": min, "max": max, "ceil": ceil}, dict(symbols)))


@pytest.mark.parametrize("block", [COST, PUBLISHING, BUILDS, SERVING], ids=str)
def test_the_page_explains_every_symbol(block: Block) -> None:
    assert len(formulas(block)) == len(block.text.splitlines())
    text = (ROOT / block.page).read_text(encoding="utf-8").replace(block.text, "")
    explained = {name for code in re.findall(r"`(.+?)`", text) for name in re.findall(r"[A-Za-z]\w*", code)}
    for formula in formulas(block).values():
        used = {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}
        assert used - {"min", "max", "ceil", "batch"} <= explained


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of a table: the first cell, and the others."""
    table = (ROOT / page).read_text(encoding="utf-8").partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    return {first: others for first, *others in cells}


@pytest.mark.parametrize(
    ("row", "name", "c"),
    [
        ("upload", "upload", 8),
        ("map, `c` = 8", "map", 8),
        ("map, `c` = 110", "map", 110),
        ("prepare", "prepare", 8),
        ("count", "count", 8),
    ],
)
def test_the_table_of_publishing_has_the_results_of_the_formulas(row: str, name: str, c: int) -> None:
    """From 1,000 ensembles on, because a map of 10 takes as long as its children, which run at once."""
    symbols = {"S": 1, "B": 12.5, "V": 1, "c": c, "r": 0.15, "v": 28}
    (seconds_of_change,) = re.findall(r"  d = (.+)", PUBLISHING.text)
    symbols["d"] = eval(seconds_of_change, {}, symbols)
    assert rows(PUBLISHING.page, "symbol")["`d`"][1] == f"{symbols['d']:.1f} s"
    shown = rows(PUBLISHING.page, "part | 10 ensembles")[row][1:]
    for count, cell in zip((1_000, 10_000, 1_000_000), shown, strict=True):
        seconds = result(PUBLISHING, name, {**symbols, "N": count})
        if cell == "below 1 s":
            assert seconds < 1
            continue
        number, unit = cell.split(",")[0].split()
        half_a_digit = 0.5 * 10 ** -len(number.partition(".")[2])
        assert float(number) == pytest.approx(seconds / SECONDS[unit], abs=half_a_digit)


@pytest.mark.parametrize(
    ("row", "prices"),
    [
        ("state transitions", {"p_t": 0.025 / 1_000}),
        ("functions", {"p_l": 0.00001667, "p_i": 0.20 / 1_000_000}),
        ("writing requests", {"p_w": 1}),
        ("reading requests", {"p_r": 1}),
    ],
)
def test_the_table_of_cost_has_the_results_of_the_formula(row: str, prices: dict[str, float]) -> None:
    free = dict.fromkeys(("p_t", "p_l", "p_i", "p_w", "p_r", "p_g"), 0)
    for count, cell in zip((10, 1_000, 10_000, 1_000_000), rows(COST.page, COST_TABLE)[row], strict=True):
        cost = result(COST, "publication", {"N": count, "t": 2, "d": 1.1, "l": 0, **free, **prices})
        if cell == "below 0.01 USD":
            assert cost < 0.01
        else:
            assert float(cell.split()[0].replace(",", "")) == pytest.approx(cost, abs=0.005)


def test_the_table_of_cost_has_the_storage_of_a_version() -> None:
    symbols = {"S": 0.001, "V": 1, "I": 0, "p_s": 1, "p_h": 1}
    counts = (10, 1_000, 10_000, 1_000_000)
    storage = [f"{result(COST, 'per month', {**symbols, 'N': count}):,g} GB" for count in counts]
    assert storage == rows(COST.page, COST_TABLE)["storage of one version"]


@pytest.mark.parametrize(
    ("block", "name", "symbols", "expected"),
    [
        (COST, "publication", "N=10 t=0 d=0 l=2 p_t=0 p_l=0 p_i=0 p_w=0 p_r=0 p_g=3", 60),
        (COST, "per month", "N=5 S=7 V=2 p_s=3 I=0 p_h=2", 210),
        (COST, "per month", "N=0 S=7 V=2 p_s=3 I=4 p_h=2", 5_840),
        (PUBLISHING, "upload", "N=1000 S=0.1 B=12.5 r=0.15", 37.5),
        (PUBLISHING, "upload", "N=1000 S=3 B=12.5 r=0.15", 240),
        (PUBLISHING, "prepare", "N=1000 V=10 r=0.15", 1.5),
        (PUBLISHING, "count", "N=50000 V=10 r=0.15", 543.75),  # 9 minutes, as the page says
        (BUILDS, "batch", "P=25 q=10", 3),
        (BUILDS, "builds", "P=25 q=10 batch=3 s=8 m=7", 29),
        (BUILDS, "builds", "P=65 q=10 batch=3 s=8 m=7", 87),
        (SERVING, "loaded", "I=2 G=24 g=3", 16),
        (SERVING, "loads", "Q=10 h=0.2", 8),
        (SERVING, "instances", "Q=10 R=10 h=0.2 w=5 k=2", 20),
        (SERVING, "instances", "Q=100 R=10 h=1 w=5 k=2", 10),
    ],
)
def test_a_formula_has_the_result_that_it_has_by_hand(block: Block, name: str, symbols: str, expected: float) -> None:
    """With values with which no other operator has the same result, and with each argument of `max` the largest."""
    values = {symbol: float(value) for symbol, value in (each.split("=") for each in symbols.split())}
    assert result(block, name, values) == pytest.approx(expected)


def test_the_builds_take_as_long_as_the_page_says() -> None:
    text = (ROOT / BUILDS.page).read_text(encoding="utf-8")
    assert "With `q` = 10, 8 minutes for `s` and 7 minutes for `m`, 100 archives take 78 minutes" in text
    minutes = {}
    for count in (100, 1_000, 1_000_000):
        symbols = {"P": count, "q": 10, "s": 8, "m": 7}
        minutes[count] = result(BUILDS, "builds", {**symbols, "batch": result(BUILDS, "batch", symbols)})
    assert minutes == {100: 78, 1_000: 13 * 60, 1_000_000: pytest.approx(1.5 * 365 * 24 * 60, rel=0.03)}


def test_the_example_of_serving_has_the_results_of_the_formulas() -> None:
    text = " ".join((ROOT / SERVING.page).read_text(encoding="utf-8").split())
    assert "10 requests per second for 10,000 ensembles, of which 100 are loaded. This causes 3.5 cold loads" in text
    assert "a load takes 5 seconds, and an instance performs one load at a time, these loads keep 18 instances" in text
    share = rows(SERVING.page, "ensembles loaded, on all instances")["100"][2]
    symbols = {"Q": 10, "R": 10, "h": float(share.removesuffix(" %")) / 100, "w": 5, "k": 1}
    assert result(SERVING, "loads", symbols) == pytest.approx(3.5)
    assert ceil(result(SERVING, "instances", symbols)) == 18
