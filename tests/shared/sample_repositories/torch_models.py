"""Files for the PyTorch backend, written without PyTorch: archives with the members that the checks read."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.schema import enum_name

__all__ = ["archive", "call_spec", "compiled_archive", "torch_content", "torch_model_files", "torchscript"]

_CODE = """\
class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  {signature}:
    return {name}
"""
_TENSOR: dict[str, object] = {"type": None, "context": None, "children_spec": []}
_KINDS = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID"}


def torch_content(text: str) -> bytes | None:
    """What a text in an example stands for: the signature of a forward, or `(compiled for cuda: 2 inputs)`."""
    if text.lstrip().startswith("def "):
        return torchscript(text.strip())
    if match := re.fullmatch(r"\(compiled for (\w+): (\d+) inputs?\)", text.strip()):
        return compiled_archive(match[1], int(match[2]))
    return None


def archive(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED, *, top: str = "model") -> bytes:
    """A zip archive as PyTorch writes it, all members in one directory and not compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(f"{top}/{name}", content)
    return buffer.getvalue()


def torchscript(
    signature: str = "def forward(self, x: Tensor) -> Tensor", *, version: int = 3, code: str = ""
) -> bytes:
    """A TorchScript file of a model whose class has this method."""
    signature = signature.replace("(self", "(self: __torch__.Net", 1)
    code = code or _CODE.format(signature=signature, name="self")
    return archive(
        {
            "data.pkl": b"\x80\x02c__torch__\nNet\nq\x00)\x81}.",
            "code/__torch__.py": code.encode(),
            "constants.pkl": b"\x80\x02).",
            "version": f"{version}\n".encode(),
        }
    )


def call_spec(inputs: object, outputs: object) -> str:
    """The source of a compiled model's library, as far as it says how the model is called."""
    return f'    in_spec_ = R"([1, {json.dumps(inputs)}])";\n    out_spec_ = R"([1, {json.dumps(outputs)}])";\n'


def compiled_archive(
    device: str = "cuda",
    inputs: int = 1,
    *,
    spec: str | None = None,
    name: str = "model",
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """A compiled PyTorch 2 archive; `spec` is `call_spec(…)`, "" for an archive without one."""
    if spec is None:
        arguments = {"type": "builtins.tuple", "context": "null", "children_spec": [_TENSOR] * inputs}
        keywords = {"type": "builtins.dict", "context": "[]", "children_spec": []}
        given = {"type": "builtins.tuple", "context": "null", "children_spec": [arguments, keywords]}
        spec = call_spec(given, _TENSOR)
    noted = {"AOTI_DEVICE_KEY": device, "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64", **(metadata or {})}
    folder = f"data/aotinductor/{name}/c1"
    return archive(
        {
            f"{folder}.wrapper.cpp": spec.encode(),
            f"{folder}.wrapper_metadata.json": json.dumps(noted).encode(),
            f"{folder}.wrapper.so": b"\x7fELF",
            "archive_format": b"pt2",
        }
    )


def torch_model_files(config: ModelConfig) -> dict[str, bytes]:
    """The file with which the backend loads a model of this configuration."""
    if config.platform == "torch_aoti":
        return {config.default_model_filename or "model.pt2": compiled_archive(inputs=len(config.input) or 1)}
    batching = config.sequence_batching
    controls = {enum_name(one, "kind") for control in batching.control_input for one in control.control} & _KINDS
    more = len(config.batch_input) + len(controls) + len(batching.state)
    types = ["List[str]" if enum_name(each, "data_type") == "TYPE_STRING" else "Tensor" for each in config.input]
    arguments = [f"x{index}: {kind}" for index, kind in enumerate([*types, *["Tensor"] * more])]
    results = "Tuple[" + ", ".join(["Tensor"] * max(len(config.output) + len(batching.state), 8)) + "]"
    signature = f"def forward({', '.join(['self', *arguments])}) -> {results}"
    return {config.default_model_filename or "model.pt": torchscript(signature)}
