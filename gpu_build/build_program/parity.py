"""Compares a TensorRT plan's outputs with ONNX Runtime's for the same inputs."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from .engine_run import EngineRun, exported_values
from .programs import run_driver
from .python_env import is_index_unreached, pinned_python
from .step import BuildError, Work
from .stop import StoppedError
from .tensors import Tensor
from .trtexec import Binding

__all__ = ["Reference", "compare_with_tolerance"]

_DRIVER = "parity_driver.py"
_SWITCH_OFF = "switch the comparison off (parity=None)"


class Reference:
    """ONNX Runtime with a network, in a Python of its own.

    Its version is pinned for each Python that Triton's images have (`onnxruntime-3.12.txt` …, with hashes); that very
    version installed already is used as it is.

    Args:
        work: the step's `Work`.
        name: the step's name.
        onnx: the network.

    Raises:
        BuildError: ONNX Runtime cannot be installed.
    """

    def __init__(self, work: Work, name: str, onnx: Path) -> None:
        self._work = work
        self._name = name
        self._onnx = onnx
        try:
            self._python = pinned_python(work, _requirements(name), name="ONNX Runtime", present="onnxruntime")
        except StoppedError:
            raise
        except BuildError as error:
            joint = ", or" if is_index_unreached(error) else ";"
            raise BuildError(f"{error.reason}{joint} {_SWITCH_OFF}", error.log) from error

    def inputs(self) -> list[dict[str, Any]]:
        """The inputs of the network: `name`, `data_type` (Triton's word) and `dims` (-1: any size)."""
        described: list[dict[str, Any]] = self._ask("describe", "looking into the network")["inputs"]
        return described

    def write_data(self, data: Path, declared: Sequence[Mapping[str, Any]], directory: Path) -> list[Tensor]:
        """Write the arrays of an `.npz` as the inputs of a run.

        Args:
            data: the file.
            declared: the inputs of the network.
            directory: the directory of the run.

        Raises:
            BuildError: the file cannot be read, or lacks an input.
        """
        rows = [
            {"name": each["name"], "data_type": each["data_type"], "file": str(directory / f"input{number}.raw")}
            for number, each in enumerate(declared)
        ]
        dims = self._ask("write", "reading the data of the comparison", data=str(data), inputs=rows)["dims"]
        return [Tensor(row["name"], row["data_type"], tuple(dims[row["name"]]), Path(row["file"])) for row in rows]

    def compare(self, run: EngineRun, inputs: Sequence[Tensor], tolerance: Mapping[str, float]) -> dict[str, Any]:
        """The version of ONNX Runtime, and the figures of each output in `outputs`.

        An output holds if its largest difference is at most `absolute + relative * largest magnitude` and NaN and
        infinities are at the same places in both.

        Raises:
            BuildError: an output does not hold.
        """
        bindings = [
            binding for binding in run.bindings if not binding.is_input and binding.name not in run.data_dependent
        ]
        for name in run.data_dependent:
            self._work.warn(
                f"{self._name}: the shape of the output {name!r} depends on values, so the build did not compare this "
                "output"
            )
        compared = self._ask(
            "compare",
            "comparing the plan with ONNX Runtime",
            inputs=[_input(tensor) for tensor in inputs],
            outputs=_outputs(bindings, run),
        )
        outputs = [compare_with_tolerance(self._name, figures, tolerance) for figures in compared["outputs"]]
        return {"onnxruntime": compared["onnxruntime"], "outputs": outputs}

    def _ask(self, action: str, what: str, **more: Any) -> dict[str, Any]:
        question = {"action": action, "onnx": str(self._onnx), **more}
        try:
            # Its wheel reports usage to its maker otherwise.
            return run_driver([str(self._python)], _DRIVER, question, self._work, what=what, ORT_DISABLE_TELEMETRY="1")
        except StoppedError:
            raise
        except BuildError as error:
            if error.log:
                raise
            raise BuildError(f"{self._name}: {error.reason}; fix the network, or {_SWITCH_OFF}") from error


def compare_with_tolerance(name: str, figures: Mapping[str, Any], tolerance: Mapping[str, float]) -> dict[str, Any]:
    """The figures of an output that holds, with what was allowed.

    Raises:
        BuildError: the output differs by more than the tolerance.
    """
    output = f"{name}: the output {figures['name']!r} of the plan"
    if "reference_shape" in figures:
        raise BuildError(
            f"{output} has the shape {figures['shape']}, but ONNX Runtime gives the shape "
            f"{figures['reference_shape']}: export the network again and check this output, or {_SWITCH_OFF}"
        )
    magnitude, error = figures["largest_magnitude"], figures["max_absolute_error"]
    allowed = tolerance["absolute"] + tolerance["relative"] * magnitude
    if figures["special_values_differ"]:
        raise BuildError(
            f"{output} differs from ONNX Runtime's in {figures['special_values_differ']} of {figures['elements']} "
            "elements, where at least one of the two is NaN or infinite: the precision is too low for the network; "
            "choose a higher precision"
        )
    if error > allowed:
        raise BuildError(
            f"{output} differs from ONNX Runtime's by up to {error:.3g}, but at most {allowed:.3g} is allowed "
            f"(absolute {tolerance['absolute']:g}, relative {tolerance['relative']:g} of the largest magnitude "
            f"{magnitude:.3g}): choose a higher precision, declare the range of integer inputs, or allow a wider "
            "tolerance (Parity)"
        )
    relative = error / magnitude if magnitude else 0.0
    return {**figures, "max_relative_error": relative, "allowed_absolute_error": allowed}


def _requirements(name: str) -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        content = pkgutil.get_data(__package__ or "", f"requirements/onnxruntime-{version}.txt")
    except OSError:
        content = None
    if content is None:
        raise BuildError(f"{name}: there is no pinned ONNX Runtime for Python {version}: serve with another release")
    return content.decode("utf-8")


def _input(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "data_type": tensor.data_type, "dims": list(tensor.dims), "file": str(tensor.file)}


def _outputs(bindings: Sequence[Binding], run: EngineRun) -> list[dict[str, Any]]:
    if run.exported is not None:
        values = exported_values(run.exported)
        return [{"name": each.name, "dims": list(each.dims), "values": values[each.name]} for each in bindings]
    return [
        {
            "name": each.name,
            "dims": list(each.dims),
            "data_type": each.data_type,
            "file": str(run.directory / str(each.file)),
        }
        for each in bindings
    ]
