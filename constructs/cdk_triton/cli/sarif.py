"""Findings as SARIF 2.1.0, from which code scanning annotates pull requests.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. What GitHub makes of it:
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

from cdk_triton.triton import Finding, ModelRepository
from cdk_triton.triton.checks import Report, Rule, rule_of
from cdk_triton.triton.locations import Locations
from cdk_triton.triton.repository import CONFIG_NAME

__all__ = ["sarif_log"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE = "REPOSITORY"  # what addresses are relative to, where the repository is not below the working directory


def sarif_log(repository: ModelRepository, report: Report) -> dict[str, Any]:
    """A SARIF log with one run: the findings, the acknowledged ones as suppressed, and the rules of both."""
    findings = [*report.findings, *report.acknowledged]
    codes = sorted({finding.code for finding in findings})
    places = _Places(repository)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "cdk-triton",
                "semanticVersion": version("cdk-triton"),
                "rules": [_rule(rule_of(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": list(_results(repository, findings, codes, places)),
    }
    if places.prefix is None:
        run["originalUriBaseIds"] = {_BASE: {"uri": f"{repository.root.resolve().as_uri()}/"}}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


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


class _Places:
    """Where findings are, as SARIF says it."""

    def __init__(self, repository: ModelRepository) -> None:
        root, here = repository.root.resolve(), Path.cwd()
        # As seen from the working directory, which in CI is the checkout.
        self.prefix = root.relative_to(here) if root.is_relative_to(here) else None
        self._files = {str(file.path) for file in repository.files}
        self._locations = Locations(repository)

    def of(self, finding: Finding) -> dict[str, Any]:
        place = self._locations.of(finding)
        region = {"startLine": 1}
        if place is not None:
            column = place.column
            region = {"startLine": place.line, "startColumn": column, "endColumn": column + place.length}
        return {"physicalLocation": {"artifactLocation": self._address(finding.path), "region": region}}

    def _address(self, path: str) -> dict[str, str]:
        # A directory cannot be annotated, but the configuration of its model can.
        config = str(Path(path.partition("/")[0]) / CONFIG_NAME)
        file = config if path not in self._files and config in self._files else path
        if self.prefix is None:
            return {"uri": quote(file), "uriBaseId": _BASE}
        return {"uri": quote((self.prefix / file).as_posix())}


def _results(
    repository: ModelRepository, findings: Sequence[Finding], codes: Sequence[str], places: _Places
) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for finding in findings:
        # Neither the line nor the words take part: an alert stays the same one when the file grows above it.
        fault = hashlib.sha256(f"{finding.code} {finding.path} {finding.field}".encode()).hexdigest()[:16]
        seen[fault] += 1
        result = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.severity.value,
            "message": {"text": _message(finding)},
            "locations": [places.of(finding)],
            "partialFingerprints": {"primaryLocationLineHash": f"{fault}:{seen[fault]}"},
        }
        if reason := repository.acknowledgements.get(finding.code):
            result["suppressions"] = [{"kind": "external", "justification": reason}]
        yield result


def _message(finding: Finding) -> str:
    where = " ".join(part for part in (finding.path, finding.field) if part not in ("", "."))
    return ": ".join(part for part in (where, f"{finding.message}; {finding.mend}") if part)
