"""The page of all rules, docs/rules.md, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tools.generate import Files, Generator

from cdk_triton.checks import Rule, documented_rules

PAGE = "docs/rules.md"
GROUPS = {
    "CT0": "The checks themselves",
    "CT1": "A model's files",
    "CT2": "What a configuration means",
    "CT3": "Ensembles",
    "CT4": "A single-model container",
    "CT5": "A multi-model endpoint",
    "CT6": "The platform, and SageMaker's limits",
    "CT7": "TensorRT's own parser",
}
HEAD = """\
<!-- written by `make generate` -->
# The rules

What `cdk-triton validate` and the constructs look for. A rule that is an **error** tells of something that the server
or SageMaker would refuse, or would serve otherwise than meant; a **warning** tells of something that may work, and can
be [acknowledged](cli.md#acknowledging-a-warning). Codes are stable: none is ever reused.

Every example below is a small repository, file by file, and is checked by the tests: the first has the finding, the
second has none. Files that a rule is not about, such as weights, are left out. *Instead* has only the files that
differ. An `.onnx` file is written in ONNX's text form.
"""
KNOWN_LIMITS = """\
## What the checks do not know

They read files, tables and literals; they run no model. So they do not know how much GPU memory a model takes, what is
in a plan (but for its header), what a backend of your own asks for, which models a Python model calls by name (BLS), or
whether numbers mean what they should. What a release adds after the schema that they read is let pass.
[What is not verified](not_verified.md) says what no test has seen.

What single rules do not see:
"""


def page(rules: Iterable[Rule]) -> str:
    """The page's whole text."""
    rules = tuple(rules)
    parts = [HEAD, _index(rules)]
    for prefix, group in groupby(rules, key=lambda rule: rule.code[:3]):
        parts.append(f"## {GROUPS[prefix]}\n")
        parts.extend(map(_section, group))
    parts.append(_limits(rules))
    return "\n".join(parts)


def _index(rules: Iterable[Rule]) -> str:
    rows = [f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {rule.title} |" for rule in rules]
    return "\n".join(["| code | severity | the fault |", "|---|---|---|", *rows, ""])


def _section(rule: Rule) -> str:
    source = f" [Source]({rule.source})." if rule.source else ""
    head = f"### {rule.code}\n\n**{rule.title}** · {rule.severity} · {rule.condition}{source}"
    return f"{head}\n\n{rule.documentation.markdown()}\n"


def _limits(rules: Iterable[Rule]) -> str:
    limits = [(rule, " ".join(rule.documentation.limits.split())) for rule in rules if rule.documentation.limits]
    return "\n".join([KNOWN_LIMITS, *(f"* [{rule.code}](#{rule.code.lower()}): {text}" for rule, text in limits), ""])


def _files() -> Files:
    return {PAGE: page(documented_rules()).encode()}


GENERATOR = Generator(_files)
