"""CT249: files with the texts of a warm-up."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.derived.warm_ups import TextElements, text_elements, warm_up_inputs
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_READ_TEXTS = ("onnxruntime", "python", "pytorch", "tensorflow")  # backend_common.cc, ValidateStringBuffer
_COUNTED_SINCE = "24.06"  # branches of core: from r24.06 on it counts the elements


@rule(
    "CT249",
    Severity.ERROR,
    "a warm-up file of text does not have the input's elements",
    source=core("src/infer_request.cc", 1325, 1440),
)
def other_elements(context: CheckContext) -> Iterator[Problem]:
    """The warm-up file of a `TYPE_STRING` input has more or fewer elements than the input's dims require.

    Each element of the file must be the length of a string in four bytes (little-endian), and then the string. A plain
    text file does not have this format. Servers from 24.06 on count the elements, and do not load the model if the
    number is wrong. The backends for ONNX, Python, PyTorch and TensorFlow also reject a file whose last string is cut
    off.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_STRING dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "typical" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_STRING dims: 1 input_data_file: "typical" } }
        }
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...
        # model/warmup/typical

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_STRING dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "typical" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_STRING dims: 1 zero_data: true } }
        }

    Limits:
        The rule does not count more than 100,000 elements.
    """
    if context.platform is not None and is_older(context.platform, _COUNTED_SINCE):
        return
    files = {file.path: file for file in context.repository.files}
    for each in warm_up_inputs(context):
        owner, given = each.warm_up.owner, each.given
        texts = {tensor.name for tensor in owner.config.input if enum_name(tensor, "data_type") == "TYPE_STRING"}
        is_text = each.name in texts and enum_name(given, "data_type") == "TYPE_STRING"
        if not is_text or not given.input_data_file or min(given.dims, default=0) < 1:
            continue
        place = named_file(context, owner.model.directory / "warmup", given.input_data_file)
        file = files.get(place.path) if place.path is not None else None
        if file is None:
            continue  # reported by CT221, or made by a build
        wanted, name = math.prod(given.dims), known_backend(context, owner.model)
        words = _fault(context.contents(text_elements, file), wanted, each.name, owner.name, name)
        if words is not None:
            yield Problem(
                file.path,
                f"{each.warm_up.text} of {owner.name!r} reads the input {each.name!r} from this file, whose "
                f"elements do not fit the input, so the server would not load the model: {words}",
                "write each element as the number of bytes of its text, not of characters, in four bytes "
                "(little-endian), then the text",
            )


def _fault(found: TextElements, wanted: int, name: str, model: str, backend_name: str) -> str | None:
    """The server's words about the elements of a file; None if they are right, or if the server does not count them."""
    what = f"for inference input '{name}' for model '{model}'"
    if found.count > wanted:
        return f"unexpected number of string elements {wanted + 1} {what}, expecting {wanted}"
    if not found.is_complete:
        return None
    if found.rest:
        return f"incomplete string length indicator {what}, expecting 4 bytes but only {found.rest} bytes available"
    if found.count != wanted:
        return f"expected {wanted} string elements {what}, got {found.count}"
    if found.cut_off is None or backend_name not in _READ_TEXTS:
        return None
    length, there = found.cut_off
    return (
        f"incomplete string data for inference input '{name}', expecting string of length {length} but only {there} "
        "bytes available"
    )
