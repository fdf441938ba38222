"""The stand-in for `nvidia-smi`: prints the GPU that its environment names, in the CSV of `--query-gpu`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["main"]

_FIELDS: Final = {
    "name": "CDK_TRITON_STAND_IN_GPU",
    "compute_cap": "CDK_TRITON_STAND_IN_COMPUTE_CAPABILITY",
    "driver_version": None,
}


def main(arguments: Sequence[str]) -> int:
    """Answer `--query-gpu=FIELDS --format=csv,noheader`, and nothing else."""
    # On the other stream, so that the CSV stays one.
    sys.stderr.write("cdk-triton stand-in for nvidia-smi: it reports the GPU that its environment names\n")
    options = dict(argument.partition("=")[::2] for argument in arguments)
    fields = options.pop("--query-gpu", "").split(",")
    if options != {"--format": "csv,noheader"}:
        sys.stderr.write("It answers --query-gpu=… --format=csv,noheader only.\n")
        return 1
    unknown = [field for field in fields if field not in _FIELDS]
    if unknown:
        sys.stdout.write(f'Field "{unknown[0]}" is not a valid field to query.\n')
        return 2
    sys.stdout.write(", ".join(_value(_FIELDS[field]) for field in fields) + "\n")
    return 0


def _value(variable: str | None) -> str:
    return "0.0" if variable is None else os.environ[variable]  # no driver: no version that could be taken for one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
