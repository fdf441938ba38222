"""Reading and writing `config.pbtxt`, Triton's model configuration.

The server reads the file with protobuf's text format and refuses a field or an enum value that its schema does not
know; so does this module. What a configuration means is looked at in `cdk_triton.checks`.
"""

from __future__ import annotations

import re

from google.protobuf import text_format

from cdk_triton._wording import did_you_mean
from cdk_triton.errors import ModelConfigError
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.text_format_dialect import as_python_reads_it, decoded, refused_characters
from cdk_triton.triton.text_format_values import Refused, as_python_reads_values

__all__ = ["format_model_config", "parse_model_config"]

_LONG = 400
_PREFIX = re.compile(r"^(?:\d+:\d+ : )?(?:'.*': )?(?=\S)", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r'^Message type "([\w.]+)" has no field named "(\w+)"')
# What other frameworks call a type, whose nearest spelling here is another type's.
_CALLED_ELSEWHERE = {
    "TYPE_FLOAT": "TYPE_FP32",
    "TYPE_FLOAT16": "TYPE_FP16",
    "TYPE_FLOAT32": "TYPE_FP32",
    "TYPE_FLOAT64": "TYPE_FP64",
    "TYPE_HALF": "TYPE_FP16",
    "TYPE_DOUBLE": "TYPE_FP64",
    "TYPE_BFLOAT16": "TYPE_BF16",
    "TYPE_BYTE": "TYPE_UINT8",
    "TYPE_BYTES": "TYPE_STRING",
    "TYPE_INT": "TYPE_INT32",
    "TYPE_LONG": "TYPE_INT64",
}
_UNKNOWN_VALUE = re.compile(r'^Enum type "([\w.]+)" has no value (?:named|with number) (\S+?)\.$')


def parse_model_config(
    text: str | bytes, *, path: str = "config.pbtxt", allow_unknown_fields: bool = False
) -> ModelConfig:
    """Read a model configuration in protobuf's text format.

    Args:
        text: the content of the file. Bytes that are not UTF-8 are read as Latin-1 in quotes; the server takes them.
        path: how the file is called in an error, as its user would write it.
        allow_unknown_fields: skip what the schema (`SCHEMA_RELEASE`) does not know instead of refusing it, for a
            server that is newer than the schema.

    Returns:
        The `inference.ModelConfig` message, exactly as written: nothing is completed.

    Raises:
        ModelConfigError: the text is not a model configuration; carries line and column of the fault.
    """
    if isinstance(text, bytes):
        text = decoded(text)
    try:
        for offset, reason in refused_characters(text):
            raise Refused(offset, reason)
        readable = as_python_reads_values(as_python_reads_it(text))
    except Refused as fault:
        line, column = text.count("\n", 0, fault.offset) + 1, fault.offset - text.rfind("\n", 0, fault.offset)
        raise _error(_shortened(fault.reason), path, line, column) from None
    config = ModelConfig()
    try:
        text_format.Parse(readable, config, allow_unknown_field=allow_unknown_fields)
    except text_format.ParseError as error:
        reason = _shortened(_explain(_PREFIX.sub("", str(error), count=1)))
        raise _error(reason, path, error.GetLine(), error.GetColumn()) from None
    except RecursionError:
        raise _error("the blocks are nested too deeply", path) from None
    return config


def format_model_config(config: ModelConfig) -> str:
    """Write a model configuration in protobuf's text format: what `parse_model_config` reads back unchanged.

    Enum values are written by name, as every example of Triton's documentation does. Multi-model endpoints look for the
    literal text `platform: "ensemble"`, which this function writes and other spellings are not.
    """
    return str(text_format.MessageToString(config, as_utf8=True))


def fault_of(error: ModelConfigError) -> str:
    """What is wrong and where in the file, without the file's name: for a message that names the file already."""
    reason = str(error).removeprefix(_where(error.path, error.line, error.column) + ": ")
    return reason if error.line is None else f"line {error.line}, column {error.column}: {reason}"


def _explain(reason: str) -> str:
    """Say a parser's complaint in the words of somebody who writes a config.pbtxt."""
    if match := _UNKNOWN_FIELD.match(reason):
        message, field = match.groups()
        known = ModelConfig.DESCRIPTOR.file.pool.FindMessageTypeByName(message).fields_by_name
        return f"{message.removeprefix('inference.')} has no field {field!r}{_suggestion(field, list(known))}"
    if match := _UNKNOWN_VALUE.match(reason):
        enum, value = match.groups()
        values = ModelConfig.DESCRIPTOR.file.pool.FindEnumTypeByName(enum).values_by_name
        return f"{enum.removeprefix('inference.')} has no value {value!r}{_suggestion(value, list(values))}"
    if reason.startswith("Expected identifier or number, got {"):
        return "a block without a name; where this is JSON, write protobuf text instead: max_batch_size: 8"
    if reason in ('Expected "}".', 'Expected ">".'):
        return f"{reason.rstrip('.')}: a block that starts before this point is not closed"
    return reason.rstrip(".")


def _shortened(reason: str) -> str:
    """The reason without the middle of what it quotes: the parser repeats a word of any length."""
    return reason if len(reason) <= 2 * _LONG else f"{reason[:_LONG]} … {reason[-_LONG:]}"


def _suggestion(word: str, known: list[str]) -> str:
    if word in _CALLED_ELSEWHERE:
        return f" (did you mean {_CALLED_ELSEWHERE[word]!r}?)"
    return did_you_mean(word[:_LONG], known, at_most=1) or f" (it knows {', '.join(known)})"


def _error(reason: str, path: str, line: int | None = None, column: int | None = None) -> ModelConfigError:
    return ModelConfigError(f"{_where(path, line, column)}: {reason}", path=path, line=line, column=column)


def _where(path: str, line: int | None, column: int | None) -> str:
    return path if line is None else f"{path}:{line}:{column}"
