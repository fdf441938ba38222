"""The meaning of a parser's complaint about `config.pbtxt`, for its author: the fault, its place, and the fix.

Python's parser names the token that it did not expect. That is not always the fault: after `[ 1, ]` it complains of the
bracket, and where a block is not closed, of the last token of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from cdk_triton._wording import nearest
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.text_format_values import Reader, read_up_to

__all__ = ["TextFault", "explained"]

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
_UNKNOWN_FIELD = re.compile(r'Message type "([\w.]+)" has no field named "(\w+)"')
_UNKNOWN_VALUE = re.compile(r'Enum type "([\w.]+)" has no value (?:named|with number) (\S+?)\.$')
_SECOND_SCHEDULER = re.compile(
    r'Field "(?:inference\.ModelConfig\.)?(\w+)" is specified along with field "(?:inference\.ModelConfig\.)?(\w+)", '
    r'another member of oneof "scheduling_choice"'
)
_ONE_OF_TWO = re.compile(r".*(?:, another member of oneof \"\w+\" for | should not have multiple \"\w+\" fields)")
_NUMBER = re.compile(r"(?:Couldn't parse (?:integer|float)|Value out of range): ")
_FIELD_EXPECTED = re.compile(r"Expected identifier or number, got ")
_UNCLOSED = re.compile(r'Expected "[}>]"\.$')
_UNCLOSED_TEXT = re.compile("String missing ending quote: ")
_WORD = re.compile(r""""(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|[^\s"',;:{}<>\[\]#]+|.|$""")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class TextFault(NamedTuple):
    """A fault in the text of a configuration.

    Attributes:
        reason: the fault.
        fix: what to do, or "".
        offset: the place of the fault in the text.
    """

    reason: str
    fix: str
    offset: int


class _At(NamedTuple):
    """The place of which a parser complains, and what was read before it."""

    text: str
    offset: int
    before: Reader

    @property
    def word(self) -> str:
        match = _WORD.match(self.text, self.offset)
        return match.group()[:_LONGEST_WORD] if match is not None else ""

    @property
    def field(self) -> FieldDescriptor | None:
        """The field whose value is expected here."""
        return self.before.pending_field

    @property
    def name(self) -> str:
        return "the field" if self.field is None else self.field.name

    def trailing_comma(self) -> TextFault | None:
        """The comma before the end of a list, if that is the fault."""
        if self.word != "]" or self.before.comma is None:
            return None
        return TextFault("a comma stands before the end of a list", "remove it", self.before.comma)


def explained(reason: str, text: str, offset: int) -> TextFault:
    """Write a parser's complaint in the words of somebody who writes a config.pbtxt.

    Args:
        reason: the complaint, without its place.
        text: the configuration as the parser read it.
        offset: the place of which the parser complains.
    """
    at = _At(text, offset, read_up_to(text, offset))
    for pattern, explain in _EXPLANATIONS.items():
        if (match := pattern.match(reason)) is not None and (fault := explain(match, at)) is not None:
            return fault
    return TextFault(reason.rstrip("."), "", offset)


def _unknown_field(match: re.Match[str], at: _At) -> TextFault:
    message, field = match.groups()
    if field[0].isdecimal():
        several = "write several values as a list, such as [ 4, 8 ], if the field may have several"
        return TextFault(f"{field!r} stands where the name of a field is expected", several, at.offset)
    known = ModelConfig.DESCRIPTOR.file.pool.FindMessageTypeByName(message).fields_by_name
    other, fix = _suggestion(field, list(known))
    return TextFault(f"{message.removeprefix('inference.')} has no field {field!r}{other}", fix, at.offset)


