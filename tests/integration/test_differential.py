"""Generated repositories before the checks and before the real server: both have to agree.

pytest tests/integration/test_differential.py                         a fixed few hundred, in half a minute
pytest tests/integration/test_differential.py --repositories 10000    other ones each time, with a table
pytest tests/integration/test_differential.py --server FOLDER --release 26.05    a server of your own as judge
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cdk_triton.checks import rule_of
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelConfig, Severity
from cdk_triton.triton.releases import is_at_least
from judging.comparison import STRICTER_THAN_THE_JUDGE, Tally, compare
from judging.drafts import OUR_RELEASE, Draft
from judging.ensembles import valid_repositories
from judging.mutations import NEWER_FIELDS, changed_repositories
from judging.server import Judge
from sample_repositories import platform_with

pytestmark = pytest.mark.timeout(7200)

NEAREST = ServingPlatform(release="24.09", instance_type="ml.g5.12xlarge")
"""What SageMaker has that is next to our own server, 24.10; with several GPUs."""


@pytest.fixture
def release(pytestconfig: pytest.Config) -> str:
    """The release of the judge."""
    return str(pytestconfig.getoption("release", default=None) or OUR_RELEASE)


@pytest.fixture
def platform(pytestconfig: pytest.Config) -> ServingPlatform | None:
    """The platform that the checks get beside a server of somebody's own."""
    release = pytestconfig.getoption("release", default=None)
    return None if release is None else platform_with(str(release), "ml.g5.12xlarge")


def seeded(count: int, *, fixed: bool) -> settings:
    return settings(
        max_examples=count,
        derandomize=fixed,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def test_what_the_judge_cannot_confirm_are_errors_that_exist() -> None:
    for key in STRICTER_THAN_THE_JUDGE:
        found = rule_of(key.split()[0])
        assert found is not None, key
        assert found.severity is Severity.ERROR, key


@pytest.mark.parametrize("name", sorted(NEWER_FIELDS))
def test_the_judge_knows_the_newer_fields_from_their_release_on(
    judge: Judge, release: str, tmp_path: Path, name: str
) -> None:
    """Before, they are left out of what is changed; their releases are the subject of CT103."""
    message, field = name.removeprefix("inference.").split(".")
    text = f"ensemble_scheduling {{ {field}: 1 }}" if message == "ModelEnsembling" else f"{field} {{ }}"
    Draft("model", texts={"model": text.encode()}, configs={"model": ModelConfig()}).write(tmp_path)
    verdict = judge(tmp_path, ["model"])
    is_unknown = f'"inference.{message}" has no field named "{field}"' in verdict.said
    assert is_unknown is not is_at_least(release, NEWER_FIELDS[name])


def test_no_false_alarm_on_valid_repositories(
    judge: Judge,
    release: str,
    platform: ServingPlatform | None,
    repositories: int | None,
    table: Tally,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("valid")

    @seeded((repositories or 300) // 4, fixed=repositories is None)
    @given(valid_repositories(release))
    def run(draft: Draft) -> None:
        comparison = compare(draft, directory, judge, platform)
        table.add(comparison)
        findings = comparison.repository.check(platform=platform or NEAREST, default_model=draft.entry)
        errors = [finding for finding in (*comparison.findings, *findings) if finding.severity == "error"]
        assert (comparison.verdict.loaded, errors) == (True, []), f"\n{comparison}"

    run()


def test_the_checks_and_the_server_agree_on_changed_repositories(
    judge: Judge,
    release: str,
    platform: ServingPlatform | None,
    repositories: int | None,
    table: Tally,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("changed")

    @seeded(repositories or 300, fixed=repositories is None)
    @given(changed_repositories(release))
    def run(draft: Draft) -> None:
        comparison = compare(draft, directory, judge, platform)
        table.add(comparison)
        assert comparison.disagreement is None, f"\n{comparison}"

    run()
