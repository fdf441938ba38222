"""What constructs want to know of a repository: what the checks find, and its keys."""

from __future__ import annotations

from typing import NamedTuple

from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, ModelRepository, Severity

__all__ = ["CheckedRepository", "Keys", "check_cached"]

_QUESTION = "checks 1"  # the number is raised when `answer` gets other members, so that older answers are not read


class Keys(NamedTuple):
    """What names an artifact of a repository without recipes.

    Attributes:
        source: SHA-256 over the repository, whatever serves it.
        artifact: SHA-256 over everything that determines what is delivered.
    """

    source: str
    artifact: str


class CheckedRepository(NamedTuple):
    """What constructs want to know of a repository.

    Attributes:
        findings: what `ModelRepository.check` found.
        backends: the backends of its models.
        entry_model: the name of the model that callers talk to; None where the repository leaves it open.
        keys: None where it has recipes, whose artifact another key names.
    """

    findings: tuple[Finding, ...]
    backends: frozenset[str]
    entry_model: str | None
    keys: Keys | None


def check_cached(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool = False,
) -> CheckedRepository:
    """`ModelRepository.check` and the keys, from memory if nothing has changed.

    Args:
        repository: the repository.
        mode: how an endpoint serves it.
        platform: what serves it.
        environment: the container's settings.
        uncompressed: whether its files are served as they are, which makes another artifact key.

    Raises:
        ArchiveError: a file cannot be read or is written to at this moment.
        ConfigurationError: a path contains a CDK token.
    """
    single = mode == "single"

    def answer() -> dict[str, object]:
        findings = repository.check(
            mode,
            platform,
            default_model=environment.default_model_name if single else None,
            additional_models=environment.additional_models if single else (),
            environment=environment,
        )
        entry = repository.entry_model(mode)
        return {
            "findings": [{name: getattr(finding, name) for name in Finding.__match_args__} for finding in findings],
            "backends": sorted({model.backend_name for model in repository.models if model.backend_name is not None}),
            "entry_model": None if entry is None else entry.name,
            "keys": None
            if repository.recipes
            else [source_key(repository), artifact_key(repository, platform, uncompressed=uncompressed)],
        }

    found = cached_answer([repository], [_QUESTION, mode, platform, environment, uncompressed], answer)
    findings = tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in found["findings"])
    keys = None if found["keys"] is None else Keys(*found["keys"])
    return CheckedRepository(findings, frozenset(found["backends"]), found["entry_model"], keys)