def _unknown_value(match: re.Match[str], at: _At) -> TextFault:
    enum, value = match.groups()
    values = ModelConfig.DESCRIPTOR.file.pool.FindEnumTypeByName(enum).values_by_name
    name = enum.removeprefix("inference.")
    if value.strip("\"'") in values:
        fix = f"write {value[1:-1]} without quotes"
        return TextFault(f"{at.name} takes a name of {name}, but {value} is a text", fix, at.offset)
    other, fix = _suggestion(value, list(values))
    return TextFault(f"{name} has no value {value!r}{other}", fix, at.offset)


def _second_scheduler(match: re.Match[str], at: _At) -> TextFault:
    fields = {match[1], match[2]}
    fix = "keep one of them; sequence_batching { oldest { } } batches too"
    if "ensemble_scheduling" in fields:
        other = next(iter(fields - {"ensemble_scheduling"}))
        fix = f"an ensemble has no scheduler of its own: put {other} into the models of its steps"
    return TextFault(match.string.rstrip("."), fix, at.offset)


def _one_of_two(match: re.Match[str], at: _At) -> TextFault:
    return TextFault(match.string.rstrip("."), "keep one of them", at.offset)


def _number(match: re.Match[str], at: _At) -> TextFault:
    return at.trailing_comma() or TextFault(*_number_fault(at), at.offset)


def _number_fault(at: _At) -> tuple[str, str]:
    word, is_float = at.word, at.field is not None and at.field.cpp_type not in _RANGES
    takes = f"{at.name} takes {'a number' if is_float else 'a whole number'}"
    if word in ("", "}", ">", "]", ",", ";"):
        return _missing(at)[:2]
    if word == "[":
        return f"{at.name} takes one number, not a list", "remove the brackets"
    if word[0] in "\"'":
        return f"{takes}, but {word} is a text", "write it without quotes" if word[1:-1].isdecimal() else "write digits"
    if at.field is not None and _WHOLE.fullmatch(word) and at.field.cpp_type in _RANGES:
        low, high = _RANGES[at.field.cpp_type]
        if word.isdecimal() and word[0] == "0":
            return f"{word!r} is not a number, because a number that begins with 0 is octal", "remove the leading 0"
        return f"{word} is outside the range of {at.name}", f"write a number from {low} to {high}"
    return f"{takes}, but {word!r} is not such a number", _whole_number(word)


def _whole_number(word: str) -> str:
    """The fix for a number that is written as a fraction or with an exponent."""
    try:
        number = float(word)
    except ValueError:
        return "write digits alone" + (", without a unit" if word[:1].isdecimal() else "")
    return f"write {number:.0f}" if number.is_integer() and abs(number) < 2**53 else "write digits alone"


def _flag(match: re.Match[str], at: _At) -> TextFault:
    inner = at.word.strip("\"'")
    if inner != at.word and inner.lower() in ("true", "false"):
        return TextFault(f"{at.name} takes true or false, but {at.word} is a text", f"write {inner.lower()}", at.offset)
    if at.word in ("", "}", ">"):
        return _missing(at)
    return TextFault(f"{at.name} takes true or false, not {at.word!r}", "write true or false", at.offset)


def _text(match: re.Match[str], at: _At) -> TextFault:
    if at.word == "[":
        return TextFault(f"{at.name} takes one text, not a list", "remove the brackets", at.offset)
    if at.word in ("", "}", ">"):
        return _missing(at)
    if fault := at.trailing_comma():
        return fault
    return TextFault(f"{at.name} takes a text in quotes", f'write "{at.word}"', at.offset)


def _missing(at: _At) -> TextFault:
    return TextFault(f"the value of {at.name} is missing", "write the value, or remove the field", at.offset)


def _unclosed_text(match: re.Match[str], at: _At) -> TextFault:
    return TextFault("the text that begins here is not closed in its line", f"write {at.word[:1]} after it", at.offset)


def _colon(match: re.Match[str], at: _At) -> TextFault:
    found = "'=' stands in its place" if at.word.startswith("=") else "the colon is missing"
    fix = f"write {at.name}: before the value"
    return TextFault(f"a colon has to follow the name {at.name}, but {found}", fix, at.offset)


