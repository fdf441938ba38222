"""CT296 and CT299: misspelt names of parameters, and placeholders in the place of their texts.

CT189, CT814 and CT852 have the names of the parameters of Python, tree and PyTorch models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cdk_triton.checks.configuration.model_options import READERS
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_FILL_TEMPLATE: Final = (
    "https://github.com/triton-inference-server/tensorrtllm_backend/blob/2d835db4936ec804d89109ea8bbe16a9a82baa2d/"
    "tools/fill_template.py#L16"
)
_PLACEHOLDER: Final = re.compile(r"\$\{\w+\}")
_NAMES_A_THING: Final = re.compile(r"(?:dir|directory|file|folder|name|path|uri|url)$", re.IGNORECASE)

# Backend → the parameters that it reads besides those whose values CT228 checks: src/onnxruntime.cc, src/openvino.cc,
# src/model_state.cc of tensorrt_backend, src/parameters.h of dali_backend.
_MORE = {
    "dali": ("num_threads", "split_along_outer_axis"),
    "onnxruntime": (
        "memory.enable_memory_arena_shrinkage",
        "session.use_device_allocator_for_initializers",
    ),
    "openvino": (
        "CPU_EXTENSION_PATH",
        "ENABLE_BATCH_PADDING",
        "RESHAPE_IO_LAYERS",
        "SKIP_OV_DYNAMIC_BATCHSIZE",
        "TARGET_DEVICE",
    ),
    "tensorrt": ("enable_multi_device", "multi_device_gpus", "multi_device_per_rank_engines"),
}


@rule(
    "CT296",
    Severity.WARNING,
    "a parameter has nearly the name of one that the backend reads",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 801, 895),
)
def misspelt_parameter(context: CheckContext) -> Iterator[Problem]:
    """The DALI, ONNX Runtime, OpenVINO and TensorRT backends ignore a parameter that they do not know.

    The server reports no error for a misspelt name, and serves the model without the setting.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "arena_extend_strategie" value { string_value: "1" } }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "arena_extend_strategy" value { string_value: "1" } }

    Limits:
        The rule reports a name only if it is similar to the name of a parameter.
    """
    suggestions = Suggestions()
    for each in configured(context):
        name_of = known_backend(context, each.model)
        if not each.config.parameters or name_of not in _MORE:
            continue
        known = {name.lower(): name for name in (*READERS.get(name_of, ()), *_MORE[name_of])}
        for name in sorted(set(each.config.parameters).difference(known.values())):
            meant = suggestions.closest(name.lower(), known)
            if meant is not None:
                yield each.problem(
                    f'parameters["{name}"]',
                    f"the backend {name_of} does not read the parameter {name!r} of {each.name!r}",
                    f"did you mean {known[meant]!r}?",
                )


@rule("CT299", Severity.WARNING, "a name or a path in a parameter is a placeholder", source=_FILL_TEMPLATE)
def placeholder(context: CheckContext) -> Iterator[Problem]:
    """A parameter with a name or a path has the placeholder of a template, such as `${tokenizer_dir}`.

    The script of TensorRT-LLM that fills such templates leaves a placeholder without a value in the file. The server
    does not replace it, so a Python model calls a model or opens a file of this name, which there is not.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "tokenizer_dir" value { string_value: "${tokenizer_dir}" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "tokenizer_dir" value { string_value: "/opt/ml/model/text/1/tokenizer" } }

    Limits:
        The rule checks the parameters of Python models whose name ends in a word such as `name`, `dir` or `path`. It
        skips a model whose code has the placeholder, or handles placeholders: it has the text `'${'`, or calls
        `expandvars` or `Template`.
    """
    for each in configured(context):
        if known_backend(context, each.model) != "python":
            continue
        for name, value in sorted(each.config.parameters.items()):
            text = value.string_value
            if _PLACEHOLDER.fullmatch(text) and _NAMES_A_THING.search(name) and not _is_expected(text, each.model):
                yield each.problem(
                    f'parameters["{name}"].string_value',
                    f"the parameter {name!r} of {each.name!r} is {text!r}, a placeholder that nothing replaces",
                    "write the value, or remove the parameter",
                )


def _is_expected(placeholder: str, model: Model) -> bool:
    handles = re.compile(rb"""['"]\$\{['"]|\bexpandvars\b|\bTemplate\(|""" + re.escape(placeholder).encode())
    sources = (file.source for file in model.files if file.path.suffix == ".py")
    return any(handles.search(source.read_bytes()) for source in sources)
