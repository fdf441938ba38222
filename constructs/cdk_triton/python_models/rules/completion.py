"""CT190: whether `auto_complete_config` of a Python model sets what the configuration can become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdk_triton.checks.derived.configured import completes
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.modules import PythonModel, source_rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, enum_name

_PROPERTIES = {"input": {"name", "data_type", "dims", "optional"}, "output": {"name", "data_type", "dims"}}


@source_rule(
    "CT190",
    Severity.ERROR,
    "auto_complete_config of a Python model fails",
    source=backend("python_backend", "src/resources/triton_python_backend_utils.py", 322, 604),
)
def failing_completion(each: PythonModel) -> Iterator[Problem]:
    """The method sets a value that contradicts `config.pbtxt`, or that a configuration cannot contain.

    The server then does not load the model. The server calls the method even if `config.pbtxt` is complete. If
    `config.pbtxt` already lists a tensor, the method may only repeat the data type, the dims (as a list) and whether
    the tensor is optional. The method cannot lower `max_batch_size`, set dynamic batching beside sequence batching, or
    change `decoupled`.

    Example:
        # model/config.pbtxt
        backend: "python"
        input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
        output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
        # model/1/model.py
        class TritonPythonModel:
            @staticmethod
            def auto_complete_config(config):
                config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [8]})
                config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [8]})
                return config

            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"

    Limits:
        The rule checks only calls that run in any case, with literal values. CT186 reports properties with wrong names.
    """
    file, model = each.file, each.source.model
    method = model.methods.get("auto_complete_config") if model is not None and model.is_complete else None
    if method is None or not method.takes(1):
        return
    if not completes(file.context) or is_newer_than_schema(file.context.platform):
        return
    config = _Configuration(file.model.name, file.config)
    for asked in each.source.completions:
        if words := config.take(asked.method, asked.given):
            yield file.unloadable(
                f"{asked.method} in line {asked.line} fails",
                words,
                "declare the same value as config.pbtxt and the earlier calls, or remove it from config.pbtxt"
                if _is_contradiction(words)
                else "correct the argument: python_backend's README describes it",
                line=asked.line,
            )
            return


def _is_contradiction(said: str) -> bool:
    """Whether a call declares another value than the configuration, rather than a wrong argument."""
    return said.startswith("ValueError") and " is missing " not in said and " contains property " not in said


class _Configuration:
    """The configuration as the class `ModelConfig` of the server keeps it."""

    def __init__(self, name: str, config: ModelConfig) -> None:
        self._name = name
        self._max_batch_size = config.max_batch_size
        self._has_sequences = config.HasField("sequence_batching")
        policy = config.model_transaction_policy
        self._decoupled = policy.decoupled if config.HasField("model_transaction_policy") else None
        self._tensors: dict[str, dict[str, dict[str, Any]]] = {"input": {}, "output": {}}
        for each in config.input:
            known = {"data_type": enum_name(each, "data_type"), "dims": list(each.dims), "optional": each.optional}
            self._tensors["input"][each.name] = known
        for one in config.output:
            self._tensors["output"][one.name] = {"data_type": enum_name(one, "data_type"), "dims": list(one.dims)}

    def take(self, method: str, given: Any) -> str:
        """Change the configuration; return the error in the server's words, or ""."""
        match method, given:
            case (("add_input" | "add_output"), dict()):
                return self._add(method.removeprefix("add_"), given)
            case (("add_input" | "add_output"), list()) if given:
                return "TypeError: list indices must be integers or slices, not str"
            case "set_max_batch_size", int() | float():
                return self._set_max_batch_size(given)
            case "set_max_batch_size", str():
                return "TypeError: '>' not supported between instances of 'int' and 'str'"
            case "set_dynamic_batching", None if self._has_sequences:
                return (
                    "ValueError: Configuration specified scheduling_choice as 'sequence_batching', but "
                    f"auto-complete-config function for model '{self._name}' tries to set scheduling_choice as "
                    "'dynamic_batching'"
                )
            case "set_model_transaction_policy", dict():
                return self._set_policy(given)
            case "set_model_transaction_policy", (bool() | str() | int() | list()):
                return f"AttributeError: '{type(given).__name__}' object has no attribute 'keys'"
        return ""

    def _set_max_batch_size(self, given: float) -> str:
        if self._max_batch_size > given:
            return (
                f"ValueError: configuration specified max_batch_size {self._max_batch_size}, but in "
                f"auto-complete-config function for model '{self._name}' specified max_batch_size {given}"
            )
        self._max_batch_size = int(given)
        return ""

    def _set_policy(self, given: Mapping[str, Any]) -> str:
        if set(given) - {"decoupled"}:
            return (
                f"ValueError: model transaction property in auto-complete-config function for model '{self._name}' "
                "contains property other than 'decoupled'."
            )
        if "decoupled" in given:
            if self._decoupled not in (None, given["decoupled"]):
                return (
                    f"ValueError: trying to change decoupled property in auto-complete-config for model '{self._name}'"
                    f", which is already set to '{self._decoupled}'."
                )
            self._decoupled = given["decoupled"]
        return ""

    def _add(self, kind: str, given: Mapping[str, Any]) -> str:
        if not set(given) <= _PROPERTIES[kind]:
            return ""  # reported by CT186
        if "name" not in given:
            return (
                f"ValueError: {kind} in auto-complete-config function for model '{self._name}' is missing 'name' "
                "property."
            )
        name = given["name"]
        for wanted in ("data_type", "dims"):
            if wanted not in given:
                return (
                    f"ValueError: {kind} '{name}' in auto-complete-config function for model '{self._name}' is missing "
                    f"'{wanted}' property."
                )
        known = self._tensors[kind].setdefault(name, dict(given))
        if not isinstance(given["data_type"], str) and known["data_type"] != given["data_type"]:
            return f'TypeError: can only concatenate str (not "{type(given["data_type"]).__name__}") to str'
        if known["data_type"] not in ("TYPE_INVALID", given["data_type"]):
            return (
                f"ValueError: unable to load model '{self._name}', configuration expects datatype "
                f"{known['data_type']} for {kind} '{name}', model provides {given['data_type']}"
            )
        for compared in ("dims", "optional"):
            if compared in given and known.get(compared) not in ([], None, given[compared]):
                return (
                    f"ValueError: model '{self._name}', tensor '{name}': the model expects {compared} "
                    f"{given[compared]} but the model configuration specifies {compared} {known[compared]}"
                )
        known.update(given)
        return ""
