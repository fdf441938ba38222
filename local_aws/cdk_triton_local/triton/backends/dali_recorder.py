"""A small `nvidia.dali` that records what a pipeline definition calls, so that numpy can do it.

It has the operators of image classification: `fn.external_source`, `fn.decoders.image`, `fn.resize` and
`fn.crop_mirror_normalize`, each with a few arguments. It rejects every other operator at the line that names it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cdk_triton._dali_signature import PipelineSignature, PipelineTensor
from cdk_triton_local.triton.backends import dali_images, unsupported
from cdk_triton_local.triton.backends.dali_serialized import read_stand_in, write_stand_in

__all__ = ["Pipeline", "UnsupportedError", "recording_modules"]

_EXTRA: Final = "install DALI: pip install 'cdk-triton[dali]'"
_MODULES: Final = (
    "nvidia",
    "nvidia.dali",
    "nvidia.dali._utils",
    "nvidia.dali._utils.autoserialize",
    "nvidia.dali.fn",
    "nvidia.dali.fn.decoders",
    "nvidia.dali.pipeline",
    "nvidia.dali.plugin",
    "nvidia.dali.plugin.triton",
    "nvidia.dali.types",
)
_TYPES: Final = ("FLOAT", "FLOAT16", "UINT8", "RGB", "BGR")
_DEVICES: Final = ("cpu", "mixed", "gpu")
_PIPELINE_ARGUMENTS: Final = {"batch_size", "num_threads", "device_id"}  # about resources, which are Triton's here
_DECLARATIONS: Final = {"output_dtype", "output_ndim"}
_UNDECLARED: Final = PipelineTensor("", None, None)
_TRITON_TYPES: Final = {"FLOAT": "TYPE_FP32", "FLOAT16": "TYPE_FP16", "UINT8": "TYPE_UINT8"}

Sample = Mapping[str, NDArray[Any]]


class UnsupportedError(ValueError):
    """The pipeline uses a feature of DALI that the stand-in does not support."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{unsupported('DALI', what)}; {_EXTRA}")


@dataclass(frozen=True, eq=False)
class _Node:
    """`compute` gets the results of `inputs`."""

    compute: Callable[..., NDArray[Any]]
    inputs: tuple[_Node, ...] = ()

    def gpu(self) -> _Node:
        """Everything is on the CPU."""
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"DataNode.{name}")


def _no_arithmetic(node: _Node, *others: object) -> None:
    raise UnsupportedError("arithmetic on the results of operators")


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "neg", "getitem"):
    setattr(_Node, f"__{_name}__", _no_arithmetic)


@dataclass(frozen=True)
class Pipeline:
    """A recorded pipeline.

    Attributes:
        outputs: what the definition returned.
        signature: the external sources that the outputs need, and what is declared about both.
        definition: the function that defines it, or None.
    """

    outputs: tuple[_Node, ...]
    signature: PipelineSignature
    definition: Callable[..., Any] | None = None

    def serialize(self, *, filename: str) -> None:
        """Write a file that only the local backend can serve."""
        assert self.definition is not None  # _pipeline_def gives it
        write_stand_in(self.definition, Path(filename), self.signature)

    @staticmethod
    def deserialize(*, filename: str, num_threads: int, device_id: int, batch_size: int = 1) -> None:
        """Check that `serialize` wrote the file. Without a GPU, nothing is loaded."""
        if read_stand_in(Path(filename)) is None:
            raise UnsupportedError(f"the serialised pipeline {filename}")

    @staticmethod
    def stand_in_signature(*, filename: str) -> Mapping[str, Any]:
        """The signature of the pipeline in such a file; DALI itself has another way to it."""
        found = read_stand_in(Path(filename))
        assert found is not None  # `deserialize` has read it
        return found.signature

    def run(self, sample: Sample) -> list[NDArray[Any]]:
        """The outputs for one sample, given by the names of the external sources."""
        done: dict[_Node, NDArray[Any]] = {}

        def value(node: _Node) -> NDArray[Any]:
            if node not in done:
                arguments = [value(source) for source in node.inputs]
                done[node] = node.compute(*arguments) if arguments else node.compute(sample)
            return done[node]

        return [value(node) for node in self.outputs]


