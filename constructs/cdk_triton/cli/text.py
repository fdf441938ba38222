"""Findings for a person: by model, each with the line of the file that it is about, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import typer

from cdk_triton._wording import listed
from cdk_triton.checks import Need, paths_not_read
from cdk_triton.cli.checked import Checked
from cdk_triton.cli.terminal import bold, coloured, columns_of, cropped, fold, width
from cdk_triton.triton import Finding, ModelRepository
from cdk_triton.triton.findings import printable
from cdk_triton.triton.locations import Location, Locations

__all__ = ["explanation", "headline", "print_reports"]

_INDENT = "    "
_FIXES: Mapping[Need, str] = {
    "platform": "no serving platform given: add --platform, e.g. --platform 26.05/ml.g5.xlarge",
    "preflight": "TensorRT's own parser not used: add --preflight",
}
_CONTEXT = 120  # columns of a line of a file, where there is no terminal to ask
_MANY = 20  # findings, from which on they are counted by rule


def print_reports(found: Sequence[Checked]) -> None:
    """Print the findings and a summary of each repository, and at the end what all of them have in common."""
    for each in found:
        for line in (*_findings(each), *_summary(each), *_rehearsal(each)):
            typer.echo(line)
        if len(found) > 1:
            typer.echo()
    if len(found) > 1:
        counts = _counts([finding for each in found for finding in each.report.findings])
        typer.echo(bold(f"{len(found)} repositories: {', '.join(counts)}"))
    for line in _skipped_lines(found):
        typer.echo(line)
    first = next((finding for each in found for finding in each.report.findings), None)
    if first is not None:
        typer.echo(explanation(first.code))


def _rehearsal(checked: Checked) -> Iterator[str]:
    from cdk_triton.cli.rehearsal.text import as_lines, not_runnable

    if checked.rehearsal is None:
        yield from not_runnable(checked.repository)
    else:
        yield from as_lines(checked.name, checked.rehearsal)


def _findings(checked: Checked) -> Iterator[str]:
    locations = Locations(checked.repository)
    for heading, findings in _findings_by_model(checked.repository, checked.report.findings).items():
        yield bold(printable(heading))
        for finding in sorted(findings, key=lambda each: _sort_key(each, locations.of(each))):
            yield from _lines(checked.repository, locations, finding)
            yield ""


def headline(path: str, finding: Finding, location: Location | None) -> str:
    """A finding after `path:line:column: severity code:`, as compilers write it, so that editors find the place.

    Args:
        path: the file, as the text names it.
        finding: the finding.
        location: the place of the finding in the file; None if the finding is about the file as a whole.
    """
    where, message = path, finding.message
    if location is not None:
        where = f"{path}:{location.line}:{location.column}"
        message = message.removeprefix(f"line {location.line}, column {location.column}: ")
    what = f"{finding.field}: {message}" if finding.field else message
    return f"{where}: {finding.severity} {finding.code}: {what}"


def explanation(code: str) -> str:
    """The line of a report that names the command which explains a rule."""
    return f"{_INDENT}more about a rule: cdk-triton explain {code}"


def _findings_by_model(repository: ModelRepository, findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Those about the whole repository come first."""
    whole = "the repository"
    names = {str(model.directory): model.name for model in repository.models}
    groups: dict[str, list[Finding]] = {name: [] for name in (whole, *names.values())}
    for finding in findings:
        directory = finding.path.partition("/")[0]
        groups[names.get(directory) or names.get(".") or whole].append(finding)
    return {name: group for name, group in groups.items() if group}


def _sort_key(finding: Finding, location: Location | None) -> tuple[object, ...]:
    """Errors first, then each file from its top to its end."""
    return finding.severity, finding.path, location or (0, 0), finding.code, finding.field, finding.message


