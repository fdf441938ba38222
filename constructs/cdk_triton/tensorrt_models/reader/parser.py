"""TensorRT's own ONNX parser, without a GPU: the distribution `tensorrt_rtx` (extra `preflight`).

It is TensorRT for RTX: the parser and the checks of profiles are of the same family as those of the TensorRT in
Triton's containers, and not the same version. Its plans are of no use to Triton, so that none is built here.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cdk_triton.errors import ConfigurationError
from cdk_triton.tensorrt_models.recipe import Profile

__all__ = [
    "DISTRIBUTION",
    "NetworkTensor",
    "ParsedNetwork",
    "ParserFault",
    "TensorRTParser",
    "is_installed",
    "require_parser",
]

DISTRIBUTION = "tensorrt_rtx"
TIME_LIMIT_SECONDS = 120
"""A network of 1.4 GB takes about 10 s; what takes ten times as long has been lost."""

_PROGRAM = Path(__file__).with_name("_parser_program.py")
_LAST_WORDS = 300

# TensorRT's types → Triton's: tensorrt_utils.cc of the backend, ConvertTrtTypeToDataType.
_TYPES = {
    "FLOAT": "TYPE_FP32",
    "HALF": "TYPE_FP16",
    "BF16": "TYPE_BF16",
    "INT8": "TYPE_INT8",
    "UINT8": "TYPE_UINT8",
    "INT32": "TYPE_INT32",
    "INT64": "TYPE_INT64",
    "BOOL": "TYPE_BOOL",
}


@dataclass(frozen=True)
class ParserFault:
    """A part of the network that the parser rejects; `operator` and `node` are "" if it names none."""

    operator: str
    node: str
    reason: str


@dataclass(frozen=True)
class NetworkTensor:
    """An input or output of a network; the type is Triton's, or "" where Triton has none."""

    name: str
    data_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ParsedNetwork:
    """The parser's verdict on a network.

    Attributes:
        version: of the parser.
        failure: how the parser ended if it gave no answer, or "".
        faults: why the parser rejects the network; empty if it accepts it.
        inputs: of the network.
        outputs: of the network.
        rejections: for each profile, why TensorRT would not build a plan for it, or "".
    """

    version: str
    failure: str = ""
    faults: tuple[ParserFault, ...] = ()
    inputs: tuple[NetworkTensor, ...] = ()
    outputs: tuple[NetworkTensor, ...] = ()
    rejections: tuple[str, ...] = ()


@dataclass(frozen=True)
class TensorRTParser:
    """A reader for `CheckContext.contents`: parses a network and tries the profiles, in a process of its own.

    Attributes:
        profiles: the optimisation profiles, as `for_profiles` writes them.
        program: the program that runs the parser; tests replace it.
        seconds: how long it may take.
    """

    profiles: tuple[tuple[tuple[str, tuple[tuple[int, ...], ...]], ...], ...]
    program: Path = _PROGRAM
    seconds: float = TIME_LIMIT_SECONDS

    @classmethod
    def for_profiles(cls, profiles: Sequence[Profile]) -> TensorRTParser:
        """The reader for these profiles; equal profiles give equal readers, so that a file is parsed once."""
        return cls(
            tuple(
                tuple((name, (shapes.minimum, shapes.optimum, shapes.maximum)) for name, shapes in profile.items())
                for profile in profiles
            )
        )

    def __call__(self, file: Path) -> ParsedNetwork:
        """Ask the parser."""
        import subprocess  # here, because every check would wait for its import and hardly any needs it

        request = {"onnx": str(file), "profiles": [dict(profile) for profile in self.profiles]}
        command = [sys.executable, "-P", str(self.program)]
        try:
            done = subprocess.run(
                command, input=json.dumps(request).encode(), capture_output=True, timeout=self.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return ParsedNetwork(_version(), failure=f"gave no answer within {self.seconds:g} s")
        if done.returncode != 0:
            return ParsedNetwork(_version(), failure=_ending(done.returncode, done.stderr))
        try:
            return _network(json.loads(done.stdout))
        except ValueError:
            return ParsedNetwork(_version(), failure=f"gave no answer: {_last_words(done.stdout)}")


def is_installed() -> bool:
    """Whether the extra `preflight` is there."""
    return find_spec(DISTRIBUTION) is not None


def require_parser() -> None:
    """Check that the extra `preflight` is installed.

    Raises:
        ConfigurationError: the package is not installed.
    """
    if not is_installed():
        raise ConfigurationError(
            "the preflight needs TensorRT's own parser, which is not installed; run `pip install "
            "'cdk-triton[preflight]'`"
        )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


def _network(answer: Any) -> ParsedNetwork:
    return ParsedNetwork(
        answer["version"],
        faults=tuple(ParserFault(*fault) for fault in answer["faults"]),
        inputs=_tensors(answer["inputs"]),
        outputs=_tensors(answer["outputs"]),
        rejections=tuple(answer["rejections"]),
    )


def _tensors(rows: Any) -> tuple[NetworkTensor, ...]:
    return tuple(NetworkTensor(name, _TYPES.get(kind, ""), tuple(shape)) for name, kind, shape in rows)


def _ending(status: int, said: bytes) -> str:
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    words = _last_words(said)
    return f"{how}: {words}" if words else how


def _last_words(said: bytes) -> str:
    return said.decode(errors="replace").strip().rpartition("\n")[2][-_LAST_WORDS:]
