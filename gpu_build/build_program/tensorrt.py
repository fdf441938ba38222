"""Builds a TensorRT plan with trtexec, runs it once, and compares it with `config.pbtxt` and with ONNX Runtime.

The step is described where it is written, `cdk_triton.artifacts.recipes.tensorrt`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Mapping, Sequence

from .engine_run import EngineRun, check_tensors, loading, run_engine
from .engine_speed import measure_speed
from .parity import Reference
from .step import BuildError, Report, Work
from .stop import Stop
from .tensors import Tensor, write_random, write_shape
from .trtexec import find_trtexec

__all__ = ["build"]

_STATIC = "Static model does not take explicit shapes"  # sampleEngines.cpp, setupNetworkAndConfig
# importFallbackPluginImporter of onnx-tensorrt (builtin_op_importers.cpp, onnxOpImporters.cpp)
_NO_PLUGIN = "Plugin not found, are the plugin name, version, and namespace correct?"
_SEARCHED = re.compile(r"Searching for plugin: (?P<operator>[^,\s]+),")
_NO_PARITY = {"checked": False, "reason": "switched off in the recipe (parity=None)"}
_FIRST_WITH_64_BITS = 10
_FIRST_WITH_STATIC_PLUGINS = (8, 6)


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Build the TensorRT plan of a step."""
    trtexec = _trtexec(step, work)
    onnx, plan = work.repository / step["onnx"], work.repository / step["plan"]
    plan.parent.mkdir(parents=True, exist_ok=True)
    # First, because a missing package index makes it fail, and a plan may take an hour.
    reference = None if step["parity"] is None else Reference(work, step["name"], onnx)
    _compile(step, work, trtexec, onnx, plan)
    declared = step["inputs"] or _inputs_of_network(reference, step["tensorrt_major"])
    compared, speed = [], []
    profiles = step["profiles"] or [{}]
    for index, profile in enumerate(profiles):
        directory = work.scratch / f"profile{index}"
        directory.mkdir()
        inputs, is_compared = [], reference is not None
        if reference is not None and "data" in step["parity"]:
            inputs = reference.write_data(work.repository / step["parity"]["data"], declared, directory)
            is_compared = _is_within(inputs, profile)
        if not inputs or not is_compared:
            inputs = _write_inputs(step, declared, profile, index, directory, work.stop)
        number = index if len(profiles) > 1 else None
        run = run_engine(
            work,
            step["name"],
            trtexec,
            plan,
            version=_version(work),
            inputs=inputs,
            directory=directory,
            profile=number,
        )
        _check(step, run, inputs)
        if reference is not None and is_compared:
            figures = reference.compare(run, inputs, step["parity"]["tolerance"])
            shapes = {tensor.name: list(tensor.dims) for tensor in inputs}
            compared.append({"profile": index, "inputs": shapes, **figures})
        speed.append(measure_speed(work, step["name"], [*trtexec, *loading(plan, inputs, number)]))
    report: Report = {"outputs": [step["plan"]], "parity": _NO_PARITY, "speed": speed}
    if reference is not None:
        if not compared:
            raise BuildError(
                f"{step['name']}: no profile accepts the shapes in {step['parity']['data']}, so nothing was compared: "
                "write arrays within a profile"
            )
        told = {name: step["parity"][name] for name in ("tolerance", "seed", "data") if name in step["parity"]}
        report["parity"] = {"checked": True, **told, "profiles": compared}
    return report


def _trtexec(step: Mapping[str, Any], work: Work) -> list[str]:
    """Trtexec, and the options that load plugins: `staticPlugins` as the server does it, where it exists."""
    found = find_trtexec()
    if found is None:
        raise BuildError(f"{step['name']}: there is no trtexec")
    option = "--staticPlugins" if _version(work) >= _FIRST_WITH_STATIC_PLUGINS else "--plugins"
    return [found, *(f"{option}={work.repository / path}" for path in step["plugins"])]


