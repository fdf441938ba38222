"""CloudFormation resource types that can be deployed here: one small class per type, found through one registry.

A type lists the properties that it models, those that it only records, and its attributes. CloudFormation's own schema
shows whether a change needs a replacement. If a template uses anything else, the error names what is modelled.
"""

from __future__ import annotations

import random
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from cdk_triton.errors import LocalError, TemplateError
from cdk_triton_local.cloudformation.intrinsics import Environment
from cdk_triton_local.cloudformation.schema import ResourceSchema, resource_schema
from cdk_triton_local.lambdas import Executions
from cdk_triton_local.skipped_time import SkippedTime

__all__ = [
    "Context",
    "Mailbox",
    "NotAttemptedError",
    "PhysicalResource",
    "Properties",
    "ResourceFailedError",
    "ResourceType",
    "Services",
    "find",
    "is_custom",
    "register",
    "registered",
]

Properties = Mapping[str, Any]


class Services(Protocol):
    """What resource types use in addition to their stack."""

    def client(self, service: str, principal: str = ...) -> Any:
        """A boto3 client of the local AWS.

        Args:
            service: the service.
            principal: who calls (see `LocalAws.client`); by default CloudFormation.
        """

    def invoke_function(self, function: str, event: Mapping[str, Any], principal: str = ...) -> Any:
        """Run a Lambda function by name or ARN, and return its answer.

        Args:
            function: its name or ARN.
            event: what it gets.
            principal: who invokes it; by default CloudFormation.

        Raises:
            LocalError: the function failed; the message is what Lambda reports.
        """

    def deliveries(self) -> int:
        """How often Lambda delivers the next asynchronous event."""

    @property
    def executions(self) -> Executions:
        """The concurrent executions of Lambda functions."""

    @property
    def function_log_groups(self) -> dict[str, str]:
        """The log groups of Lambda functions with a LoggingConfig, by name: moto does not keep it."""

    def open_mailbox(self) -> Mailbox:
        """A URL to which a custom resource can PUT its answer."""

    @property
    def time(self) -> SkippedTime:
        """The time, which passes faster if pauses are skipped."""

    def sleep(self, seconds: float, at_most: float = ...) -> None:
        """Wait.

        Args:
            seconds: how long AWS waits.
            at_most: how long the local AWS waits at most.

        Raises:
            LocalError: the local AWS is being stopped.
        """


class Mailbox(Protocol):
    """The place behind a custom resource's `ResponseURL`."""

    url: str

    def wait(self, seconds: float) -> Mapping[str, Any] | None:
        """The answer, or None if none came in time."""

    def close(self) -> None:
        """Accept no further answers."""


def _say_nothing(physical_id: str) -> None:
    pass


