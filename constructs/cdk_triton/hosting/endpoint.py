"""`TritonEndpoint`: an endpoint with its configuration, and `TritonVariant`: what it runs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import jsii
from aws_cdk import Duration, Resource, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.layout import target_model_pattern
from cdk_triton.hosting.model import ITritonModel
from cdk_triton.sagemaker.limits import (
    MAX_NAME_LENGTH,
    MAX_PRODUCTION_VARIANTS,
    MAX_TIMEOUT_SECONDS,
    MIN_TIMEOUT_SECONDS,
    NAME_PATTERN,
)

__all__ = ["TritonEndpoint", "TritonVariant"]


@dataclass(frozen=True, kw_only=True)
class TritonVariant:
    """One production variant: a model on a number of instances, with its share of the requests.

    The instance type and the host AMI are those of the model's platform.

    Attributes:
        model: a `TritonModel` or `TritonMultiModel`.
        variant_name: its name, unique within the endpoint; callers may send it as `TargetVariant`.
        initial_instance_count: instances at first, at least 1.
        initial_weight: share of the requests that name no variant, relative to the other variants; 0 gets none.
        container_startup_timeout: how long an instance's container may take until it answers `/ping`, 60 to 3600
            seconds. None: SageMaker's default.
        model_download_timeout: how long the download and extraction of one archive may take, 60 to 3600 seconds. None:
            SageMaker's default.

    Raises:
        ConfigurationError: a value is out of its range.
    """

    model: ITritonModel
    variant_name: str = "AllTraffic"
    initial_instance_count: int = 1
    initial_weight: float = 1.0
    container_startup_timeout: Duration | None = None
    model_download_timeout: Duration | None = None

    def __post_init__(self) -> None:
        """Refuse what CreateEndpointConfig would refuse minutes later."""
        _check_sagemaker_name(self.variant_name, "variant_name")
        count, weight = self.initial_instance_count, self.initial_weight
        if not (_is_token(count) or (isinstance(count, int) and not isinstance(count, bool) and count >= 1)):
            raise ConfigurationError(
                f"initial_instance_count of variant {self.variant_name} is {count!r}: a real-time variant runs on a "
                "whole number of instances, at least 1"
            )
        if not (_is_token(weight) or (math.isfinite(weight) and weight >= 0)):
            raise ConfigurationError(
                f"initial_weight of variant {self.variant_name} is {weight!r}: use 0 for no requests, or a positive "
                "number"
            )
        for name in ("container_startup_timeout", "model_download_timeout"):
            self._check_timeout(name)

    def _check_timeout(self, name: str) -> None:
        timeout: Duration | None = getattr(self, name)
        if timeout is None or timeout.is_unresolved():
            return
        seconds = timeout.to_seconds()
        if not MIN_TIMEOUT_SECONDS <= seconds <= MAX_TIMEOUT_SECONDS:
            raise ConfigurationError(
                f"{name} of variant {self.variant_name} is {seconds:g} seconds: SageMaker takes "
                f"{MIN_TIMEOUT_SECONDS} to {MAX_TIMEOUT_SECONDS}"
            )


@jsii.implements(sagemaker.IEndpoint)
class TritonEndpoint(Resource):
    """A real-time SageMaker endpoint that runs Triton.

    It owns its endpoint configuration: every change makes a new one, and CloudFormation points the endpoint there.

    Args:
        scope: the stack or construct that it belongs to.
        id: the construct's id.
        model: what to serve, short for one variant with the defaults.
        variants: what to serve, where it is more than that. Either this or `model`.
        endpoint_name: a name of your own; by default CloudFormation makes one. An endpoint with a name of its own
            cannot be replaced by CloudFormation.

    Raises:
        ConfigurationError: both or neither of `model` and `variants`, two variants of one name, more of them than
            SageMaker takes, no variant with a weight, or a bad name.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,  # noqa: A002 - CDK's name
        *,
        model: ITritonModel | None = None,
        variants: Sequence[TritonVariant] | None = None,
        endpoint_name: str | None = None,
    ) -> None:
        self._variants = _variants(model, variants)
        if endpoint_name is not None:
            _check_sagemaker_name(endpoint_name, "endpoint_name")
        super().__init__(scope, id, physical_name=endpoint_name)
        config = sagemaker.CfnEndpointConfig(
            self, "Config", production_variants=[_production_variant(variant) for variant in self._variants]
        )
        self._endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_config_name=config.attr_endpoint_config_name,
            endpoint_name=self._physical_name if endpoint_name is not None else None,
        )
        # SageMaker uses a model's role until the endpoint is gone, so its policy must go after the endpoint.
        for variant in self._variants:
            self._endpoint.node.add_dependency(variant.model)

    @property
    @jsii.member(jsii_name="endpointName")
    def endpoint_name(self) -> str:
        """The endpoint's name, for `EndpointName` of InvokeEndpoint."""
        return self._get_resource_name_attribute(self._endpoint.attr_endpoint_name)

    @property
    @jsii.member(jsii_name="endpointArn")
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._get_resource_arn_attribute(
            self._endpoint.ref, service="sagemaker", resource="endpoint", resource_name=self._physical_name
        )

    @property
    @jsii.member(jsii_name="endpointRef")
    def endpoint_ref(self) -> EndpointReference:
        """The reference that L1 constructs take."""
        return self._endpoint.endpoint_ref

    @property
    def variants(self) -> tuple[TritonVariant, ...]:
        """The production variants."""
        return self._variants

    @jsii.member(jsii_name="grantInvoke")
    def grant_invoke(self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None) -> iam.Grant:
        """Allow a principal to invoke the endpoint.

        Args:
            grantee: the principal.
            target_models: the ensembles of a multi-model endpoint that it may call, in every version: an update or a
                rollback does not lock it out. By default all, dropped ones included whose archives are still there.

        Raises:
            ConfigurationError: the list is empty, or no variant serves such an ensemble.
        """
        conditions = None
        if target_models is not None:
            if not target_models:
                raise ConfigurationError("target_models is empty: name an ensemble, or leave it out to allow all")
            patterns = [target_model_pattern(self._ensemble(name)) for name in target_models]
            conditions = {"StringLike": {"sagemaker:TargetModel": patterns}}
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:InvokeEndpoint"],
            resource_arns=[self.endpoint_arn],
            conditions=conditions,
        )

    def _ensemble(self, name: str) -> str:
        known = sorted({ensemble for variant in self._variants for ensemble in variant.model.target_models})
        if name not in known:
            raise ConfigurationError(
                f"no variant of {self.node.path} serves an ensemble {name!r}: "
                + (
                    f"use one of {', '.join(known)}"
                    if known
                    else "it is no multi-model endpoint, leave target_models out"
                )
            )
        return name


