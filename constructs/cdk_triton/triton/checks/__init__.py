"""The rules about a model repository.

A rule is one function in one of the modules below, under a `@rule(...)` that carries its code, severity, title and
source. It looks at a `Check` and yields a `Problem` for everything it finds. Nothing else has to be written down
anywhere: the modules are imported here, and importing one registers its rules.
"""

from __future__ import annotations

from cdk_triton.triton.checks import (
    batch_tensors,
    batching,
    configurations,
    ensemble_connections,
    ensemble_structure,
    ensembles,
    gpus,
    instances,
    loader_releases,
    model_files,
    model_options,
    multi_model,
    payloads,
    platforms,
    policies,
    preflight,
    sequence_states,
    sequences,
    single_model,
    tensor_support,
    tensors,
    version_directories,
    warm_up,
)
from cdk_triton.triton.checks.engine import (
    CRASH,
    Check,
    Problem,
    Report,
    Rule,
    documented_rules,
    rule,
    rule_of,
    rules,
    run_checks,
)

__all__ = [
    "CRASH",
    "Check",
    "Problem",
    "Report",
    "Rule",
    "batch_tensors",
    "batching",
    "configurations",
    "documented_rules",
    "ensemble_connections",
    "ensemble_structure",
    "ensembles",
    "gpus",
    "instances",
    "loader_releases",
    "model_files",
    "model_options",
    "multi_model",
    "payloads",
    "platforms",
    "policies",
    "preflight",
    "rule",
    "rule_of",
    "rules",
    "run_checks",
    "sequence_states",
    "sequences",
    "single_model",
    "tensor_support",
    "tensors",
    "version_directories",
    "warm_up",
]