@dataclass(frozen=True)
class Context:
    """One resource in one operation.

    Attributes:
        tags: the stack's tags, which every resource inherits.
        initiated: called with the physical id when the service has begun the creation. A type whose creation takes a
            long time calls it as soon as possible; for the others, it is called at the end.
    """

    environment: Environment
    logical_id: str
    type_name: str
    services: Services
    tags: Mapping[str, str] = field(default_factory=dict)
    initiated: Callable[[str], None] = _say_nothing

    def client(self, service: str) -> Any:
        """A boto3 client of the local AWS, with the permissions of a deployment."""
        return self.services.client(service)

    def generated_name(self, limit: int, *, lower: bool = False) -> str:
        """A name as CloudFormation generates it: `<stack>-<logical id>-<12 random characters>`, cut to `limit`."""
        suffix = "".join(random.choices(string.ascii_uppercase + string.digits, k=12))  # noqa: S311  a name, not a secret
        room = limit - len(suffix) - 2
        stack, logical = self.environment.stack_name, self.logical_id
        logical = logical[: max(room // 2, room - len(stack))]
        stack = stack[: room - len(logical)].rstrip("-")
        name = f"{stack}-{logical}-{suffix}"
        return name.lower() if lower else name

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """An ARN in this stack's account and region."""
        place = self.environment
        return (
            f"arn:{place.partition}:{service}:{place.region if region is None else region}:{place.account}:{resource}"
        )

    def tag_list(self, properties: Properties) -> list[dict[str, str]]:
        """The tags of the stack, then those of the resource (a map for a parameter, a list for other types)."""
        given = properties.get("Tags", [])
        own = given if isinstance(given, Mapping) else {tag["Key"]: tag["Value"] for tag in given}
        return [{"Key": key, "Value": value} for key, value in {**self.tags, **own}.items()]


@dataclass(frozen=True)
class PhysicalResource:
    """A resource after its creation or change.

    Attributes:
        id: the physical id; `Ref` gives it too, unless `reference` is set.
        attributes: what `Fn::GetAtt` gives.
        reference: what `Ref` gives where it is not the physical id.
    """

    id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None

    @property
    def ref(self) -> str:
        """The value of `Ref`."""
        return self.id if self.reference is None else self.reference


class ResourceFailedError(LocalError):
    """A creation or update failed and left something that must be deleted.

    Attributes:
        physical: the resource that was left.
    """

    def __init__(self, message: str, physical: PhysicalResource) -> None:
        super().__init__(message)
        self.physical = physical


class NotAttemptedError(LocalError):
    """An update was rejected before a call of the service, so a rollback has nothing to undo."""


class ResourceType(ABC):
    """One CloudFormation resource type.

    Attributes:
        type_name: as in a template's `Type`.
        note: one sentence for the fidelity table: what the type does on the local AWS.
        modelled: properties that take effect.
        recorded: properties that are accepted and kept with the stack, and have no effect here.
        attributes: what `Fn::GetAtt` can read.
    """

    type_name: ClassVar[str]
    note: ClassVar[str]
    modelled: ClassVar[frozenset[str]]
    recorded: ClassVar[frozenset[str]] = frozenset()
    attributes: ClassVar[frozenset[str]] = frozenset()

    @property
    def schema(self) -> ResourceSchema:
        """CloudFormation's own schema of this type."""
        return resource_schema(self.type_name)

    def coerce(self, properties: Properties) -> dict[str, Any]:
        """Check and convert the properties of a template.

        Raises:
            TemplateError: a property that CloudFormation does not have, or that is not modelled here.
        """
        coerced = self.schema.coerce(properties)
        if foreign := sorted(set(coerced) - self.modelled - self.recorded):
            raise TemplateError(
                f"{self.type_name}.{foreign[0]} is not modelled by the local CloudFormation, which models "
                f"{', '.join(sorted(self.modelled | self.recorded))}: omit the property on the local AWS"
            )
        return coerced

    def check_attribute(self, attribute: str) -> None:
        """Check the attribute of a `Fn::GetAtt`.

        Raises:
            TemplateError: CloudFormation does not have it, or it is not modelled here.
        """
        if attribute in self.attributes:
            return
        known = attribute in self.schema.attributes
        raise TemplateError(
            f"the attribute {attribute!r} of {self.type_name} "
            + ("is not modelled by the local CloudFormation" if known else "does not exist in CloudFormation")
            + f"; the modelled attributes are {', '.join(sorted(self.attributes)) or 'none'}"
        )

    def replacing(self, changed: Iterable[str]) -> frozenset[str]:
        """Those of the `changed` properties whose change needs a new physical resource."""
        return frozenset(changed) & self.schema.create_only

    def existing(self, context: Context, identifier: Mapping[str, str]) -> PhysicalResource:
        """The resource that exists already and is imported.

        Args:
            context: the resource in the stack that imports it.
            identifier: the values of the schema's `primary_identifier`.

        Raises:
            LocalError: there is none; the message is the service's.
            TemplateError: resources of this type cannot be imported here.
        """
        raise TemplateError(
            f"a resource of the type {self.type_name} cannot be imported on the local AWS, which imports only "
            f"{', '.join(name for name, each in registered().items() if each.importable)}: let the stack create it"
        )

    @property
    def importable(self) -> bool:
        """Whether `existing` is implemented."""
        return type(self).existing is not ResourceType.existing

    def add_tags(self, context: Context, physical: PhysicalResource) -> None:
        """Add the stack's tags to a resource that was imported; the type has to be `importable`."""
        raise NotImplementedError

    @abstractmethod
    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        """Create the resource and return when it can be used."""

    @abstractmethod
    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        """Change the resource in place; a returned physical id that differs is a replacement by the provider."""

    @abstractmethod
    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        """Delete the resource; it is not an error if the resource is gone already."""


_registry: dict[str, ResourceType] = {}
_T = TypeVar("_T", bound=ResourceType)


def register(resource_type: type[_T]) -> type[_T]:
    """Register the decorated class for its type. A second class for a type is an error."""
    if resource_type.type_name in _registry:
        raise ValueError(f"{resource_type.type_name} is registered twice")
    _registry[resource_type.type_name] = resource_type()
    return resource_type


def registered() -> Mapping[str, ResourceType]:
    """Every modelled type by name."""
    return dict(sorted(_registry.items()))


def is_custom(type_name: str) -> bool:
    """Whether `type_name` is a custom resource."""
    return type_name.startswith("Custom::") or type_name == "AWS::CloudFormation::CustomResource"


def find(type_name: str) -> ResourceType:
    """The class behind `type_name`.

    Raises:
        TemplateError: the type is not modelled.
    """
    resource_type = _registry.get("AWS::CloudFormation::CustomResource" if is_custom(type_name) else type_name)
    if resource_type is None:
        raise TemplateError(
            f"the resource type {type_name!r} is not modelled by the local CloudFormation, which models "
            f"{_modelled_types(type_name)}: put the resource into a stack that you deploy only to AWS"
        )
    return resource_type


def _modelled_types(type_name: str) -> str:
    """The types of the same service, or if it has none, the services that have some."""
    service = type_name.rpartition("::")[0]
    if of_service := [each for each in registered() if each.startswith(f"{service}::")]:
        return f"of this service only {', '.join(of_service)}"
    return "types of " + ", ".join(dict.fromkeys(each.split("::")[1] for each in registered()))
