"""What the checks find, as constructs report it."""

from __future__ import annotations

from cdk_triton.hosting.remembered import remembered
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, ModelRepository, Platform, Severity

__all__ = ["check"]


def check(
    repository: ModelRepository, mode: Mode, platform: Platform, environment: ContainerEnvironment
) -> tuple[Finding, ...]:
    """`ModelRepository.check`, from memory if nothing has changed."""
    single = mode == "single"

    def rows() -> list[dict[str, object]]:
        findings = repository.check(
            mode,
            platform,
            default_model=environment.default_model_name if single else None,
            additional_models=environment.additional_models if single else (),
            environment=environment,
        )
        return [{name: getattr(finding, name) for name in Finding.__match_args__} for finding in findings]

    found = remembered([repository], ["findings", mode, platform, environment], rows)
    return tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in found)
