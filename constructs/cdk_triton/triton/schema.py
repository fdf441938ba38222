"""The messages of Triton's `model_config.proto`, without gRPC.

`tritonclient` ships the compiled schema as `tritonclient/grpc/model_config_pb2.py`, but importing that package starts
gRPC (an extra, and half a second). The file itself needs nothing but protobuf, so it is loaded by its path. It
registers the same descriptors in protobuf's default pool: a program that also uses `tritonclient.grpc` gets the very
same classes.

`schema.pyi` has the types of the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = [
    "SCHEMA_RELEASE",
    "DataType",
    "ModelConfig",
    "ModelEnsembling",
    "ModelInput",
    "ModelInstanceGroup",
    "ModelOutput",
    "enum_name",
]

SCHEMA_RELEASE = "26.09"
"""The Triton release that the schema belongs to: tritonclient 2.73.0 is the client of Triton 2.73.0, container 26.09.

Source: server commit e1db8a603 ("Update default branch to track 2.73.0 / 26.09"). A newer tritonclient
only adds fields to the schema.
"""


def _load_schema() -> ModuleType:
    package = find_spec("tritonclient")
    for location in (package.submodule_search_locations or ()) if package else ():
        file = Path(location, "grpc", "model_config_pb2.py")
        if file.is_file():
            spec = spec_from_file_location("cdk_triton.triton._model_config_pb2", file)
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    raise ConfigurationError(
        "the schema of config.pbtxt is missing: tritonclient/grpc/model_config_pb2.py is not installed; "
        "install it with: pip install 'tritonclient[http]>=2.73'"
    )


_messages = _load_schema()

DataType = _messages.DataType
ModelConfig = _messages.ModelConfig
ModelEnsembling = _messages.ModelEnsembling
ModelInput = _messages.ModelInput
ModelInstanceGroup = _messages.ModelInstanceGroup
ModelOutput = _messages.ModelOutput


def enum_name(message: Message, field: str) -> str:
    """The value of an enum field as a file spells it: its name, or the number where the schema has no name for it.

    The server accepts such numbers, because an enum of proto3 is open, and only some of its checks reject them.
    """
    number: int = getattr(message, field)
    return _enum_names(type(message), field).get(number) or str(number)


@cache
def _enum_names(kind: type[Message], field: str) -> Mapping[int, str]:
    values = kind.DESCRIPTOR.fields_by_name[field].enum_type
    return {} if values is None else {value.number: value.name for value in values.values}
