"""Reports an error where something needs a publisher, which may be added after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from constructs import IConstruct

from cdk_triton.hosting.naming.findings import report_late_error

if TYPE_CHECKING:
    from cdk_triton.hosting.models.multi_model import TritonMultiModel

__all__ = ["require_publisher"]

PUBLISHER_ERROR = "cdk-triton:NoPublisher"


def require_publisher(construct: IConstruct, models: Sequence[TritonMultiModel], sentence: str) -> None:
    """Report an error if none of the models has a publisher by then."""
    report_late_error(construct, PUBLISHER_ERROR, sentence, lambda: any(model._has_publisher for model in models))
