"""One repository with its report, which the commands' formats print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cdk_triton.checks import Report
    from cdk_triton.triton import Finding, ModelRepository

__all__ = ["Checked"]


class Checked(NamedTuple):
    """A repository with its report.

    Attributes:
        repository: the repository.
        report: the report, without the findings that the user hides.
        hidden: the findings that the user hides.
        construct: the path of the construct that serves the repository; "" if the user named its directory.
    """

    repository: ModelRepository
    report: Report
    hidden: Sequence[Finding] = ()
    construct: str = ""

    @property
    def name(self) -> str:
        """The repository as the text names it."""
        root = str(self.repository.root)
        return f"{self.construct} ({root})" if self.construct else root
