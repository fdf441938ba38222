"""Reading and writing `config.pbtxt`, Triton's model configuration.

The server reads the file with protobuf's text format and rejects a field or an enum value that its schema does not
have. So does this module. `cdk_triton.checks` judges the meaning of a configuration.
"""

from __future__ import annotations

from google.protobuf import text_format

from cdk_triton.errors import ModelConfigError
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.text_format_dialect import as_python_reads_it
from cdk_triton.triton.text_format_faults import explained
from cdk_triton.triton.text_format_reader import TextFormatError, decoded, line_and_column

__all__ = ["format_model_config", "parse_model_config"]

_LONG = 400


def parse_model_config(
    text: str | bytes, *, path: str = "config.pbtxt", allow_unknown_fields: bool = False
) -> ModelConfig:
    """Read a model configuration in protobuf's text format.

    Args:
        text: the content of the file. Bytes in quotes that are not UTF-8 are read as Latin-1, because the server
            accepts them.
        path: the path of the file in error messages, as the user would write it.
        allow_unknown_fields: skip fields that the schema (`SCHEMA_RELEASE`) does not have instead of rejecting them,
            for a server that is newer than the schema.

    Returns:
        The `inference.ModelConfig` message as written. Fields that the server would complete stay empty.

    Raises:
        ModelConfigError: the text is not a model configuration. The error has the line and column of the fault.
    """
    if isinstance(text, bytes):
        text = decoded(text)
    config = ModelConfig()
    try:
        readable = as_python_reads_it(text)
        text_format.Parse(readable, config, allow_unknown_field=allow_unknown_fields)
    except TextFormatError as fault:
        raise _error(fault, path, text) from None
    except text_format.ParseError as error:
        raise _error(explained(error, readable), path, readable) from None
    except RecursionError:
        fix = "remove levels of nesting"
        raise ModelConfigError(f"{path}: the blocks are nested too deeply; {fix}", path=path, fix=fix) from None
    return config


def format_model_config(config: ModelConfig) -> str:
    """Write a model configuration in protobuf's text format, which `parse_model_config` reads back unchanged.

    Enum values are written by name, as every example of Triton's documentation does. A multi-model endpoint recognises
    an ensemble only by the literal text `platform: "ensemble"`, which this function writes.
    """
    return str(text_format.MessageToString(config, as_utf8=True))


def fault_of(error: ModelConfigError) -> str:
    """The fault and its place in the file, for a message that names the file already; without the fix."""
    reason = str(error).removeprefix(_where(error.path, error.line, error.column) + ": ")
    reason = reason.removesuffix(f"; {error.fix}")
    return reason if error.line is None else f"line {error.line}, column {error.column}: {reason}"


def _error(fault: TextFormatError, path: str, text: str) -> ModelConfigError:
    line, column = line_and_column(text, fault.offset)
    reason = fault.reason  # the parser repeats a word of any length
    if len(reason) > 2 * _LONG:
        reason = f"{reason[:_LONG]} … {reason[-_LONG:]}"
    said = f"{_where(path, line, column)}: {reason}" + (f"; {fault.fix}" if fault.fix else "")
    return ModelConfigError(said, path=path, line=line, column=column, fix=fault.fix)


def _where(path: str, line: int | None, column: int | None) -> str:
    return path if line is None else f"{path}:{line}:{column}"
