"""SageMaker's limits, as its service models state them.

Source of every value, unless its docstring names another: the models `sagemaker` 2017-07-24 and `sagemaker-runtime`
2017-05-13 of botocore 1.44.5, named by their shapes. The limits of a container's environment are in
`cdk_triton.triton.environment`, which applies them.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ASYNC_SECONDS",
    "MAX_ASYNC_BYTES",
    "MAX_ASYNC_CONCURRENCY",
    "MAX_ASYNC_SECONDS",
    "MAX_IMAGE_LENGTH",
    "MAX_INFERENCE_ID_LENGTH",
    "MAX_INLINE_BYTES",
    "MAX_INSTANCE_POOLS",
    "MAX_INVOCATION_BYTES",
    "MAX_INVOCATION_SECONDS",
    "MAX_NAME_LENGTH",
    "MAX_PRODUCTION_VARIANTS",
    "MAX_PROVISION_SECONDS",
    "MAX_QUEUE_SECONDS",
    "MAX_RESERVATION_ARN_LENGTH",
    "MAX_ROLLBACK_ALARMS",
    "MAX_STREAM_SECONDS",
    "MAX_TARGET_MODEL_LENGTH",
    "MAX_TIMEOUT_SECONDS",
    "MAX_UPDATE_SECONDS",
    "MAX_UPDATE_WAIT_SECONDS",
    "MAX_VOLUME_GB",
    "METRIC_FREQUENCIES",
    "MIN_COPY_CPUS",
    "MIN_COPY_MEMORY_MIB",
    "MIN_PROVISION_SECONDS",
    "MIN_QUEUE_SECONDS",
    "MIN_TIMEOUT_SECONDS",
    "MIN_UPDATE_SECONDS",
    "MIN_VOLUME_GB",
    "NAME_PATTERN",
    "RESERVATION_ARN_PATTERN",
]

NAME_PATTERN: Final = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
"""The whole name of a model, endpoint configuration, endpoint or variant (EndpointName, VariantName)."""

MAX_NAME_LENGTH: Final = 63
"""Characters in such a name (EndpointName, VariantName)."""

MIN_TIMEOUT_SECONDS: Final = 60
MAX_TIMEOUT_SECONDS: Final = 3600
"""Both timeouts of a variant: the container's start and the download of the model data
(ProductionVariantContainerStartupHealthCheckTimeoutInSeconds, ProductionVariantModelDataDownloadTimeoutInSeconds)."""

MAX_INSTANCE_POOLS: Final = 5
"""Instance types of one variant with instance pools (InstancePoolList; InstancePoolPriority is 1 to 5)."""

MIN_PROVISION_SECONDS: Final = 300
MAX_PROVISION_SECONDS: Final = 3600
"""How long SageMaker looks for the instances of a variant (VariantInstanceProvisionTimeoutInSeconds)."""

MIN_COPY_CPUS: Final = 0.25
"""The fewest vCPUs that a copy of an inference component may reserve (NumberOfCpuCores)."""

MIN_COPY_MEMORY_MIB: Final = 128
"""The least memory that a copy of an inference component may reserve, in MiB (MemoryInMb)."""

MIN_VOLUME_GB: Final = 1
MAX_VOLUME_GB: Final = 512
"""The size of an instance's EBS volume (ProductionVariantVolumeSizeInGB)."""

METRIC_FREQUENCIES: Final = (10, 30, 60, 120, 180, 240, 300)
"""Seconds between two datapoints of an endpoint's metrics (documentation of MetricsConfig)."""

MAX_PRODUCTION_VARIANTS: Final = 10
"""Variants of one endpoint configuration (ProductionVariantList)."""

MAX_ROLLBACK_ALARMS: Final = 10
"""Alarms that may roll an update back (AlarmList)."""

MIN_UPDATE_SECONDS: Final = 600
MAX_UPDATE_SECONDS: Final = 28_800
"""How long an update of an endpoint may take (MaximumExecutionTimeoutInSeconds)."""

MAX_UPDATE_WAIT_SECONDS: Final = 3600
"""Each waiting time of an update (WaitIntervalInSeconds, TerminationWaitInSeconds)."""

MAX_IMAGE_LENGTH: Final = 255
"""Characters in an image URI (ContainerImage)."""

MAX_TARGET_MODEL_LENGTH: Final = 1024
"""Characters in the target model of an invocation (TargetModelHeader)."""

MAX_INVOCATION_BYTES: Final = 6_291_456
"""Bytes of the body of a request, and of an answer: 6 MiB (BodyBlob)."""

MAX_INVOCATION_SECONDS: Final = 60
"""How long a container may take to answer a real-time request (documentation of InvokeEndpoint)."""

MAX_STREAM_SECONDS: Final = 480
"""How long a container may take until the end of a streamed answer: "8 minutes for streaming responses" ("Adapt your
own inference container for Amazon SageMaker AI" in the developer guide)."""

RESERVATION_ARN_PATTERN: Final = r"arn:aws[a-z\-]*:sagemaker:([a-z0-9\-]+):([0-9]{12}):([a-z0-9\-]{1,14})/.+"
"""ARN of an ML capacity reservation with its region, account and kind (MlReservationArn, which lets the region and the
name be empty)."""

MAX_RESERVATION_ARN_LENGTH: Final = 258
"""Characters in such an ARN (MlReservationArn)."""

MAX_ASYNC_BYTES: Final = 1024**3
"""Bytes of a request body that InvokeEndpointAsync reads from S3: "up to 1GB" ("Asynchronous inference" in the
developer guide). This library assumes 1 GiB, because InvokeEndpoint's 6 MB are 6 MiB."""

MAX_INLINE_BYTES: Final = 128_000
"""Bytes of a request body in the call of InvokeEndpointAsync itself (AsyncBodyBlob)."""

MAX_INFERENCE_ID_LENGTH: Final = 64
"""Characters of the identifier of an asynchronous request (InferenceId)."""

MIN_QUEUE_SECONDS: Final = 60
MAX_QUEUE_SECONDS: Final = 21_600
"""How long an asynchronous request may wait in the queue; the default is the maximum (RequestTTLSecondsHeader)."""

MAX_ASYNC_SECONDS: Final = 3600
"""How long the container may take for an asynchronous request; the default is 900 seconds
(InvocationTimeoutSecondsHeader)."""

ASYNC_SECONDS: Final = 900
"""The default time that the container may take for an asynchronous request (InvocationTimeoutSecondsHeader)."""

MAX_ASYNC_CONCURRENCY: Final = 1000
"""Asynchronous requests that one container gets at a time (MaxConcurrentInvocationsPerInstance)."""
