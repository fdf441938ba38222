"""The table of ONNX Runtime's operators, from wheels that are made up."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.generate import GenerateError
from tools.generate._tables import content_sha256, header_faults
from tools.generate.onnxruntime_operators import table_of

if TYPE_CHECKING:
    from golden_messages import Messages

UNKNOWN: dict[str, Any] = {}  # the table could not be read
MODULE = """
from types import SimpleNamespace
def get_all_operator_schema():
    return [SimpleNamespace(domain=domain, name=name) for domain, name in {operators!r}]
"""
OLD = [("", "Relu"), ("com.microsoft", "Gelu"), ("com.microsoft", "Gelu"), ("ai.onnx.ml", "Scaler")]
NEW = [*OLD, ("com.microsoft", "Attention"), ("com.ms.internal.nhwc", "Conv")]


def wheel(folder: Path, version: str, operators: list[tuple[str, str]] | None) -> None:
    source = "raise ImportError('broken')" if operators is None else MODULE.format(operators=operators)
    with zipfile.ZipFile(folder / f"onnxruntime-{version}-cp311-cp311-linux_x86_64.whl", "w") as archive:
        archive.writestr("onnxruntime/__init__.py", "")
        archive.writestr("onnxruntime/capi/__init__.py", "")
        archive.writestr("onnxruntime/capi/onnxruntime_pybind11_state.py", source)


def test_the_first_version_of_each_operator(tmp_path: Path) -> None:
    wheel(tmp_path, "1.9.2", OLD)
    wheel(tmp_path, "1.10.0", NEW)
    table = table_of(tmp_path, UNKNOWN)
    assert table["versions"] == ["1.9", "1.10"]
    assert table["domains"] == {
        "com.microsoft": {"Attention": "1.10", "Gelu": "1.9"},
        "com.ms.internal.nhwc": {"Conv": "1.10"},
    }
    assert list(header_faults(table)) == []
    assert table["content_sha256"] == content_sha256(table)


def test_the_date_stays_while_the_operators_do(tmp_path: Path) -> None:
    wheel(tmp_path, "1.9.2", OLD)
    committed = {**table_of(tmp_path, UNKNOWN), "retrieved": "2026-01-02"}
    assert table_of(tmp_path, committed) == committed
    wheel(tmp_path, "1.10.0", NEW)
    assert table_of(tmp_path, committed)["retrieved"] != "2026-01-02"


@pytest.mark.parametrize(
    "wheels",
    [
        pytest.param({}, id="no wheel"),
        pytest.param({"1.9.2": NEW, "1.10.0": OLD}, id="an operator is lost"),
    ],
)
def test_what_cannot_become_a_table(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheels: dict[str, list[tuple[str, str]]]
) -> None:
    monkeypatch.chdir(tmp_path)
    for version, operators in wheels.items():
        wheel(tmp_path, version, operators)
    with messages.raises(GenerateError):
        table_of(Path(), UNKNOWN)


def test_a_wheel_that_does_not_answer(tmp_path: Path) -> None:
    wheel(tmp_path, "1.9.2", None)
    with pytest.raises(GenerateError):
        table_of(tmp_path, UNKNOWN)
