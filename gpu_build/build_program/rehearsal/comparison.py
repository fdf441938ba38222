"""Compares an answer with what is expected. A difference is told in positions and numbers, never in text.

| `how` | an answer passes if |
|---|---|
| `any` | it is an answer |
| `tolerance` | floats differ by at most `absolute + relative * (largest magnitude expected)`, and the rest is equal |
| `cosine` | the cosine between an output of floats and the expected one is at least `least`, and the rest is equal |
| `top1` | in each row, the largest value is where it is expected, and texts are equal |
| `label` | the first text of an output is `label`, or ends with `:label`, as Triton's classification extension has it |
"""

from __future__ import annotations

import math
from typing import Any, Collection, Mapping, Sequence

from .tensors import Tensor

__all__ = ["difference", "figures_of", "lacking"]

_FLOATS = ("FP16", "BF16", "FP32", "FP64")


def difference(
    comparison: Mapping[str, Any], found: Mapping[str, Tensor], expected: Mapping[str, Tensor] | None
) -> str | None:
    """Why an answer does not pass, as the rest of a sentence about the request; None if it passes."""
    how = comparison["how"]
    if how == "any":
        return None
    if how == "label":
        return _label(comparison["label"], found)
    for name, tensor in (expected or {}).items():
        if name not in found:
            return lacking(name, found)
        reason = _shapes(found[name], tensor) or _COMPARED[how](comparison, found[name], tensor)
        if reason is not None:
            return f"the output {name!r} {reason}"
    return None


def figures_of(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, float]:
    """The largest difference of each output of numbers, of an answer that passes."""
    figures = {}
    for name, tensor in expected.items():
        if tensor.datatype != "BYTES" and name in found and found[name].shape == tensor.shape:
            pairs = zip(found[name].values, tensor.values)
            figures[name] = max((abs(one - other) for one, other in pairs if one != other), default=0.0)
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def lacking(name: str, found: Collection[str]) -> str:
    """The words for an output that an answer does not have."""
    return f"the answer lacks the output {name!r}, and has {', '.join(map(repr, found)) or 'none'}"


def _shapes(found: Tensor, expected: Tensor) -> str | None:
    if found.shape != expected.shape:
        return f"has the shape {found.shape}, but {expected.shape} is expected"
    # numpy has no BF16, so a file has its values as FP32.
    if found.datatype != expected.datatype and (found.datatype, expected.datatype) != ("BF16", "FP32"):
        return f"has the data type {found.datatype}, but {expected.datatype} is expected"
    return None


def _tolerance(comparison: Mapping[str, Any], found: Tensor, expected: Tensor) -> str | None:
    if found.datatype not in _FLOATS:
        return _equal(found, expected)
    largest = max((abs(each) for each in expected.values if math.isfinite(each)), default=0.0)
    allowed = comparison["absolute"] + comparison["relative"] * largest
    worst, count, where = 0.0, 0, 0
    for index, (one, other) in enumerate(zip(found.values, expected.values)):
        if one == other or (one != one and other != other):  # a NaN equals a NaN here
            continue
        distance = abs(one - other)
        if not distance <= allowed:  # a NaN is not
            count += 1
            if count == 1 or not distance <= worst:
                worst, where = distance, index
    if not count:
        return None
    return (
        f"differs in {count} of {len(found.values)} values, most at {_position(where, found.shape)}: "
        f"{_number(found, where)} instead of {_number(expected, where)}, where a difference of {allowed:.3g} is"
        f" allowed "
        f"(absolute {comparison['absolute']:g}, relative {comparison['relative']:g} of the largest magnitude "
        f"{largest:.3g})"
    )


def _cosine(comparison: Mapping[str, Any], found: Tensor, expected: Tensor) -> str | None:
    if found.datatype not in _FLOATS:
        return _equal(found, expected)
    lengths = math.sqrt(sum(each * each for each in found.values) * sum(each * each for each in expected.values))
    product = sum(one * other for one, other in zip(found.values, expected.values))
    cosine = product / lengths if lengths else float(list(found.values) == list(expected.values))
    if cosine >= comparison["least"]:
        return None
    return f"has the cosine {cosine:.6g} with the expected values, where at least {comparison['least']:g} is allowed"


def _top1(_: Mapping[str, Any], found: Tensor, expected: Tensor) -> str | None:
    if found.datatype == "BYTES":
        return _equal(found, expected)
    width = found.shape[-1] if found.shape else 1
    for row, start in enumerate(range(0, len(found.values), width or 1)):
        rows = [each.values[start : start + width] for each in (found, expected)]
        if any(value != value for value in rows[0]) and all(value == value for value in rows[1]):
            return f"has a NaN in row {row}, which is not expected"
        one, other = map(_largest, rows)
        if one != other:
            return f"has its largest value at {one} in row {row}, but it is expected at {other}"
    return None


def _largest(values: Sequence[Any]) -> int:
    return max(range(len(values)), key=lambda index: values[index])


def _label(label: str, found: Mapping[str, Tensor]) -> str | None:
    texts = {name: tensor.values for name, tensor in found.items() if tensor.datatype == "BYTES" and tensor.values}
    if not texts:
        return f"no output of the answer has text, so none has the label {label!r}"
    for values in texts.values():
        text = bytes(values[0]).decode("utf-8", "replace")
        if text == label or text.endswith(f":{label}"):
            return None
    return f"the first text of {', '.join(map(repr, texts))} is not the label {label!r}"


def _equal(found: Tensor, expected: Tensor) -> str | None:
    differ = [index for index, pair in enumerate(zip(found.values, expected.values)) if pair[0] != pair[1]]
    if not differ:
        return None
    at = f"differs in {len(differ)} of {len(found.values)} values, first at {_position(differ[0], found.shape)}"
    if found.datatype == "BYTES":
        lengths = [len(bytes(each.values[differ[0]])) for each in (found, expected)]
        return f"{at}: a text of {lengths[0]} bytes instead of one of {lengths[1]}"
    return f"{at}: {_number(found, differ[0])} instead of {_number(expected, differ[0])}"


def _number(tensor: Tensor, index: int) -> str:
    return f"{tensor.values[index]:.6g}" if tensor.datatype in _FLOATS else str(tensor.values[index])


def _position(index: int, shape: Sequence[int]) -> list[int]:
    """The indices in each dimension of a value."""
    position: list[int] = []
    for size in reversed(shape):
        position.insert(0, index % size)
        index //= size
    return position


_COMPARED = {"tolerance": _tolerance, "cosine": _cosine, "top1": _top1}
