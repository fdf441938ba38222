"""`checked`: rejects an argument of another type than the signature has, with a sentence about what to write instead.

The CDK's own error, or Python's, would come from somewhere inside and name nothing that the user wrote. Annotations are
read as text, and classes are recognised by their names, so that a check imports nothing. An interface of the CDK is a
Protocol: its implementations are recognised by an attribute that nothing else has, not even the L1 of the same
resource. The check does not read that attribute, because that would be a call of Node.js. Arguments of types that
`_TYPES` does not list are not checked.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from pathlib import PurePath
from traceback import walk_tb
from typing import Any, Final, NamedTuple, TypeVar, cast

from cdk_triton._arguments import Kind, by_name, has_attribute, one, reject_unknown, require_type, several
from cdk_triton.errors import CdkTritonError

__all__ = ["checked"]

_LIBRARIES: Final = {"cdk_triton", "jsii", *sys.stdlib_module_names}
"""The packages whose lines may be between a call of this library and the line that raises its error."""

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def checked(target: _Callable) -> _Callable:
    """Make a function, or the constructor of a dataclass, check its arguments against its annotations before it runs.

    Arguments that were not given are not checked. `ConfigurationError` is raised for one of another type.
    """
    if isinstance(target, type):
        setattr(target, "__init__", checked(vars(target)["__init__"]))  # noqa: B010 - mypy forbids the assignment
        return cast("_Callable", target)

    @wraps(target)
    def call(*positional: object, **named: object) -> object:
        try:
            _check(target, positional, named)
            return target(*positional, **named)
        except CdkTritonError as error:
            # The caller's line is enough above the sentence; the lines of this library lead away from it.
            if not _passes_through_user_code(error):
                error.__traceback__ = None
            raise error

    return cast("_Callable", call)


def _passes_through_user_code(error: Exception) -> bool:
    """Whether there is a line of the user between the call and the error, such as one of a recipe or of a callback."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] not in _LIBRARIES for module in modules)


def _check(function: Callable[..., object], positional: tuple[object, ...], named: Mapping[str, object]) -> None:
    signature, kinds = _signature(function), _kinds(function)
    try:
        given = signature.bind(*positional, **named).arguments
    except TypeError:  # which Python words better when the function is called, except that it suggests no name
        reject_unknown(function.__qualname__, named, signature)
        return
    for name, kind in kinds.items():
        is_optional = str(signature.parameters[name].annotation).endswith(" | None")
        if name in given and not (given[name] is None and is_optional):
            require_type(f"{name} of {_called(function, given)}", given[name], kind)


def _called(function: Callable[..., object], given: Mapping[str, object]) -> str:
    """The name of the function or class, as a user wrote it: `TritonModel 'Search'`, `DataCapture`, `monitor()`."""
    id = repr(given["id"]) if "id" in given else ""
    if function.__name__ != "__init__":
        return f"{function.__name__}({id})"
    return f"{type(given['self']).__name__} {id}".rstrip()


