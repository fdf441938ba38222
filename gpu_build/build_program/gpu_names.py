"""Compares the name of a GPU in the library's tables with its name in `nvidia-smi`.

The tables follow AWS ("NVIDIA T4", "NVIDIA V100 16GB", "NVIDIA A100 40GB"), nvidia-smi the product ("Tesla T4",
"Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"). The comparison uses the model and, if both
names contain it, the memory; the maker, "Tesla", and words for the form factor and the kind of memory are ignored.
"""

from __future__ import annotations

import re

__all__ = ["MODELS", "Comparison", "compare_gpu_names"]

MODELS = frozenset(
    {
        "a100",
        "a10g",
        "b200",
        "b300",
        "gb200",
        "h100",
        "h200",
        "k80",
        "l4",
        "l40s",
        "rtx pro 4500 blackwell server edition",
        "rtx pro 6000 blackwell server edition",
        "t4",
        "v100",
    }
)
"""The models of SageMaker's instances; a test holds them to the library's table."""

Comparison = str
"""`same`, `other`, or `unknown`: a spelling that is not a model of `MODELS`."""

_IGNORED = re.compile(r"nvidia|tesla|sxm\d?|pcie|nvl|hbm\w*|gddr\w*")
_MEMORY = re.compile(r"(\d+) ?gi?b\b")


def compare_gpu_names(expected: str, probed: str) -> Comparison:
    """Whether both names mean the same GPU."""
    model, memory = _model_and_memory(expected)
    probed_model, probed_memory = _model_and_memory(probed)
    if model == probed_model:
        contradicts = memory is not None and probed_memory is not None and memory != probed_memory
        return "other" if contradicts else "same"
    return "other" if probed_model in MODELS else "unknown"


def _model_and_memory(name: str) -> tuple[str, int | None]:
    text = re.sub(r"[\s_-]+", " ", name.lower())
    found = _MEMORY.search(text)
    words = _MEMORY.sub(" ", text).split()
    model = " ".join(word for word in words if not _IGNORED.fullmatch(word))
    return model, int(found.group(1)) if found else None
