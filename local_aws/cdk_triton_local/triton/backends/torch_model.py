"""A TorchScript module behind a Triton model configuration, on the CPU.

It does what `src/pt/model_instance_state.cc` of pytorch_backend does, at 266fd386, and fails in its words.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cdk_triton.pytorch_models.naming import Naming, index_in, naming_of
from cdk_triton_local.triton.backends import unsupported

__all__ = ["TorchModel"]

_KINDS = (torch.TensorType, torch.ListType)


class TorchModel:
    """A module whose `forward` takes the inputs of the configuration.

    Args:
        path: the file of the model.
        config: the model configuration as Triton hands it to a backend (its JSON form).

    Raises:
        ValueError: the real backend would not load the model, or the stand-in does not do what it needs.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        if config.get("sequence_batching", {}).get("state"):
            raise ValueError(f"{unsupported('pytorch', 'sequence_batching.state')}; run the model on an endpoint")
        try:
            with warnings.catch_warnings():  # PyTorch deprecates TorchScript, the only format that runs here
                warnings.simplefilter("ignore", DeprecationWarning)
                self._module = torch.jit.load(str(path), map_location="cpu")
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"failed to load model '{config['name']}': {error}") from error
        if not hasattr(self._module, "forward"):
            raise ValueError("Method 'forward' is not defined.")
        arguments = self._module.forward.schema.arguments[1:]
        self._takes_dictionary = len(arguments) == 1 and isinstance(arguments[0].type, torch.DictType)
        names = [tensor["name"] for tensor in config["input"]]
        controls = [each["name"] for each in config.get("sequence_batching", {}).get("control_input", ())]
        if not self._takes_dictionary:
            _check_arguments(arguments, len(names) + len(controls), config["name"])
        self._places = _places(names, [each.name for each in arguments])
        self._places.update({name: index_in(name) or 0 for name in controls})
        outputs = [tensor["name"] for tensor in config["output"]]
        self._results = _places(outputs, [])
        self._types = {tensor["name"]: tensor["data_type"] for tensor in config["output"]}
        threads = config.get("parameters", {}).get("INTRA_OP_THREAD_COUNT", {}).get("string_value", "0")
        if int(threads) > 0:
            torch.set_num_threads(int(threads))

    def run(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Compute `outputs`, in this order; strings travel as bytes, as Triton has them."""
        given = {name: _argument(value) for name, value in tensors.items()}
        with torch.inference_mode():
            result = self._module(given) if self._takes_dictionary else self._module(*self._in_order(given))
        results = result if isinstance(result, tuple) else (result,)
        return [self._answer(name, results) for name in outputs]

    def _in_order(self, given: Mapping[str, Any]) -> list[Any]:
        arguments: list[Any] = [None] * len(given)
        for name, value in given.items():
            if self._places[name] >= len(arguments):
                raise ValueError(f"the input {name!r} has an index that forward does not have")
            arguments[self._places[name]] = value
        return arguments

    def _answer(self, name: str, results: tuple[Any, ...]) -> NDArray[Any]:
        place = self._results[name]
        if place >= len(results):
            raise ValueError(
                f"The output {name} in the model configuration refers to an output index which doesn't exist. This "
                f"model has {len(results)} outputs"
            )
        value, wanted = results[place], self._types[name]
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return np.array([each.encode() for each in value], dtype=object)
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"output '{name}' must be of type Tensor or List[str].")
        if value.dim() == 0:
            raise ValueError(f"output '{name}' is a scalar which is not supported.")
        array: NDArray[Any] = value.contiguous().numpy()
        if _type_of(array) != wanted:
            raise ValueError(
                f"configuration expects datatype {wanted} for output '{name}', model provides {_type_of(array)}"
            )
        return array


def _check_arguments(arguments: Sequence[Any], given: int, model: str) -> None:
    """Reject what the backend rejects about the signature."""
    for each in arguments:
        if not isinstance(each.type, _KINDS):
            raise ValueError(
                f"An input of type '{each.type}' was detected in the model. Only a single input of type Dict(str, "
                "Tensor) or input(s) of type Tensor are supported."
            )
    if len(arguments) != given:
        raise ValueError(
            f"unable to load model '{model}', configuration expects {given} inputs, model provides {len(arguments)}"
        )


def _places(names: Sequence[str], arguments: Sequence[str]) -> dict[str, int]:
    """The place of each name among the arguments, or with no arguments among the results."""
    naming = naming_of(names, arguments)
    if naming is Naming.ARGUMENT:
        return {name: arguments.index(name) for name in names}
    return {name: place if naming is Naming.ORDER else index_in(name) or 0 for place, name in enumerate(names)}


def _argument(value: NDArray[Any]) -> Any:
    if value.dtype == object:
        return [each.decode() for each in value.reshape(-1)]
    return torch.from_numpy(np.array(value))  # a copy: what Triton hands over cannot be written


def _type_of(array: NDArray[Any]) -> str:
    name = array.dtype.name.upper().replace("FLOAT", "FP")
    return f"TYPE_{name}"
