"""The rules about a model repository: what Triton, TensorRT or SageMaker would reject.

A rule is one function under `@rule(...)`, which takes the rule's code, severity, title and source. The function
looks at a `CheckContext` and yields a `Problem` for each fault that it finds. Rules about one kind of model lie beside
the reader of its files: `python_models.rules`, `onnx_models.rules`, `tensorrt_models.rules`, `pytorch_models.rules`,
`tree_models.rules`, `dali_models.rules`. The others are here, by subject, and a code begins with the digit of its
subject:

| codes | package | subject |
|---|---|---|
| CT1xx | `files`, and the kinds of models | what is in a model's directory |
| CT2xx | `configuration` | what a configuration means |
| CT3xx | `ensembles` | ensembles and the models that they run |
| CT4xx, CT5xx, CT65x | `endpoint` | the container, the loader, and what an endpoint holds and passes on |
| CT6xx | `serving` | the serving platform: release and instance |
| CT7xx | `tensorrt_models.rules` | the networks of plans, and TensorRT's own parser |
| CT81x, CT82x | `tree_models.rules` | the parameters of the backend `fil`, and the files of tree models |
| CT84x to CT86x | `pytorch_models.rules` | models of PyTorch |
| CT87x | `dali_models.rules` | pipelines of DALI |
| X… | none | rules of other distributions, see `own_rules` |

A new rule is written in one place: `catalogue` imports every module. Values that several rules derive from a
repository are in `derived`, or beside the reader of their kind; `per_check` computes each of them once per check.

Public are the names for rules of one's own, which docs/stability.md lists; the rest is internal. The names below are
imported when they are first used: an app whose answers are cached loads no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton.checks.acknowledgements import acknowledgements_of
    from cdk_triton.checks.catalogue import documented_rules, rule_of, rules
    from cdk_triton.checks.context import CheckContext, per_check
    from cdk_triton.checks.registry import CRASH, UNREADABLE, Need, Problem, Rule, rule
    from cdk_triton.checks.run import Report, SkippedRule, check_repository
    from cdk_triton.triton.findings import Finding, NotRead, Severity, paths_not_read

__all__ = [
    "CRASH",
    "UNREADABLE",
    "CheckContext",
    "Finding",
    "Need",
    "NotRead",
    "Problem",
    "Report",
    "Rule",
    "Severity",
    "SkippedRule",
    "acknowledgements_of",
    "check_repository",
    "documented_rules",
    "paths_not_read",
    "per_check",
    "rule",
    "rule_of",
    "rules",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
