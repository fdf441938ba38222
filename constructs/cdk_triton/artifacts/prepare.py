"""Checks a repository, computes its keys, and finds out what its recipes build, each only once.

Constructs and `cdk-triton fleet` use what `prepare` returns, and compute nothing of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.artifacts.build_plan import Build, planned_build, s3_files
from cdk_triton.artifacts.contents import ArchiveFile
from cdk_triton.artifacts.keys import Keys, keys_and_files
from cdk_triton.artifacts.recipes.plugins import plugin_fault
from cdk_triton.artifacts.recipes.recipe import BuildRecipe, recipes_of
from cdk_triton.artifacts.recipes.s3_file import S3File
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.errors import ConfigurationError
from cdk_triton.rehearsal.prepared import PreparedRehearsal, packed_rehearsal
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Finding, Mode, Model, ModelRepository, Severity
from cdk_triton.triton.findings import NotRead
from cdk_triton.triton.repository import PromisedFiles
from cdk_triton.triton.repository_settings import SETTINGS_NAME
from cdk_triton.triton.server_options import loaded_models
from cdk_triton.triton.shared_memory import python_instances

if TYPE_CHECKING:
    from cdk_triton.checks.context import CheckContext

__all__ = ["Prepared", "findings_of", "prepare", "prepared_document", "served_context"]

_QUESTION: Final = "prepared 7"
"""The number is raised when `prepared_document` returns other members, so that older cached answers are not used."""

BROKEN_PROMISE: Final = "cdk-triton:ProducedFile"


@dataclass(frozen=True)
class Prepared:
    """A repository, and everything that follows from its files, its recipes and how it is served.

    Attributes:
        repository: the repository.
        platform: the platform that serves it.
        findings: the findings of `ModelRepository.check`, and those about files that no recipe makes.
        not_read: the parts that no rule read.
        errors: why its recipes cannot be built: the faults of single recipes or, if there are none, of their
            combination.
        backends: the backend of each model, by the model's name; an empty text if the configuration names none.
        stateful_models: the names of the models that keep state between the requests of a sequence.
        downloads: the calls with which Python models download files while they load, each with its place; empty for
            containers that reach a network.
        python_instances: how many instances of Python models an instance of the platform starts.
        gpus: how many GPUs the models need, because an `instance_group` names them.
        entry_model: the name of the model that callers invoke; None if the repository leaves it open.
        keys: its artifact key and its other keys.
        files: the files of its archive or, with a build, of its sources, each with its SHA-256.
        build: what a build makes of it; None without recipes, or with errors.
        rehearsal: how a server that serves it is rehearsed; None if it is not, or cannot be.
        rehearsal_error: why it cannot be rehearsed, although it should; None if it can.
    """

    repository: ModelRepository
    platform: ServingPlatform
    findings: tuple[Finding, ...]
    not_read: tuple[NotRead, ...]
    errors: tuple[str, ...]
    backends: Mapping[str, str]
    stateful_models: tuple[str, ...]
    downloads: tuple[str, ...]
    python_instances: int
    gpus: int
    entry_model: str | None
    keys: Keys
    files: Mapping[ArchiveFile, str]
    build: Build | None
    rehearsal: PreparedRehearsal | None
    rehearsal_error: str | None

    @property
    def is_sound(self) -> bool:
        """Whether it can be deployed."""
        return (
            not self.errors
            and self.rehearsal_error is None
            and all(each.severity is not Severity.ERROR for each in self.findings)
        )

    @property
    def inner_models(self) -> Mapping[str, str]:
        """The backends of the models that callers do not invoke, by the model's name."""
        return {name: backend for name, backend in self.backends.items() if name != self.entry_model}

    @property
    def build_minutes(self) -> float:
        """Roughly how long its build takes, in minutes; 0 without a build."""
        return 0.0 if self.build is None else self.build.minutes

    @cached_property
    def s3_files(self) -> Mapping[str, S3File]:
        """The files that its build reads from S3, by their path in the build."""
        return {} if self.build is None else s3_files(recipes_of(self.repository))


def prepare(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool = False,
    network_isolation: bool = False,
    rehearse: bool = False,
) -> Prepared:
    """Prepare a repository; the answer comes from the cache if nothing has changed.

    Args:
        repository: the repository.
        mode: how an endpoint serves it.
        platform: the platform that serves it.
        environment: the container's settings.
        uncompressed: whether its files are served without an archive, which gives a different artifact key.
        network_isolation: whether its containers reach no network.
        rehearse: whether a server is rehearsed with its golden requests, if it has some.

    Raises:
        ArchiveError: a file cannot be read or is written to at this moment.
        ConfigurationError: a path or a recipe contains a CDK token, or an entry of the repository's recipes is not a
            recipe.
    """
    given = _without_promised_files(repository)
    found = cached_answer(
        [repository if rehearse else replace(repository, rehearsal=None)],
        [_QUESTION, mode, platform, environment, uncompressed, network_isolation, rehearse],
        lambda: prepared_document(
            repository,
            mode,
            platform,
            environment,
            uncompressed=uncompressed,
            network_isolation=network_isolation,
            rehearse=rehearse,
        ),
    )
    keys = Keys(*found["keys"])
    return Prepared(
        repository=given,
        platform=platform,
        findings=findings_of(found["findings"]),
        not_read=tuple(NotRead(*each) for each in found["not_read"]),
        errors=tuple(found["errors"]),
        backends=found["backends"],
        stateful_models=tuple(found["stateful_models"]),
        downloads=tuple(found["downloads"]),
        python_instances=found["python_instances"],
        entry_model=found["entry_model"],
        gpus=found["gpus"],
        keys=keys,
        files={
            ArchiveFile(path, source and Path(source), size): sha256 for path, source, size, sha256 in found["files"]
        },
        build=None if found["build"] is None else Build(*found["build"]),
        rehearsal=None
        if found["rehearsal"] is None
        else PreparedRehearsal(given, platform, keys.artifact, *found["rehearsal"]),
        rehearsal_error=found["rehearsal_error"],
    )


