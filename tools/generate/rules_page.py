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
    "CT2": "The meaning of a configuration",
    "CT3": "Ensembles",
    "CT4": "A single-model container",
    "CT5": "A multi-model endpoint",
    "CT6": "The platform, and SageMaker's limits",
    "CT7": "TensorRT's own parser",
}
HEAD = """\
<!-- written by `make generate` -->
# The rules

`cdk-triton validate` and the constructs look for these faults. The server or SageMaker would reject a repository with
an **error**, or would serve it in another way than you intend. A **warning** may work, and you can
[acknowledge](cli.md#acknowledging-a-warning) it. Codes are stable: a code is never used again.
[Codes of the constructs](construct_codes.md) lists the codes that begin with `cdk-triton:`.

Each example below is a small repository, file by file. The tests check it: the first version has the finding, the
second does not. Files that a rule does not read, such as weights, are omitted. *Instead* has only the files that
differ. An `.onnx` file is written in ONNX's text form.
"""
KNOWN_LIMITS = """\
## Limits of the checks

The checks read files, tables and literals. They do not run a model. So they do not find out:

* how much GPU memory a model takes;
* the contents of a TensorRT plan, except its header;
* the requirements of a backend of your own;
* the models that a Python model calls by name (BLS);
* whether numbers mean what they should.

They accept every field that a release adds after the schema that they read. [Not verified on AWS](not_verified.md)
lists what no test has seen.

These are the limits of single rules:
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
