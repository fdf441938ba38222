"""Compares the account's quotas with the builds that a deployment or a publisher of the app may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cdk_triton.artifacts.served_repositories import SERVED_METADATA, gpu_minutes
from cdk_triton.cli.artifacts.assembly import read_metadata, read_plans, read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.endpoints import of_type
from cdk_triton.cli.doctor.publishers import publisher_descriptions
from cdk_triton.cli.doctor.quotas import CODEBUILD_GPU, Quota, processing_usage, quotas, request_of, unlisted
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.plan import BuildMachine, StackPlan
from cdk_triton.protocol.publisher import DeclaredBuilds

__all__ = ["MINUTES", "SUBJECT", "builds", "minutes"]

SUBJECT = "builds of the app"
MINUTES = "GPU minutes of the app"


def builds(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the quota of each kind of machine with the builds that one stack may start at the same time.

    A publisher with recipes runs up to `max_builds` at once.

    A model with recipes or golden requests is one build, and CloudFormation deploys the models of a stack side by side.
    Models that need the same archives, such as instance pools of one GPU, share a build. The command `cdk` deploys one
    stack after the other, unless `--concurrency` lets it deploy several. An archive that is already in the store is not
    built again, but only the deployment looks for it there. CodeBuild queues builds above the quota ("Builds in AWS
    CodeBuild"). SageMaker rejects such a job, and the handler starts it in a later poll.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    templates = [template for _, template in read_templates(app, account.id, account.region)]
    fleets_alone = _builds_on_fleets_alone(templates)
    most = Counter[tuple[str, str]]()
    for machine, count in (each for template in templates for each in _publisher_builds(template)):
        most |= Counter() if fleets_alone and machine == _CODEBUILD else Counter({machine: count})
    for _, plans in read_plans(app, account.id, account.region):
        distinct = {(_quota_of_machine(plan.builder), _work_of(plan)) for plan in plans if plan.builder is not None}
        machines = [machine for machine, _ in distinct]
        most |= Counter(each for each in machines if not (fleets_alone and each == _CODEBUILD))
    for service in sorted({service for service, _ in most}):
        names = sorted(name for each, name in most if each == service)
        values = quotas(account, service, names)
        for name in names:
            if name in values:
                yield _answer(most[service, name], values[name], account)
            else:
                yield unlisted(SUBJECT, name, account)


_CODEBUILD = ("codebuild", CODEBUILD_GPU)


def _work_of(plan: StackPlan) -> tuple[str, ...]:
    """What a job makes: the keys of the archives that it builds, and of the rehearsals."""
    built = (each.artifact_key for each in plan.commits if each.build is not None)
    return tuple(sorted([*built, *(each.key for each in plan.rehearsals)]))


def _quota_of_machine(builder: BuildMachine) -> tuple[str, str]:
    """The service, and the quota's name."""
    if builder.kind == "codebuild":
        return _CODEBUILD
    assert builder.instance_type is not None  # of a Processing job
    return "sagemaker", processing_usage(builder.instance_type)


def _publisher_builds(template: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """The quota of each publisher with recipes, and how many builds it runs at once."""
    for each in publisher_descriptions(template):
        if "builds" in each:
            try:
                declared = DeclaredBuilds.parse(each["builds"])
            except DocumentError as error:
                raise ConfigurationError(
                    f"another version of cdk-triton has described the publisher of {each['multi_model']} ({error}): "
                    "run `cdk synth` again"
                ) from error
            yield _quota_of_machine(declared.builder), declared.max_builds


def minutes(account: Account, app: Path) -> Iterator[Answer]:
    """Say how long the jobs with a GPU take, which AWS charges by the minute or second.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
    """
    documents = (document for _, document, _ in read_metadata(app, SERVED_METADATA))
    found = gpu_minutes(documents)
    if found is not None:
        yield Answer(subject=MINUTES, state=State.OK, found=found.sentence)


def _builds_on_fleets_alone(templates: Iterable[Mapping[str, Any]]) -> bool:
    """Quotas of builds do not count the machines of a user's CodeBuild fleet."""
    projects = [each for template in templates for each in of_type(template, "AWS::CodeBuild::Project").values()]
    environments = [each.get("Environment", {}) for each in projects]
    on_gpus = [each for each in environments if each.get("Type") == "LINUX_GPU_CONTAINER"]
    return bool(on_gpus) and all(each.get("Fleet") for each in on_gpus)


def _answer(count: int, quota: Quota, account: Account) -> Answer:
    found = f"a stack or a publisher of the app may start {count} build{'s' * (count != 1)} at once"
    last = f"the quota '{quota.name}' is {quota.value}"
    if quota.value >= count:
        return Answer(subject=SUBJECT, state=State.OK, found=f"{found}, and {last}")
    if quota.value == 0:
        state = State.ERROR
    elif quota.service == "codebuild":
        state, last = State.WARNING, f"{last}, so the other builds wait in CodeBuild's queue"
    else:
        state, last = State.WARNING, f"{last}, so the other builds wait, and a deployment that waits 50 minutes fails"
    return Answer(subject=SUBJECT, state=state, found=f"{found}, but {last}", fix=request_of(quota, account, count))
