"""Explains an error of protobuf's parser to the author of a `config.pbtxt`: the fault, its place, and the fix.

Python's parser names the token that it did not expect. That is not always the fault: after `[ 1, ]` it complains of the
bracket, and where a block is not closed, of the last token of the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

from cdk_triton._wording import nearest
from cdk_triton.triton.text_format_reader import Reader, TextFormatError, Token, Value, line_and_column, tokens

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor

__all__ = ["explained"]

_LONGEST_WORD = 400
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
_WORD = re.compile(r"""[^\s"',;:{}<>\[\]#]+""")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLOAT = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def explained(error: text_format.ParseError, text: str) -> TextFormatError:
    """Explain a parser's error in terms of the config.pbtxt.

    Args:
        error: the error.
        text: the configuration as the parser read it.
    """
    line, column, lines = error.GetLine(), error.GetColumn(), text.split("\n")
    reason = str(error).removeprefix(f"{line}:{column} : ")
    if line is None or column is None:
        return TextFormatError(reason.rstrip("."), "", 0)
    reason = reason.removeprefix(f"'{lines[line - 1]}': ").removeprefix("'': ")
    offset = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    reader, rest = Reader(), tokens(text)
    for token in rest:
        if token.start >= offset:
            break
        reader.take(token)
    else:
        token = Token("end", "", offset, offset)
    block, last = reader.open[-1], reader.last
    if block.in_list and (last.text, token.text) == (",", "]"):
        return TextFormatError("a comma stands before the end of a list", "remove it", last.start)
    if reason in ('Expected "}".', 'Expected ">".'):
        for each in (token, *rest):
            reader.take(each)
        if len(reader.open) > 1:
            brace = reader.open[-1].token
            return TextFormatError("the block that begins here is not closed", "close the block", brace.start)
    found, fix = _fault(reason, text, token, reader) or (reason.rstrip("."), "")
    return TextFormatError(found, fix, offset)


def _fault(reason: str, text: str, token: Token, reader: Reader) -> tuple[str, str] | None:
    """None if the parser's own words are best."""
    block = reader.open[-1]
    if reason.startswith('Field "'):
        return reason.rstrip("."), _which_to_keep(token, block)
    if reason.startswith('Message type "') and " should not have multiple " in reason:
        return reason.rstrip("."), _keep_or_repeat(reader.open[-2].field.descriptor if len(reader.open) > 1 else None)
    if token.kind == "unclosed" and block.expects != "value" and reader.last.kind == "string":
        return _unclosed(token)
    if reader.is_lost or reason.startswith("Invalid octal float: "):
        return None
    if block.expects == "name":
        return _name_fault(text, token, reader)
    match = _WORD.match(text, token.start)
    word = (token.text if match is None else match.group())[:_LONGEST_WORD]
    return _fault_after_name(word, token, block, block.field.descriptor)


def _unclosed(token: Token) -> tuple[str, str]:
    return "the text that begins here is not closed in its line", f"write {token.text[0]} after it"


def _keep_or_repeat(around: FieldDescriptor | None) -> str:
    """The fix for a field that is set twice in a block of the field `around`."""
    if around is None or not around.is_repeated:
        return "keep one of them"
    if around.message_type is not None and around.message_type.GetOptions().map_entry:
        return f"write {around.name} {{ key: … value: … }} for each key"
    return f"keep one of them, or write {around.name} {{ … }} for each"


def _which_to_keep(token: Token, block: Value) -> str:
    message = block.message
    choice = None if message is None else message.fields_by_name[token.text].containing_oneof
    if choice is None or choice.name != "scheduling_choice":
        return "keep one of them"
    schedulers = {each.name for each in choice.fields} & {token.text, *block.fields}
    if "ensemble_scheduling" not in schedulers:
        return "keep one of them; sequence_batching { oldest { } } batches too"
    (other,) = schedulers - {"ensemble_scheduling"}
    return f"an ensemble has no scheduler of its own: put {other} into the models of its steps"


def _name_fault(text: str, token: Token, reader: Reader) -> tuple[str, str] | None:
    block, word, ahead = reader.open[-1], token.text, text[token.start : token.start + 2]
    first = ahead[:1]
    if ahead in ("//", "/*") or first == "-":
        return f"{ahead.strip()!r} does not begin a comment", "begin it with '#'"
    if first == "{":
        return "a block has no name", "if the file is JSON, write protobuf text instead, such as max_batch_size: 8"
    if first in (",", ";"):
        return f"{first!r} stands where a field is expected", "remove it"
    if first in ("}", "]", ">"):
        if len(reader.open) == 1:
            return f"{first!r} closes no block or list", "remove it, or open a block before it"
        line, _ = line_and_column(text, block.token.start)
        found = f"the block that begins in line {line} is not closed before the {first!r} here"
        return found, f"write the missing '}}' before the {first!r}, or remove the {first!r}"
    if first in ("'", '"'):
        fix = "write the name of a field without quotes; an entry of a map is { key: … value: … }"
        return f"the text {word[:_LONGEST_WORD]} stands where the name of a field is expected", fix
    if block.message is None or not (word.isalnum() or word.isidentifier()):
        return None
    if first.isdecimal():
        fix = "write several values as a list, such as [ 4, 8 ], if the field may have several"
        return f"{word!r} stands where the name of a field is expected", fix
    other, fix = _suggestion(word, list(block.message.fields_by_name))
    return f"{block.message.full_name.removeprefix('inference.')} has no field {word!r}{other}", fix


