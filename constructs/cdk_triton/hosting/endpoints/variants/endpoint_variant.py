"""`EndpointVariant`: a variant of an endpoint, with its metrics and its scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.metrics import VariantMetrics
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant

if TYPE_CHECKING:  # slow to import, and only needed for scaling
    from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount

__all__ = ["EndpointVariant"]


class EndpointVariant(Construct, VariantMetrics):
    """What `TritonEndpoint.variant(name)` returns: a variant of this endpoint, with its metrics and scaling.

    Attributes:
        variant: the variant's settings.
        is_async: whether the variant's endpoint is asynchronous.

    Args:
        scope: the endpoint.
        endpoint: the endpoint's L1 construct.
        variant: the variant's settings.
        keep_instance_counts: a function that makes the endpoint's updates keep the scaled counts. Its arguments are the
            variant's name and scaling.
        is_async: whether the endpoint is asynchronous.
    """

    def __init__(
        self,
        scope: Construct,
        endpoint: sagemaker.CfnEndpoint,
        variant: TritonVariant,
        keep_instance_counts: Callable[[str, ScalableInstanceCount], None],
        *,
        is_async: bool = False,
    ) -> None:
        super().__init__(scope, f"Variant{variant.variant_name}")
        self.variant = variant
        self._endpoint = endpoint
        self._keep_instance_counts = keep_instance_counts
        self.is_async = is_async
        self._instance_count: ScalableInstanceCount | None = None

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`.

        A literal endpoint name is not a reference. So an alarm on these metrics does not depend on the endpoint, and
        CloudFormation can create the alarm first.
        """
        given = self._endpoint.endpoint_name
        name = self._endpoint.attr_endpoint_name if given is None or has_token(given) else given
        return {"EndpointName": name, "VariantName": self.variant.variant_name}

    @property
    def scalable_instance_count(self) -> ScalableInstanceCount | None:
        """The value of `auto_scale_instance_count`; None if the number of instances is fixed."""
        return self._instance_count

    def auto_scale_instance_count(self, *, min_capacity: int, max_capacity: int) -> ScalableInstanceCount:
        """Scale the number of instances with the load. Each variant of an endpoint scales independently.

        Args:
            min_capacity: the fewest instances: at least 1, or at least 0 for an asynchronous endpoint.
            max_capacity: the most instances.

        Returns:
            An object with methods that add scaling policies, such as `.scale_on_invocations(...)`.

        Raises:
            ConfigurationError: the limits contradict each other or the initial instance count, or the variant is scaled
                already.
        """
        from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount

        what = f"variant {self.variant.variant_name!r} of {self.node.scopes[-2].node.path}"
        if self._instance_count is not None:
            raise ConfigurationError(
                f"{what} is scaled already: add policies to the object that the first call returned"
            )
        self._instance_count = ScalableInstanceCount(
            self,
            "InstanceCount",
            endpoint=self._endpoint,
            variant=self.variant,
            what=what,
            metrics=self,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            is_async=self.is_async,
        )
        self._keep_instance_counts(self.variant.variant_name, self._instance_count)
        return self._instance_count
