"""The command: runs every check, prints each answer as it comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.app_option import require_assembly
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.platform_option import platform_of
from cdk_triton.cli.terminal import bold, coloured, fold, width

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform

__all__ = ["doctor"]

_INDENT = "    "
_OF_ACCOUNT = ("bootstrap", "service-linked role", "Lambda concurrency")
_OF_PLATFORM = ("image", "endpoint quota")
_WITHOUT_APP = ("build quota",)
"""The check of an app knows which builders it uses."""

PlatformOption = Annotated[
    str | None,
    typer.Option(
        metavar="RELEASE/INSTANCE",
        help="The platform of the endpoint, e.g. 26.05/ml.g5.xlarge: adds checks of its image and quotas.",
    ),
]


AppOption = Annotated[
    Path | None,
    typer.Option(
        "--app",
        "-a",
        metavar="DIR",
        help="The cloud assembly, as `cdk synth` wrote it: its stacks are compared with the deployed ones. By default "
        "cdk.out, if there is one.",
        show_default=False,
    ),
]


def doctor(platform: PlatformOption = None, app: AppOption = None) -> None:
    """Find the faults that would make a first deployment fail; exit 1 if there are any.

    Example: cdk-triton doctor --platform 26.05/ml.g5.xlarge
    """
    target, assembly = platform_of(platform), _assembly(app)
    answers: list[Answer] = []
    for answer in _examine(target, assembly):
        answers.append(answer)
        _print(answer)
    states = Counter(answer.state for answer in answers)
    typer.echo(
        bold(f"{len(answers)} checks: {', '.join(_counted(states[each], each) for each in State if states[each])}")
    )
    of_platform = _OF_PLATFORM + (_WITHOUT_APP if assembly is None else ())
    for line in _left_out({answer.subject for answer in answers}, of_platform, is_given=target is not None):
        typer.echo(fold(line, width(), indent=_INDENT, hanging=_INDENT))
    if states[State.ERROR]:
        raise typer.Exit(1)


def _assembly(app: Path | None) -> Path | None:
    found = Path("cdk.out") if app is None else app
    if (found / "manifest.json").is_file():
        return found
    return None if app is None else require_assembly(app)


def _examine(platform: ServingPlatform | None, app: Path | None) -> Iterator[Answer]:
    """Without an account, only the answers about this machine."""
    from botocore.exceptions import BotoCoreError, ClientError

    from cdk_triton.cli.doctor import account as accounts
    from cdk_triton.cli.doctor import capacity, workstation

    yield from (check() for check in (workstation.node, workstation.cdk_cli, workstation.disk))
    answers, account = accounts.sign_in()
    yield from answers
    if account is None:
        return
    checks = [partial(check, account) for check in (accounts.bootstrap, accounts.scaling_role, capacity.executions)]
    if platform is not None:
        of_platform = [capacity.image, capacity.endpoint_instances, *([capacity.build_gpu] if app is None else [])]
        checks += [partial(check, account, platform) for check in of_platform]
    for subject, check in zip(_OF_ACCOUNT + _OF_PLATFORM + _WITHOUT_APP, checks, strict=False):
        try:
            yield check()
        except (BotoCoreError, ClientError) as error:
            yield accounts.rejected_call(subject, error)
    if app is not None:
        from cdk_triton.cli.doctor import builds, instances, publishers, rehearsals, stores, updates

        for subject, of_app in (
            (instances.SUBJECT, instances.instances),
            (builds.SUBJECT, builds.builds),
            (builds.MINUTES, builds.minutes),
            (rehearsals.SUBJECT, rehearsals.rehearsals),
            (publishers.SUBJECT, publishers.publishers),
            (stores.SUBJECT, stores.artifact_stores),
            (updates.SUBJECT, updates.updates),
        ):
            try:
                yield from of_app(account, app)
            except (BotoCoreError, ClientError) as error:
                yield accounts.rejected_call(subject, error)


def _print(answer: Answer) -> None:
    state = f"{answer.state:<7}"
    line = fold(f"{state}  {answer.subject}: {answer.found}", width(), hanging=_INDENT)
    if answer.state in (State.ERROR, State.WARNING):
        line = line.replace(state, coloured(state, answer.state), 1)
    typer.echo(line)
    if answer.fix:
        typer.echo(f"{_INDENT}{answer.fix}")  # in one line: a command in it is there to be copied


def _counted(count: int, state: State) -> str:
    return f"{count} {state}{'s' * (count != 1 and state in (State.ERROR, State.WARNING))}"


def _left_out(subjects: set[str], of_platform: tuple[str, ...], *, is_given: bool) -> Iterator[str]:
    if not is_given:
        yield (
            f"skipped because no serving platform is given: {', '.join(of_platform)}; add --platform, e.g. --platform "
            "26.05/ml.g5.xlarge"
        )
    missing = [each for each in (*_OF_ACCOUNT, *(of_platform if is_given else ())) if each not in subjects]
    if missing:
        yield f"skipped because no account answers: {', '.join(missing)}"
