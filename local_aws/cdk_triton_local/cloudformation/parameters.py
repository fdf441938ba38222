"""Template parameters: given, previous and default values, constraints, and values in the SSM Parameter Store.

Follows the user guide, "Parameters section syntax" and "Specify existing resources at runtime with
CloudFormation-supplied parameter types".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cdk_triton.errors import TemplateError

__all__ = ["ParameterValue", "check_rules", "resolve_parameters"]

_SSM = re.compile(r"^AWS::SSM::Parameter::Value<(?P<inner>.+)>$")
_LISTS = {"CommaDelimitedList", "List<String>", "List<Number>"}
_SCALARS = {"String", "Number", "AWS::SSM::Parameter::Name"}


@dataclass(frozen=True)
class ParameterValue:
    """One parameter of one deployment.

    Attributes:
        given: the text as CloudFormation keeps it; for an SSM type the name in the Parameter Store.
        resolved: what `Ref` gives: text, or a list of texts.
        from_ssm: whether `resolved` was read from the Parameter Store.
        no_echo: whether the value is masked in answers.
    """

    key: str
    given: str
    resolved: Any
    from_ssm: bool = False
    no_echo: bool = False


def resolve_parameters(
    declared: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, str | None],
    previous: Mapping[str, ParameterValue],
    read_ssm: Callable[[str], str | None],
) -> dict[str, ParameterValue]:
    """The value of every declared parameter.

    Args:
        declared: the template's `Parameters`.
        given: the caller's values; None stands for `UsePreviousValue`.
        previous: the values of the stack's last deployment.
        read_ssm: gives the value of a Parameter Store entry, or None.

    Raises:
        TemplateError: a missing or undeclared parameter, or a value that breaks a constraint.
    """
    if undeclared := sorted(set(given) - set(declared)):
        raise TemplateError(f"Parameters: [{', '.join(undeclared)}] do not exist in the template")
    texts: dict[str, str] = {}
    for key, declaration in declared.items():
        text = given.get(key)
        if text is None and key in given and key in previous:
            text = previous[key].given
        if text is None and "Default" in declaration:
            default = declaration["Default"]
            text = str(default).lower() if isinstance(default, bool) else str(default)
        if text is not None:
            texts[key] = text
    if missing := [key for key in declared if key not in texts]:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    return {key: _value(key, declaration, texts[key], read_ssm) for key, declaration in declared.items()}


def check_rules(rules: Mapping[str, Mapping[str, Any]], holds: Callable[[Any], bool]) -> None:
    """Check the template's `Rules` (user guide, "Rules section syntax"): CDK writes `CheckBootstrapVersion` there.

    Args:
        rules: the section.
        holds: evaluates a rule function.

    Raises:
        TemplateError: an assertion does not hold; the message is the assertion's own description.
    """
    for name, rule in rules.items():
        if "RuleCondition" in rule and not holds(rule["RuleCondition"]):
            continue
        for assertion in rule.get("Assertions", []):
            if not holds(assertion["Assert"]):
                why = assertion.get("AssertDescription", assertion["Assert"])
                raise TemplateError(f"Template constraint violation: rule {name!r} does not hold: {why}")


def _value(
    key: str, declaration: Mapping[str, Any], text: str, read_ssm: Callable[[str], str | None]
) -> ParameterValue:
    kind = str(declaration.get("Type"))
    no_echo = str(declaration.get("NoEcho", "")).lower() == "true"
    if ssm := _SSM.match(kind):
        stored = read_ssm(text)
        if stored is None:
            raise TemplateError(f"Unable to fetch parameters [{text}] from parameter store for this account.")
        return ParameterValue(key, text, _typed(key, ssm["inner"], stored), from_ssm=True, no_echo=no_echo)
    resolved = _typed(key, kind, text)
    for item in resolved if isinstance(resolved, list) else [resolved]:
        _check(key, declaration, item)
    return ParameterValue(key, text, resolved, no_echo=no_echo)


def _typed(key: str, kind: str, text: str) -> Any:
    if kind in _LISTS:
        return [item.strip() for item in text.split(",")] if text else []
    if kind == "Number":
        try:
            float(text)
        except ValueError:
            raise TemplateError(f"Parameter {key!r} must be a number, but is {text!r}") from None
        return text
    if kind in _SCALARS or kind.startswith("AWS::"):
        return text
    if kind.startswith("List<AWS::"):
        return [item.strip() for item in text.split(",")] if text else []
    raise TemplateError(f"parameter {key!r} has the type {kind!r}, which CloudFormation does not have")


def _check(key: str, declaration: Mapping[str, Any], item: str) -> None:
    hint = declaration.get("ConstraintDescription")
    allowed = declaration.get("AllowedValues")
    if allowed is not None and item not in [
        str(each).lower() if isinstance(each, bool) else str(each) for each in allowed
    ]:
        raise TemplateError(f"Parameter {key!r} must be one of {hint or ', '.join(map(str, allowed))}, not {item!r}")
    pattern = declaration.get("AllowedPattern")
    if pattern is not None and not re.fullmatch(pattern, item):
        raise TemplateError(f"Parameter {key!r} failed to satisfy constraint: {hint or pattern} (value {item!r})")
    measures = {"Length": float(len(item))}
    if declaration.get("Type") == "Number":
        measures["Value"] = float(item)
    for measure, size in measures.items():
        low, high = declaration.get(f"Min{measure}"), declaration.get(f"Max{measure}")
        if (low is not None and size < float(low)) or (high is not None and size > float(high)):
            bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
            raise TemplateError(f"Parameter {key!r} is {item!r}; its {measure.lower()} must be {' and '.join(bounds)}")