@cache
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _kinds(function: Callable[..., object]) -> Mapping[str, Kind]:
    """The kind of each argument, by its name."""
    kinds = {each.name: _kind(each) for each in _signature(function).parameters.values()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


_ANNOTATION: Final = re.compile(
    r"(?:(Iterable|Sequence|Collection|Mapping)\[(?:str, )?)?(?:\w+\.)?(\w+)\]?(?: \| None)?"
)


def _kind(parameter: inspect.Parameter) -> Kind | None:
    """The kind of an argument; None if the table does not contain its type."""
    annotation = str(parameter.annotation)
    if kind := _KINDS.get(annotation.removesuffix(" | None")):
        return kind
    found = _ANNOTATION.fullmatch(annotation)
    container, name = found.groups() if found else (None, "")
    if name not in _TYPES:
        return None
    noun, example, attribute, package, besides = _TYPES[name]
    has, is_of = has_attribute(attribute), _is_of(package, besides or name)
    fits = is_of
    if attribute:
        fits = has if not besides else lambda value: has(value) or is_of(value)
    if parameter.kind is parameter.VAR_POSITIONAL:
        return several(fits, f"pass each as an argument of its own, such as {example}")
    if container == "Mapping":
        return by_name(fits, f"use a mapping from names, such as {{'text': {example}}}")
    if container == "Iterable":
        return _or_iterator(several(fits, f"use a list, such as [{example}]"))
    if container is not None:
        return several(fits, f"use a list, such as [{example}]", ordered=container == "Sequence")
    return one(fits, f"use {noun}, such as {example}" if example else f"use {noun}")


def _or_iterator(kind: Kind) -> Kind:
    """Accept a generator, too, without a look at its values: they can be read only once."""
    return Kind(lambda values: None if isinstance(values, Iterator) else kind.fault(values), kind.fix)


def _is_of(package: str, name: str) -> Callable[[object], bool]:
    """Whether a value is an instance of a package's class with this name, or of one below it."""
    return lambda value: any(
        each.__name__ == name and f"{each.__module__}.".startswith(f"{package}.") for each in type(value).__mro__
    )


class _Type(NamedTuple):
    """A type of arguments.

    Attributes:
        noun: how a message calls a value of it.
        example: how to write one.
        attribute: for an interface, an attribute that no other type has.
        package: for a class, the package that has it; the CDK has several classes called `Schedule`.
        besides: for an interface, a class that the function itself rejects, with a better reason.
    """

    noun: str
    example: str
    attribute: str = ""
    package: str = "cdk_triton"
    besides: str = ""


def _is_repository(value: object) -> bool:
    return isinstance(value, str | PurePath) or _is_of("cdk_triton", "ModelRepository")(value)


_KINDS: Final[Mapping[str, Kind]] = {
    "Mapping[str, ModelRepository | str | Path]": by_name(
        _is_repository, "use a mapping from names, such as {'text': 'models/text'}, or a ModelRepository for each name"
    ),
    "ModelRepository | str | Path": one(
        _is_repository, "use a ModelRepository, such as ModelRepository.from_directory('models'), or its directory"
    ),
    "ServingPlatform | str": one(
        lambda value: isinstance(value, str) or _is_of("cdk_triton", "ServingPlatform")(value),
        "use a ServingPlatform, such as ServingPlatform(release='25.09', instance_type='ml.g5.2xlarge'), or its short "
        "form '25.09/ml.g5.2xlarge'",
    ),
    "Progress": one(callable, "use a function that takes the bytes that are read"),
    "str | Path": one(lambda value: isinstance(value, str | PurePath), "use a path, such as 'model.tar.gz'"),
}
"""The kinds of annotations without a class of their own."""

_TYPES: Final[Mapping[str, _Type]] = {
    "AlarmThresholds": _Type("AlarmThresholds", "AlarmThresholds(gpu_utilization_percent=80)"),
    "AsyncInference": _Type("an AsyncInference", "AsyncInference(success_topic=topic)"),
    "BuildRecipe": _Type("a recipe", "TensorRTPlan('bert')", "produces"),
    "Builder": _Type("a builder", "CodeBuildGpuBuilder()", "_provide"),
    "Capacity": _Type("a Capacity", "Capacity(25) for 25 % or Capacity(instances=1)"),
    "Construct": _Type("the stack or construct that is to contain it", "self", "node"),
    "ContainerEnvironment": _Type("a ContainerEnvironment", "ContainerEnvironment(variables={'NAME': 'value'})"),
    "DataCapture": _Type("a DataCapture", "DataCapture(bucket=bucket, sampling_percentage=10)"),
    "DeploymentPolicy": _Type(
        "AllAtOnce, Canary, Linear or Rolling", "Canary(size=Capacity(25), wait=Duration.minutes(10))"
    ),
    "Duration": _Type("a `Duration` of aws_cdk", "Duration.seconds(…)", package="aws_cdk"),
    "IAlarm": _Type("an alarm", "cloudwatch.Alarm.from_alarm_name(self, 'Alarm', 'name')", "alarm_arn"),
    "IBucket": _Type("a bucket", "s3.Bucket.from_bucket_name(self, 'Bucket', 'name')", "bucket_arn"),
    "IFleet": _Type("a fleet", "codebuild.Fleet.from_fleet_arn(self, 'Fleet', 'arn:aws:codebuild:…')", "fleet_arn"),
    "IGrantable": _Type(
        "a principal", "a function or iam.Role.from_role_name(self, 'Role', 'name')", "grant_principal"
    ),
    "IKey": _Type("a key", "kms.Key.from_key_arn(self, 'Key', 'arn:aws:kms:…')", "key_arn"),
    "IMetric": _Type("a metric of CloudWatch", "endpoint.metric_model_latency()", "to_metric_config"),
    "IRole": _Type("a role", "iam.Role.from_role_name(self, 'Role', 'name')", "role_arn"),
    "ISecurityGroup": _Type(
        "a security group", "ec2.SecurityGroup.from_security_group_id(self, 'Group', 'sg-…')", "security_group_id"
    ),
    "ITopic": _Type("a topic", "sns.Topic.from_topic_arn(self, 'Topic', 'arn:aws:sns:…')", "topic_arn"),
    "ITritonArtifactStore": _Type(
        "a TritonArtifactStore",
        "TritonArtifactStore(stack, 'Artifacts')",
        "promotes_from",
        besides="ImportedArtifactStore",
    ),
    "ITritonModel": _Type("a TritonModel or a TritonMultiModel", "TritonModel(self, 'Model', …)", "is_multi_model"),
    "IVpc": _Type("a VPC", "ec2.Vpc.from_lookup(self, 'Vpc', vpc_id='vpc-…')", "select_subnets"),
    "ImportedArtifactStore": _Type("an imported store", "TritonArtifactStore.from_bucket(self, 'Tested', bucket)"),
    "MetricsConfig": _Type("a MetricsConfig", "MetricsConfig(enhanced_metrics=True)"),
    "ModelRepository": _Type("a ModelRepository", "ModelRepository.from_directory('models')"),
    "RemovalPolicy": _Type("a `RemovalPolicy` of aws_cdk", "RemovalPolicy.DESTROY", package="aws_cdk"),
    "RetentionDays": _Type(
        "one of the periods that CloudWatch Logs offers", "logs.RetentionDays.THREE_MONTHS", package="aws_cdk.aws_logs"
    ),
    "Rolling": _Type("a Rolling policy", "Rolling(batch=Capacity(50), wait=Duration.minutes(10))"),
    "ScalingInterval": _Type(
        "a ScalingInterval of aws_applicationautoscaling",
        "ScalingInterval(lower=50, change=1), ScalingInterval(upper=10, change=-1)",
        package="aws_cdk.aws_applicationautoscaling",
    ),
    "Schedule": _Type(
        "a Schedule of aws_applicationautoscaling",
        "Schedule.cron(hour='6', minute='0')",
        package="aws_cdk.aws_applicationautoscaling",
    ),
    "ServingPlatform": _Type("a ServingPlatform", "ServingPlatform(release='25.09', instance_type='ml.g5.2xlarge')"),
    "Size": _Type("a `Size` of aws_cdk", "Size.mebibytes(…)", package="aws_cdk"),
    "Stack": _Type("a stack", "cdk.Stack(app, 'Search')", package="aws_cdk"),
    "SubnetSelection": _Type("an ec2.SubnetSelection", "ec2.SubnetSelection(subnets=[…])", package="aws_cdk.aws_ec2"),
    "TimeZone": _Type("a `TimeZone` of aws_cdk", "TimeZone.EUROPE_BERLIN", package="aws_cdk"),
    "TritonVariant": _Type("a TritonVariant", "TritonVariant(model=model)"),
    "Unit": _Type("a unit of CloudWatch", "cloudwatch.Unit.COUNT", package="aws_cdk.aws_cloudwatch"),
    "bool": _Type("True or False", "", package="builtins"),
    "str": _Type("text in quotes", "'name'", package="builtins"),
}
