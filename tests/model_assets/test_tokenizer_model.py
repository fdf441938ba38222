"""How texts become tokens: the model of the text ensemble without a server, and the call on the page of the tenants."""

from __future__ import annotations

import builtins
import io
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

FOOD = "A man is eating food."
LONGER = "A man is eating a piece of bread, and a woman is slicing an onion."
LONGER_TOKENS = 19
ROOT = Path(__file__).parents[2]
TYPES = {"OUTPUT0": "TYPE_INT64", "OUTPUT1": "TYPE_INT32"}


@pytest.fixture
def tokenizer(model_assets: Path, python_model: Callable[[Path], Any], no_network: None) -> Any:
    """The model, loaded from its own directory alone; its first output is declared with another type."""
    model = python_model(model_assets / "sentence_embedding/tokenizer/1")
    outputs = [{"name": name, "data_type": data_type, "dims": [-1]} for name, data_type in TYPES.items()]
    model.initialize({"model_config": json.dumps({"output": outputs})})
    return model


def request(*texts: str) -> dict[str, npt.NDArray[np.object_]]:
    return {"INPUT0": np.array([[text.encode()] for text in texts], dtype=np.object_)}


def test_the_texts_of_all_requests_are_padded_to_the_longest_of_them(tokenizer: Any) -> None:
    first, second = tokenizer.execute([request(FOOD), request("Hi", LONGER)])
    assert first["OUTPUT0"].shape == (1, LONGER_TOKENS)
    assert second["OUTPUT0"].shape == (2, LONGER_TOKENS)
    assert second["OUTPUT1"].sum(axis=1).tolist() == [3, LONGER_TOKENS]


def test_the_type_of_the_mask_does_not_depend_on_the_other_output(tokenizer: Any) -> None:
    (answer,) = tokenizer.execute([request(FOOD)])
    assert answer["OUTPUT1"].dtype == np.int32


def test_no_file_is_opened_and_nothing_is_logged_for_a_request(
    tokenizer: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def reject(file: object, *arguments: Any, **options: Any) -> None:
        raise AssertionError(f"{file} is opened")

    caplog.set_level(logging.DEBUG)
    with monkeypatch.context() as during:
        during.setattr(builtins, "open", reject)
        during.setattr(io, "open", reject)
        tokenizer.execute([request(FOOD, LONGER)])
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("model_assets", "no_network")
def test_the_call_for_a_tenant_truncates_with_a_tokenizer_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/reference_systems/tensorrt_tenants.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^answer = ", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(code.replace(FOOD, "water " * 1000), names)
    assert {name: (array.shape, array.dtype) for name, array in names["inputs"].items()} == {
        "token_ids": ((2, 256), np.int32),
        "attn_mask": ((2, 256), np.int32),
    }
