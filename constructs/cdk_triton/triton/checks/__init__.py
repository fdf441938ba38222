"""The rules about a model repository.

A rule is one function under a `@rule(...)` that carries its code, severity, title and source. It looks at a `Check` and
yields a `Problem` for everything it finds. Its code leads to its package:

| codes | package | what about |
|---|---|---|
| CT1xx | `files` | what is in a model's directory |
| CT2xx | `configuration` | what a configuration means |
| CT3xx | `ensembles` | ensembles and the models that they run |
| CT4xx, CT5xx, CT65x | `endpoint` | the container, the loader, and what an endpoint holds and passes on |
| CT6xx, CT7xx | `platform` | the release, the instance, and TensorRT's own parser |

Nothing else has to be written down anywhere: importing a module registers its rules. What several rules derive from a
repository is in `derived`, each of it worked out once per check.
"""

from __future__ import annotations

from cdk_triton.triton.checks import configuration, endpoint, ensembles, files, platform
from cdk_triton.triton.checks.engine import (
    CRASH,
    Check,
    LeftOut,
    Need,
    Problem,
    Report,
    Rule,
    documented_rules,
    per_check,
    rule,
    rule_of,
    rules,
    run_checks,
)

__all__ = [
    "CRASH",
    "Check",
    "LeftOut",
    "Need",
    "Problem",
    "Report",
    "Rule",
    "configuration",
    "documented_rules",
    "endpoint",
    "ensembles",
    "files",
    "per_check",
    "platform",
    "policies",
    "rule",
    "rule_of",
    "rules",
    "run_checks",
]
