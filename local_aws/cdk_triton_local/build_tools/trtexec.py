"""The stand-in for `trtexec`: checks a network and its options, and writes a TensorRT plan that the CPU can run.

It takes the options in the table of NVIDIA's sources. It prints the words of these sources (NVIDIA/TensorRT,
samples/common/{sampleEngines,sampleInference,sampleOptions,sampleReporting}.cpp and logging.h, v8.6.1 to v11.1), as far
as the build program or the reader of a failed build needs them. It optimises nothing, and an option of precision
changes nothing: the CPU runs the network as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdk_triton_local.build_tools.options import TrtexecError, TrtexecOptions, pairs, parsed, profiles, shapes

__all__ = ["main"]

_SAYS: Final = (
    "cdk-triton stand-in for trtexec: a plan that it writes is an ONNX network for the CPU, not a TensorRT plan, "
    "and does not show a GPU's speed or precision"
)
_FIRST_WITH_BUILD_NUMBER: Final = (10, 4)
_FIRST_WITHOUT_TRANSFERS: Final = 11


def main(arguments: Sequence[str]) -> int:
    """Build a TensorRT plan, or run one."""
    version = tuple(int(part) for part in os.environ["CDK_TRITON_STAND_IN_TENSORRT"].split("."))
    test = f"{_test_name(version)} # trtexec {' '.join(arguments)}"
    _say(f"&&&& RUNNING {test}")
    _say(_SAYS)
    if not arguments or {"--help", "-h"} & set(arguments):  # without imports: every build asks for the version so
        _say("=== Model Options ===\n  --onnx=<file>               ONNX model")
        _say(f"&&&& PASSED {test}")
        return 0
    try:
        _run(parsed(arguments, version), arguments, version)
    except TrtexecError as error:
        for line in error.lines:
            _say(f"[E] {line}")
        _say(f"&&&& FAILED {test}")
        return 1
    _say(f"&&&& PASSED {test}")
    return 0


def _test_name(version: tuple[int, ...]) -> str:
    """As `defineTest` of logging.h has it, with NV_TENSORRT_VERSION of NvInferVersion.h."""
    major, minor, patch = (*version, 0, 0)[:3]
    number = major * (10000 if major >= 10 else 1000) + minor * 100 + patch
    build = f" [b{version[3]}]" if len(version) > 3 and version >= _FIRST_WITH_BUILD_NUMBER else ""
    return f"TensorRT.trtexec [TensorRT v{number}]{build}"


def _run(options: TrtexecOptions, arguments: Sequence[str], version: tuple[int, ...]) -> None:
    from cdk_triton_local.build_tools.engine import TrtexecEngine  # half a second of imports

    if "--loadEngine" in options:
        engine = TrtexecEngine.load(Path(options["--loadEngine"]))
    elif "--onnx" in options:
        engine = TrtexecEngine.build(Path(options["--onnx"]), profiles(arguments), say=_say)
    else:
        raise TrtexecError("Model missing or format not recognized")
    if "--saveEngine" in options:
        engine.save(Path(options["--saveEngine"]))
    if "--skipInference" in options or "--buildOnly" in options:
        _say("[I] Skipped inference phase since --skipInference is added.")
        return
    run = engine.run(
        profile=int(options.get("--useProfile", "0")),
        shapes=shapes(options.get("--shapes", "")),
        files={name: Path(file) for name, file in pairs(options.get("--loadInputs", ""))},
        version=version,
        say=_say,
    )
    transfers = version[0] < _FIRST_WITHOUT_TRANSFERS or bool(
        {"--includeDataTransfers", "--exportOutput"} & set(options)
    )
    if "--dumpRawBindingsToFile" in options:
        run.write_raw_files(transfers=transfers, say=_say)
    if "--exportOutput" in options:
        run.export(Path(options["--exportOutput"]))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
