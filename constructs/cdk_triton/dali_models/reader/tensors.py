"""The inputs and outputs of a pipeline, as far as literals of its definition show them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdk_triton._dali_signature import PipelineTensor
from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.imports import may_leave
from cdk_triton.python_models.reader.known_functions import dotted
from cdk_triton.python_models.reader.names import bound_names
from cdk_triton.python_models.reader.variables import values_set_once

__all__ = ["ExternalSource", "Outputs", "certain_nodes", "computed_types", "external_sources", "outputs_of"]

Outputs = tuple[PipelineTensor, ...]

_SOURCE: Final = "external_source"
_FN: Final = "nvidia.dali.fn."
_VIDEOS: Final = (f"{_FN}experimental.inputs.video", f"{_FN}inputs.video")
# Other ways to an input: other operators in `fn.inputs`, and the class of the object interface.
_OTHERS: Final = frozenset({"inputs", "ExternalSource"})

# nvidia.dali.types → Triton's name.
_TYPES: Final[Mapping[str, str]] = {
    **{f"{sign}INT{bits}": f"TYPE_{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "FLOAT16": "TYPE_FP16",
    "FLOAT": "TYPE_FP32",
    "FLOAT64": "TYPE_FP64",
    "BOOL": "TYPE_BOOL",
}
# With code of their own, or with an effect on other names.
_OPEN: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)
# Operators of `fn` with one output, however they are called.
_WITH_ONE_OUTPUT: Final = frozenset(
    {
        *(_SOURCE, "decoders.image", "decoders.image_crop", "resize", "crop_mirror_normalize", "crop", "cast", "pad"),
        *("reshape", "reinterpret", "squeeze", "expand_dims", "normalize", "slice", "flip", "rotate", "transpose"),
        *("color_space_conversion", "brightness_contrast", "hsv", "gaussian_blur", "warp_affine", "stack", "cat"),
        *("one_hot", "copy", "constant", "spectrogram", "mel_filter_bank", "to_decibels", "mfcc"),
    }
)


@dataclass(frozen=True)
class ExternalSource:
    """A call of `fn.external_source`, or of `fn.inputs.video` with a name.

    Attributes:
        line: where.
        tensor: the input that it makes; its name is "" if DALI chooses the name.
        is_certain: whether the call certainly runs, for an output.
        is_used: whether an output may need the input; otherwise DALI drops it.
        has_callback: whether the call has a `source`.
        may_declare: what the call may declare of the input: `data_type`, `dims`, or both.
    """

    line: int
    tensor: PipelineTensor
    is_certain: bool
    is_used: bool
    has_callback: bool
    may_declare: frozenset[str]


def external_sources(
    pipeline: ast.FunctionDef, nodes: Sequence[ast.AST], imported: Mapping[str, str]
) -> tuple[ExternalSource, ...] | None:
    """The inputs of a pipeline, in their order in the source; None if the source may make others.

    Args:
        pipeline: the function that defines the pipeline.
        nodes: the nodes of its module.
        imported: name → what an import binds it to.
    """
    made = {node: dotted(node.func, imported) for node in nodes if isinstance(node, ast.Call)}
    calls = [call for call, function in made.items() if function in (f"{_FN}{_SOURCE}", *_VIDEOS)]
    functions = {part for call in calls for part in ast.walk(call.func)}
    for node in nodes:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        whole = dotted(node, imported) if isinstance(node, ast.Name | ast.Attribute) else ""
        is_source = _SOURCE in (name, whole.rpartition(".")[2])
        is_other = name in _OTHERS or (whole.startswith(_FN) and ".inputs" in whole)
        if (is_other or is_source) and node not in functions:
            return None
    set_once = values_set_once(nodes)
    certain = certain_nodes(pipeline)
    unused = _unused(pipeline, imported)
    found = []
    for call in calls:
        keywords = {each.arg: _resolved(each.value, set_once) for each in call.keywords}
        text = _text(keywords.get("name"))
        if None in keywords or "num_outputs" in keywords or text is None or len(call.args) > 1:
            return None
        if made[call] in _VIDEOS and not text:
            return None
        ndim = _number(keywords.get("ndim"))
        if (
            ndim is None
        ):  # DALI then counts the letters of the layout (dali/pipeline/operator/builtin/external_source.h)
            ndim = len(_text(keywords.get("layout")) or "") or None
        tensor = PipelineTensor(text, _type(keywords.get("dtype"), imported), ndim)
        has_callback = bool(call.args) or not _is_none(keywords.get("source"))
        declaring = {"dtype": "data_type", "ndim": "dims", "layout": "dims"}
        may_declare = frozenset(word for given, word in declaring.items() if given in keywords or made[call] in _VIDEOS)
        is_used = call not in unused
        found.append(ExternalSource(call.lineno, tensor, call in certain, is_used, has_callback, may_declare))
    return tuple(sorted(found, key=lambda each: each.line))


def certain_nodes(pipeline: ast.FunctionDef) -> set[ast.AST]:
    """The nodes that certainly run, and whose values become a part of an output."""
    return _needed(pipeline).intersection(_certain(pipeline.body))


def outputs_of(
    pipeline: ast.FunctionDef,
    arguments: Sequence[ast.keyword],
    nodes: Iterable[ast.AST],
    imported: Mapping[str, str],
) -> Outputs | None:
    """The outputs of a pipeline, in their order; None if their number is not known.

    Args:
        pipeline: the function that defines the pipeline.
        arguments: the arguments of its `@pipeline_def`.
        nodes: the nodes of its module.
        imported: name → what an import binds it to.
    """
    set_once = values_set_once(nodes)
    given = {each.arg: _resolved(each.value, set_once) for each in arguments}
    types, ndims = given.get("output_dtype"), given.get("output_ndim")
    listed = [each.elts for each in (types, ndims) if isinstance(each, ast.List | ast.Tuple)]
    if any(isinstance(each, ast.Starred) for elements in listed for each in elements):
        return None
    lengths = set(map(len, listed))
    lengths |= {count for count in [_count_of_returned(pipeline, imported)] if count is not None}
    if len(lengths) != 1:
        return None
    indexes = range(lengths.pop())
    kinds = [_type(_resolved(_element(types, index), set_once), imported) for index in indexes]
    sizes = [_number(_resolved(_element(ndims, index), set_once)) for index in indexes]
    return tuple(PipelineTensor(f"output {index}", kinds[index], sizes[index]) for index in indexes)


def _element(value: ast.expr | None, index: int) -> ast.expr | None:
    """The value for one output: `pipeline_def` takes one for each output, or one for all."""
    return value.elts[index] if isinstance(value, ast.List | ast.Tuple) else value


def computed_types(
    pipeline: ast.FunctionDef, nodes: Iterable[ast.AST], imported: Mapping[str, str]
) -> tuple[str | None, ...]:
    """The types that the operators of the outputs write, in their order; None where no `dtype` shows it."""
    value = _returned(pipeline)
    set_once = values_set_once(nodes)
    outputs = value.elts if isinstance(value, ast.Tuple) else [] if value is None else [value]
    return tuple(_computed_type(each, pipeline.body, set_once, imported) for each in outputs)


def _computed_type(
    value: ast.expr, body: Sequence[ast.stmt], set_once: Mapping[str, ast.expr], imported: Mapping[str, str]
) -> str | None:
    if isinstance(value, ast.Name):
        value = _last_value(value.id, body) or value
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="gpu" | "cpu"), args=[]):
            return _computed_type(inner, [], set_once, imported)
        case ast.Call(func=function, keywords=keywords) if _is_one(value, imported):
            if dotted(function, imported) == f"{_FN}{_SOURCE}":
                return None  # CT874 compares the input
            kinds = [each.value for each in keywords if each.arg == "dtype"]
            return _type(_resolved(kinds[0], set_once), imported) if kinds else None
    return None


def _returned(pipeline: ast.FunctionDef) -> ast.expr | None:
    """What the function returns in any case."""
    returns = [node for node in own_nodes(*pipeline.body) if isinstance(node, ast.Return)]
    last = pipeline.body[-1]
    if len(returns) != 1 or returns[0] is not last or not isinstance(last, ast.Return) or last.value is None:
        return None
    value = last.value
    return _last_value(value.id, pipeline.body) or value if isinstance(value, ast.Name) else value


def _count_of_returned(pipeline: ast.FunctionDef, imported: Mapping[str, str]) -> int | None:
    """The number of outputs that the function returns in any case."""
    value = _returned(pipeline)
    if isinstance(value, ast.Tuple):
        is_spread = any(isinstance(each, ast.Starred) for each in value.elts)
        return None if is_spread else len(value.elts)
    return 1 if value is not None and _is_one(value, imported) else None


def _last_value(name: str, body: Iterable[ast.stmt]) -> ast.expr | None:
    """What a variable has at the end of a body, if its last assignment certainly runs."""
    value = None
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=given) if target == name:
                value = given
            case _ if name in bound_names(statement):
                value = None
    return value


def _is_one(value: ast.expr, imported: Mapping[str, str]) -> bool:
    """Whether an expression is certainly one tensor."""
    match value:
        case ast.BinOp():
            return True
        case ast.Call(func=ast.Attribute(attr="gpu" | "cpu"), args=[]):
            return True
        case ast.Call(func=function):
            return dotted(function, imported).removeprefix(_FN) in _WITH_ONE_OUTPUT
    return False


def _certain(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes that run whenever a function runs."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
            pending: list[ast.AST] = [statement]
            while pending:
                node = pending.pop()
                yield node
                if not isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda | ast.ListComp | ast.GeneratorExp):
                    pending += ast.iter_child_nodes(node)
        elif may_leave(statement):
            return


def _unused(pipeline: ast.FunctionDef, imported: Mapping[str, str]) -> set[ast.AST]:
    """The nodes whose values certainly do not become a part of an output."""
    names = [node for node in ast.walk(pipeline) if isinstance(node, ast.Name)]
    stored = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    loaded = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
    unused: set[ast.AST] = set()
    for statement in reversed(pipeline.body):  # what drops a value is below it
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if stored[name] == 1 and not loaded[name]:
                pass
            case ast.Expr(value=value):
                pass
            case _:
                continue
        if _is_dropped(value, imported):
            nodes = set(ast.walk(value))
            unused |= nodes
            loaded.subtract(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return unused


def _is_dropped(value: ast.expr, imported: Mapping[str, str]) -> bool:
    """Whether DALI drops the result of an expression if nothing needs it: operators of `fn`, and arithmetic."""
    return all(
        _is_operator(node, imported) if isinstance(node, ast.Call) else not isinstance(node, _OPEN)
        for node in ast.walk(value)
    )


def _needed(pipeline: ast.FunctionDef) -> set[ast.AST]:
    """The nodes whose values become a part of an output, as far as assignments in a row show it."""
    needed: set[ast.AST] = set()
    live: set[str] = set()
    for statement in reversed(pipeline.body):
        part: ast.AST = statement
        match statement:
            case ast.Return(value=ast.expr() as part):
                live.clear()
            case ast.Assign(targets=[ast.Name(id=name)], value=part) if name in live:
                live.discard(name)
            case _ if isinstance(statement, ast.Expr) or not live & bound_names(statement):
                continue
        found = set(ast.walk(part))
        needed |= found
        live |= {node.id for node in found if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return needed


def _is_operator(call: ast.Call, imported: Mapping[str, str]) -> bool:
    """Whether a call is one of an operator that does not stay without a use."""
    name = dotted(call.func, imported)
    stays = any(keyword.arg in ("preserve", None) for keyword in call.keywords)
    return name.startswith(_FN) and "function" not in name and not stays


def _resolved(value: ast.expr | None, set_once: Mapping[str, ast.expr]) -> ast.expr | None:
    """What a name stands for, unless other code may change the value: an element of a list."""
    found = set_once.get(value.id) if isinstance(value, ast.Name) else None
    return value if found is None or isinstance(found, ast.List) else found


def _text(value: ast.expr | None) -> str | None:
    """A text; "" for no value, None if it is not known."""
    match value:
        case None | ast.Constant(value=None):
            return ""
        case ast.Constant(value=str(text)):
            return text
    return None


def _type(value: ast.expr | None, imported: Mapping[str, str]) -> str | None:
    whole = "" if value is None else dotted(value, imported)
    return _TYPES.get(whole.rpartition(".")[2]) if whole.startswith("nvidia.dali.") else None


def _number(value: ast.expr | None) -> int | None:
    match value:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
    return None


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
