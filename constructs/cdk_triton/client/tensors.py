"""From numpy arrays to tritonclient's input tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy as np
    import numpy.typing as npt
    from tritonclient.http import InferInput

    Tensor: TypeAlias = npt.NDArray[np.generic] | Sequence[Any]
    """An array, or nested lists of text."""

__all__ = ["infer_input"]

# Triton's `src/http_server.cc` (`ReadDataFromJsonHelper`): "sending FP16 data via JSON is not supported".
_BINARY_ONLY = ("FP16", "BF16")


def infer_input(name: str | None, value: Tensor | InferInput, *, binary: bool) -> InferInput:
    """Return the input tensor for an array, or the tensor itself where the caller has made one.

    The data type follows from the array: bool → BOOL, (u)int8 to (u)int64 → (U)INT8 to (U)INT64, float16 to float64 →
    FP16 to FP64, `ml_dtypes.bfloat16` → BF16, `str`, `bytes` and objects that are either → BYTES. Lists may hold text
    only: what Python calls a number could be any of eleven types.

    Raises:
        ConfigurationError: the value is neither, its data type has no counterpart in Triton or cannot travel as JSON,
            or an `InferInput` stands under another tensor's name.
    """
    import numpy as np
    from tritonclient.http import InferInput
    from tritonclient.utils import np_to_triton_dtype

    if isinstance(value, InferInput):
        if name is not None and value.name() != name:
            raise ConfigurationError(
                f"input '{name}' is an InferInput for the tensor '{value.name()}': use one name for both"
            )
        return value
    if name is None:
        raise ConfigurationError(
            f"inputs without names must be tritonclient InferInputs, and one is of type {type(value).__name__}: "
            "give arrays as a mapping from tensor name to array"
        )
    if isinstance(value, list | tuple):
        value = _from_lists(name, value)
    if not isinstance(value, np.ndarray):
        raise ConfigurationError(
            f"input '{name}' is of type {type(value).__name__}: convert it with numpy.asarray(value, dtype=…), "
            "with the data type that the model's config.pbtxt says"
        )
    array = _sendable(name, value)
    datatype = np_to_triton_dtype(array.dtype)
    if datatype is None:
        raise ConfigurationError(
            f"input '{name}' has the data type {array.dtype}, which Triton does not know: "
            "use bool, an integer or floating-point type of up to 64 bits, str or bytes"
        )
    if not binary and datatype in _BINARY_ONLY:
        raise ConfigurationError(
            f"input '{name}' is {datatype}, which Triton accepts only as binary data: leave binary=True"
        )
    return InferInput(name, list(array.shape), datatype).set_data_from_numpy(array, binary_data=binary)


def _from_lists(name: str, value: Sequence[Any]) -> npt.NDArray[np.object_]:
    import numpy as np

    try:
        return np.array(value, dtype=object)
    except ValueError as error:
        raise ConfigurationError(f"input '{name}' is no tensor, for its rows differ in shape: {error}") from error


def _sendable(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array in a form that tritonclient understands; the caller's array stays as it is."""
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind == "O":
        for element in array.flat:
            # tritonclient would send str(element), so that None arrives as the text "None".
            if not isinstance(element, str | bytes):
                raise ConfigurationError(
                    f"input '{name}' has a value of type {type(element).__name__}, and a tensor of objects or a list "
                    "takes str and bytes only: make it numpy.asarray(value, dtype=…), with the type that "
                    "config.pbtxt says"
                )
        return array
    # Triton reads little-endian tensors; a big-endian array usually comes from a file or the network.
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
