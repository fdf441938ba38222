"""Makes the synthesis fail where something needs a publisher, which may be added after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jsii
from constructs import IConstruct, IValidation

if TYPE_CHECKING:
    from cdk_triton.hosting.models.multi_model import TritonMultiModel

__all__ = ["require_publisher"]


def require_publisher(construct: IConstruct, models: Sequence[TritonMultiModel], sentence: str) -> None:
    """Let the synthesis fail with a sentence if none of the models has a publisher by then."""
    construct.node.add_validation(_NeedsPublisher(models, sentence))


@jsii.implements(IValidation)
class _NeedsPublisher:
    def __init__(self, models: Sequence[TritonMultiModel], sentence: str) -> None:
        self._models, self._sentence = models, sentence

    def validate(self) -> list[str]:
        return [] if any(model._has_publisher for model in self._models) else [self._sentence]
