"""Limits, policies and schedules of scaled variants: from a synthesised app, or written on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cdk_triton._wording import did_you_mean, listed, quoted
from cdk_triton.cli.artifacts.assembly import read_all_templates
from cdk_triton.cli.doctor.endpoints import Template, endpoints, flat, of_type, referred
from cdk_triton.cli.estimate.cron import Cron, cron
from cdk_triton.cli.estimate.steps import StepPolicy, read_steps
from cdk_triton.errors import ConfigurationError

__all__ = ["Policy", "Schedule", "of_app", "of_text"]

SAFETY_FACTOR = 0.5
"""The default of `scale_on_invocations`."""
SCALE_OUT_COOLDOWN, SCALE_IN_COOLDOWN = 5, 10
"""The library's defaults, in minutes."""
_KEYS = ("min", "max", "safety_factor", "gpu", "out", "in")
_WHOLE = {"min": "instances", "max": "instances", "out": "minutes", "in": "minutes"}


@dataclass(frozen=True)
class Schedule:
    """New limits from a time on; None does not change a limit."""

    cron: Cron
    least: int | None
    most: int | None


@dataclass(frozen=True)
class Policy:
    """How a variant scales.

    Attributes:
        name: the name of the policy in the report.
        instance_type: the instance type of the variant; None if it is not known.
        least: the smallest number of instances.
        most: the largest number of instances.
        requests: the target, in requests per minute and instance; None without a policy on invocations.
        safety_factor: the target as a share of the measured rate, if it was given in this form.
        gpu: the target of the utilization of one GPU in percent; None without a policy on the utilization.
        out_cooldown: minutes between additions.
        in_cooldown: minutes between removals.
        schedules: scheduled changes of the limits.
        not_modelled: the names of the parts that the model omits.
        steps: step policies.
        endpoint: the name of the endpoint in the report; None for a policy of the command line.
        share: the share of the endpoint's requests that the variant gets, by its weight.
        variants: the number of variants of the endpoint, those that the model omits included.
    """

    name: str
    instance_type: str | None
    least: int
    most: int
    requests: float | None = None
    safety_factor: float | None = None
    gpu: float | None = None
    out_cooldown: int = SCALE_OUT_COOLDOWN
    in_cooldown: int = SCALE_IN_COOLDOWN
    schedules: Sequence[Schedule] = ()
    not_modelled: Sequence[str] = ()
    steps: Sequence[StepPolicy] = ()
    endpoint: str | None = None
    share: float = 1.0
    variants: int = 1

    @property
    def follows_gpu(self) -> bool:
        """Whether the utilization of the GPU matters."""
        return self.gpu is not None or any(each.metric == "GPUUtilization" for each in self.steps)


def of_text(text: str, instance_type: str | None) -> Policy:
    """A policy such as `min=1 max=8 safety_factor=0.7`.

    Raises:
        ConfigurationError: the policy has another form, or the limits contradict each other.
    """
    given: dict[str, float] = {}
    for part in text.split() or [""]:
        key, _, value = part.partition("=")
        if key not in _KEYS or not re.fullmatch(r"\d+(\.\d+)?", value):
            raise ConfigurationError(
                f"the part {quoted(part)} of --policy is not one of {', '.join(f'{each}=NUMBER' for each in _KEYS)}"
                f"{did_you_mean(key, _KEYS)}: write 'min=1 max=8 safety_factor=0.5'"
            )
        given[key] = float(value)
        if key in _WHOLE and not given[key].is_integer():
            raise ConfigurationError(
                f"the part {quoted(part)} of --policy is not a whole number of {_WHOLE[key]}: write "
                f"'{key}={math.ceil(given[key])}'"
            )
    least, most = int(given.get("min", 1)), int(given.get("max", given.get("min", 1)))
    factor = given.get("safety_factor", None if "gpu" in given or most == least else SAFETY_FACTOR)
    if not 1 <= least <= most or (factor is not None and not 0 < factor <= 1) or not 0 < given.get("gpu", 1) <= 100:
        raise ConfigurationError(
            f"--policy {quoted(text)} has a value out of range: use a min from 1 to max, a safety_factor above 0 and "
            "at most 1, and a gpu above 0 and at most 100, a percentage of one GPU"
        )
    unused = [each for each in given if each not in ("min", "max")]
    if most == least and unused:
        raise ConfigurationError(
            f"--policy {quoted(text)} has a fixed number of instances, so it does not use {listed(unused)}: add a max "
            "above min, or omit these parts"
        )
    cooldowns = int(given.get("out", SCALE_OUT_COOLDOWN)), int(given.get("in", SCALE_IN_COOLDOWN))
    return Policy(text, instance_type, least, most, None, factor, given.get("gpu"), *cooldowns)


def of_app(app: Path) -> tuple[list[Policy], list[str]]:
    """The policies of each variant of a cloud assembly, and the variants that the model omits, with the reason.

    Raises:
        ConfigurationError: there is no cloud assembly.
    """
    if not (app / "manifest.json").is_file():
        raise ConfigurationError(
            f"{app} is not a cloud assembly, because it has no manifest.json: run `cdk synth` first"
        )
    found = [each for stack, template in read_all_templates(app) for each in _of_template(stack, template)]
    return [each for each in found if isinstance(each, Policy)], [each for each in found if isinstance(each, str)]


@dataclass
class _VariantPolicies:
    requests: float | None = None
    gpu: float | None = None
    cooldowns: list[tuple[int, int]] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    steps: list[StepPolicy] = field(default_factory=list)


