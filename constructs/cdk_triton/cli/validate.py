"""`cdk-triton validate`: finds the faults for which Triton or SageMaker would reject a model repository."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cdk_triton._wording import did_you_mean, listed
from cdk_triton.cli.app_option import require_assembly
from cdk_triton.cli.checked import Checked
from cdk_triton.cli.given import require_unused
from cdk_triton.cli.platform_option import platform_of
from cdk_triton.errors import ConfigurationError, RepositoryError, RuleError

if TYPE_CHECKING:
    from cdk_triton.artifacts.served_repositories import ServedRepository
    from cdk_triton.checks import Report
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ContainerEnvironment, Finding, ModelRepository
    from cdk_triton.triton import Mode as Served

__all__ = ["validate"]

_CONFIG = "config.pbtxt"

_OF_A_PROJECT = ("cdk.json", ".cdk-triton")


class Mode(StrEnum):
    """How many models the endpoint serves."""

    SINGLE = "single"
    MULTI = "multi"


class _Check(NamedTuple):
    """A repository to check.

    Attributes:
        construct: the path of the construct that serves it; "" if the user named its directory.
        check: reads and checks it.
        mode: how an endpoint serves it.
        environment: makes the container's settings.
    """

    construct: str
    check: Callable[[], tuple[ModelRepository, Report]]
    mode: Served
    environment: Callable[[], ContainerEnvironment]


class FindingsFormat(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def _require_parser(wanted: bool) -> bool:
    if wanted:
        from cdk_triton.tensorrt_models.reader.parser import require_parser

        try:
            require_parser()
        except ConfigurationError as error:
            raise typer.BadParameter(str(error), param_hint="--preflight") from error
    return wanted


def _known_prefixes(prefixes: list[str] | None) -> list[str]:
    """Raises BadParameter for a prefix of no rule, which would hide nothing."""
    if not prefixes:
        return []
    from cdk_triton.checks import documented_rules

    codes = [rule.code for rule in documented_rules()]
    for prefix in prefixes:
        if not any(prefix and code.startswith(prefix.upper()) for code in codes):
            raise typer.BadParameter(
                f"no code of a rule begins with {prefix!r}{did_you_mean(prefix, codes)}; "
                "`cdk-triton explain` lists all rules",
                param_hint="--ignore",
            )
    return [prefix.upper() for prefix in prefixes]


Directories = Annotated[
    list[Path] | None, typer.Argument(metavar="DIR", help="The model repositories.", show_default=False)
]
AppOption = Annotated[
    Path | None,
    typer.Option(
        "--app",
        "-a",
        metavar="DIR",
        help="Check the repositories of an app, as its models serve them: the cloud assembly that `cdk synth` wrote, "
        "such as cdk.out.",
        show_default=False,
    ),
]
PlatformOption = Annotated[
    str | None,
    typer.Option(metavar="RELEASE/INSTANCE", help="Check also against this serving platform, e.g. 26.05/ml.g5.xlarge."),
]
ImageOption = Annotated[
    str | None,
    typer.Option(metavar="IMAGE", help="The platform's image, if it is your own, by digest: REPOSITORY@sha256:DIGEST."),
]
ModeOption = Annotated[Mode, typer.Option(help="The kind of endpoint that will serve it.")]
FormatOption = Annotated[FindingsFormat, typer.Option("--format", help="How to print the findings.")]
DefaultModel = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The model that a single-model container loads, if it has several candidates."),
]
Preflight = Annotated[
    bool,
    typer.Option(
        "--preflight",
        callback=_require_parser,
        help="Use TensorRT's own parser for the networks of plans; it takes seconds.",
    ),
]
Load = Annotated[
    bool,
    typer.Option(
        "--load",
        help="Start the server on this machine, and rehearse each repository without errors: load it, send its golden "
        "requests, and compare the answers. Needs the extra `local`.",
    ),
]
Ignored = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="CODE",
        callback=_known_prefixes,
        help="Hide findings whose code is this or begins with it, e.g. CT111 or CT2; may be repeated.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 for warnings, too.")]
AdditionalModels = Annotated[
    list[str] | None,
    typer.Option(
        "--additional-model", metavar="NAME", help="A further model that the container loads; may be repeated."
    ),
]


def validate(
    context: typer.Context,
    directories: Directories = None,
    app: AppOption = None,
    platform: PlatformOption = None,
    image: ImageOption = None,
    mode: ModeOption = Mode.SINGLE,
    output: FormatOption = FindingsFormat.TEXT,
    default_model: DefaultModel = None,
    additional_models: AdditionalModels = None,
    preflight: Preflight = False,
    load: Load = False,
    ignored: Ignored = None,
    strict: Strict = False,
) -> None:
    """Check model repositories, or those of an app; exit 1 if Triton or SageMaker would reject one."""
    _require_single_mode(mode, default_model, additional_models)
    if app is not None:
        require_unused(context, "--app", "platform", "image", "mode", "default_model", "additional_models")
        checks = _checks_of_app(app, directories, preflight)
    else:
        options = {"default_model": default_model, "additional_models": additional_models or (), "preflight": preflight}
        checks = _checks(directories, mode, platform_of(platform, image, takes_image=True), options)
    with _without_garbage_collection(), _failure_reported(output):
        found = [_checked(each, ignored) for each in checks]
        if not load:  # which reports what it reads, for each repository
            for each in found:
                _read_golden_files(each.repository)
    if load:
        found = _rehearsed(found, checks, output)
    _print(output, found)
    if any(each.is_rejected(strict=strict) for each in found):
        raise typer.Exit(1)


def _read_golden_files(repository: ModelRepository) -> None:
    """Read what a rehearsal would.

    Raises:
        RepositoryError: a golden file is missing, or cannot be used.
    """
    if repository.rehearsal is None:
        return
    from cdk_triton.rehearsal.requests import golden_requests

    try:
        for _ in golden_requests(repository):
            pass
    except ConfigurationError as error:
        raise RepositoryError(str(error)) from error


def _rehearsed(found: Sequence[Checked], checks: Sequence[_Check], output: FindingsFormat) -> list[Checked]:
    """With a rehearsal of each repository that has no errors."""
    from cdk_triton.cli.extras import require_extra
    from cdk_triton.cli.progress import working
    from cdk_triton.cli.rehearsal.running import rehearse_or_say_why

    require_extra("local", "validate --load")
    if output is FindingsFormat.SARIF:
        raise typer.BadParameter("a rehearsal has no findings: use --format text or json", param_hint="--load")
    rehearsed = []
    for each, check in zip(found, checks, strict=True):
        if each.is_rejected():
            rehearsed.append(each)
            continue
        with working(f"rehearsing {each.name}"):
            outcome = rehearse_or_say_why(each.repository, check.mode, check.environment())
        rehearsed.append(each._replace(rehearsal=outcome))
    return rehearsed


def _checks_of_app(app: Path, directories: list[Path] | None, preflight: bool) -> list[_Check]:
    if directories:
        raise typer.BadParameter("name directories, or the app with --app, but not both", param_hint="DIR")
    return [
        _Check(each.construct, partial(_check_served, each, preflight), each.mode, partial(_environment_of, each))
        for each in _served(app)
    ]


def _checks(
    directories: list[Path] | None, mode: Mode, platform: ServingPlatform | None, options: Mapping[str, Any]
) -> list[_Check]:
    if not directories:
        raise typer.BadParameter("name the directory of a model repository, or the app with --app", param_hint="DIR")
    return [
        _Check("", partial(_check_directory, each, mode, platform, options), mode.value, partial(_environment, options))
        for each in directories
    ]


def _environment(options: Mapping[str, Any]) -> ContainerEnvironment:
    from cdk_triton.triton import ContainerEnvironment

    return ContainerEnvironment(
        default_model_name=options["default_model"], additional_models=tuple(options["additional_models"])
    )


def _environment_of(served: ServedRepository) -> ContainerEnvironment:
    """Without the models' own variables, of which the cloud assembly has only names."""
    return replace(served.environment, variables={})


