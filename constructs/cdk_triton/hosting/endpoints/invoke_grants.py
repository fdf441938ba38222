"""The permission to invoke an endpoint, whether the app creates or imports it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aws_cdk import Annotations, Resource
from aws_cdk import aws_iam as iam

from cdk_triton._tokens import has_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.publishing.required import require_publisher
from cdk_triton.protocol.layout import target_model_pattern

__all__ = ["INVOKE_ACTIONS", "allow_invocation", "check_takes_published", "ensemble_check", "warn_without_effect"]

INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
"""The actions of InvokeEndpoint and of a streamed answer. The API reference of InvokeEndpointWithResponseStream names
the first action only, but "Actions, resources, and condition keys for Amazon SageMaker" has the second one, too."""

_PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._*-]{0,199}")
GRANT_WARNING = "cdk-triton:GrantWithoutEffect"


def allow_invocation(
    endpoint: Resource,
    grantee: iam.IGrantable,
    endpoint_arn: str,
    ensembles: Sequence[str] | None,
    check: Callable[[str], object],
    published: Sequence[str] | None = None,
    *,
    can_stream: bool = True,
) -> iam.Grant:
    """Allow a principal to invoke an endpoint, or warn that the grant allows nothing.

    An endpoint has no policy of its own, so only the policy of a caller in the same account can allow the call ("AWS
    services that work with IAM", column "Resource-based policies").

    Args:
        endpoint: the endpoint.
        grantee: the principal.
        endpoint_arn: the endpoint's ARN.
        ensembles: the ensembles that the principal can call, in every version. None: all, or the only model of the
            endpoint.
        check: rejects an ensemble that the endpoint cannot have.
        published: patterns of published ensembles that the principal can also call. None: only `ensembles`.
        can_stream: whether the endpoint may have a container that streams, which that of a multi-model endpoint cannot.

    Raises:
        ConfigurationError: a list is empty, contains a name that the check rejects, or contains something that is not a
            pattern.
    """
    conditions = None
    if ensembles is not None or published is not None:
        if ensembles is not None and not ensembles:
            raise ConfigurationError(
                "target_models is empty: name an ensemble, or remove target_models to allow all ensembles"
            )
        for name in ensembles or ():
            check(name)
        names = [*(ensembles or ()), *_checked_patterns(published)]
        # The condition key of InvokeEndpoint ("Actions, resources, and condition keys for Amazon SageMaker").
        conditions = {"StringLike": {"sagemaker:TargetModel": [target_model_pattern(name) for name in names]}}
    actions = INVOKE_ACTIONS if can_stream and conditions is None else INVOKE_ACTIONS[:1]
    grant = iam.Grant.add_to_principal(
        grantee=grantee, actions=[*actions], resource_arns=[endpoint_arn], conditions=conditions
    )
    warn_without_effect(endpoint, grantee.grant_principal, grant)
    return grant


def check_takes_published(endpoint: Resource, variants: Sequence[TritonVariant]) -> None:
    """Reject published ensembles for an endpoint that serves none: the permission would allow nothing.

    Whether a `TritonMultiModel` of this app has a publisher is known only at the end of the synthesis, which then fails
    without one. An imported model may have a publisher in its own app.

    Raises:
        ConfigurationError: no variant has a multi-model model.
    """
    multi_models = [variant.model for variant in variants if variant.model.is_multi_model]
    if not multi_models:
        raise ConfigurationError(
            f"published= narrows the permission to ensembles of a TritonMultiModel, but {endpoint.node.path} is not a "
            "multi-model endpoint: remove published="
        )
    from cdk_triton.hosting.models.multi_model import TritonMultiModel  # slow to import, and rarely needed

    ours = [model for model in multi_models if isinstance(model, TritonMultiModel)]
    if len(ours) == len(multi_models):
        require_publisher(
            endpoint,
            ours,
            f"grant_invoke(published=…) of {endpoint.node.path} allows nothing, because no TritonMultiModel of the "
            "endpoint has a publisher: call add_publisher(), or remove published=",
        )


def _checked_patterns(published: Sequence[str] | None) -> Sequence[str]:
    if published is not None and not published:
        raise ConfigurationError("published is empty: give a pattern, such as 'tenant-*', or omit it")
    for pattern in published or ():
        if not _PATTERN.fullmatch(pattern):
            raise ConfigurationError(
                f"published has {quoted(pattern)}: use a name in which '*' stands for any characters, "
                "such as 'tenant-*'"
            )
    return published or ()


def ensemble_check(endpoint: Resource, variants: Sequence[TritonVariant]) -> Callable[[str], None]:
    """Return the check for an endpoint that this app creates: it rejects an ensemble that no variant serves."""
    known = sorted({ensemble for variant in variants for ensemble in variant.model.target_models})

    def check(name: str) -> None:
        if name not in known:
            raise ConfigurationError(
                f"target_models names {name!r}, but {endpoint.node.path} "
                + (
                    f"serves no such ensemble: use one of {', '.join(map(repr, known))}"
                    if known
                    else "is not a multi-model endpoint: remove target_models, which only narrows the permission to "
                    "some ensembles of a TritonMultiModel"
                )
            )

    return check


def warn_without_effect(endpoint: Resource, principal: iam.IPrincipal, grant: iam.Grant) -> None:
    """Warn if no policy was written, or one that cannot allow the call."""
    if not grant.success:
        Annotations.of(endpoint).add_warning_v2(
            GRANT_WARNING,
            "grant_invoke got a principal without a policy, such as an account or a service. The grant allows nothing, "
            "because an endpoint has no resource-based policy: grant to a role of the endpoint's account, and let the "
            "caller assume the role",
        )
        return
    there, here = principal.principal_account, endpoint.env.account
    if there is not None and there != here and not has_token(there) and not has_token(here):
        Annotations.of(endpoint).add_warning_v2(
            GRANT_WARNING,
            f"grant_invoke got a principal of the account {there}, but the endpoint is in {here}. The grant allows "
            "nothing, because an endpoint has no resource-based policy that could allow another account: grant to a "
            "role of the endpoint's account, and let the caller assume the role",
        )