def _comma(match: re.Match[str], at: _At) -> TextFault:
    fix = "write ',' between two values, or ']' after the last one"
    return TextFault(f"the list of {at.name} cannot continue with {at.word!r}", fix, at.offset)


def _block(match: re.Match[str], at: _At) -> TextFault:
    if fault := at.trailing_comma():
        return fault
    fix = f"write {at.name} {{ … }}"
    if at.field is not None and at.field.message_type is not None and at.field.message_type.name == "ModelParameter":
        text = at.word if at.word[:1] in ("'", '"') else f'"{at.word}"'
        fix = f"write value {{ string_value: {text} }}"
    return TextFault(f"{at.name} takes a block in braces", fix, at.offset)


def _not_closed(match: re.Match[str], at: _At) -> TextFault | None:
    start = read_up_to(at.text, len(at.text)).open_block
    return None if start is None else TextFault("the block that begins here is not closed", "close the block", start)


def _field_expected(match: re.Match[str], at: _At) -> TextFault:
    ahead = at.text[at.offset : at.offset + 2]
    if ahead in ("//", "/*") or ahead[:1] == "-":
        return TextFault(f"{ahead.strip()!r} does not begin a comment", "begin it with '#'", at.offset)
    if ahead[:1] == "{":
        fix = "if the file is JSON, write protobuf text instead, such as max_batch_size: 8"
        return TextFault("a block has no name", fix, at.offset)
    if ahead[:1] in (",", ";"):
        return TextFault(f"{ahead[:1]!r} stands where a field is expected", "remove it", at.offset)
    if ahead[:1] in ("}", "]", ">"):
        if (start := at.before.open_block) is not None:
            line = at.text.count("\n", 0, start) + 1
            reason = f"the block that begins in line {line} is not closed before the {ahead[:1]!r} here"
            fix = f"write the missing '}}' before the {ahead[:1]!r}, or remove the {ahead[:1]!r}"
            return TextFault(reason, fix, at.offset)
        return TextFault(f"{ahead[:1]!r} closes no block or list", "remove it, or open a block before it", at.offset)
    if ahead[:1] in ("'", '"'):
        fix = "write the name of a field without quotes; an entry of a map is { key: … value: … }"
        return TextFault(f"the text {at.word} stands where the name of a field is expected", fix, at.offset)
    return TextFault(match.string.rstrip("."), "", at.offset)


_EXPLANATIONS: Mapping[re.Pattern[str], Callable[[re.Match[str], _At], TextFault | None]] = {
    _UNKNOWN_FIELD: _unknown_field,
    _UNKNOWN_VALUE: _unknown_value,
    _SECOND_SCHEDULER: _second_scheduler,
    _ONE_OF_TWO: _one_of_two,
    _NUMBER: _number,
    _FIELD_EXPECTED: _field_expected,
    _UNCLOSED: _not_closed,
    _UNCLOSED_TEXT: _unclosed_text,
    re.compile('Expected "true" or "false"'): _flag,
    re.compile("Expected string but found: "): _text,
    re.compile('Expected ":"'): _colon,
    re.compile('Expected ","'): _comma,
    re.compile('Expected "{"'): _block,
}


def _suggestion(word: str, known: list[str]) -> tuple[str, str]:
    """The rest of the sentence about the fault, and the fix."""
    upper = word[:_LONGEST_WORD].upper()
    elsewhere = _CALLED_ELSEWHERE.get(f"TYPE_{upper.removeprefix('TYPE_')}")
    whole = next((each for each in known if upper in (each.upper(), each.upper().partition("_")[2])), None)
    meant = whole or (elsewhere if elsewhere in known else None)
    meant = meant or next(iter(nearest(word[:_LONGEST_WORD], known, at_most=1)), None)
    if meant is not None:
        return "", f"did you mean {meant!r}?"
    return f" (it has {', '.join(known)})", "write one of these, or remove it"