def _lines(repository: ModelRepository, locations: Locations, finding: Finding) -> Iterator[str]:
    location = locations.of(finding)
    path = str(repository.root / finding.path)
    head = fold(printable(headline(path, finding, location)), width(), hanging=_INDENT)
    yield head.replace(f" {finding.severity} ", f" {coloured(finding.severity, finding.severity)} ", 1)
    if location is not None:
        yield from _marked(locations.line(finding.path, location), location)
    yield fold(printable(finding.fix), width(), indent=_INDENT, hanging=_INDENT)


def _marked(text: str, location: Location) -> Iterator[str]:
    number = str(location.line)
    room = max((width() or _CONTEXT) - len(_INDENT) - len(number) - 3, 20)
    first = max(0, location.column - 1 - room)  # only what is near: a line may be a megabyte long
    text = text[first : location.column + room]
    text = "".join(each if each.isprintable() else " " for each in text).replace("##[", " #[")  # as wide as it was
    start = location.column - 1 - first
    cut = max(0, start - room // 2) if columns_of(text) > room else 0
    if first + cut:
        text = f"{text[:cut]}…{text[cut + 1 :]}"  # it goes on to the left
    before, marked = text[cut:start], text[start : start + location.length]
    yield f"{_INDENT}{number} | {cropped(text[cut:], room)}"
    mark = "^" * max(1, min(columns_of(marked), room - columns_of(before)))
    yield f"{_INDENT}{' ' * len(number)} | {' ' * columns_of(before)}{mark}"


def _summary(checked: Checked) -> Iterator[str]:
    repository, report, hidden = checked.repository, checked.report, checked.hidden
    models = [model for model in repository.models if model.is_recognisable] or repository.models
    parts = [_counted(len(models), "model"), *_counts(report.findings)]
    if report.acknowledged:
        parts.append(f"{len(report.acknowledged)} acknowledged")
    if hidden:
        parts.append(f"{len(hidden)} ignored")
    yield bold(fold(f"{printable(checked.name)}: {', '.join(parts)}", width(), hanging=_INDENT))
    for code in dict.fromkeys(finding.code for finding in report.acknowledged):
        reason = printable(repository.acknowledgements[code].strip())
        yield fold(f"{code} is acknowledged: {reason}", width(), indent=_INDENT, hanging=_INDENT)
    if hidden:
        by_code = Counter(f"{finding.code} ({finding.severity})" for finding in hidden)
        hidden_counts = ", ".join(f"{each} {count}" for each, count in sorted(by_code.items()))
        yield fold(f"ignored by --ignore: {hidden_counts}", width(), indent=_INDENT, hanging=_INDENT)
    for reason, paths in paths_not_read(report.not_read).items():
        yield fold(printable(f"not read: {listed(paths)} ({reason})"), width(), indent=_INDENT, hanging=_INDENT)
    if len(report.findings) > _MANY:
        most = Counter(finding.code for finding in report.findings).most_common()
        yield fold(", ".join(f"{each} {count}" for each, count in most), width(), indent=_INDENT, hanging=_INDENT)


def _counts(findings: Sequence[Finding]) -> list[str]:
    severities = Counter(finding.severity.value for finding in findings)
    counts = [_counted(severities[severity], severity) for severity in ("error", "warning") if severities[severity]]
    return counts or ["no findings"]


def _skipped_lines(found: Sequence[Checked]) -> Iterator[str]:
    skipped = {need: max(map(partial(_skipped, need), found)) for need in _FIXES}
    for need, fix in _FIXES.items():
        if skipped[need]:
            yield fold(f"{_counted(skipped[need], 'rule')} skipped, {fix}", width(), indent=_INDENT, hanging=_INDENT)


def _skipped(need: Need, checked: Checked) -> int:
    """How many rules were skipped for lack of an input that they could use."""
    models = checked.repository.models
    plans = {model.name: len(model.served_versions) for model in models if model.backend_name == "tensorrt"}
    unread = sum(each.model in plans for each in checked.report.not_read)
    if need == "preflight" and unread >= sum(plans.values()):
        return 0  # there is nothing to ask the parser
    return sum(each.requires == need for each in checked.report.skipped)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"
