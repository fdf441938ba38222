"""The precision of a TensorRT plan, for each generation of TensorRT.

Up to TensorRT 10 a network is weakly typed unless it is declared otherwise: the builder may compute in any precision
that a flag allows. From 11 on every network is strongly typed, each tensor has the type in the ONNX file, and the flags
are gone (NVIDIA/TensorRT: samples/common/sampleOptions.cpp of v10.16 and v11.0; `trtexec_flags.json`). From then on, a
change of the network before the build replaces the flag.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from cdk_triton.artifacts.recipes.trtexec import major_version
from cdk_triton.errors import ConfigurationError
from cdk_triton.onnx_models.reader.types import NetworkTypes
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["PRECISIONS", "Precision", "check_precision", "precision_flags"]

Precision = Literal["fp32", "fp16", "bf16", "int8", "strongly_typed"]
PRECISIONS: Final = get_args(Precision)

_FIRST_STRONGLY_TYPED: Final = 11
_FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "fp32": (),
    "fp16": ("--fp16",),
    "bf16": ("--bf16",),
    "int8": ("--int8", "--fp16"),
    "strongly_typed": ("--stronglyTyped",),
}
# The floating-point types of a network for each precision that describes the network.
_TYPES: Final = {"fp32": {"FP32"}, "fp16": {"FP16", "FP32"}, "bf16": {"BF16", "FP32"}}
# https://nvidia.github.io/Model-Optimizer/guides/8_autocast.html and _onnx_quantization.html
_CONVERTERS: Final = {
    "fp16": "`python -m modelopt.onnx.autocast --keep_io_types --onnx_path …`",
    "bf16": "`python -m modelopt.onnx.autocast --keep_io_types --low_precision_type bf16 --onnx_path …`",
    "int8": "`python -m modelopt.onnx.quantization --onnx_path …`",
}


def precision_flags(precision: Precision, major: int) -> tuple[str, ...]:
    """The options of trtexec for a precision in a major version of TensorRT."""
    return () if major >= _FIRST_STRONGLY_TYPED else _FLAGS[precision]


def check_precision(
    recipe: str, precision: Precision, platform: ServingPlatform, release: str, types: NetworkTypes | None
) -> None:
    """Reject a precision that the platform or the network cannot have.

    Args:
        recipe: the recipe's name in messages: "TensorRTPlan('bert')".
        precision: the precision of the recipe.
        platform: the serving platform.
        release: the platform's release.
        types: the types of the network, or None if the app cannot read it.

    Raises:
        ConfigurationError: the platform or the network cannot have the precision.
    """
    if major_version(release) >= _FIRST_STRONGLY_TYPED:
        _check_strongly_typed(recipe, precision, release, types)
        return
    _check_has_flags(recipe, precision, types)
    if precision == "bf16" and tuple(map(int, platform.compute_capability.split("."))) < (8, 0):
        raise ConfigurationError(
            f"{recipe} has precision='bf16', but the {platform.gpu} of {platform.instance_type} (compute capability "
            f"{platform.compute_capability}) does not have BF16, which needs Ampere or newer: use precision='fp16'"
        )
    if precision == "int8" and types is not None and not types.is_quantized:
        # trtexec sets the same range for every tensor then: sampleEngines.cpp, setTensorDynamicRange.
        raise ConfigurationError(
            f"{recipe} has precision='int8', but its network has no QuantizeLinear or DequantizeLinear, so trtexec "
            f"would invent the ranges of all tensors: quantise the network first, with {_CONVERTERS['int8']}"
        )


def _check_has_flags(recipe: str, precision: Precision, types: NetworkTypes | None) -> None:
    """A weakly typed network may have no tensor of a type that no flag allows.

    TensorRT prints "fp16 precision has been set for a layer or layer output, but fp16 is not configured in the
    builder": https://github.com/NVIDIA/TensorRT/issues/3277.
    """
    for type_, flag in (("FP16", "--fp16"), ("BF16", "--bf16")):
        if types is not None and type_ in types.floats and not {flag, "--stronglyTyped"} & set(_FLAGS[precision]):
            raise ConfigurationError(
                f"{recipe} has precision={precision!r}, but its network has weights of {type_}, which TensorRT builds "
                f"with {flag} only: write precision={type_.lower()!r}, or 'strongly_typed' from TensorRT 10 on"
            )


def _check_strongly_typed(recipe: str, precision: Precision, release: str, types: NetworkTypes | None) -> None:
    if precision == "strongly_typed":
        return
    rule = f"TensorRT {major_version(release)} of Triton {release} keeps the types of the network"
    if types is None:
        if precision == "fp32":
            return
        raise ConfigurationError(
            f"{recipe} has precision={precision!r}, but {rule}, which the app cannot read before the build: write "
            f"precision='strongly_typed', and convert the network with {_CONVERTERS[precision]}"
        )
    if precision == "int8":
        if types.is_quantized:
            return
        found = "has no QuantizeLinear or DequantizeLinear"
    else:
        if (precision == "fp32" or precision.upper() in types.floats) and types.floats <= _TYPES[precision]:
            return
        found = f"has weights of {' and '.join(sorted(types.floats)) or 'no floating-point type'}"
    fix = f"convert the network with {_CONVERTERS[precision]}, or " if precision in _CONVERTERS else ""
    raise ConfigurationError(
        f"{recipe} has precision={precision!r}, but its network {found}, and {rule}: {fix}write "
        "precision='strongly_typed' to leave the network as it is"
    )
