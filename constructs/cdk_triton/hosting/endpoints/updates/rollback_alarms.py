"""Which alarms can roll back an update of an endpoint, or of an inference component."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import (
    Annotations,
    Arn,
    ArnFormat,
    CfnResource,
    DefaultTokenResolver,
    IPostProcessor,
    IResolvable,
    IResolveContext,
    Reference,
    StringConcat,
    Tokenization,
)
from constructs import Construct

from cdk_triton._arguments import has_attribute, listed, several
from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import are_deployed_together, root_stack, stack_of

if TYPE_CHECKING:  # slow to import, and only needed with alarms
    from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["alarms_of", "check_rollback_alarm", "warn_about_stack"]

ALARM_STACK_WARNING = "cdk-triton:AlarmInAnotherStack"


_ALARMS: Final = several(
    has_attribute("alarm_arn"), "pass alarms, or groups of them such as monitoring.errors of endpoint.monitor()"
)


def alarms_of(what: str, given: Iterable[cloudwatch.IAlarm | Iterable[cloudwatch.IAlarm]]) -> list[cloudwatch.IAlarm]:
    """The alarms that are given one by one or in groups.

    Args:
        what: the method that takes them, as messages call it.
        given: alarms and groups of alarms.

    Raises:
        ConfigurationError: something else is given.
    """
    found: list[object] = []
    for each in given:
        found += each if isinstance(each, Iterable) and not isinstance(each, str) else [each]
    return list(listed(f"alarms of {what}", found, _ALARMS))


def check_rollback_alarm(
    scope: Construct, alarm: cloudwatch.IAlarm, resources: Mapping[str, CfnResource], fix: str
) -> None:
    """Reject an alarm that SageMaker cannot watch, or that depends on the updated resource.

    Args:
        scope: what is updated.
        alarm: the alarm.
        resources: the L1s that are created after the alarm, by their names in messages, such as `endpoint`.
        fix: what to do about an alarm that refers to one of them.

    Raises:
        ConfigurationError: the alarm is composite, belongs to another account or region, or refers to one of the
            resources.
    """
    _reject_composite(alarm)
    _reject_elsewhere(scope, alarm)
    _reject_cycle(scope, alarm, resources, fix)


def warn_about_stack(scope: Construct, alarm: cloudwatch.IAlarm) -> None:
    """Warn about an alarm that another stack exports, because it can be changed but neither removed nor replaced."""
    here, there = root_stack(stack_of(scope)), root_stack(stack_of(alarm))
    if there is not here and has_token(alarm.alarm_name):
        Annotations.of(scope).add_warning_v2(
            ALARM_STACK_WARNING,
            f"the endpoint is in the stack {here.node.path}, but its rollback alarm {alarm.node.path} is in the stack "
            f"{there.node.path}. CloudFormation does not remove or replace a value that another stack imports, so you "
            "can remove the alarm only one deployment after the endpoint has stopped using it. Create the alarm in "
            "the endpoint's stack, import the alarm by Alarm.from_alarm_arn, or acknowledge this",
        )


def _reject_composite(alarm: cloudwatch.IAlarm) -> None:
    """Describing a composite alarm takes permission to describe all alarms of the account (DescribeAlarms)."""
    from aws_cdk import aws_cloudwatch as cloudwatch

    if isinstance(alarm, cloudwatch.CompositeAlarm):
        raise ConfigurationError(
            f"{alarm.node.path} is a composite alarm, which the models' roles could read only with a permission for "
            "every alarm of the account: name the alarms that the composite alarm combines"
        )


def _reject_elsewhere(scope: Construct, alarm: cloudwatch.IAlarm) -> None:
    """SageMaker gets only the names of alarms, and looks them up in its own account and region."""
    here, there = stack_of(scope), stack_of(alarm)
    of_arn = Arn.split(alarm.alarm_arn, ArnFormat.COLON_RESOURCE_NAME)
    for what, own, *others in (
        ("region", here.region, of_arn.region, there.region),
        ("account", here.account, of_arn.account, there.account),
    ):
        # An imported alarm has its account and region in its ARN, and one of the app in its stack.
        other = next((each for each in others if each is not None and not has_token(each)), own)
        if other != own and not has_token(own):
            raise ConfigurationError(
                f"the alarm {alarm.node.path} is in the {what} {other}, but SageMaker looks for the rollback alarms "
                f"of {scope.node.path} by name in {own}: create the alarm in the endpoint's stack"
            )


def _reject_cycle(scope: Construct, alarm: cloudwatch.IAlarm, resources: Mapping[str, CfnResource], fix: str) -> None:
    """Reject an alarm whose dimensions refer to a resource that comes later, as `endpoint.endpoint_name` does."""
    from aws_cdk import aws_cloudwatch as cloudwatch

    own = alarm.node.default_child
    together = are_deployed_together(stack_of(alarm), stack_of(scope))
    if not together or not isinstance(own, cloudwatch.CfnAlarm):
        return
    watched, stack = _Targets(), stack_of(scope)
    watching = [own.dimensions, own.metrics]
    text = json.dumps(Tokenization.resolve(watching, scope=own, resolver=watched, preparing=False))
    for what, resource in resources.items():
        by_logical_id = stack_of(alarm) is stack and f'"{stack.resolve(resource.logical_id)}"' in text
        if by_logical_id or resource.node.path in watched.paths:
            raise ConfigurationError(
                f"the alarm {alarm.node.path} needs an attribute of the {what} for its dimensions, and the "
                f"{what} needs the alarm, so neither can be created first: {fix}"
            )


class _Targets(DefaultTokenResolver):
    """Collects the resources that something refers to, in the same stack or from a nested one."""

    def __init__(self) -> None:
        super().__init__(StringConcat())
        self.paths: set[str] = set()

    def resolve_token(self, t: IResolvable, context: IResolveContext, post_processor: IPostProcessor) -> Any:
        if isinstance(t, Reference):
            self.paths.add(t.target.node.path)
        return super().resolve_token(t, context, post_processor)