def _variants(model: ITritonModel | None, variants: Sequence[TritonVariant] | None) -> tuple[TritonVariant, ...]:
    if (model is None) == (variants is None):
        raise ConfigurationError("a TritonEndpoint takes either model= or variants=, and exactly one of them")
    found = (TritonVariant(model=model),) if model is not None else tuple(variants or ())
    if not 1 <= len(found) <= MAX_PRODUCTION_VARIANTS:
        raise ConfigurationError(
            f"an endpoint has {len(found)} variants: SageMaker takes 1 to {MAX_PRODUCTION_VARIANTS}"
        )
    names = [variant.variant_name for variant in found]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"the variants are called {', '.join(names)}: give each a variant_name of its own within the endpoint"
        )
    weights = [variant.initial_weight for variant in found]
    if not any(_is_token(weight) or weight > 0 for weight in weights):
        raise ConfigurationError("every variant has the weight 0, so that no request would be answered: raise one")
    return found


def _production_variant(variant: TritonVariant) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    platform = variant.model.platform
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.variant_name,
        model_name=variant.model.model_name,
        instance_type=platform.instance_type,
        inference_ami_version=platform.inference_ami_version,
        initial_instance_count=variant.initial_instance_count,
        initial_variant_weight=variant.initial_weight,
        container_startup_health_check_timeout_in_seconds=_seconds(variant.container_startup_timeout),
        model_data_download_timeout_in_seconds=_seconds(variant.model_download_timeout),
    )


def _is_token(number: float) -> bool:
    # Infinity and NaN have no JSON and would end jsii's process.
    return math.isfinite(number) and Token.is_unresolved(number)


def _seconds(duration: Duration | None) -> int | float | None:
    return None if duration is None else duration.to_seconds()


def _check_sagemaker_name(name: str, what: str) -> None:
    if Token.is_unresolved(name):
        return
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > MAX_NAME_LENGTH:
        raise ConfigurationError(
            f"{what} {name!r} is no name for SageMaker: use up to {MAX_NAME_LENGTH} letters and digits, with '-' only "
            "between them"
        )
