"""One repository with its report, which the commands' formats print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cdk_triton.checks import Report
    from cdk_triton.cli.rehearsal.running import Rehearsed
    from cdk_triton.triton import Finding, ModelRepository

__all__ = ["Checked"]


class Checked(NamedTuple):
    """A repository with its report.

    Attributes:
        repository: the repository.
        report: the report, without the findings that the user hides.
        hidden: the findings that the user hides.
        construct: the path of the construct that serves the repository; "" if the user named its directory.
        rehearsal: how its rehearsal went, if it was rehearsed.
    """

    repository: ModelRepository
    report: Report
    hidden: Sequence[Finding] = ()
    construct: str = ""
    rehearsal: Rehearsed | None = None

    def is_rejected(self, *, strict: bool = False) -> bool:
        """Whether a finding or the rehearsal speaks against a deployment; with `strict`, warnings count, too."""
        from cdk_triton.triton import Severity

        failed = self.rehearsal is not None and self.rehearsal.reason is not None
        return failed or any(strict or each.severity is Severity.ERROR for each in self.report.findings)

    @property
    def name(self) -> str:
        """The repository as the text names it."""
        root = str(self.repository.root)
        return f"{self.construct} ({root})" if self.construct else root