def recording_modules() -> dict[str, ModuleType]:
    """The modules to put into `sys.modules` while a pipeline definition is imported and called."""
    modules: dict[str, ModuleType] = {name: _Module(name) for name in _MODULES}
    for name, module in modules.items():
        module.__path__ = []
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    for operator in (_external_source, _resize, _crop_mirror_normalize):
        _add_operator(modules["nvidia.dali.fn"], operator)
    _add_operator(modules["nvidia.dali.fn.decoders"], _image)
    for name in _TYPES:
        setattr(modules["nvidia.dali.types"], name, name)
    for name in ("nvidia.dali", "nvidia.dali.pipeline"):
        setattr(modules[name], "pipeline_def", _pipeline_def)  # noqa: B010 a module is no class that mypy knows
    setattr(modules["nvidia.dali.pipeline"], "Pipeline", Pipeline)  # noqa: B010
    setattr(modules["nvidia.dali.plugin.triton"], "autoserialize", _autoserialize)  # noqa: B010
    setattr(modules["nvidia.dali._utils.autoserialize"], "invoke_autoserialize", _invoke_autoserialize)  # noqa: B010
    return modules


class _Module(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"{self.__name__}.{name}")


def _add_operator(module: ModuleType, operator: Callable[..., _Node]) -> None:
    name = operator.__name__.removeprefix("_")
    label = f"{module.__name__.removeprefix('nvidia.dali.')}.{name}"
    known = inspect.signature(operator).parameters

    @functools.wraps(operator)
    def call(*inputs: _Node, **arguments: Any) -> _Node:
        for argument in arguments.keys() - known.keys():
            raise UnsupportedError(f"the argument {argument} of {label}")
        device = arguments.get("device", "cpu")
        if device not in _DEVICES:
            raise UnsupportedError(f"device {device!r} of {label}")
        try:
            inspect.signature(operator).bind(*inputs, **arguments)
        except TypeError as error:
            raise UnsupportedError(f"this call of {label}: {error}") from None
        return operator(*inputs, **arguments)

    setattr(module, name, call)


def _external_source(
    *,
    source: object = None,  # which a serialised pipeline does not have
    name: str = "__ExternalSource_0",
    device: str = "cpu",
    dtype: str | None = None,
    ndim: int | None = None,
) -> _Node:
    if device != "cpu" or dtype not in (None, "UINT8") or ndim not in (None, 1):
        raise UnsupportedError("an external_source of anything but encoded images (device cpu, UINT8, one dimension)")
    declared = PipelineTensor(name, None if dtype is None else _TRITON_TYPES[dtype], ndim)
    return _Source(lambda sample: sample[name], declared=declared)


@dataclass(frozen=True, eq=False)
class _Source(_Node):
    declared: PipelineTensor = _UNDECLARED


def _image(encoded: _Node, *, device: str = "cpu", output_type: str = "RGB") -> _Node:
    if output_type not in ("RGB", "BGR"):
        raise UnsupportedError(f"output_type {output_type} of fn.decoders.image")
    decode = functools.partial(dali_images.decode_image, channels="BGR" if output_type == "BGR" else "RGB")
    return _Node(decode, (encoded,))


def _resize(image: _Node, *, resize_x: float, resize_y: float, device: str = "cpu") -> _Node:
    width, height = _whole(resize_x, "resize_x of fn.resize"), _whole(resize_y, "resize_y of fn.resize")
    return _Node(lambda pixels: dali_images.resize(pixels, width, height), (image,))


