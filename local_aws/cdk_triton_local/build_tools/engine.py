"""The engine of the stand-in for `trtexec`: an ONNX network with optimisation profiles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from cdk_triton_local.build_tools.options import Shapes, TrtexecError
from cdk_triton_local.triton.backends.plan import PROFILES, onnx_in_plan, stand_in_plan

__all__ = ["Run", "TrtexecEngine"]

Say = Callable[[str], None]

# ONNX Runtime's types, numpy's, and trtexec's words (sampleOptions.cpp, operator<< of DataType).
_TYPES: Final = {
    "tensor(bool)": (np.bool_, "bool"),
    "tensor(uint8)": (np.uint8, "uint8"),
    "tensor(int8)": (np.int8, "int8"),
    "tensor(int32)": (np.int32, "int32"),
    "tensor(int64)": (np.int64, "int64"),
    "tensor(float16)": (np.float16, "fp16"),
    "tensor(float)": (np.float32, "fp32"),
}
_NO_OPERATOR: Final = re.compile(r"No Op registered for (\w+)|(\w+)\([-\d]+\) is not a registered")
_FIRST_WITH_64_BITS: Final = (10,)
_NARROWED: Final = {"int64": (np.int32, "int32")}
_CREATED: Final = "[I] {side} binding for {name} with dimensions {dims} is created."  # from 8.6 on
_CREATED_BEFORE: Final = "[I] Created {side} binding for {name} with dimensions {dims}"


@dataclass(frozen=True)
class Binding:
    """An input or output in one run."""

    name: str
    side: str
    word: str
    value: NDArray[Any]


class TrtexecEngine:
    """A network and its profiles."""

    def __init__(self, graph: bytes) -> None:
        self._graph = graph
        self._session = _session(graph)
        text = self._session.get_modelmeta().custom_metadata_map.get(PROFILES, "[]")
        self._profiles = [{name: Shapes(**bounds) for name, bounds in each.items()} for each in json.loads(text)]

    @classmethod
    def build(cls, file: Path, profiles: Sequence[Mapping[str, Shapes]], *, say: Say) -> TrtexecEngine:
        """Check a network as the parser would, and take the profiles.

        Raises:
            TrtexecError: the network cannot be read, does not fit the profiles, or is larger than the 2 GB of a
                message.
        """
        import onnx  # which a plan is run without, and half a second sooner

        say("[I] Start parsing network model.")
        try:
            onnx.checker.check_model(str(file))
            network = onnx.load(str(file))  # with its external data
            inputs = _session(str(file)).get_inputs()
        except Exception as error:  # three libraries' exceptions without a common base
            failed = (
                "Failed to parse onnx file",
                "Parsing model failed",
                "Failed to create engine from model or file.",
            )
            raise TrtexecError(_without_operator(error) or _one_line(error), *failed, "Engine set up failed") from error
        say("[I] Finished parsing network model. Parse time: 0")
        _check_profiles(inputs, profiles, say)
        documents = [{name: asdict(shapes) for name, shapes in profile.items()} for profile in profiles]
        network.metadata_props.add(key=PROFILES, value=json.dumps(documents, sort_keys=True))
        try:
            return cls(network.SerializeToString(deterministic=True))
        except Exception as error:  # protobuf has another one for it in every implementation
            raise TrtexecError(f"the stand-in cannot hold this network in one file: {_one_line(error)}") from error

    @classmethod
    def load(cls, file: Path) -> TrtexecEngine:
        """Read a TensorRT plan of this stand-in.

        Raises:
            TrtexecError: the file is not an engine of the stand-in.
        """
        try:
            return cls(onnx_in_plan(file.read_bytes(), name=file.name))
        except OSError as error:
            raise TrtexecError(f"Error opening engine file: {file}", "Engine set up failed") from error
        except Exception as error:
            raise TrtexecError(_one_line(error), "Engine deserialization failed", "Engine set up failed") from error

    def save(self, file: Path) -> None:
        """Write the TensorRT plan."""
        file.write_bytes(stand_in_plan(self._graph))

    def run(
        self,
        *,
        profile: int,
        shapes: Mapping[str, tuple[int, ...]],
        files: Mapping[str, Path],
        version: tuple[int, ...],
        say: Say,
    ) -> Run:
        """Run once.

        Args:
            profile: which profile the shapes have to be in.
            shapes: the shapes of inputs; in the other inputs, each variable dimension is 1.
            files: the values of inputs; the other inputs get random values.
            version: the version of TensorRT, on which the width of integers and the text of lines depend.
            say: prints a line.

        Raises:
            TrtexecError: a shape or a file does not fit.
        """
        if profile > 0 and profile >= len(self._profiles):
            raise TrtexecError(
                f"Selected profile index {profile} exceeds the number of profiles that the engine holds. ",
                "Inference set up failed",
            )
        names = {tensor.name for tensor in self._session.get_inputs()}
        for flag, given in (("--shapes", shapes), ("--loadInputs", files)):
            _check_names(given, names, flag)
        narrow, created = version < _FIRST_WITH_64_BITS, _CREATED if version >= (8, 6) else _CREATED_BEFORE
        bindings, feed = [], {}
        for tensor in self._session.get_inputs():
            shape = self._checked_shape(tensor, shapes.get(tensor.name), profile)
            kind, word = _type(tensor.type, narrow)
            value = _input(tensor.name, shape, kind, files.get(tensor.name), say)
            bindings.append(Binding(tensor.name, "input", word, value))
            feed[tensor.name] = value.astype(_TYPES[tensor.type][0])
            say(created.format(side="Input", name=tensor.name, dims=_by_x(shape)))
        outputs = self._session.get_outputs()
        try:
            results = self._session.run([tensor.name for tensor in outputs], feed)
        except Exception as error:  # ONNX Runtime's exceptions have no common base but this
            raise TrtexecError(_one_line(error), "Error occurred during inference") from error
        for tensor, result in zip(outputs, results, strict=True):
            kind, word = _type(tensor.type, narrow)
            bindings.append(Binding(tensor.name, "output", word, result.astype(kind)))
            say(created.format(side="Output", name=tensor.name, dims=_by_x(result.shape)))
        return Run(bindings)

    def _checked_shape(self, tensor: Any, given: tuple[int, ...] | None, profile: int) -> tuple[int, ...]:
        shape = tuple(size if _is_fixed(size) else 1 for size in tensor.shape) if given is None else given
        bounds = self._profiles[profile].get(tensor.name) if self._profiles else None
        fits = len(shape) == len(tensor.shape) and all(
            not _is_fixed(size) or size == found for size, found in zip(tensor.shape, shape, strict=True)
        )
        if bounds is not None:
            fits = fits and all(
                low <= size <= high for low, size, high in zip(bounds.minimum, shape, bounds.maximum, strict=True)
            )
        if not fits:
            raise TrtexecError(
                f"IExecutionContext::setInputShape: the shape {_by_x(shape)} of {tensor.name} does not satisfy the "
                f"network or the optimization profile {profile}",
                "Inference set up failed",
            )
        return shape


class Run:
    """The results of one run."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self._bindings = tuple(bindings)

    def write_raw_files(self, *, transfers: bool, say: Say) -> None:
        """Write each binding into the working directory, as `dumpRawBindingToFiles` of sampleInference.cpp.

        Args:
            transfers: whether outputs were copied from the GPU; otherwise the host's memory is unchanged.
            say: prints a line.
        """
        say("[I] Dumping I/O Bindings to RAW Files:")
        for each in self._bindings:
            dims = ".".join(map(str, each.value.shape))
            file = _file_name(f"{each.name}.{each.side}.{dims}.{each.word}.raw")
            say(
                f"[I] Writing file for {each.side} binding {each.name} "
                f"(with datatype {each.word} and dimensions {dims}) to {file}"
            )
            value = each.value if transfers or each.side == "input" else np.zeros_like(each.value)
            Path(file).write_bytes(value.tobytes())

    def export(self, file: Path) -> None:
        """Write the outputs as JSON, as `exportJSONOutput` of sampleReporting.cpp: six digits, as C++ streams have."""
        text, separator = "[\n", "  "
        for each in (each for each in self._bindings if each.side == "output"):
            values = ", ".join(_number(value) for value in each.value.reshape(-1))
            text += f'{separator}{{ "name" : "{each.name}"\n'
            separator = ", "
            text += f'  {separator}"dimensions" : "{_by_x(each.value.shape)}"\n'
            text += f'  {separator}"values" : [ {values} ]\n  }}\n'
        file.write_text(text + "]\n", encoding="utf-8")


