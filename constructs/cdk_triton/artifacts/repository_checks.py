"""The findings and the keys of a repository, as constructs and `cdk-triton fleet` need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cdk_triton.artifacts.keys import repository_keys
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, ModelRepository, Severity
from cdk_triton.triton.server_options import loaded_models

__all__ = ["CheckedRepository", "Keys", "check_cached", "check_repository", "findings_of", "rows_of"]

_QUESTION = "checks 2"
"""The number is raised when `check_repository` returns other members, so that older answers are not read."""


class Keys(NamedTuple):
    """The keys that name an artifact of a repository without recipes.

    Attributes:
        source: SHA-256 over the repository, independent of the platform.
        artifact: SHA-256 over everything that determines the delivered files.
    """

    source: str
    artifact: str


class CheckedRepository(NamedTuple):
    """The findings of a repository and what follows from its files.

    Attributes:
        findings: the findings of `ModelRepository.check`.
        backends: the backend of each model, by the model's name; empty if no configuration has it.
        entry_model: the name of the model that callers invoke; None if the repository leaves it open.
        keys: None if the repository has recipes, whose artifact another key names.
    """

    findings: tuple[Finding, ...]
    backends: Mapping[str, str]
    entry_model: str | None
    keys: Keys | None

    @property
    def inner_models(self) -> Mapping[str, str]:
        """The backends of the models that callers do not invoke, by the model's name."""
        return {name: backend for name, backend in self.backends.items() if name != self.entry_model}


def check_cached(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool = False,
) -> CheckedRepository:
    """`ModelRepository.check` and the keys, from the cache if nothing has changed.

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
    found = cached_answer(
        [repository],
        [_QUESTION, mode, platform, environment, uncompressed],
        lambda: check_repository(repository, mode, platform, environment, uncompressed=uncompressed),
    )
    keys = None if found["keys"] is None else Keys(*found["keys"])
    return CheckedRepository(findings_of(found["findings"]), found["backends"], found["entry_model"], keys)


def check_repository(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool = False,
) -> dict[str, Any]:
    """The members of a `CheckedRepository`, as JSON values; the arguments are those of `check_cached`.

    Raises:
        ArchiveError: a file cannot be read or is written to at this moment.
        ConfigurationError: a path contains a CDK token.
    """
    single = mode == "single"
    named = [*environment.additional_models, *loaded_models(environment.additional_args)]
    findings = repository.check(
        mode,
        platform,
        default_model=environment.default_model_name if single else None,
        additional_models=named if single else (),
        environment=environment,
    )
    entry = repository.entry_model(mode)
    return {
        "findings": rows_of(findings),
        "backends": {model.name: model.backend_name or "" for model in repository.models},
        "entry_model": None if entry is None else entry.name,
        "keys": None if repository.recipes else list(repository_keys(repository, platform, uncompressed=uncompressed)),
    }


def rows_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as JSON values."""
    return [{name: getattr(finding, name) for name in Finding.__match_args__} for finding in findings]


def findings_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """The findings of `rows_of`."""
    return tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in rows)
