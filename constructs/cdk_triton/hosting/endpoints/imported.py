"""Endpoints that another stack, or nobody's stack, has made.

SageMaker keeps the case of an endpoint's name, and a caller must match it; in the endpoint's ARN the name is in lower
case (CreateEndpoint in the API reference; the events in "Events that Amazon SageMaker AI sends to Amazon EventBridge").
IAM compares ARNs letter by letter, so that a policy on a name with capitals allows nothing (philschmid/cdk-samples#2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import jsii
from aws_cdk import Annotations, Arn, ArnFormat, Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.artifacts.layout import check_name
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting._cdk.arguments import checked
from cdk_triton.hosting._cdk.stacks import stack_of
from cdk_triton.hosting.endpoints.invoke_grants import allow_invocation
from cdk_triton.hosting.sagemaker_names import check_sagemaker_name

__all__ = ["ImportedEndpoint"]

CASE_WARNING = "cdk-triton:EndpointNameCase"

_ARN = re.compile(r"arn:[^:]+:sagemaker:[^:]+:[^:]+:endpoint/[^/]+")


@jsii.implements(sagemaker.IEndpoint)
class ImportedEndpoint(Resource):
    """What `TritonEndpoint.from_endpoint_name` and its like return: an endpoint to invoke, and nothing to change.

    Args:
        scope: the stack or construct that uses it.
        id: the construct's id.
        endpoint_name: its name, as callers say it.
        endpoint_arn: its ARN; by default that of the name in the scope's account and region.

    Raises:
        ConfigurationError: the name is none, or the ARN names no endpoint.
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
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        self._name = endpoint_name
        self._arn = _arn_of_name(self, endpoint_name) if endpoint_arn is None else endpoint_arn
        self._arn_is_guessed = endpoint_arn is None and has_token(endpoint_name)

    @classmethod
    def _from_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedEndpoint:
        """The endpoint of an ARN, with the name as it stands there."""
        _check_arn(endpoint_arn)
        name = Arn.split(endpoint_arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name
        return cls(scope, id, endpoint_name=name or "", endpoint_arn=endpoint_arn)

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

    @jsii.member(jsii_name="grantInvoke")
    @checked
    def grant_invoke(self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None) -> iam.Grant:
        """Allow a principal to invoke the endpoint.

        Args:
            grantee: the principal.
            target_models: the ensembles of a multi-model endpoint that it may call, in every version. Which there are
                is not known here: a misspelt one is denied when it is called. By default all.

        Raises:
            ConfigurationError: the list is empty, or a name cannot be an ensemble's.
        """
        if self._arn_is_guessed:
            Annotations.of(self).add_warning_v2(
                CASE_WARNING,
                "the endpoint's name is known during the deployment only, and its ARN has it in lower case: where the "
                "name has capitals, the grant allows nothing. Import it by from_endpoint_attributes, with its ARN, or "
                "acknowledge this",
            )
        return allow_invocation(grantee, self._arn, target_models, lambda name: check_name(name, "the ensemble"))


def _arn_of_name(scope: Construct, endpoint_name: str) -> str:
    """The ARN of an endpoint in the scope's account and region."""
    name = endpoint_name if has_token(endpoint_name) else endpoint_name.lower()
    return stack_of(scope).format_arn(service="sagemaker", resource="endpoint", resource_name=name)


def _check_arn(endpoint_arn: str) -> None:
    if not has_token(endpoint_arn) and not _ARN.fullmatch(endpoint_arn):
        raise ConfigurationError(
            f"endpoint_arn {endpoint_arn!r} names no endpoint: use one such as "
            "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search, or import the endpoint by from_endpoint_name"
        )
