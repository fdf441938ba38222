"""Finds and runs the pipeline definition of a DALI model, `dali.py`, with real DALI or the stand-in."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdk_triton._dali_signature import PipelineSignature, signature_of
from cdk_triton_local.triton.backends.dali_recorder import UnsupportedError, recording_modules
from cdk_triton_local.triton.backends.dali_serialized import read_stand_in

__all__ = ["BatchPipeline", "definition_file", "has_dali", "numpy_pipeline", "real_pipeline"]

Batch = Mapping[str, Sequence[NDArray[Any]]]


@dataclass(frozen=True)
class BatchPipeline:
    """A pipeline that is ready to run.

    Attributes:
        run: what the call does.
        signature: its inputs and outputs.
    """

    run: Callable[[Batch], list[list[NDArray[Any]]]]
    signature: PipelineSignature

    def __call__(self, batch: Batch) -> list[list[NDArray[Any]]]:
        """Per output the results of all samples; `batch` holds the samples per external source."""
        return self.run(batch)


def has_dali() -> bool:
    """Whether the extra `dali` is installed."""
    try:
        return importlib.util.find_spec("nvidia.dali") is not None
    except ModuleNotFoundError:
        return False


def definition_file(directory: Path, configured: str) -> Path:
    """The file that Triton's DALI backend would autoserialise (dali_backend: src/dali_model.h).

    Otherwise, the file with the definition that the stand-in for DALI wrote in the build step.

    Args:
        directory: the version directory.
        configured: `default_model_filename`, or nothing.

    Raises:
        ValueError: the version holds a serialised pipeline, or nothing.
    """
    model = directory / (configured or "model.dali")
    if model.exists() and model.suffix == ".py":
        return model
    if model.exists() and read_stand_in(model) is not None:
        return model
    if model.exists():
        raise ValueError(
            f"{model.name} is a serialised DALI pipeline, whose operators cannot be moved from the GPU to the CPU; "
            "ship dali.py with @autoserialize instead"
        )
    fallback = directory / "dali.py"
    if fallback.exists():
        return fallback
    raise ValueError(f"there is neither {model.name} nor dali.py in the version directory {directory.name}")


def numpy_pipeline(path: Path) -> BatchPipeline:
    """The pipeline of `path` in numpy and Pillow.

    Raises:
        ValueError: the file uses something that the stand-in does not support (`UnsupportedError`), or is not a
            pipeline definition.
    """
    with _in_place(recording_modules()):
        definition = _definition(path)
        try:
            pipeline = definition()
        except UnsupportedError:
            raise
        except Exception as error:  # the user's code: anything
            raise ValueError(f"the pipeline definition in {path.name} fails: {error!r}") from error

    def run(batch: Batch) -> list[list[NDArray[Any]]]:
        count = len(next(iter(batch.values())))
        samples = [pipeline.run({name: values[i] for name, values in batch.items()}) for i in range(count)]
        return [list(values) for values in zip(*samples, strict=True)]

    return BatchPipeline(run, pipeline.signature)


def real_pipeline(path: Path, *, batch_size: int, threads: int) -> BatchPipeline:
    """The pipeline of `path` in DALI, with every operator on the CPU.

    Raises:
        ValueError: the file is not a pipeline definition, or DALI cannot build it for the CPU.
    """
    _move_operators_to_cpu()
    definition = _definition(path)
    try:
        # No device id: with one, DALI insists on a CUDA driver. Like the backend, no batch ahead of the requests.
        pipeline = definition(batch_size=batch_size, num_threads=threads, device_id=None, prefetch_queue_depth=1)
        pipeline.build()
        signature = signature_of(_dali_package(), pipeline.serialize(), batch_size, on_gpu=False)
    except RuntimeError as error:
        raise ValueError(f"DALI cannot build the pipeline of {path.name} for the CPU: {error}") from error

    def run(batch: Batch) -> list[list[NDArray[Any]]]:
        for name, samples in batch.items():
            pipeline.feed_input(name, list(samples))
        return [[np.asarray(output.at(i)) for i in range(len(output))] for output in pipeline.run()]

    assert signature is not None  # this DALI is new enough
    return BatchPipeline(run, signature)


def _dali_package() -> Path:
    import nvidia.dali

    return Path(nvidia.dali.__file__).parent


def _move_operators_to_cpu() -> None:
    """Changes DALI in this process: its operators ignore `device="mixed"` and `device="gpu"`."""
    import nvidia.dali.fn
    from nvidia.dali.data_node import DataNode

    def on_cpu(operator: Callable[..., Any]) -> Callable[..., Any]:
        def call(*inputs: Any, **arguments: Any) -> Any:
            if arguments.get("device") in ("mixed", "gpu"):
                arguments["device"] = "cpu"
            return operator(*inputs, **arguments)

        return call

    DataNode.gpu = lambda node: node
    modules = [nvidia.dali.fn]
    while modules:
        module = modules.pop()
        for name, member in inspect.getmembers(module):
            if hasattr(member, "_schema_name"):
                setattr(module, name, on_cpu(member))
            elif inspect.ismodule(member) and member.__name__.startswith(f"{module.__name__}."):
                modules.append(member)


@contextmanager
def _in_place(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _definition(path: Path) -> Callable[..., Any]:
    stored = read_stand_in(path)
    source = path.read_text(encoding="utf-8") if stored is None else stored.source
    module = _module(path, source)
    if stored is None:
        return _autoserialized(module)
    function: Callable[..., Any] = getattr(module, stored.function)
    return function


def _module(path: Path, source: str) -> ModuleType:
    module = ModuleType("dali_model_definition")
    module.__file__ = str(path)
    try:
        exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102 - the user's own pipeline
    except UnsupportedError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("nvidia.dali"):
            raise UnsupportedError(f"the module {error.name}") from None
        raise ValueError(f"{path.name} cannot be imported: {error}") from error
    except Exception as error:  # the user's code: anything
        raise ValueError(f"{path.name} cannot be imported: {error!r}") from error
    return module


def _autoserialized(module: ModuleType) -> Callable[..., Any]:
    functions = filter(inspect.isfunction, vars(module).values())
    found = [function for function in functions if getattr(function, "_is_autoserialize", False)]
    if len(found) != 1:
        raise ValueError(
            f"the DALI model has {len(found)} functions decorated with @autoserialize, but it needs exactly one"
        )
    return found[0]
