"""The rules CT870 to CT878 about definitions of pipelines, and DALI as their judge."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format
from tests.dali_models.definitions import COMPLETED, CONTRADICTING, FAULTY, OTHER_TYPE, SOUND, WITHOUT_INPUT, Case

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton._dali_signature import PipelineSignature, signature_faults, signature_of
from cdk_triton.dali_models.configured import configured_tensors
from cdk_triton.dali_models.reader.serialized import serialized_pipeline
from cdk_triton.triton import ModelConfig
from cdk_triton_local.triton.backends.dali_definition import has_dali

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

CASES = {**SOUND, **FAULTY, **CONTRADICTING, **COMPLETED, **OTHER_TYPE, **WITHOUT_INPUT}


def repository(write: Write, case: Case) -> ModelRepository:
    return write({"model/config.pbtxt": case.config, "model/1/dali.py": case.text}, base={})


@pytest.mark.parametrize("name", CASES)
def test_what_the_rules_find(messages: Messages, write: Write, name: str) -> None:
    case = CASES[name]
    assert [code for code, _, _ in messages.of(repository(write, case).check())] == list(case.found)


@pytest.mark.parametrize(
    ("line", "found"),
    [("import cv2", ["CT873"]), ("import json", []), ("import numpy", []), ("if False: import cv2", [])],
    ids=["of no image", "of Python", "of every image", "never"],
)
def test_a_module_that_the_image_lacks(messages: Messages, write: Write, line: str, found: list[str]) -> None:
    case = SOUND["one input"]
    models = repository(write, case._replace(source=f"{line}\n{case.source}"))
    platform = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")
    assert [code for code, _, _ in messages.of(models.check(platform=platform))] == found
    assert not models.check()


@pytest.mark.skipif(not has_dali(), reason="the extra dali is not installed")
def test_dali_agrees(tmp_path: Path) -> None:
    for case in CASES.values():
        fails = bool({"CT870", "CT871", "CT872", "CT873"} & set(case.found))
        try:
            signature = serialized(case.text, tmp_path)
        except Exception:  # DALI's own and Python's: anything
            assert fails, case
            continue
        assert not fails, case
        config = text_format.Parse(case.config, ModelConfig())
        faults = list(signature_faults(signature, *configured_tensors(config), config.max_batch_size))
        assert any(not fault.is_completed for fault in faults) == ("CT874" in case.found), case
        assert (not signature.inputs) == ("CT877" in case.found), case
        if "CT875" in case.found:
            assert any(fault.is_completed for fault in faults), case


def serialized(text: str, directory: Path) -> PipelineSignature:
    """What the backend's own command makes of a definition; the reader of `model.dali` reads the same."""
    from nvidia import dali
    from nvidia.dali._utils.autoserialize import invoke_autoserialize

    source, target = directory / "dali.py", directory / "model.dali"
    source.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("autoserialize_mod", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["autoserialize_mod"] = module
    spec.loader.exec_module(module)
    invoke_autoserialize(module, str(target))
    found = signature_of(Path(dali.__file__).parent, target.read_bytes(), 8, on_gpu=False)
    assert found is not None
    read = serialized_pipeline(target)
    assert read == found or (read is None and "inputs.video" in text), "the reader does not know inputs of videos"
    return found
