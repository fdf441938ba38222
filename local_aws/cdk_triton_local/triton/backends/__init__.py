"""Stand-ins for Triton's GPU backends, as Python-based backends of the same names.

Triton's Python stub runs these modules, with the interpreter that runs the local AWS. `tensorrt` and `onnxruntime` run
the model's ONNX graph in ONNX Runtime on the CPU; `dali` runs the pipeline of `dali.py` with DALI on the CPU where it
is installed, else with numpy and Pillow; `fil` runs tree models with Treelite, and `pytorch` TorchScript with PyTorch,
where these are installed. Each writes one log line that it is a stand-in. It shows that the plumbing works and that
values are equal within rounding. It shows nothing about the speed or the accuracy of a GPU.

When a model is loaded, a stand-in rejects everything that it does not support, by name. `missing` rejects the models of
the backends without a stand-in.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LACKING"]

LACKING: Final = "this machine does not have"
"""The words of a model that an image would load: the fault is not in the repository."""