def _compile(step: Mapping[str, Any], work: Work, trtexec: Sequence[str], onnx: Path, plan: Path) -> None:
    def run(flags: Sequence[str]) -> None:
        work.run([*trtexec, f"--onnx={onnx}", f"--saveEngine={plan}", *flags], what="building the plan")

    try:
        run(step["flags"])
    except BuildError as error:
        if any(_NO_PLUGIN in line for line in error.log):
            raise _without_plugin(step, error) from error
        is_static = any(_STATIC in line for line in error.log)
        if step["flags_if_static"] is None or not is_static:
            raise
        run(step["flags_if_static"])
    if not plan.is_file() or plan.stat().st_size == 0:
        raise BuildError(f"{step['name']}: trtexec ended well and wrote no plan")


def _without_plugin(step: Mapping[str, Any], error: BuildError) -> BuildError:
    """An operator that TensorRT does not have is searched for among the plugins; the last search found none."""
    searched = [found["operator"] for found in map(_SEARCHED.search, error.log) if found is not None]
    operator = f"the operator {searched[-1]}" if searched else "an operator of the network"
    having = "none of the libraries in plugins has it" if step["plugins"] else "the recipe has no plugins"
    return BuildError(
        f"{step['name']}: TensorRT does not have {operator}, and {having}: name its library in plugins= of the recipe, "
        "or export the network without the operator",
        error.log,
    )


def _inputs_of_network(reference: Reference | None, major: int) -> list[dict[str, Any]]:
    """For a `config.pbtxt` without inputs. Without a reference, the list is empty and trtexec uses its own values."""
    tensors = [] if reference is None else reference.inputs()
    for tensor in tensors:
        # TensorRT has no 64 bits before 10 and no FP64 ever: its parser narrows them.
        if tensor["data_type"] == "TYPE_INT64" and major < _FIRST_WITH_64_BITS:
            tensor["data_type"] = "TYPE_INT32"
        elif tensor["data_type"] == "TYPE_FP64":
            tensor["data_type"] = "TYPE_FP32"
    return tensors


def _write_inputs(
    step: Mapping[str, Any],
    declared: Sequence[Mapping[str, Any]],
    profile: Mapping[str, Any],
    index: int,
    directory: Path,
    stop: Stop,
) -> list[Tensor]:
    """The shapes are those of `opt` in the profile."""
    parity = step["parity"] or {"ranges": {}, "seed": 0}
    inputs = []
    for number, entry in enumerate(declared):
        name, file = entry["name"], directory / f"input{number}.raw"
        usual = profile[name]["opt"] if name in profile else None
        # A profile bounds the values of a shape tensor, not its dimensions.
        if usual is not None and not _fits(usual, entry["dims"]):
            tensor = Tensor(name, entry["data_type"], (len(usual),), file, tuple(usual))
            write_shape(tensor)
        else:
            dims = [max(size, 1) for size in entry["dims"]] if usual is None else usual
            tensor = Tensor(name, entry["data_type"], tuple(dims), file)
            write_random(tensor, stop, seed=f"{parity['seed']}/{index}/{name}", bounds=parity["ranges"].get(name))
        inputs.append(tensor)
    return inputs


def _is_within(tensors: Sequence[Tensor], profile: Mapping[str, Any]) -> bool:
    """Whether a profile accepts the shapes of some inputs; a network without dynamic dimensions has none."""
    return all(
        tensor.name not in profile
        or (
            len(tensor.dims) == len(profile[tensor.name]["min"])
            and all(
                low <= size <= high
                for low, size, high in zip(profile[tensor.name]["min"], tensor.dims, profile[tensor.name]["max"])
            )
        )
        for tensor in tensors
    )


def _fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    return len(shape) == len(dims) and all(size in (-1, found) for size, found in zip(dims, shape))


def _check(step: Mapping[str, Any], run: EngineRun, inputs: Sequence[Tensor]) -> None:
    shape_tensors = {tensor.name for tensor in inputs if tensor.shape_values is not None}
    expected = [tensor for tensor in step["inputs"] if tensor["name"] not in shape_tensors]
    ins = [binding for binding in run.bindings if binding.is_input and binding.name not in shape_tensors]
    outs = [binding for binding in run.bindings if not binding.is_input]
    check_tensors(step["name"], expected, ins, side="input", complete=True)
    check_tensors(step["name"], step["outputs"], outs, side="output", complete=False)


def _version(work: Work) -> tuple[int, ...]:
    return tuple(int(part) for part in str(work.probed["tensorrt"]).split(".") if part.isdigit())
