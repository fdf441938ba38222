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

import re
from importlib.util import find_spec
from typing import Final

__all__ = ["MISSING_BACKENDS", "RELEASE", "is_lacking", "lacking", "unsupported"]

_LACKING: Final = "this machine does not have"

_UNSUPPORTED: Final = "the stand-in for {} does not support {}"

RELEASE: Final = "CDK_TRITON_STAND_IN_RELEASE"
"""The environment variable with the release in the tag of the container's image; not set if it has none."""

MISSING_BACKENDS: Final = ("identity", "openvino", "repeat", "square", "tensorflow")
"""The backends of the images that have no stand-in."""

_PACKAGES: Final = {"fil": ("treelite", "Treelite", "trees"), "pytorch": ("torch", "PyTorch", "torch")}
"""Backend → the module that its stand-in needs, the module's name in sentences, and the extra that installs it."""


def is_lacking(reason: str) -> bool:
    """Whether a model does not load because of this machine, so that nothing is known about the repository.

    Args:
        reason: why it does not load.
    """
    return _LACKING in reason or re.search(_UNSUPPORTED.format(r"\S+", ""), reason) is not None


def unsupported(backend: str, what: str) -> str:
    """The beginning of a sentence about what a backend may run, and its stand-in cannot.

    Args:
        backend: the backend, or the name of its library.
        what: what the model uses.
    """
    return _UNSUPPORTED.format(backend, what)


def lacking(backend: str, platform: str = "") -> str | None:
    """What this machine lacks for the models of a backend, in a sentence; None if it runs them or no image has it.

    Args:
        backend: the model's backend.
        platform: the model's platform.
    """
    if backend in MISSING_BACKENDS:
        images = "images up to 25.02 have" if backend == "tensorflow" else "image has"
        return (
            f"{_LACKING} the backend {backend}, for which the local AWS has no stand-in; SageMaker's {images} this "
            "backend"
        )
    if platform == "torch_aoti":
        return (
            f"{_LACKING} the part of the backend pytorch that runs compiled PyTorch 2 archives; SageMaker's images "
            "from 26.03 on have it. Save the model as TorchScript to run it here"
        )
    module, name, extra = _PACKAGES.get(backend, ("", "", ""))
    if module and find_spec(module) is None:
        return (
            f"{_LACKING} {name}, with which the local AWS runs models of the backend {backend}; SageMaker's image has "
            f"this backend. Install {name} with: pip install 'cdk-triton[{extra}]'"
        )
    return None