def _fault_after_name(word: str, token: Token, block: Value, field: FieldDescriptor | None) -> tuple[str, str] | None:
    name = "the field" if field is None else field.name
    if token.kind == "end" and block.in_list:
        return f"the file ends in the list of {name}, which is not closed", "write ']' after the last value of the list"
    if block.expects == "comma":
        fix = "write ',' between two values, or ']' after the last one"
        return f"the list of {name} cannot continue with {word!r}", fix
    if field is None or field.message_type is not None:
        fix = f"write {name} {{ … }}"
        if field is not None and field.message_type is not None and field.message_type.name == "ModelParameter":
            fix = "write value {{ string_value: {} }}".format(word if word[:1] in ("'", '"') else f'"{word}"')
        return f"{name} takes a block in braces", fix
    if block.expects == "colon":
        found = "'=' stands in its place" if word.startswith("=") else "the colon is missing"
        return f"a colon has to follow the name {name}, but {found}", f"write {name}: before the value"
    return _value_fault(word, token, field)


def _value_fault(word: str, token: Token, field: FieldDescriptor) -> tuple[str, str] | None:
    kind = field.cpp_type
    is_number = kind in _RANGES or kind in _FLOAT
    if word in ("", "}", ">") or (is_number and word in ("]", ",", ";")):
        return f"the value of {field.name} is missing", "write the value, or remove the field"
    if field.enum_type is not None:
        return _enum_fault(token.text, field.name, field.enum_type)
    if is_number:
        return _number_fault(word, field)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        inner = word.strip("\"'")
        if inner != word and inner.lower() in ("true", "false"):
            return f"{field.name} takes true or false, but {word} is a text", f"write {inner.lower()}"
        return f"{field.name} takes true or false, not {word!r}", "write true or false"
    if token.kind == "unclosed":
        return _unclosed(token)
    if token.kind == "string":
        return None
    if word == "[":
        return f"{field.name} takes one text, not a list", "remove the brackets"
    return f"{field.name} takes a text in quotes", f'write "{word}"'


def _number_fault(word: str, field: FieldDescriptor) -> tuple[str, str]:
    takes = f"{field.name} takes {'a whole number' if field.cpp_type in _RANGES else 'a number'}"
    if word == "[":
        return f"{field.name} takes one number, not a list", "remove the brackets"
    if word[0] in "\"'":
        return f"{takes}, but {word} is a text", "write it without quotes" if word[1:-1].isdecimal() else "write digits"
    if _WHOLE.fullmatch(word) and field.cpp_type in _RANGES:
        low, high = _RANGES[field.cpp_type]
        if word.isdecimal() and word[0] == "0":
            return f"{word!r} is not a number, because a number that begins with 0 is octal", "remove the leading 0"
        return f"{word} is outside the range of {field.name}", f"write a number from {low} to {high}"
    return f"{takes}, but {word!r} is not such a number", _whole_number_fix(word)


def _whole_number_fix(word: str) -> str:
    try:
        number = float(word)
    except ValueError:
        return "write digits alone" + (", without a unit" if word[:1].isdecimal() else "")
    return f"write {number:.0f}" if number.is_integer() and abs(number) < 2**53 else "write digits alone"


def _enum_fault(word: str, field: str, enum: EnumDescriptor) -> tuple[str, str] | None:
    name = enum.full_name.removeprefix("inference.")
    if len(word.split()) != 1:
        return None
    if word.strip("\"'") in enum.values_by_name:
        return f"{field} takes a name of {name}, but {word} is a text", f"write {word[1:-1]} without quotes"
    other, fix = _suggestion(word, list(enum.values_by_name))
    return f"{name} has no value {word!r}{other}", fix


def _suggestion(word: str, known: list[str]) -> tuple[str, str]:
    """The end of the sentence about the fault, and the fix."""
    upper = word[:_LONGEST_WORD].upper()
    elsewhere = _CALLED_ELSEWHERE.get(f"TYPE_{upper.removeprefix('TYPE_')}")
    whole = next((each for each in known if upper in (each.upper(), each.upper().partition("_")[2])), None)
    meant = whole or (elsewhere if elsewhere in known else None)
    meant = meant or next(iter(nearest(word[:_LONGEST_WORD], known, at_most=1)), None)
    if meant is not None:
        return "", f"did you mean {meant!r}?"
    return f" (it has {', '.join(known)})", "write one of these, or remove it"
