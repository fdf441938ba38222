"""Writes what PyTorch says of each file in a folder: the signature of `forward`, or why it cannot be called."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch


def judged(path: Path) -> str:
    """Load a file as the backend does."""
    if path.suffix == ".pt2" and path.name != "exported.pt2":
        return "compiled"  # the archives of the corpus have no library
    try:
        module = torch.jit.load(str(path))
    except RuntimeError:
        return "rejected"
    if not hasattr(module, "forward"):
        return "no forward"
    schema = re.sub(r"=[^,)]*", "", str(module.forward.schema))  # without defaults
    return re.sub(r"forward\(\S+ self(, )?", "(", schema)


for each in sorted(Path(sys.argv[1]).iterdir()):
    sys.stdout.write(f"{each.name}\t{judged(each)}\n")
