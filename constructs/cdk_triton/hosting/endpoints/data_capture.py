"""Data capture: SageMaker stores an endpoint's requests and responses.

Sources: the shapes below `DataCaptureConfig` in the service model `sagemaker` 2017-07-24 of botocore 1.44.5, and the
page "Capture data from real-time endpoint" of SageMaker's developer guide. SageMaker writes lines of JSON to
`<prefix>/<endpoint>/<variant>/yyyy/mm/dd/hh/<file>.jsonl`. In these lines, a body whose content type is listed as JSON
is text; any other body is BASE64. Triton's binary format has a content type of its own, with the size of its JSON part
as a parameter. The list cannot contain this content type, because JsonContentType allows neither `+` nor `;`. So a
binary body is BASE64, which is right: as text, it could not be read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Annotations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import (
    key_arn_for_service,
    key_behind,
    require_symmetric,
    use_of_key,
    warn_about_key,
)
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.endpoints.model_role_policies import allow_models
from cdk_triton.hosting.endpoints.object_prefixes import check_prefix
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards, imported_objects_arns
from cdk_triton.hosting.naming.literals import is_whole
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import is_of_another_account, region_of, require_same, stack_of

__all__ = [
    "DataCapture",
    "allow_capture",
    "capture_property",
    "check_capture",
    "warn_about_capture",
    "warn_about_scaling",
]

JSON_CONTENT_TYPES = ("application/json",)
"""The content types that Triton reads and writes as JSON: captured as text."""

SCALING_WARNING = "cdk-triton:CaptureOfScaledVariant"
BUCKET_WARNING = "cdk-triton:CaptureNotGranted"
MULTI_MODEL_WARNING = "cdk-triton:CaptureOfMultiModel"


@checked
@dataclass(frozen=True, kw_only=True)
class DataCapture:
    """Which requests and responses of an endpoint SageMaker captures, and where it stores them.

    Attributes:
        bucket: the bucket for the captured data. Use a separate bucket, because its readers can read the callers' data.
        sampling_percentage: the percentage of requests to capture, 1 to 100. With 100, a busy endpoint may fill the
            disks of its instances; SageMaker then stops capturing.
        prefix: the prefix of the object keys. The models' roles can write only below it.
        capture_requests: whether SageMaker captures requests.
        capture_responses: whether SageMaker captures responses.
        encryption_key: a KMS key in the bucket's region that encrypts the captured data; by default the bucket's own
            KMS key, if it has one. You can pass an alias and later point it to another KMS key, because the endpoint
            never reads captured data, and so does not need the first key any more.

    Raises:
        ConfigurationError: the percentage is out of its range, the prefix is not valid or belongs to an artifact store,
            or neither requests nor responses are captured.
    """

    bucket: s3.IBucket
    sampling_percentage: int
    prefix: str = "data-capture"
    capture_requests: bool = True
    capture_responses: bool = True
    encryption_key: kms.IKey | None = None

    def __post_init__(self) -> None:
        share = self.sampling_percentage
        if not is_whole(share, 1, 100):
            raise ConfigurationError(
                f"sampling_percentage of a DataCapture is {share!r}: use a whole number, 1 to 100, or remove "
                "data_capture to capture nothing"
            )
        check_prefix("prefix of a DataCapture", self.prefix, self.bucket)
        if not (self.capture_requests or self.capture_responses):
            raise ConfigurationError(
                "a DataCapture captures neither requests nor responses: set capture_requests or capture_responses "
                "to True"
            )

    @property
    def _key(self) -> kms.IKey | None:
        """The key of the objects; None if S3 encrypts by itself."""
        return self.bucket.encryption_key if self.encryption_key is None else self.encryption_key


def check_capture(scope: Construct, path: str, capture: DataCapture) -> None:
    """Reject a bucket that SageMaker would not write to, and a key that S3 would not find.

    Args:
        scope: the scope of the endpoint, which does not exist yet.
        path: the endpoint's path.
        capture: what the endpoint captures.

    Raises:
        ConfigurationError: the region of the bucket certainly differs from that of the endpoint, or the region of the
            key from that of the bucket; or the key is not symmetric.
    """
    bucket = capture.bucket
    here = region_of(scope)
    reason = f"SageMaker writes captured data in the endpoint's own region: use a bucket in {here}"
    require_same("region", path, here, path_of(bucket), bucket.env.region, reason)
    if (key := capture.encryption_key) is not None:
        require_symmetric(key, f"encryption_key of the DataCapture of {path}")
        reason = f"S3 encrypts with a key of the bucket's own region: use a key in {bucket.env.region}"
        require_same("region", path_of(bucket), bucket.env.region, path_of(key), key.env.region, reason)


def capture_property(capture: DataCapture) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """The data capture in the form of an endpoint configuration."""
    modes = [
        mode for mode, kept in (("Input", capture.capture_requests), ("Output", capture.capture_responses)) if kept
    ]
    return sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=capture.bucket.s3_url_for_object(capture.prefix),
        capture_options=[sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=mode) for mode in modes],
        capture_content_type_header=sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=list(JSON_CONTENT_TYPES)
        ),
        kms_key_id=None if capture._key is None else key_arn_for_service(capture._key),
    )


def allow_capture(
    scope: Construct, capture: DataCapture, endpoint: IConstruct, variants: Sequence[TritonVariant]
) -> None:
    """Let the roles of the endpoint's models write what is captured, and nothing else.

    If the location or the roles change, the update creates a new policy and removes the old one at the end. Until then,
    the old instances capture as before, even during the hours of a canary.

    Args:
        scope: the endpoint.
        capture: the settings of the data capture, with the bucket and the prefix.
        endpoint: the endpoint's L1 construct.
        variants: all variants of the endpoint, including a shadow.
    """
    objects = f"{capture.prefix}/*"
    statements = [Statement(actions=["s3:PutObject"], resources=[capture.bucket.arn_for_objects(objects)])]
    if capture._key is not None:
        # kms:Decrypt is for uploads in parts ("Protecting data with server-side encryption", S3's user guide).
        statements.append(use_of_key(scope, capture._key, ["kms:Decrypt", "kms:GenerateDataKey"]))
    roles = sorted({model.role.node.path for variant in variants for model in variant.models})
    decisive = [path_of(capture.bucket), roles]
    for policy in allow_models(scope, "DataCapture", endpoint, variants, statements, decisive):
        reason = "SageMaker names the objects after endpoint, variant and time; only this capture uses the prefix."
        reasons = dict.fromkeys(imported_objects_arns(scope, capture.bucket, objects), reason)
        if (key := capture._key) is not None and key_behind(key) is None:
            (every_key,) = use_of_key(scope, key, ()).resources
            reasons[every_key] = "KMS ignores the ARN of an alias: the condition kms:ResourceAliases names the alias."
        acknowledge_wildcards(policy, reasons)


def warn_about_scaling(scope: Construct) -> None:
    """Warn that a scaled endpoint may keep its previous data capture.

    `VariantPropertyType` of UpdateEndpoint has `DataCaptureConfig`, "(Not currently supported.)", so it cannot be
    excluded from the properties that `RetainAllVariantProperties` keeps.
    """
    Annotations.of(scope).add_warning_v2(
        SCALING_WARNING,
        f"{path_of(scope)} has data_capture and a scaled variant. An update of a scaled endpoint keeps properties of "
        "the running endpoint, but AWS does not document whether the update keeps data capture, too. After each change "
        "of data_capture, compare it with DataCaptureConfig in the output of `aws sagemaker describe-endpoint`. Then "
        "acknowledge this",
    )


def warn_about_capture(scope: Construct, capture: DataCapture, variants: Sequence[TritonVariant]) -> None:
    """Warn if SageMaker may capture nothing."""
    account, bucket = stack_of(scope).account, capture.bucket
    roles = ", ".join(dict.fromkeys(path_of(model.role) for variant in variants for model in variant.models))
    if is_of_another_account(bucket, account):
        Annotations.of(scope).add_warning_v2(
            BUCKET_WARNING,
            f"the bucket {path_of(bucket)} of data_capture is in the account {bucket.env.account}, but the endpoint is "
            f"in {account}. Make sure that the bucket's policy allows the roles {roles} to write below "
            f"{capture.prefix}/ (s3:PutObject). Then acknowledge this",
        )
    if (key := capture._key) is not None and is_of_another_account(key, account):
        warn_about_key(scope, key, f"the roles {roles} to encrypt with the key (kms:Decrypt, kms:GenerateDataKey)")
    for variant in variants:
        if variant.model.is_multi_model:
            Annotations.of(scope).add_warning_v2(
                MULTI_MODEL_WARNING,
                f"variant {variant.variant_name!r} is multi-model, but SageMaker's table of supported features does "
                "not offer data capture for multi-model endpoints: check whether your account gets captured data, then "
                "acknowledge this",
            )
