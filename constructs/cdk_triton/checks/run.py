"""Runs the rules over a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from cdk_triton._arguments import FLAG, TEXT, TEXTS, listed, require_type
from cdk_triton.checks.catalogue import rules
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.not_read import not_read
from cdk_triton.checks.registry import CRASH, Need, Rule
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.platform import PLATFORM, platform_of
from cdk_triton.triton.environment import ENVIRONMENT, ContainerEnvironment
from cdk_triton.triton.findings import Finding, NotRead
from cdk_triton.triton.repository import Mode, ModelRepository

__all__ = ["Report", "SkippedRule", "check_repository", "run_rules"]


class SkippedRule(NamedTuple):
    """A rule that did not run because the user omitted an input that it requires."""

    rule: Rule
    requires: Need


@dataclass(frozen=True)
class Report:
    """The result of all rules.

    Attributes:
        findings: each finding once, errors first, then by path, code and field.
        acknowledged: the warnings that the repository's `acknowledgements` cover, in the same order.
        skipped: the rules that need a platform or a preflight that was not given. The repository may have the faults
            that they look for.
        not_read: the parts of the repository that the server would load, but that no rule has read, by path.
    """

    findings: tuple[Finding, ...]
    acknowledged: tuple[Finding, ...]
    skipped: tuple[SkippedRule, ...]
    not_read: tuple[NotRead, ...] = ()


def check_repository(
    repository: ModelRepository,
    mode: Mode = "single",
    platform: ServingPlatform | str | None = None,
    *,
    default_model: str | None = None,
    additional_models: Iterable[str] = (),
    environment: ContainerEnvironment | None = None,
    preflight: bool = False,
) -> Report:
    """Run every rule that applies; `ModelRepository.check` documents the parameters and errors."""
    for what, value, kind in (
        ("platform", platform, PLATFORM),
        ("default_model", default_model, TEXT),
        ("environment", environment, ENVIRONMENT),
    ):
        if value is not None:
            require_type(what, value, kind)
    platform = None if platform is None else platform_of(platform)
    require_type("preflight", preflight, FLAG)
    others = listed("additional_models", additional_models, TEXTS)
    return run_rules(CheckContext(repository, mode, platform, default_model, others, environment, preflight))


def run_rules(context: CheckContext) -> Report:
    """Run every rule that applies to a repository and how it will be served; see `check_repository`."""
    if context.preflight:
        from cdk_triton.tensorrt_models.reader.parser import require_parser

        require_parser()
    if is_newer_than_schema(context.platform):
        models = tuple(model.tolerant() for model in context.repository.models)
        context = replace(context, repository=replace(context.repository, models=models))
    found: set[Finding] = set()
    skipped: list[SkippedRule] = []
    for each in rules():
        if (need := each.missing(context)) is None:
            found.update(_run(each, context))
        else:
            skipped.append(SkippedRule(each, need))
    try:
        parts = not_read(context)
    except Exception as error:
        parts = ()
        found.add(_crash("the list of what no rule read", CRASH.maintainer, error))
    ordered = sorted(found, key=lambda f: (f.severity, f.path, f.code, f.field, f.message))
    acknowledgements = context.repository.acknowledgements
    return Report(
        tuple(finding for finding in ordered if finding.code not in acknowledgements),
        tuple(finding for finding in ordered if finding.code in acknowledgements),
        tuple(skipped),
        parts,
    )


def _run(each: Rule, context: CheckContext) -> Iterator[Finding]:
    """The findings of a rule; a rule that crashes is a finding itself, and the others still run."""
    try:
        if each.is_about(context):
            for problem in each.function(context):
                path = str(problem.path)
                yield Finding(each.code, each.severity, path, problem.field, problem.message, problem.fix, problem.line)
    except Exception as error:
        yield _crash(f"the rule {each.code} ({each.title})", each.maintainer, error)


def _crash(what: str, maintainer: str, error: Exception) -> Finding:
    return Finding(
        CRASH.code,
        CRASH.severity,
        ".",
        "",
        f"{what} failed with {type(error).__name__}: {error}",
        f"report this failure to {maintainer} with the repository's config.pbtxt files",
    )
