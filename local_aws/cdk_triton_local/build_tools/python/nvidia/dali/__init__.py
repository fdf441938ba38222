"""A stand-in for `nvidia.dali`, for the build step on a machine without a GPU: put `../..` into PYTHONPATH.

It records what a pipeline definition calls, and "serialises" it by keeping its source: only the local backend `dali`
can serve such a file. It rejects an operator that it does not have, by name
(`cdk_triton_local.triton.backends.dali_recorder`).
"""

import os
import sys

from cdk_triton_local.triton.backends.dali_recorder import recording_modules

sys.stderr.write("cdk-triton stand-in for nvidia.dali: it records the pipeline and keeps its source, no DALI runs\n")
_modules = recording_modules()
# What it plays: the local AWS says which DALI the image of the plan would have.
_modules["nvidia.dali"].__dict__["__version__"] = os.environ.get("CDK_TRITON_STAND_IN_DALI", "0.0.0")
sys.modules.update(_modules)  # this module among them