def prepared_document(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    uncompressed: bool = False,
    network_isolation: bool = False,
    rehearse: bool = False,
) -> dict[str, Any]:
    """The content of a `Prepared`, as JSON values; the arguments and errors are those of `prepare`."""
    from cdk_triton.checks.run import run_rules  # not needed if the answer comes from the cache

    context = served_context(repository, mode, platform, environment)
    report = run_rules(context)
    entry_model = None if context.entry is None else context.entry.name
    gpus = _gpus(repository)
    broken = _missing_promised_files(repository)
    given = _without_promised_files(repository)
    recipes = recipes_of(given)
    errors = _errors_of(recipes, given, platform)
    errors += filter(None, [plugin_fault(recipes, mode)])
    keys, files = keys_and_files(given, platform, uncompressed=uncompressed)
    build = None
    if recipes and not broken and not errors:
        try:
            build = planned_build(given, platform, keys, files)
        except ConfigurationError as error:
            errors.append(str(error))
    rehearsal, rehearsal_error = None, None
    if rehearse:
        try:
            rehearsal = packed_rehearsal(given, mode, environment, entry_model)
        except ConfigurationError as error:
            rehearsal_error = str(error)
    return {
        "findings": [_row(each) for each in (*report.findings, *broken)],
        "not_read": [list(each) for each in report.not_read],
        "errors": errors,
        "backends": {model.name: model.backend_name or "" for model in repository.models},
        "stateful_models": [each.name for each in context.loaded_models if _keeps_state(each)],
        "downloads": _downloads(context) if network_isolation else [],
        "python_instances": sum(python_instances(model, platform.gpu_count) for model in context.loaded_models),
        "gpus": gpus,
        "entry_model": entry_model,
        "keys": list(keys),
        "files": [[each.path, each.source and str(each.source), each.size, sha] for each, sha in files.items()],
        "build": build,
        "rehearsal": rehearsal,
        "rehearsal_error": rehearsal_error,
    }


def _keeps_state(model: Model) -> bool:
    """Whether a model keeps state between requests: an iterative sequence is a single request."""
    config = model.config
    return (
        config is not None and config.HasField("sequence_batching") and not config.sequence_batching.iterative_sequence
    )


def _gpus(repository: ModelRepository) -> int:
    """The server does not load a model with an `instance_group` on a GPU that the machine does not have."""
    groups = (group for model in repository.models if model.config for group in model.config.instance_group)
    return 1 + max((gpu for group in groups for gpu in group.gpus), default=0)


def _downloads(context: CheckContext) -> list[str]:
    """The calls of `Prepared.downloads`, each once."""
    from cdk_triton.python_models.modules import needed_sources  # as above

    found = {
        f"{path}, line {line}: {call}"
        for _, sources in needed_sources(context)
        for path, source in sources.items()
        for line, call in source.references.downloads
    }
    return sorted(found)


def served_context(
    repository: ModelRepository,
    mode: Mode,
    platform: ServingPlatform,
    environment: ContainerEnvironment,
    *,
    preflight: bool = False,
) -> CheckContext:
    """What the rules check: a repository as a container with these settings serves it, whose models they name."""
    from cdk_triton.checks.context import CheckContext  # not needed if the answer comes from the cache

    default: str | None = None
    additional: tuple[str, ...] = ()
    if mode == "single":
        default = environment.default_model_name
        additional = (*environment.additional_models, *loaded_models(environment.additional_args))
    return CheckContext(repository, mode, platform, default, additional, environment, preflight)


def findings_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """The findings of a `prepared_document`."""
    return tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in rows)


def _row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in Finding.__match_args__}


def _errors_of(recipes: Iterable[BuildRecipe], repository: ModelRepository, platform: ServingPlatform) -> list[str]:
    errors = []
    for recipe in recipes:
        try:
            recipe.validate(repository, platform)
        except ConfigurationError as error:
            errors.append(str(error))
    return errors


def _without_promised_files(repository: ModelRepository) -> ModelRepository:
    given = tuple(recipe for recipe in repository.recipes if not isinstance(recipe, PromisedFiles))
    return replace(repository, recipes=given) if len(given) < len(repository.recipes) else repository


def _missing_promised_files(repository: ModelRepository) -> list[Finding]:
    """A finding for each file of `produced` that no recipe makes."""
    promises = (each for each in repository.recipes if isinstance(each, PromisedFiles))
    return [
        Finding(
            BROKEN_PROMISE,
            Severity.ERROR,
            SETTINGS_NAME,
            "",
            f"the list 'produced' names {path}, but the repository does not have this file, and no recipe makes it",
            "add the recipe, or put the file into the repository",
        )
        for promise in promises
        for path in promise.produces
    ]
