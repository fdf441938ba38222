"""Endpoints that another stack has created, or that are in no stack.

SageMaker keeps the case of an endpoint's name, and a caller must match it; in the endpoint's ARN the name is in lower
case (CreateEndpoint in the API reference; the events in "Events that Amazon SageMaker AI sends to Amazon EventBridge").
In ARNs IAM distinguishes upper and lower case, so a policy with capitals in the name allows nothing
(philschmid/cdk-samples#2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Annotations, Arn, ArnFormat, Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import has_token
from cdk_triton.artifacts.names import check_name
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.invoke_grants import allow_invocation
from cdk_triton.hosting.endpoints.variants.metrics import VariantMetrics
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.service_names import check_sagemaker_name
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["ImportedEndpoint", "ImportedVariant"]

CASE_WARNING = "cdk-triton:EndpointNameCase"

_ARN = re.compile(r"arn:[^:]+:sagemaker:[^:]+:[^:]+:endpoint/[^/]+")


@jsii.implements(sagemaker.IEndpoint)
class ImportedEndpoint(Resource):
    """An existing endpoint to invoke, returned by `TritonEndpoint.from_endpoint_name` and similar methods.

    Args:
        scope: the stack or construct that uses the endpoint.
        id: the construct's id.
        endpoint_name: the endpoint's name, as callers write it.
        endpoint_arn: the endpoint's ARN. By default, the name and the scope's account and region determine it.

    Raises:
        ConfigurationError: the name is not a valid endpoint name, or the ARN is not an endpoint's or names another
            endpoint.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        endpoint_arn: str | None = None,
    ) -> None:
        check_sagemaker_name(endpoint_name, "endpoint_name")
        if endpoint_arn is not None:
            _check_arn(endpoint_arn)
            _check_same(endpoint_name, endpoint_arn)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        self._name = endpoint_name
        self._arn = _arn_of_name(self, endpoint_name) if endpoint_arn is None else endpoint_arn
        self._arn_is_guessed = endpoint_arn is None and has_token(endpoint_name)

    @classmethod
    def _from_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedEndpoint:
        _check_arn(endpoint_arn)
        name = Arn.split(endpoint_arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name
        return cls(scope, id, endpoint_name=name or "", endpoint_arn=endpoint_arn)

    if not TYPE_CHECKING:  # a type checker rejects such a name anyway

        def __getattr__(self, name: str) -> object:
            """Explain where to find metrics, because an import does not know the names of the variants."""
            if name.startswith("metric"):
                raise AttributeError(
                    f"an imported endpoint has no {name}, because SageMaker publishes metrics for each variant, and "
                    f"the variants of {path_of(self)} are not known here: call variant('AllTraffic').{name}(), with "
                    "the name of the variant"
                )
            return super().__getattribute__(name)

    @property
    @jsii.member(jsii_name="endpointName")
    def endpoint_name(self) -> str:
        """The endpoint's name, for `EndpointName` of InvokeEndpoint."""
        return self._name

    @property
    @jsii.member(jsii_name="endpointArn")
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._arn

    @property
    @jsii.member(jsii_name="endpointRef")
    def endpoint_ref(self) -> EndpointReference:
        """The reference that L1 constructs take."""
        return EndpointReference(endpoint_arn=self._arn)

    @checked
    def variant(self, variant_name: str = "AllTraffic") -> ImportedVariant:
        """Return a variant, for its metrics. The import cannot check that the endpoint has this variant.

        Raises:
            ConfigurationError: SageMaker does not accept the name.
        """
        check_sagemaker_name(variant_name, "variant_name")
        account, region = (None if has_token(each) else each for each in (self.env.account, self.env.region))
        return ImportedVariant(self._name, variant_name, account=account, region=region)

    @jsii.member(jsii_name="grantInvoke")
    @checked
    def grant_invoke(self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None) -> iam.Grant:
        """Allow a principal to invoke the endpoint.

        Args:
            grantee: the principal.
            target_models: the ensembles of a multi-model endpoint that the principal can call, in every version; by
                default all. The app does not know the endpoint's ensembles, so a misspelt name causes no error, but IAM
                denies the calls.

        Raises:
            ConfigurationError: the list is empty, or a name is not valid for an ensemble.
        """
        if self._arn_is_guessed:
            Annotations.of(self).add_warning_v2(
                CASE_WARNING,
                "the endpoint's name is an unresolved token, and the endpoint's ARN contains the name in lower case: "
                "if the name has capital letters, the grant allows nothing. Import the endpoint by "
                "from_endpoint_attributes with its ARN, or acknowledge this",
            )
        return allow_invocation(self, grantee, self._arn, target_models, lambda name: check_name(name, "the ensemble"))


class ImportedVariant(VariantMetrics):
    """A variant of an imported endpoint, with its metrics.

    Args:
        endpoint_name: the endpoint's name, as callers write it. In CloudWatch the case matters.
        variant_name: the variant's name.
        account: the account of the endpoint. None: the account of the stack that uses the metrics.
        region: the region of the endpoint. None: the region of the stack that uses the metrics.
    """

    def __init__(self, endpoint_name: str, variant_name: str, *, account: str | None, region: str | None) -> None:
        self._endpoint_name, self._variant_name = endpoint_name, variant_name
        self._account, self._region = account, region

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`."""
        return {"EndpointName": self._endpoint_name, "VariantName": self._variant_name}

    @property
    def _environment(self) -> tuple[str | None, str | None]:
        return self._account, self._region


def _arn_of_name(scope: Construct, endpoint_name: str) -> str:
    name = endpoint_name if has_token(endpoint_name) else endpoint_name.lower()
    return stack_of(scope).format_arn(service="sagemaker", resource="endpoint", resource_name=name)


def _check_arn(endpoint_arn: str) -> None:
    if not has_token(endpoint_arn) and not _ARN.fullmatch(endpoint_arn):
        raise ConfigurationError(
            f"endpoint_arn {endpoint_arn!r} is not the ARN of an endpoint: use one such as "
            "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search, or import the endpoint by from_endpoint_name"
        )


def _check_same(endpoint_name: str, endpoint_arn: str) -> None:
    in_arn = endpoint_arn.rpartition("/")[2]
    if in_arn.lower() != endpoint_name.lower() and not has_token(endpoint_name) and not has_token(in_arn):
        raise ConfigurationError(
            f"endpoint_name is {endpoint_name!r}, but endpoint_arn names the endpoint {in_arn!r}, so callers would "
            "call an endpoint for which they have no permission: give the name and the ARN of the same endpoint"
        )