def _without_operator(error: Exception) -> str | None:
    """For an operator that TensorRT or a plugin may have; None for another error."""
    found = _NO_OPERATOR.search(str(error))
    if found is None:
        return None
    operator = found[1] or found[2]
    return (
        f"the stand-in for trtexec computes with ONNX Runtime, which does not have the operator {operator}, so it "
        "cannot show whether TensorRT or a plugin has it: build this plan on AWS"
    )


def _session(source: str | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _check_profiles(inputs: Sequence[Any], profiles: Sequence[Mapping[str, Shapes]], say: Say) -> None:
    dynamic = {tensor.name for tensor in inputs if not all(map(_is_fixed, tensor.shape))}
    for profile in profiles:
        unknown = sorted(profile.keys() - {tensor.name for tensor in inputs})
        if unknown:
            raise TrtexecError(
                f'Cannot find input tensor with name "{unknown[0]}" in the network inputs! Please make sure the input '
                "tensor names are correct.",
                "Engine set up failed",
            )
    if profiles and not dynamic:
        raise TrtexecError(
            "Static model does not take explicit shapes since the shape of inference tensors will be determined by the "
            "model itself",
            "Network And Config setup failed",
            "Engine set up failed",
        )
    for name in sorted(dynamic if not profiles else ()):
        say(
            f"[W] Dynamic dimensions required for input: {name}, but no shapes were provided. Automatically overriding."
        )
    for tensor in inputs:
        for profile in profiles:
            shapes = profile.get(tensor.name)
            if shapes is not None and not _covers(tensor.shape, shapes):
                raise TrtexecError("Required optimization profile is invalid", "Engine set up failed")


def _covers(dims: Sequence[object], shapes: Shapes) -> bool:
    return len(dims) == len(shapes.minimum) and all(
        not _is_fixed(size) or size == low == high
        for size, low, high in zip(dims, shapes.minimum, shapes.maximum, strict=True)
    )


def _check_names(given: Mapping[str, object], names: set[str], flag: str) -> None:
    for name in given.keys() - names:
        raise TrtexecError(
            f'Cannot find input tensor with name "{name}" in the engine bindings! Please make sure the input tensor '
            "names are correct.",
            f"Invalid tensor names found in {flag} flag.",
            "Inference set up failed",
        )


def _type(name: str, narrow: bool) -> tuple[Any, str]:
    if name not in _TYPES:
        raise TrtexecError(f"the stand-in does not model the type {name}", "Inference set up failed")
    kind, word = _TYPES[name]
    return _NARROWED.get(word, (kind, word)) if narrow else (kind, word)


def _input(name: str, shape: tuple[int, ...], kind: Any, file: Path | None, say: Say) -> NDArray[Any]:
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    if file is None:
        say(f"[I] Using random values for input {name}")
        return np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    say(f"[I] Using values loaded from {file} for input {name}")
    if not file.exists():
        raise TrtexecError(f"Uncaught exception detected: Cannot open file {file}!")
    content = file.read_bytes()
    if len(content) not in (size, 2 * size):  # sampleUtils.cpp, loadFromFile
        raise TrtexecError(
            f"Uncaught exception detected: Unexpected file size for input file: {file}. Note: Input binding size is: "
            f"{size} bytes but the file size is {len(content)} bytes. Double check the size and datatype of the "
            "provided data."
        )
    return np.frombuffer(content[:size], kind).reshape(shape)


def _is_fixed(size: object) -> bool:
    return isinstance(size, int) and size >= 0


def _by_x(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _number(value: Any) -> str:
    return f"{float(value):g}" if np.issubdtype(value.dtype, np.floating) else str(int(value))


def _file_name(name: str) -> str:
    """As `genFilenameSafeString` of common.h, whose names have at most 150 characters."""
    return "".join(each if (each.isascii() and each.isalnum()) or each in "._-," else "_" for each in name)[:150]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