def _checked(each: _Check, ignored: Sequence[str] | None) -> Checked:
    repository, report = each.check()
    shown, hidden = _split_ignored(report, ignored)
    return Checked(repository, shown, hidden, each.construct)


def _check_directory(
    directory: Path, mode: Mode, platform: ServingPlatform | None, options: Mapping[str, Any]
) -> tuple[ModelRepository, Report]:
    repository = _read_repository(directory)
    return repository, repository.report(mode.value, platform, **options)


def _check_served(served: ServedRepository, preflight: bool) -> tuple[ModelRepository, Report]:
    from cdk_triton.artifacts.prepare import served_context
    from cdk_triton.checks.run import run_rules

    repository = served.read()
    context = served_context(repository, served.mode, served.platform, served.environment, preflight=preflight)
    return repository, run_rules(context)


def _served(app: Path) -> list[ServedRepository]:
    """The repositories that the models of an app serve."""
    from cdk_triton.artifacts.served_repositories import SERVED_METADATA, served_repositories
    from cdk_triton.cli.artifacts.assembly import read_metadata

    found = [
        repository
        for construct, document, assembly in read_metadata(require_assembly(app), SERVED_METADATA)
        for repository in served_repositories(construct, document, assembly)
    ]
    if not found:
        raise typer.BadParameter(
            f"{app} has no TritonModel or TritonMultiModel with a repository, or an older cdk-triton has written it: "
            "run `cdk synth` again, or name directories",
            param_hint="'--app'",
        )
    return found


