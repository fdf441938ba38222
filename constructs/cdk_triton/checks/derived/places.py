"""The places of a model's tensors: the memory of the host, or that of a GPU.

Callers send and get tensors in the memory of the host, and texts are always there. The rest depends on the backend:

* ONNX Runtime reads and writes on the GPU if its instances are there, except for texts (onnxruntime_backend,
  src/onnxruntime.cc, 2050 to 2119). TensorRT does, too.
* The Python backend moves inputs to the host, unless `FORCE_CPU_ONLY_INPUT_TENSORS` is "no" (python_backend, README,
  "Input Tensor Device Placement"). Outputs are there too, unless the source hands over tensors by `from_dlpack`.
* DALI takes inputs in the memory of the host (dali_backend, src/dali_model_instance.cc, 244). Its outputs are where the
  last operator runs, which is the GPU in a pipeline that needs one.
* FIL holds both on the GPU if its instances are there and it transfers every batch, which a `transfer_threshold` of 0
  means. Otherwise it takes inputs from either, and writes to the host (fil_backend, src/model.h, 174 to 191).
* Instances of a group without a kind run on the GPU if there is one (core, src/model_config_utils.cc, 885 to 912).
  Every instance type of the library has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.dali_models.models import outputs_on_gpu
from cdk_triton.tree_models.parameters import number_in
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:
    from cdk_triton.checks.derived.configured import ConfiguredModel
    from cdk_triton.triton.model import Model
    from cdk_triton.triton.schema import ModelConfig

__all__ = ["Place", "is_on_gpu", "place_of_inputs", "place_of_instances", "place_of_outputs"]

Place = Literal["CPU", "GPU", ""]
"""`CPU` is the memory of the host; "" stands for either, or for what no file shows."""

_CERTAIN = ("dali", "fil", "onnxruntime", "pytorch", "tensorrt")
_ON_ITS_DEVICE = ("onnxruntime", "tensorrt", "pytorch", "openvino")
_LARGEST_SOURCE = 2**20


def place_of_instances(config: ModelConfig, backend: str) -> Place:
    """The processor of a model's instances; "" if they are on both, or an ensemble has none."""
    if not backend:
        return ""
    kinds = {group.kind for group in config.instance_group} or {0}
    if backend == "python" and kinds == {0}:
        return "CPU"  # its tensors are there, whatever the source computes on
    places = {"CPU" if kind == 2 else "GPU" for kind in kinds}  # KIND_CPU; KIND_AUTO, KIND_GPU and KIND_MODEL
    return "GPU" if places == {"GPU"} else "CPU" if places == {"CPU"} else ""


def place_of_inputs(config: ModelConfig, backend: str, data_type: str) -> Place:
    """The processor on which a model reads an input; "" if it takes the tensor from either."""
    if data_type == "STRING" or backend == "dali":
        return "CPU"
    if backend == "python":
        parameter = config.parameters["FORCE_CPU_ONLY_INPUT_TENSORS"] if _keeps_place(config) else None
        return "" if parameter is not None and parameter.string_value == "no" else "CPU"
    if backend == "fil":
        place = place_of_instances(config, backend)
        return place if place == "CPU" or _transfers_every_batch(config) else ""
    return place_of_instances(config, backend) if backend in _ON_ITS_DEVICE else ""


def _keeps_place(config: ModelConfig) -> bool:
    return "FORCE_CPU_ONLY_INPUT_TENSORS" in config.parameters


def place_of_outputs(model: Model, config: ModelConfig, backend: str, data_type: str) -> Place:
    """The processor on which a model writes an output."""
    if data_type == "STRING":
        return "CPU"
    if backend == "python":
        return "" if _may_write_on_gpu(model) else "CPU"
    if backend == "dali" or backend in _ON_ITS_DEVICE:
        return place_of_instances(config, backend)
    if backend == "fil":
        return place_of_instances(config, backend) if _transfers_every_batch(config) else "CPU"
    return ""


def is_on_gpu(each: ConfiguredModel, output: str) -> bool:
    """Whether a model certainly leaves an output in the memory of the GPU."""
    name = known_backend(each.context, each.model)
    if name not in _CERTAIN or "KIND_MODEL" in {enum_name(group, "kind") for group in each.config.instance_group}:
        return False
    types = {tensor.name: enum_name(tensor, "data_type").removeprefix("TYPE_") for tensor in each.config.output}
    if place_of_outputs(each.model, each.config, name, types.get(output, "")) != "GPU":
        return False
    return name != "dali" or (output in types and list(types).index(output) in outputs_on_gpu(each.context, each.model))


def _transfers_every_batch(config: ModelConfig) -> bool:
    """Whether FIL moves a batch of any size to the GPU of its instances."""
    given = config.parameters.get("transfer_threshold")
    return given is None or float(number_in(given.string_value, is_integer=True) or 0) == 0


def _may_write_on_gpu(model: Model) -> bool:
    """A Python source that calls `from_dlpack` can return tensors of the GPU."""
    sources = [file for file in model.files if file.path.suffix == ".py" and file.size < _LARGEST_SOURCE]
    return any(b"from_dlpack" in file.source.read_bytes() for file in sources)
