"""CT242: kinds that are numbers without a name."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, Part, model_rule
from cdk_triton.checks.derived.scheduling import said_group
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_UTILS = "src/model_config_utils.cc"
_EXAMPLES = {"input": "BATCH_ELEMENT_COUNT", "output": "BATCH_SCATTER_WITH_INPUT_SHAPE"}


@model_rule("CT242", Severity.ERROR, "a kind is a number without a meaning", source=core(_UTILS, 1786, 1790))
def unknown_kind(each: ConfiguredModel) -> Iterator[Problem]:
    """The kind of an instance group, a batch input or a batch output is a number that Triton does not define.

    `config.pbtxt` may contain the number of an enum value instead of its name, and the server can read every 32-bit
    number. The server does not load a model with an unknown number in one of these three fields.

    Example:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        instance_group { kind: KIND_CPU }

    Limits:
        The rule does not check `data_type`, `format` and the kind of a control. The server itself accepts an unknown
        number in these fields, but some backends do not load the model.
    """
    for field, number, words, example in _kinds(each):
        yield each.unloadable(
            field,
            f"the kind is {number}, which Triton does not define",
            words,
            f"write the name of a kind, for example {example}",
        )


def _kinds(each: ConfiguredModel) -> Iterator[tuple[str, int, str, str]]:
    """Every kind without a name: its field, the number, the message of the server, and a valid kind."""
    config = each.config
    has_instances = not each.model.is_ensemble and not config.HasField("ensemble_scheduling")
    for index, group in enumerate(config.instance_group if has_instances else ()):
        if not enum_name(group, "kind").startswith("KIND_"):
            part = Part(each, "instance_group", index, group)
            yield part.field("kind"), group.kind, f"{said_group(part)} has unexpected kind KIND_AUTO", "KIND_CPU"
    found = [("input", index, item.kind, enum_name(item, "kind")) for index, item in enumerate(config.batch_input)]
    found += [("output", index, item.kind, enum_name(item, "kind")) for index, item in enumerate(config.batch_output)]
    for side, index, number, kind in found:
        if not kind.startswith("BATCH_"):
            words = f"unknown batch {side} kind '' for {each.said_name}"
            yield f"batch_{side}[{index}].kind", number, words, _EXAMPLES[side]
