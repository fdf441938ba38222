"""What the checks find, as constructs report it."""

from __future__ import annotations

from dataclasses import dataclass

from cdk_triton.hosting.models.remembered import remembered
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, ModelRepository, Platform, Severity

__all__ = ["Checked", "check"]


@dataclass(frozen=True)
class Checked:
    """What constructs want to know of a repository.

    Attributes:
        findings: what `ModelRepository.check` found.
        backends: the backends of its models.
        entry_model: the name of the model that callers talk to; None where the repository leaves it open.
    """

    findings: tuple[Finding, ...]
    backends: frozenset[str]
    entry_model: str | None


def check(repository: ModelRepository, mode: Mode, platform: Platform, environment: ContainerEnvironment) -> Checked:
    """`ModelRepository.check`, from memory if nothing has changed."""
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
        }

    found = remembered([repository], ["checks", mode, platform, environment], answer)
    findings = tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in found["findings"])
    return Checked(findings, frozenset(found["backends"]), found["entry_model"])
