"""The names that callers need, in the Parameter Store: for stacks and languages without the construct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.naming.logical_ids import identify_by_name

if TYPE_CHECKING:
    from cdk_triton.hosting.models.multi_model import TritonMultiModel

__all__ = [
    "allow_component_reading",
    "allow_reading",
    "check_component_id",
    "check_parameters",
    "parameter_names",
    "put_component_parameter",
    "put_parameters",
]

_OF_THE_ENDPOINT = ("endpoint-name", "endpoint-arn")
_CATALOGUE = "catalogue"
_OF_ASYNC = ("async/input", "async/output", "async/failures")

# "Requirements and constraints for parameter names" in the API reference of PutParameter: up to 15 levels, of which two
# are needed here, and none that begins with `aws` or `ssm`.
_PREFIX = re.compile(r"(/[A-Za-z0-9_.-]+){1,13}")
_RESERVED = re.compile(r"/(aws|ssm)", re.IGNORECASE)
_MAX_PREFIX_LENGTH = 500  # a name has up to 1011 characters, of which an ensemble takes up to 214
_MAX_ID_LENGTH = 214
_LEVEL = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_ID_LENGTH}}}")


def check_parameters(prefix: str, variants: Sequence[TritonVariant]) -> None:
    """Reject a path that PutParameter would reject, or that no caller could read.

    Raises:
        ConfigurationError: the prefix is not a valid path, or variants have different target models for one ensemble.
    """
    reject_token(prefix, "ssm_parameter_path")
    if not _PREFIX.fullmatch(prefix) or _RESERVED.match(prefix) or len(prefix) > _MAX_PREFIX_LENGTH:
        raise ConfigurationError(
            f"ssm_parameter_path is {quoted(prefix)}: use a literal path, such as "
            "'/search/production', with up to 13 levels of letters, digits, '.', '_' and '-'; do not begin the path "
            "with '/aws' or '/ssm'"
        )
    _target_models(variants)


def parameter_names(prefix: str | None, variants: Sequence[TritonVariant], *, is_async: bool = False) -> list[str]:
    """The names of all parameters below a prefix; empty without a prefix."""
    if prefix is None:
        return []
    targets = [f"target-models/{ensemble}" for ensemble in _target_models(variants)]
    return [f"{prefix}/{name}" for name in (*_OF_THE_ENDPOINT, *targets, *(_OF_ASYNC if is_async else ()))]


def allow_reading(
    scope: Construct,
    grantee: iam.IGrantable,
    prefix: str,
    variants: Sequence[TritonVariant],
    ensembles: Sequence[str] | None,
) -> iam.Grant:
    """Allow a caller to read the parameters, as `TritonClient.from_parameters` does.

    Args:
        scope: the endpoint.
        grantee: the caller.
        prefix: the beginning of the parameters' names.
        variants: the production variants of the endpoint.
        ensembles: the ensembles that the caller can call; None: all.
    """
    # The client reads `async/input` of every endpoint to find out whether it is asynchronous. IAM rejects the whole
    # call if one name is not allowed.
    names = parameter_names(prefix, variants, is_async=True)
    allowed = [name for name in names if ensembles is None or not _is_of_another_ensemble(name, ensembles)]
    for model in _multi_models(variants):
        model._when_published(lambda _: _allow(scope, grantee, [f"{prefix}/{_CATALOGUE}"]))
    return _allow(scope, grantee, allowed)


def check_component_id(id: str) -> None:
    """Reject the id of a component that cannot be a part of a parameter's name.

    Raises:
        ConfigurationError: the id is too long, or contains a character that a parameter's name cannot contain.
    """
    if not _LEVEL.fullmatch(id):
        raise ConfigurationError(
            f"the component's id is {quoted(id)}, but ssm_parameter_path makes a parameter of that name: use up to "
            f"{_MAX_ID_LENGTH} letters, digits, '.', '_' and '-' as the id"
        )


def put_component_parameter(component: Construct, prefix: str, component_name: str) -> None:
    """Write the name of an inference component below a prefix, as soon as it can be called."""
    _put(component, "Parameter", _of_component(prefix, component), component_name)


def allow_component_reading(component: Construct, grantee: iam.IGrantable, prefix: str) -> iam.Grant:
    """Allow a caller to read the parameter of an inference component."""
    return _allow(component, grantee, [_of_component(prefix, component)])


def _of_component(prefix: str, component: Construct) -> str:
    return f"{prefix}/components/{component.node.id}"


def _allow(scope: Construct, grantee: iam.IGrantable, names: Sequence[str]) -> iam.Grant:
    stack = Stack.of(scope)
    arns = [stack.format_arn(service="ssm", resource="parameter", resource_name=name[1:]) for name in names]
    return iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameters"], resource_arns=arns)


def _is_of_another_ensemble(name: str, ensembles: Sequence[str]) -> bool:
    _, found, ensemble = name.rpartition("/target-models/")
    return bool(found) and ensemble not in ensembles


def put_parameters(
    scope: Construct,
    prefix: str,
    endpoint: IConstruct,
    names: tuple[str, str],
    variants: Sequence[TritonVariant],
    locations: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write name and ARN, one parameter for each ensemble of a multi-model endpoint, and S3 locations below a prefix.

    Args:
        scope: the endpoint.
        prefix: the beginning of the parameters' names.
        endpoint: the endpoint's L1 construct. The parameters are written after it.
        names: the endpoint's name and ARN.
        variants: the endpoint's production variants.
        locations: the S3 URIs of an asynchronous endpoint, by the last part of the parameter's name.
    """
    parameters = Construct(scope, "Parameters")
    for name, value in zip(_OF_THE_ENDPOINT, names, strict=True):
        _put(parameters, name, f"{prefix}/{name}", value)
    for name, uri in locations.items():
        _put(parameters, f"async-{name}", f"{prefix}/async/{name}", uri)
    for ensemble, target in _target_models(variants).items():
        parameter = _put(parameters, f"target-models-{ensemble}", f"{prefix}/target-models/{ensemble}", target)
        parameter.node.add_dependency(endpoint)

    def put_catalogue(uri: str) -> None:
        if parameters.node.try_find_child(_CATALOGUE) is not None:
            raise ConfigurationError(
                f"the variants of {endpoint.node.path} have two TritonMultiModels with a publisher, but a parameter "
                "names one catalogue: remove ssm_parameter_path, or one of the publishers"
            )
        catalogue = _put(parameters, _CATALOGUE, f"{prefix}/{_CATALOGUE}", uri)
        catalogue.node.add_dependency(endpoint)

    for model in _multi_models(variants):
        model._when_published(put_catalogue)


def _put(scope: Construct, id: str, name: str, value: str) -> Construct:
    """Write a parameter that CloudFormation updates in place even if another construct of the stack takes it over."""
    from aws_cdk import aws_ssm as ssm  # slow to import, and rarely needed

    parameter = ssm.StringParameter(scope, id, parameter_name=name, string_value=value)
    identify_by_name(parameter, name)
    return parameter


def _multi_models(variants: Sequence[TritonVariant]) -> list[TritonMultiModel]:
    """The multi-models of this app that the variants serve."""
    found = {id(each.model): each.model for each in variants if each.model.is_multi_model}.values()
    if not found:
        return []
    from cdk_triton.hosting.models.multi_model import TritonMultiModel  # slow to import, and rarely needed

    return [model for model in found if isinstance(model, TritonMultiModel)]


def _target_models(variants: Sequence[TritonVariant]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variant in variants:
        for ensemble, target in variant.model.target_models.items():
            if found.setdefault(ensemble, target) != target:
                raise ConfigurationError(
                    f"the variants serve {found[ensemble]} and {target} as the ensemble {ensemble!r}, but a parameter "
                    "can name only one: remove ssm_parameter_path, or give the ensembles names of their own"
                )
    return found
