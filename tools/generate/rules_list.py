"""Codes, severities and titles of the rules: tests/checks/rules.txt, the list that shows a change of this contract."""

from __future__ import annotations

from tools.generate import Files, Generator

from cdk_triton.checks import rules

PATH = "tests/checks/rules.txt"


def _files() -> Files:
    return {PATH: "".join(f"{rule.code} {rule.severity} {rule.title}\n" for rule in rules()).encode()}


GENERATOR = Generator(_files)