def _read_repository(directory: Path) -> ModelRepository:
    """The error names a repository below the directory, or that it is a project."""
    from cdk_triton.triton import ModelRepository

    try:
        return ModelRepository.from_directory(directory)
    except RepositoryError as error:
        if not directory.is_dir() or any(_configurations(directory)) or (directory / _CONFIG).exists():
            raise
        inner = [each for each in sorted(directory.iterdir()) if any(_configurations(each))]
        if not inner and any((directory / name).exists() for name in _OF_A_PROJECT):
            raise RepositoryError(
                f"{directory} is a project, not a model repository, and no directory in the project looks like a "
                "model repository; name the directory of the repository"
            ) from error
        if not inner:
            raise
        names = listed([str(each) for each in inner])
        looks = "looks like a repository" if len(inner) == 1 else "look like repositories"
        raise RepositoryError(
            f"{directory} is not a model repository, but {names} {looks}; run: cdk-triton validate {inner[0]}"
        ) from error


def _configurations(directory: Path) -> Iterator[Path]:
    return directory.glob(f"*/{_CONFIG}")


def _require_single_mode(mode: Mode, default_model: str | None, additional_models: Sequence[str] | None) -> None:
    if mode is Mode.MULTI and (default_model or additional_models):
        raise typer.BadParameter(
            "a multi-model endpoint loads the model that a caller names; the option is for --mode single",
            param_hint="--default-model" if default_model else "--additional-model",
        )


def _split_ignored(report: Report, prefixes: Sequence[str] | None) -> tuple[Report, list[Finding]]:
    ignored = tuple(prefixes or ())
    hidden = [each for each in report.findings if each.code.startswith(ignored)]
    shown = tuple(each for each in report.findings if not each.code.startswith(ignored))
    return replace(report, findings=shown), hidden


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Collecting takes a third of the time of a large repository, and nearly everything stays in use.

    It is frozen afterwards, because the next collection would walk all of it.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _failure_reported(output: FindingsFormat) -> Iterator[None]:
    """Print for other programs why there is no report. For people, the program prints it on stderr and ends with 2."""
    try:
        yield
    except (RepositoryError, RuleError) as error:
        if output is FindingsFormat.JSON:
            from cdk_triton.checks import CRASH, UNREADABLE
            from cdk_triton.triton import Finding
            from cdk_triton.triton.findings import printable

            rule = UNREADABLE if isinstance(error, RepositoryError) else CRASH
            message, _, fix = printable(str(error)).rpartition("; ")
            finding = Finding(rule.code, rule.severity, ".", "", message or fix, fix)
            typer.echo(_as_json([_row(finding)], []))
        elif output is FindingsFormat.SARIF:
            from cdk_triton.cli.sarif import failed_log

            typer.echo(json.dumps(failed_log(str(error)), indent=2, ensure_ascii=False))
        raise


def _print(output: FindingsFormat, found: Sequence[Checked]) -> None:
    if output is FindingsFormat.JSON:
        where = {id(each): _where(each) for each in found}
        from cdk_triton.cli.rehearsal.text import as_document

        findings = [where[id(each)] | _row(finding) for each in found for finding in each.report.findings]
        not_read = [where[id(each)] | part._asdict() for each in found for part in each.report.not_read]
        rehearsals = [where[id(each)] | as_document(each.rehearsal) for each in found if each.rehearsal is not None]
        typer.echo(_as_json(findings, not_read, rehearsals))
    elif output is FindingsFormat.SARIF:
        from cdk_triton.cli.sarif import MAX_RUNS, sarif_log

        typer.echo(json.dumps(sarif_log(found), indent=2, ensure_ascii=False))
        if len(found) > MAX_RUNS:
            typer.echo(
                f"warning: the file has {len(found)} runs, one for each repository, but GitHub accepts at most "
                f"{MAX_RUNS} runs in a file: name at most {MAX_RUNS} repositories in a call, or split the file",
                err=True,
            )
    else:
        from cdk_triton.cli.text import print_reports

        print_reports(found)


def _where(checked: Checked) -> dict[str, str]:
    repository = {"repository": str(checked.repository.root)}
    return {**repository, "construct": checked.construct} if checked.construct else repository


def _row(finding: Finding) -> dict[str, str]:
    # Written out: these names are a contract with other programs, the dataclass is not.
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "path": finding.path,
        "field": finding.field,
        "message": finding.message,
        "fix": finding.fix,
    }


def _as_json(
    findings: Sequence[Mapping[str, str]],
    not_read: Sequence[Mapping[str, str]],
    rehearsals: Sequence[Mapping[str, Any]] = (),
) -> str:
    document = {"findings": findings, "not_read": not_read} | ({"rehearsals": rehearsals} if rehearsals else {})
    return json.dumps(document, indent=2, ensure_ascii=False)
