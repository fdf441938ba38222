"""Whether the largest requests of an asynchronous endpoint fit into its instances."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations, Size
from constructs import Construct

from cdk_triton.hosting.models.interface import ITritonModel

__all__ = ["warn_about_space"]

GIB = 1024**3
COPIES: Final = 3
"""The copies of a JSON request in Triton's memory: as it was received, as one text, and as tensors (`EVBufferToJson`,
`EVBufferToInput`). The parsed document comes in addition."""

SPACE_WARNING: Final = "cdk-triton:PayloadsExceedInstance"


def warn_about_space(
    scope: Construct, what: str, size: int, concurrent: int, model: ITritonModel, volume: Size | None
) -> None:
    """Warn if the largest requests do not fit into an instance: into its memory, or with the model onto its volume.

    AWS does not document where SageMaker keeps a request that it has read from S3, so the volume counts each one once.

    Args:
        scope: the endpoint.
        what: the variant, as the beginning of a sentence.
        size: the size of one request, in bytes.
        concurrent: how many requests an instance receives at a time.
        model: the model.
        volume: the EBS volume, if the app chose its size.
    """
    platform = model.platform
    memory, needed = platform.instance.memory_gib, COPIES * size * concurrent
    faults = []
    if memory is not None and needed > memory * GIB:
        faults.append(
            f"Triton keeps {COPIES} copies, {needed:,} bytes together, but {platform.instance_type} has "
            f"{memory * GIB:,} bytes of memory"
        )
    if volume is not None and not volume.is_unresolved():
        most = int(volume.to_bytes())
        if model.size + size * concurrent > most:
            faults.append(
                f"the model and the requests take {model.size + size * concurrent:,} bytes, but the volume has {most:,}"
            )
    if faults:
        Annotations.of(scope).add_warning_v2(
            SPACE_WARNING,
            f"{what} may get {concurrent} requests of {size:,} bytes at a time: {'; '.join(faults)}. Lower max_payload "
            "or max_concurrent_invocations_per_instance, use a larger instance, or acknowledge this if requests are "
            "smaller",
        )
