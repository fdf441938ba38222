"""Reports findings of the checks through the CDK.

Errors become validation errors of the construct: `cdk synth` prints each with its construct path and exits 1. Below a
nested `Stage`, which plain `cdk synth` does not select, the command would exit 0; there, the errors also go through the
construct tree's own validation, which stops the synthesis itself. Warnings have the finding's code, so that
`Annotations.of(construct).acknowledge_warning("CT112")` silences them. Findings that the repository itself acknowledges
are not reported here. What no rule has read is an info message for each repository, or one for all if there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import jsii
from aws_cdk import Annotations, Stage, Validations
from constructs import IConstruct, IValidation

from cdk_triton._wording import listed
from cdk_triton.triton import Finding, Severity
from cdk_triton.triton.findings import NotRead, joined, paths_not_read, printable

__all__ = ["report", "report_errors", "report_late_error", "report_not_read"]

NOT_READ = "cdk-triton:NotRead"

_MOST_MESSAGES: Final = 10
"""Repositories of a construct that get a message each about what is not read. A thousand would hide the warnings."""


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


def report_not_read(construct: IConstruct, found: Mapping[str, Sequence[NotRead]]) -> None:
    """Attach info messages about the parts of repositories that no rule read.

    Args:
        construct: the construct that has the repositories.
        found: the parts of each repository, by its name as in `report`.
    """
    unread = {what: parts for what, parts in found.items() if parts}
    sentences = [f"{what}: not read by the checks: {_kinds(parts)}" for what, parts in unread.items()]
    if len(unread) > _MOST_MESSAGES:
        reasons = listed(list(paths_not_read(part for parts in unread.values() for part in parts)))
        sentences = [
            f"the checks did not read parts of {len(unread):,} repositories ({reasons}), which `cdk-triton validate` "
            f"lists; the first is {sentences[0]}"
        ]
    for sentence in sentences:
        Annotations.of(construct).add_info_v2(NOT_READ, printable(sentence))


def _kinds(parts: Sequence[NotRead]) -> str:
    return "; ".join(f"{listed(paths)} ({reason})" for reason, paths in paths_not_read(parts).items())


def report_errors(construct: IConstruct, errors: Sequence[tuple[str, str]]) -> bool:
    """Attach errors to a construct, each a code and a sentence; True without errors."""
    for code, sentence in errors:
        Validations.of(construct).add_error(code, sentence)
    if errors and _is_nested(construct):
        construct.node.add_validation(_Validation(lambda: [f"{code}: {sentence}" for code, sentence in errors]))
    return not errors


def report_late_error(construct: IConstruct, code: str, sentence: str, holds: Callable[[], bool]) -> None:
    """Attach an error unless a condition holds at the end of the app, when nothing can be added any more.

    The error stays if the app changes after its first synthesis.
    """

    def errors() -> list[str]:
        if holds():
            return []
        if _is_nested(construct):
            return [f"{code}: {sentence}"]
        Validations.of(construct).add_error(code, sentence)
        return []

    construct.node.add_validation(_Validation(errors))


def _is_nested(construct: IConstruct) -> bool:
    """Whether the construct is below a nested stage."""
    return Stage.of(construct) is not construct.node.root


def _sentence(finding: Finding, what: str) -> str:
    # "." is the repository itself, which `what` has named.
    where = " ".join(part for part in (finding.path, finding.field) if part not in ("", "."))
    return printable(": ".join(part for part in (what, where, joined(finding.message, finding.fix)) if part))


@jsii.implements(IValidation)
class _Validation:
    def __init__(self, errors: Callable[[], list[str]]) -> None:
        self._errors = errors

    def validate(self) -> list[str]:
        return self._errors()
