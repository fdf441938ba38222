"""Writes the files of the corpus with the installed PyTorch: `python tests/pytorch_models/make_files.py FOLDER`.

The models are small and their weights are zeros. The archives are written again without the paths of the machine that
wrote them, and a compiled archive keeps only the texts of its library: the whole library has 1.4 MB.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """The usual model: tensors in, a tensor out."""

    def __init__(self) -> None:
        """Set weights that are the same each time."""
        super().__init__()
        self.layer = nn.Linear(4, 2)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Multiply by the weights and by the mask."""
        return self.layer(x * mask)  # type: ignore[no-any-return]


class Dictionary(nn.Module):
    """A dictionary in."""

    def forward(self, given: dict[str, Tensor]) -> Tensor:
        """Add two of the tensors."""
        return given["a"] + given["b"]


class Texts(nn.Module):
    """Texts in, texts out."""

    def forward(self, names: list[str]) -> tuple[Tensor, list[str]]:
        """Return the lengths and the texts."""
        return torch.tensor([len(name) for name in names]), names


class Optional(nn.Module):
    """An argument with a default, as in Hugging Face's models."""

    def forward(self, x: Tensor, mask: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """Multiply."""
        return x * scale if mask is None else x * mask


class ListOfTensors(nn.Module):
    """A list in, a list out, as in torchvision's detectors."""

    def forward(self, images: list[Tensor]) -> list[Tensor]:
        """Return them."""
        return images


class Outputs(nn.Module):
    """A dictionary out."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return it under a name."""
        return {"y": x}


class Scores(NamedTuple):
    """What a detector returns."""

    boxes: Tensor
    scores: Tensor


class Named(nn.Module):
    """A named tuple out."""

    def forward(self, x: Tensor) -> Scores:
        """Return it twice."""
        return Scores(x, x)


class Number(nn.Module):
    """A number out."""

    def forward(self, x: Tensor) -> int:
        """Return the size of the batch."""
        return x.shape[0]


class Encoder(nn.Module):
    """No forward."""

    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        """Return it."""
        return x


class Sum(nn.Module):
    """Two tensors in, one out."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Add them."""
        return x + y


class Nested(nn.Module):
    """A structure in, a keyword argument, a structure out."""

    def forward(self, x: Tensor, options: dict[str, Tensor], *, scale: Tensor) -> dict[str, Any]:
        """Return a tensor and a tuple."""
        return {"a": x * scale, "b": (x + 1, options["k"] + 1)}


class Keywords(nn.Module):
    """Keyword arguments only."""

    def forward(self, *, x: Tensor) -> Tensor:
        """Add one."""
        return x + 1


def add(x: Tensor, y: Tensor) -> Tensor:
    """Add two tensors."""
    return x + y


def main(folder: Path) -> None:
    """Write every file."""
    row = torch.ones(1, 4)
    model = Linear().eval()
    scripted: dict[str, Callable[[], Any]] = {
        "traced": lambda: torch.jit.trace(model, (row, row)),
        "scripted": lambda: torch.jit.script(model),
        "frozen": lambda: torch.jit.freeze(torch.jit.script(model)),
        "function": lambda: torch.jit.script(add),
        "dictionary": lambda: torch.jit.script(Dictionary()),
        "texts": lambda: torch.jit.script(Texts()),
        "optional": lambda: torch.jit.script(Optional()),
        "list_of_tensors": lambda: torch.jit.script(ListOfTensors()),
        "outputs": lambda: torch.jit.script(Outputs()),
        "named": lambda: torch.jit.script(Named()),
        "number": lambda: torch.jit.script(Number()),
        "encoder": lambda: torch.jit.script(Encoder()),
    }
    for name, make in scripted.items():
        torch.jit.save(make(), str(folder / f"{name}.pt"))
        rewrite(folder / f"{name}.pt", lambda member, content: None if member.endswith(".debug_pkl") else content)
    torch.save(model.state_dict(), folder / "weights.pt")
    torch.save(model, folder / "module.pt")
    torch.save(model.state_dict(), folder / "old.pt", _use_new_zipfile_serialization=False)
    exported = torch.export.export(Sum(), (row, row))
    torch.export.save(exported, folder / "exported.pt2")
    rewrite(folder / "exported.pt2", lambda name, content: b"{}" if name.endswith("models/model.json") else content)
    compiled(folder / "compiled.pt2", Sum(), (row, row))
    compiled(folder / "nested.pt2", Nested(), (row, {"k": row}), {"scale": row}, keeps="library")
    compiled(folder / "keywords.pt2", Keywords(), (), {"x": row})


def compiled(
    path: Path, model: nn.Module, given: tuple[Any, ...], keywords: dict[str, Any] | None = None, keeps: str = "source"
) -> None:
    """Compile a model for the CPU, and keep what says how it is called: in the library's source, or in the library."""
    exported = torch.export.export(model, given, keywords)
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path))

    def kept(name: str, content: bytes) -> bytes | None:
        if name.endswith(".wrapper.cpp"):
            lines = [line for line in content.splitlines() if b"_spec_ =" in line]
            return b"\n".join(lines) if keeps == "source" else b""
        if name.endswith(".wrapper.so"):
            texts = [text for text in content.split(b"\0") if text.startswith(b'[1, {"type"')]
            return b"\x7fELF\0" + b"\0".join(texts) + b"\0" if keeps == "library" else b"\x7fELF"
        return None if ".kernel" in name else content

    rewrite(path, kept)


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Change the members of an archive, or leave them out."""
    with zipfile.ZipFile(path) as file:
        members = {name: change(name, file.read(name)) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            if content is not None:
                file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
