"""Asynchronous endpoints: requests wait in a queue, and responses go to S3.

Sources: the shapes below `AsyncInferenceConfig` in the service model `sagemaker` 2017-07-24 of botocore 1.44.5, and the
pages "Asynchronous inference", "Supported features" and "Exclusions" of SageMaker's developer guide. An endpoint with
this configuration "can only receive asynchronous invocations".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import require_key
from cdk_triton.hosting.endpoints.object_prefixes import check_prefix
from cdk_triton.hosting.endpoints.shared_buckets import check_free
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.inference_type import require_infer
from cdk_triton.hosting.models.max_payload import check_real_time_payload
from cdk_triton.hosting.naming.literals import is_whole
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import region_of, require_same, stack_of
from cdk_triton.sagemaker.limits import MAX_ASYNC_CONCURRENCY

__all__ = ["AsyncInference", "check_async"]

EXPIRATION_DAYS = 7
"""How long requests and responses are kept, if the app does not set it. A request is answered or dropped within 7
hours: 6 in the queue and 1 in the container (RequestTTLSeconds, InvocationTimeoutSeconds)."""

_PREFIXES = ("input_prefix", "output_prefix", "failure_prefix")


@checked
@dataclass(frozen=True, kw_only=True)
class AsyncInference:
    """How an asynchronous endpoint receives requests, and where it stores requests and responses.

    Without `bucket`, the endpoint creates a bucket that is encrypted, not public, and accepts TLS only. This bucket is
    retained when the endpoint is deleted, but every object in it expires. An `s3.Bucket` of your app gets lifecycle
    rules for the three prefixes, which an imported bucket cannot get.

    Attributes:
        bucket: the bucket for requests and responses. By default the endpoint creates one.
        input_prefix: the prefix of the object keys of requests that callers upload.
        output_prefix: the prefix of the object keys of responses.
        failure_prefix: the prefix of the object keys of error messages.
        encryption_key: a symmetric KMS key of the bucket's region, which encrypts the responses. If the endpoint
            creates the bucket, the key encrypts every object in it. By default the KMS key of the bucket, if it has
            one.
        access_logs_bucket: the bucket for the access logs of the bucket that the endpoint creates. Not allowed with
            `bucket`.
        success_topic: the topic that gets a notification of each response.
        error_topic: the topic that gets a notification of each failure.
        max_concurrent_invocations_per_instance: the number of requests that one container receives at a time, 1 to
            1000. None: SageMaker "chooses an optimal value".
        expiration: the number of whole days after which requests, responses and error messages expire. None: 7 days.
            Not allowed with an imported bucket.

    Raises:
        ConfigurationError: a prefix is not valid for object keys, contains one of the other two, or belongs to an
            artifact store; a number is out of its range, or a value would have no effect on the given bucket.
    """

    bucket: s3.IBucket | None = None
    input_prefix: str = "async/input"
    output_prefix: str = "async/output"
    failure_prefix: str = "async/failures"
    encryption_key: kms.IKey | None = None
    access_logs_bucket: s3.IBucket | None = None
    success_topic: sns.ITopic | None = None
    error_topic: sns.ITopic | None = None
    max_concurrent_invocations_per_instance: int | None = None
    expiration: Duration | None = None

    def __post_init__(self) -> None:
        for name in _PREFIXES:
            check_prefix(f"{name} of an AsyncInference", getattr(self, name), self.bucket)
        for one, other in permutations(_PREFIXES, 2):
            if f"{getattr(self, one)}/".startswith(f"{getattr(self, other)}/"):
                raise ConfigurationError(
                    f"{one} and {other} of an AsyncInference are {quoted(getattr(self, one))} and "
                    f"{quoted(getattr(self, other))}, so callers could write where answers are: use prefixes "
                    "that do not contain each other"
                )
        count = self.max_concurrent_invocations_per_instance
        if count is not None and not is_whole(count, 1, MAX_ASYNC_CONCURRENCY):
            raise ConfigurationError(
                f"max_concurrent_invocations_per_instance of an AsyncInference is {count!r}: use a whole number, 1 to "
                f"{MAX_ASYNC_CONCURRENCY:,}, or omit it"
            )
        self._check_expiration()
        if self.bucket is not None and self.access_logs_bucket is not None:
            raise ConfigurationError(
                "an AsyncInference has both access_logs_bucket and bucket, but access_logs_bucket is only for a bucket "
                "that the endpoint makes: remove it, and set server_access_logs_bucket of your own bucket"
            )

    def _check_expiration(self) -> None:
        if self.expiration is None:
            return
        if self.bucket is not None and not isinstance(self.bucket, s3.Bucket):
            raise ConfigurationError(
                f"expiration of an AsyncInference is {self.expiration.to_human_string()}, but this app does not make "
                f"the bucket {path_of(self.bucket)}, so it cannot add a lifecycle rule: omit expiration=, and add the "
                "rule where the bucket is made"
            )
        days = None if self.expiration.is_unresolved() else self.expiration.to_days(integral=False)
        if days is None or days < 1 or days != int(days):
            shown = "an unresolved token" if days is None else self.expiration.to_human_string()
            raise ConfigurationError(
                f"expiration of an AsyncInference is {shown}, but S3 counts whole days: use one day or more, such as "
                "Duration.days(7)"
            )

    @property
    def _expiration(self) -> Duration:
        return Duration.days(EXPIRATION_DAYS) if self.expiration is None else self.expiration


def check_async(
    scope: Construct,
    path: str,
    asynchronous: AsyncInference | None,
    variants: Sequence[TritonVariant],
    *,
    shadow: TritonVariant | None,
    captures: bool,
) -> None:
    """Reject what an asynchronous endpoint cannot have, and buckets, keys and topics that SageMaker would not find.

    Args:
        scope: the scope of the endpoint, which does not exist yet.
        path: the path of the endpoint.
        asynchronous: the endpoint's asynchronous configuration; None for a real-time endpoint.
        variants: the endpoint's production variants.
        shadow: the endpoint's shadow variant, or None.
        captures: whether the endpoint captures data.

    Raises:
        ConfigurationError: there are several variants, a multi-model variant, a container that generates, a shadow or
            data capture; another endpoint has one of the prefixes; the region of the bucket or of a topic certainly
            differs from that of the endpoint, or the region of the key from that of the bucket; the key is not
            symmetric, or is an alias that was imported by its name only; a topic is a FIFO topic; or a real-time
            variant has a `max_payload` that no request can reach.
    """
    if asynchronous is None:
        for variant in variants if shadow is None else (*variants, shadow):
            for model in variant.models:
                check_real_time_payload(f"variant {variant.variant_name!r} of {path}", model)
        return
    _check_variants(path, variants, shadow=shadow is not None, captures=captures)
    here, bucket = region_of(scope), asynchronous.bucket
    if bucket is not None:
        reason = f"SageMaker writes answers in the endpoint's own region: use a bucket in {here}"
        require_same("region", path, here, path_of(bucket), bucket.env.region, reason)
        check_free(scope, path, bucket, [getattr(asynchronous, name) for name in _PREFIXES])
    if (key := asynchronous.encryption_key) is not None:
        key = require_key(key, f"encryption_key of the AsyncInference of {path}")
        owner, region = (path, here) if bucket is None else (path_of(bucket), bucket.env.region)
        reason = f"S3 encrypts with a key of the bucket's own region: use a key in {region}"
        require_same("region", owner, region, path_of(key), key.env.region, reason)
    if (logs := asynchronous.access_logs_bucket) is not None:
        reason = "S3 writes access logs to a bucket of the same account and region only: use such a bucket"
        require_same("region", path, here, path_of(logs), logs.env.region, reason)
        require_same("account", path, stack_of(scope).account, path_of(logs), logs.env.account, reason)
    for topic in (asynchronous.success_topic, asynchronous.error_topic):
        if topic is not None:
            reason = f"SageMaker publishes in the endpoint's own region: use a topic in {here}"
            require_same("region", path, here, path_of(topic), topic.env.region, reason)
            if topic.fifo:
                raise ConfigurationError(
                    f"the topic {path_of(topic)} of the AsyncInference of {path} is a FIFO topic, but SageMaker cannot "
                    "set the MessageGroupId that the topic's messages need: use a standard topic"
                )


def _check_variants(path: str, variants: Sequence[TritonVariant], *, shadow: bool, captures: bool) -> None:
    """Reject features that SageMaker's table of supported features does not offer for asynchronous inference.

    InvokeEndpointAsync has no member TargetModel and no TargetVariant.
    """
    for variant in variants:
        if variant.model.is_multi_model:
            raise ConfigurationError(
                f"{path} is asynchronous, but the model {variant.model.node.path} of variant {variant.variant_name!r} "
                "is a TritonMultiModel; InvokeEndpointAsync has no TargetModel, and SageMaker's table of supported "
                "features does not offer multi-model endpoints for asynchronous inference: make a TritonModel and an "
                "endpoint for each ensemble"
            )
        for model in variant.models:
            require_infer(path, model)
    fault = None
    if len(variants) > 1:
        fault = (f"has {len(variants)} variants", "multiple production variants", "make an endpoint for each variant")
    elif shadow:
        fault = ("has a shadow", "shadow tests", "omit shadow=")
    elif captures:
        fix = "omit data_capture, because S3 has the requests and answers anyway"
        fault = ("has data_capture", "data capture", fix)
    if fault is not None:
        raise ConfigurationError(
            f"{path} is asynchronous and {fault[0]}, but SageMaker's table of supported features does not offer "
            f"{fault[1]} for asynchronous inference: {fault[2]}"
        )
