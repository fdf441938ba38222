"""A small PyTorch network: which of three spirals, which wind around each other, a point is on.

The network is trained here, from a seed, in two seconds, and saved as TorchScript. It needs PyTorch, which only the
extra `torch` installs.
"""

from __future__ import annotations

import warnings
from math import pi
from pathlib import Path

import torch

SPIRALS = 3
_POINTS = 200  # of each spiral
_STEPS = 600


def build(target: Path) -> None:
    """Train the network, and write it as TorchScript."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # several threads add numbers in another order
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, SPIRALS)
    )
    points, spirals = _training()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(points), spirals).backward()
        optimizer.step()
    module = torch.nn.Sequential(network, torch.nn.Softmax(dim=1)).eval()
    with warnings.catch_warnings():  # PyTorch deprecates TorchScript, which every release of Triton reads
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(module), str(target))


def _training() -> tuple[torch.Tensor, torch.Tensor]:
    """Points beside the spirals, and the spiral of each."""
    spirals = torch.arange(SPIRALS).repeat_interleave(_POINTS)
    radius = torch.linspace(0.05, 1, _POINTS).repeat(SPIRALS)
    angle = 4 * radius + 2 * pi / SPIRALS * spirals + 0.15 * torch.randn(len(radius))
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), spirals
