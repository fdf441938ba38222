"""`TritonEndpoint`: an endpoint with its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoint_variant import EndpointVariant
from cdk_triton.hosting.layout import target_model_pattern
from cdk_triton.hosting.metrics import VariantMetrics
from cdk_triton.hosting.model import ITritonModel
from cdk_triton.hosting.variant import TritonVariant, check_sagemaker_name, is_token, production_variant
from cdk_triton.sagemaker.limits import MAX_PRODUCTION_VARIANTS

__all__ = ["TritonEndpoint"]


@jsii.implements(sagemaker.IEndpoint)
class TritonEndpoint(Resource, VariantMetrics):
    """A real-time SageMaker endpoint that runs Triton.

    It owns its endpoint configuration: every change makes a new one, and CloudFormation points the endpoint there.

    Metrics belong to a variant: ask `variant(name)` for them. Where there is one variant only, the endpoint has its
    metrics too.

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
            check_sagemaker_name(endpoint_name, "endpoint_name")
        super().__init__(scope, id, physical_name=endpoint_name)
        config = sagemaker.CfnEndpointConfig(
            self, "Config", production_variants=[production_variant(variant) for variant in self._variants]
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
        self._in_service = {v.variant_name: EndpointVariant(self, self._endpoint, v) for v in self._variants}

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

    def variant(self, variant_name: str | None = None) -> EndpointVariant:
        """A variant with its metrics and its scaling.

        Args:
            variant_name: its name; may be left out where there is one only.

        Raises:
            ConfigurationError: there is no such variant, or there are several and none is named.
        """
        known = ", ".join(self._in_service)
        if variant_name is None:
            if len(self._in_service) > 1:
                raise ConfigurationError(
                    f"{self.node.path} has several variants: name one of {known}, as endpoint.variant(name)"
                )
            variant_name = next(iter(self._in_service))
        if variant_name not in self._in_service:
            raise ConfigurationError(f"{self.node.path} has no variant {variant_name!r}: use one of {known}")
        return self._in_service[variant_name]

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """Those of the only variant.

        Raises:
            ConfigurationError: there are several.
        """
        return self.variant().metric_dimensions

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
    if not any(is_token(weight) or weight > 0 for weight in weights):
        raise ConfigurationError("every variant has the weight 0, so that no request would be answered: raise one")
    return found