def _of_template(stack: str, template: Template) -> Iterator[Policy | str]:
    for id, endpoint in endpoints(template).items():
        shares = _shares({name: each.get("InitialVariantWeight", 1) for name, each in endpoint.variants.items()})
        owners = [f"<{id}>", *([endpoint.name] if isinstance(endpoint.name, str) else [])]
        for name, variant in endpoint.variants.items():
            for found in _of_variant(f"{stack}/{id}/{name}", template, owners, name, variant):
                if isinstance(found, Policy):
                    yield replace(found, endpoint=f"{stack}/{id}", share=shares[name], variants=len(shares))
                else:
                    yield found


def _shares(weights: Mapping[str, Any]) -> dict[str, float]:
    """The share of the requests of each variant: everything, if a weight is not in the template."""
    total = sum(weights.values()) if all(isinstance(each, int | float) for each in weights.values()) else 0
    return {name: each / total if total else 1.0 for name, each in weights.items()}


def _of_variant(
    label: str, template: Template, owners: Sequence[str], name: str, variant: Mapping[str, Any]
) -> Iterator[Policy | str]:
    from cdk_triton.sagemaker import gpu_instance

    kind, count = variant.get("InstanceType"), variant.get("InitialInstanceCount")
    if not isinstance(count, int) or "ModelName" not in variant:
        yield f"{label}, {_no_count_reason(variant)}"
        return
    targets = of_type(template, "AWS::ApplicationAutoScaling::ScalableTarget")
    mine = {
        key: each
        for key, each in targets.items()
        if flat(each.get("ResourceId")) in [f"endpoint/{owner}/variant/{name}" for owner in owners]
    }
    if not mine or not all(isinstance(each, int) and each > 0 for each in _limits(mine)):
        yield from _unscaled(label, kind, count, mine)
        return
    ((key, target),) = list(mine.items())[:1]
    gpus = gpu_instance(kind).gpu_count if isinstance(kind, str) else 1
    read = _VariantPolicies()
    dimensions = [{"EndpointName": owner, "VariantName": name} for owner in owners]
    alarms = list(of_type(template, "AWS::CloudWatch::Alarm").values())
    for policy, each in of_type(template, "AWS::ApplicationAutoScaling::ScalingPolicy").items():
        if referred(each.get("ScalingTargetId")) != key:
            continue
        if each.get("PolicyType") == "StepScaling":
            _add_steps(read, str(each.get("PolicyName")), read_steps(policy, each, alarms, dimensions, gpus))
        else:
            _add_tracking(read, each, gpus)
    schedules = list(_schedules(target.get("ScheduledActions", ()), read))
    cooldowns = read.cooldowns or [(SCALE_OUT_COOLDOWN, SCALE_IN_COOLDOWN)]
    out, into = (max(each) for each in zip(*cooldowns, strict=True))
    yield Policy(
        label,
        kind,
        int(target["MinCapacity"]),
        int(target["MaxCapacity"]),
        read.requests,
        None,
        read.gpu,
        out,
        into,
        schedules,
        read.not_modelled,
        read.steps,
    )


def _limits(targets: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [each.get(name) for each in targets.values() for name in ("MinCapacity", "MaxCapacity")]


def _no_count_reason(variant: Mapping[str, Any]) -> str:
    if "ModelName" not in variant:
        return "because SageMaker derives the instances of an endpoint with components from the copies"
    if "ServerlessConfig" in variant:
        return "because a serverless variant does not have instances"
    return "because its number of instances is not in the template"


def _unscaled(label: str, kind: Any, count: int, targets: Mapping[str, Any]) -> Iterator[Policy | str]:
    """A policy without scaling, or the reason why the limits are not modelled."""
    if not targets:
        yield Policy(label, kind if isinstance(kind, str) else None, count, count)
    elif any(each.get("MinCapacity") == 0 for each in targets.values()):
        yield f"{label}, because it scales to zero, and an estimate does not model requests that wait in a queue"
    else:
        yield f"{label}, because its scaling limits are not in the template"


def _add_steps(found: _VariantPolicies, name: str, steps: StepPolicy | str) -> None:
    if isinstance(steps, str):
        found.not_modelled.append(f"{name}, {steps}")
    else:
        found.steps.append(steps)


def _add_tracking(found: _VariantPolicies, policy: Mapping[str, Any], gpus: int) -> None:
    tracking = policy.get("TargetTrackingScalingPolicyConfiguration", {})
    predefined = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    metric = predefined or tracking.get("CustomizedMetricSpecification", {}).get("MetricName")
    if metric == "SageMakerVariantInvocationsPerInstance":
        found.requests = float(tracking["TargetValue"])
    elif metric == "GPUUtilization":
        found.gpu = float(tracking["TargetValue"]) / gpus
    else:
        name = policy.get("PolicyName", "a policy")
        found.not_modelled.append(f"{name}, which follows {metric or 'a mean of instance types'}{_reason(metric)}")
        return
    cooldowns = tracking.get("ScaleOutCooldown", 300), tracking.get("ScaleInCooldown", 300)
    found.cooldowns.append((int(cooldowns[0]) // 60, int(cooldowns[1]) // 60))


def _reason(metric: Any) -> str:
    """Empty if the reason is obvious."""
    if "ConcurrentRequests" in str(metric):
        return ": a trace does not have the time that a request takes at each load"
    return ""


def _schedules(actions: Sequence[Mapping[str, Any]], found: _VariantPolicies) -> Iterator[Schedule]:
    for each in actions:
        made = cron(str(each.get("Schedule")), str(each.get("Timezone", "UTC")))
        if made is None:
            found.not_modelled.append(f"the schedule {each.get('ScheduledActionName')}: {each.get('Schedule')}")
            continue
        action = each.get("ScalableTargetAction", {})
        yield Schedule(made, action.get("MinCapacity"), action.get("MaxCapacity"))