def _crop_mirror_normalize(
    image: _Node,
    *,
    device: str = "cpu",
    dtype: str = "FLOAT",
    output_layout: str = "CHW",
    crop: Sequence[float] | None = None,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
) -> _Node:
    label = "fn.crop_mirror_normalize"
    if output_layout not in ("HWC", "CHW"):
        raise UnsupportedError(f"output_layout {output_layout!r} of {label}")
    if dtype not in ("FLOAT", "FLOAT16"):
        raise UnsupportedError(f"dtype {dtype} of {label}")
    if crop is not None and (not isinstance(crop, Sequence) or len(crop) != 2):
        raise UnsupportedError(f"crop {crop!r} of {label}")
    normalise = functools.partial(
        dali_images.crop_mirror_normalize,
        crop=None if crop is None else (_whole(crop[0], f"crop of {label}"), _whole(crop[1], f"crop of {label}")),
        mean=_per_channel(mean, f"mean of {label}"),
        std=_per_channel(std, f"std of {label}"),
        layout="HWC" if output_layout == "HWC" else "CHW",
        dtype=np.float32 if dtype == "FLOAT" else np.float16,
    )
    return _Node(normalise, (image,))


def _whole(value: Any, label: str) -> int:
    if not isinstance(value, int | float) or value != int(value) or value < 1:
        raise UnsupportedError(f"{value!r} as {label}")
    return int(value)


def _per_channel(value: Any, label: str) -> NDArray[np.float32]:
    array = np.atleast_1d(np.asarray(value, np.float32))
    if array.shape not in ((1,), (3,)):
        raise UnsupportedError(f"{value!r} as {label}")
    return array


def _pipeline_def(definition: Callable[..., Any] | None = None, **arguments: Any) -> Any:
    for argument in arguments.keys() - _PIPELINE_ARGUMENTS - _DECLARATIONS:
        raise UnsupportedError(f"the argument {argument} of pipeline_def")
    if definition is None:
        return functools.partial(_pipeline_def, **arguments)

    @functools.wraps(definition)
    def build() -> Pipeline:
        returned = definition()
        outputs = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        if not all(isinstance(node, _Node) for node in outputs):
            raise UnsupportedError("a pipeline that returns anything but results of operators")
        inputs = [node.declared for node in _sources(outputs)]
        return Pipeline(outputs, PipelineSignature(inputs, _declared_outputs(outputs, arguments)), definition)

    build._is_pipeline_def = True  # type: ignore[attr-defined]  # as DALI marks its own
    return build


def _sources(nodes: Sequence[_Node]) -> list[_Source]:
    found = [node for node in nodes if isinstance(node, _Source)]
    found += [source for node in nodes for source in _sources(node.inputs)]
    return list(dict.fromkeys(found))


def _declared_outputs(outputs: Sequence[_Node], arguments: Mapping[str, Any]) -> list[PipelineTensor]:
    """What `pipeline_def` declares: one value for all outputs, or one for each."""
    columns = []
    for name in ("output_dtype", "output_ndim"):
        given = arguments.get(name)
        columns.append(list(given) if isinstance(given, list | tuple) else [given] * len(outputs))
        if len(columns[-1]) != len(outputs):
            raise UnsupportedError(f"{name} of pipeline_def for {len(columns[-1])} of {len(outputs)} outputs")
    rows = zip(*columns, strict=True)
    return [PipelineTensor(f"output {i}", _TRITON_TYPES.get(kind), ndim) for i, (kind, ndim) in enumerate(rows)]


def _autoserialize(pipeline: Any) -> Any:
    if not getattr(pipeline, "_is_pipeline_def", False):
        raise TypeError("Only `@pipeline_def` can be decorated with `@triton.autoserialize`.")
    pipeline._is_autoserialize = True  # DALI's own mark, for which its Triton backend looks too
    return pipeline


def _invoke_autoserialize(head_module: ModuleType, filename: str) -> None:
    functions = filter(inspect.isfunction, vars(head_module).values())
    marked = [function for function in functions if getattr(function, "_is_autoserialize", False)]
    if len(marked) != 1:
        raise RuntimeError(f"Precisely one autoserialize function must exist in the module. Found {len(marked)}.")
    marked[0]().serialize(filename=filename)
