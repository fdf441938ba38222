"""Findings as SARIF 2.1.0, from which code scanning annotates pull requests.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. GitHub's use of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cdk_triton.checks import NotRead, Rule, rule_of
from cdk_triton.cli.checked import Checked
from cdk_triton.triton import Finding, ModelRepository
from cdk_triton.triton.findings import joined, printable
from cdk_triton.triton.locations import Locations
from cdk_triton.triton.model import CONFIG_NAME

__all__ = ["MAX_RUNS", "failed_log", "sarif_log"]

MAX_RUNS = 20
"""GitHub rejects a file with more runs:
https://docs.github.com/en/code-security/code-scanning/troubleshooting-sarif-uploads/results-exceed-limit
"""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The base of addresses: the checkout, or the model repository if it is not in a checkout.
_CHECKOUT = "%SRCROOT%"
_REPOSITORY = "REPOSITORY"


def sarif_log(found: Sequence[Checked]) -> dict[str, Any]:
    """A SARIF log with a run for each repository: the findings, their rules, which did not run, and what none read.

    What did not happen is a notification of the invocation (sections 3.20.21 and 3.20.22). It is not a result with the
    kind `notApplicable`, because GitHub's list of the properties of a result that it reads has no `kind`.

    The log omits acknowledged findings, because GitHub opens an alert even for a suppressed result.
    """
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(each) for each in found]}


def _run(checked: Checked) -> dict[str, Any]:
    report = checked.report
    codes = sorted({finding.code for finding in report.findings})
    places = _SarifPlaces(checked.repository)
    served_by = f"{checked.construct}/" if checked.construct else ""
    return {
        "tool": _tool([_rule(rule_of(code)) for code in codes]),
        "automationDetails": {"id": f"cdk-triton/{places.name}/{served_by}"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolConfigurationNotifications": [_skipped(each.rule) for each in report.skipped],
                "toolExecutionNotifications": [_not_read(each, places) for each in report.not_read],
            }
        ],
        "originalUriBaseIds": {places.base: {"uri": f"{places.top.as_uri()}/"}},
        "results": list(_results(report.findings, codes, places)),
    }


def failed_log(reason: str) -> dict[str, Any]:
    """A SARIF log of a run that could not check anything, with the reason."""
    invocation = {
        "executionSuccessful": False,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": printable(reason)}}],
    }
    run: dict[str, Any] = {"tool": _tool([]), "invocations": [invocation], "results": []}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _tool(rules: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"driver": {"name": "cdk-triton", "semanticVersion": version("cdk-triton"), "rules": list(rules)}}


def _rule(rule: Rule) -> dict[str, Any]:
    text = rule.documentation.markdown()
    described = {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.documentation.summary},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": ["triton"], "problem.severity": rule.severity.value},
    }
    return {**described, "helpUri": rule.source} if rule.source else described


def _skipped(rule: Rule) -> dict[str, Any]:
    return {
        "associatedRule": {"id": rule.code},
        "level": "note",
        "message": {"text": f"{rule.code} ({rule.title}) was skipped. {rule.condition}"},
    }


def _not_read(part: NotRead, places: _SarifPlaces) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": printable(f"{part.path} was not read: {part.reason}")},
        "locations": [{"physicalLocation": {"artifactLocation": places.address(part.path)}}],
    }


class _SarifPlaces:
    def __init__(self, repository: ModelRepository) -> None:
        root, here = repository.root.resolve(), Path.cwd()
        # Code scanning knows files as the checkout does, wherever in it the command runs.
        checkout = next((each for each in (root, *root.parents) if (each / ".git").exists()), None)
        inside = checkout or (here if root.is_relative_to(here) else None)
        self.base = _CHECKOUT if inside else _REPOSITORY
        self.top = inside or root
        self.name = root.name if root == self.top else root.relative_to(self.top).as_posix()
        self._root = root
        self._files = {str(file.path) for file in repository.files}
        self._first = next((str(model.config_path) for model in repository.models if model.config_text), None)
        self._locations = Locations(repository)

    def of(self, finding: Finding) -> dict[str, Any]:
        place = self._locations.of(finding)
        region = {"startLine": 1}
        if place is not None:
            column = place.column
            region = {"startLine": place.line, "startColumn": column, "endColumn": column + place.length}
        return {"physicalLocation": {"artifactLocation": self.address(finding.path), "region": region}}

    def address(self, path: str) -> dict[str, str]:
        """The file as the checkout knows it; for a directory, its configuration."""
        # A directory cannot be annotated, but the configuration of its model can, or of the first one.
        file = path
        if path not in self._files:
            config = str(Path(path.partition("/")[0]) / CONFIG_NAME)
            file = config if config in self._files else self._first or path
        return {"uri": quote((self._root / file).relative_to(self.top).as_posix()), "uriBaseId": self.base}


def _results(findings: Sequence[Finding], codes: Sequence[str], places: _SarifPlaces) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for finding in findings:
        # Neither the line nor the words take part: an alert stays the same one when the file grows above it.
        fault = hashlib.sha256(f"{finding.code} {finding.path} {finding.field}".encode()).hexdigest()[:16]
        seen[fault] += 1
        yield {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.severity.value,
            "message": {"text": _message(finding)},
            "locations": [places.of(finding)],
            "partialFingerprints": {"primaryLocationLineHash": f"{fault}:{seen[fault]}"},
        }


def _message(finding: Finding) -> str:
    where = " ".join(part for part in (finding.path, finding.field) if part not in ("", "."))
    return ": ".join(part for part in (where, joined(finding.message, finding.fix)) if part)
