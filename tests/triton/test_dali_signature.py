"""A DALI pipeline is compared with config.pbtxt as Triton's backend does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton._dali_signature import PipelineSignature, PipelineTensor, signature_fault

if TYPE_CHECKING:
    from golden_messages import Messages

PIPELINE = PipelineSignature([PipelineTensor("IMG", "TYPE_UINT8", 1)], [PipelineTensor("__Resize_2", "TYPE_FP32", 3)])
UNDECLARED = PipelineSignature([PipelineTensor("IMG", None, None)], [PipelineTensor("__Resize_2", None, None)])
UNNAMED = PipelineSignature([PipelineTensor("__ExternalSource_0", None, None), *PIPELINE.inputs], PIPELINE.outputs)


def tensor(name: str, data_type: str, *dims: int) -> dict[str, Any]:
    return {"name": name, "data_type": data_type, "dims": list(dims)}


IMAGE = tensor("IMG", "TYPE_UINT8", -1)
RESULT = tensor("OUT", "TYPE_FP32", 3, 224, 224)


@pytest.mark.parametrize(
    ("pipeline", "inputs", "outputs", "max_batch_size"),
    [
        (PIPELINE, [IMAGE], [RESULT], 8),
        (PIPELINE, [tensor("IMG", "TYPE_UINT8", -1, -1)], [tensor("OUT", "TYPE_FP32", -1, 3, 224, 224)], 0),
        (PIPELINE, [], [], 8),
        (UNDECLARED, [tensor("IMG", "TYPE_FP32", 7, 7)], [tensor("OUT", "TYPE_INT64", 1)], 8),
        (PIPELINE, [tensor("IMG", "TYPE_INVALID")], [tensor("OUT", "TYPE_INVALID")], 8),
    ],
    ids=["equal", "without batches", "completed by Triton", "undeclared", "left open"],
)
def test_a_pipeline_that_fits(
    pipeline: PipelineSignature, inputs: list[Any], outputs: list[Any], max_batch_size: int
) -> None:
    assert signature_fault(pipeline, inputs, outputs, max_batch_size) is None


@pytest.mark.parametrize(
    ("pipeline", "inputs", "outputs"),
    [
        (PIPELINE, [IMAGE, tensor("MASK", "TYPE_UINT8", -1)], [RESULT]),
        (PipelineSignature([*PIPELINE.inputs, PipelineTensor("MASK", None, None)], []), [IMAGE], []),
        (UNNAMED, [IMAGE], [RESULT]),
        (PipelineSignature(PIPELINE.inputs, PIPELINE.outputs * 2), [IMAGE], [RESULT]),
        (PIPELINE, [IMAGE], [RESULT, RESULT]),
        (PIPELINE, [tensor("IMG", "TYPE_FP32", -1)], [RESULT]),
        (PIPELINE, [IMAGE], [tensor("OUT", "TYPE_UINT8", 3, 224, 224)]),
        (PIPELINE, [tensor("IMG", "TYPE_UINT8", -1, -1, 3)], [RESULT]),
        (PIPELINE, [IMAGE], [tensor("OUT", "TYPE_FP32", -1)]),
    ],
    ids=[
        "an input that the pipeline lacks",
        "an input that config.pbtxt lacks",
        "a source without a name",
        "more outputs",
        "fewer outputs",
        "type of an input",
        "type of an output",
        "dimensions of an input",
        "dimensions of an output",
    ],
)
def test_a_pipeline_that_does_not_fit(
    messages: Messages, pipeline: PipelineSignature, inputs: list[Any], outputs: list[Any]
) -> None:
    fault = signature_fault(pipeline, inputs, outputs, 8)
    assert fault is not None
    messages.record("failure.json", fault)
