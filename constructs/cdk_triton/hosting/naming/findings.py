"""Reports findings of the checks through the CDK.

Errors become validation errors of the construct: `cdk synth` prints each with its construct path and exits 1. Below a
nested `Stage`, which plain `cdk synth` does not select, the command would exit 0; there, the errors also go through the
construct tree's own validation, which stops the synthesis itself. Warnings have the finding's code, so that
`Annotations.of(construct).acknowledge_warning("CT112")` silences them. Findings that the repository itself acknowledges
are not reported here. The parts of a repository that no rule has read are in one annotation of the level `info`, which
`--strict` ignores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jsii
from aws_cdk import Annotations, Stage, Validations
from constructs import IConstruct, IValidation

from cdk_triton._wording import listed
from cdk_triton.checks import NotRead, paths_not_read
from cdk_triton.triton import Finding, Severity
from cdk_triton.triton.findings import joined, printable

__all__ = ["report", "report_errors", "report_not_read"]

NOT_READ = "cdk-triton:NotRead"


def report(construct: IConstruct, findings: Iterable[Finding], *, what: str) -> bool:
    """Attach findings to a construct.

    Args:
        construct: the construct that the findings are about.
        findings: what `ModelRepository.check` returned.
        what: the repository, as the user names it; each message begins with it.

    Returns:
        Whether the construct can be deployed: none of the findings is an error.
    """
    errors = []
    for finding in findings:
        if finding.severity is Severity.ERROR:
            errors.append((finding.code, _sentence(finding, what)))
        else:
            Annotations.of(construct).add_warning_v2(finding.code, _sentence(finding, what))
    return report_errors(construct, errors)


def report_not_read(construct: IConstruct, parts: Sequence[NotRead], *, what: str) -> None:
    """Attach an information about the parts of a repository that no rule read; nothing if there are none."""
    if parts:
        kinds = "; ".join(f"{listed(paths)} ({reason})" for reason, paths in paths_not_read(parts).items())
        Annotations.of(construct).add_info_v2(NOT_READ, printable(f"{what}: not read by the checks: {kinds}"))


def report_errors(construct: IConstruct, errors: Sequence[tuple[str, str]]) -> bool:
    """Attach errors to a construct, each a code and a sentence; True without errors."""
    for code, sentence in errors:
        Validations.of(construct).add_error(code, sentence)
    if errors and Stage.of(construct) is not construct.node.root:
        construct.node.add_validation(_Errors([f"{code}: {sentence}" for code, sentence in errors]))
    return not errors


def _sentence(finding: Finding, what: str) -> str:
    # "." is the repository itself, which `what` has named.
    where = " ".join(part for part in (finding.path, finding.field) if part not in ("", "."))
    return printable(": ".join(part for part in (what, where, joined(finding.message, finding.fix)) if part))


@jsii.implements(IValidation)
class _Errors:
    def __init__(self, messages: list[str]) -> None:
        self._messages = messages

    def validate(self) -> list[str]:
        return self._messages
