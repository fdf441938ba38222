"""What a file for the PyTorch backend is: TorchScript, a compiled PyTorch 2 archive, or something else.

Both are zip archives, whose members `torch.jit.save`, `torch.save` and `torch.export` name in different ways
(`torch/csrc/jit/serialization`, `torch/serialization.py` and `torch/export/pt2_archive` of pytorch/pytorch). Of a
pickle, only the opcodes are listed: nothing is unpickled.
"""

from __future__ import annotations

import pickletools
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from zipfile import BadZipFile, ZipFile

from cdk_triton.pytorch_models.reader.compiled import CompiledModel, compiled_model
from cdk_triton.pytorch_models.reader.members import beginning_of, is_readable
from cdk_triton.pytorch_models.reader.signature import Forward, forward_in
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["NEWEST_FORMAT", "Kind", "TorchFile", "torch_file"]

Kind = Literal["torchscript", "compiled", "exported", "weights", "pickled", "old", "package", "mobile", "zip"]
"""What wrote the file.

`torch.jit.save`, `aoti_compile_and_package`, `torch.export.save`, `torch.save` (of tensors only, of other objects, or
before PyTorch 1.6), `torch.package`, TorchScript in its FlatBuffer format, or a program that is not PyTorch.
"""

NEWEST_FORMAT: Final = 10
"""`kMaxSupportedFileFormatVersion` in `caffe2/serialize/versions.h`, unchanged from PyTorch 1.11 to 2.13."""

_MOST_OPCODES = 500_000
_MOST_DIGITS = 9  # of the version of the format

# The first opcodes of torch.save before PyTorch 1.6: protocol 2, and a number.
_OLD_PICKLE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_ZIP = b"PK\x03\x04"
_MOBILE = b"PTMF"  # at the fifth byte

_OF_TENSORS = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_\w+|torch\.storage \w+|torch\._tensor _rebuild_\w+"
    r"|torch (\w+Storage|Size|device|bfloat16|u?int\d+|float\d+\w*|bool)|torch\.serialization _get_layout"
)


@dataclass(frozen=True)
class TorchFile:
    """A file that PyTorch or another program wrote.

    Attributes:
        kind: what it is.
        forward: the method that the backend calls; None if the file is not TorchScript, or if its code is not
            understood.
        has_forward: whether the model has the method at all; True if that is not known.
        compiled: the compiled model; None if the file is not a compiled archive.
        format_version: the version of the archive's format, or None.
    """

    kind: Kind
    forward: Forward | None = None
    has_forward: bool = True
    compiled: CompiledModel | None = None
    format_version: int | None = None


def torch_file(path: Path) -> TorchFile | Unreadable:
    """Read a file for the PyTorch backend."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_OLD_PICKLE))
        if not head:
            return Unreadable("is empty")
        if head == _OLD_PICKLE:
            return TorchFile("old")
        if head[4:8] == _MOBILE:
            return TorchFile("mobile")
        with ZipFile(path) as archive:
            return _of_archive(archive)
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error, zlib.error):
        return Unreadable("is a zip archive that is cut off or damaged" if head[:4] == _ZIP else "is not a zip archive")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror or error}")


def _of_archive(archive: ZipFile) -> TorchFile:
    if not is_readable(archive):
        return TorchFile("zip")
    names = archive.namelist()
    top = names[0].partition("/")[0] + "/" if names else ""  # PyTorch takes the archive's name from the first member
    inside = {name.removeprefix(top) for name in names if name.startswith(top)}
    if any(name.startswith("data/aotinductor/") for name in inside):
        return TorchFile("compiled", compiled=compiled_model(archive, top))
    if "constants.pkl" in inside or "model.json" in inside:  # the latter before PyTorch 1.2
        return _of_torchscript(archive, top, inside)
    if "archive_format" in inside or "serialized_exported_program.json" in names:
        return TorchFile("exported")
    if ".data/extern_modules" in inside:
        return TorchFile("package")
    if "data.pkl" in inside:
        return TorchFile("weights" if _has_tensors_only(beginning_of(archive, top + "data.pkl")) else "pickled")
    return TorchFile("zip")


def _has_tensors_only(pickle: bytes) -> bool:
    return all(_OF_TENSORS.fullmatch(name) for name in _global_names(pickle))


def _global_names(pickle: bytes) -> Iterator[str]:
    """The names that a pickle would import, as `module name`, as far as its opcodes show them."""
    try:
        for index, (opcode, argument, _) in enumerate(pickletools.genops(pickle)):
            if index > _MOST_OPCODES:
                return
            if opcode.name == "GLOBAL":
                yield str(argument)
            elif opcode.name in ("STACK_GLOBAL", "INST"):
                yield opcode.name  # the name is on the stack; torch.save and torch.jit.save write GLOBAL
    except ValueError:  # not a pickle
        return


def _of_torchscript(archive: ZipFile, top: str, inside: set[str]) -> TorchFile:
    version = _version(archive, top, inside)
    root = next(_global_names(beginning_of(archive, top + "data.pkl")), "") if "data.pkl" in inside else ""
    module, _, name = root.partition(" ")
    code = f"code/{module.replace('.', '/')}.py"
    if not module.startswith("__torch__") or code not in inside:
        return TorchFile("torchscript", format_version=version)
    forward, has_forward = forward_in(beginning_of(archive, top + code).decode(errors="replace"), name)
    return TorchFile("torchscript", forward=forward, has_forward=has_forward, format_version=version)


def _version(archive: ZipFile, top: str, inside: set[str]) -> int | None:
    for name in (".data/version", "version"):
        if name in inside:
            text = beginning_of(archive, top + name).strip()
            return int(text) if text.isdigit() and len(text) <= _MOST_DIGITS else None
    return None
