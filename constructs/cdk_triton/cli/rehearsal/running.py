"""Rehearses a repository on this machine, with the program that rehearses it in a GPU build."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdk_triton.artifacts import cache_directory
from cdk_triton.artifacts.contents import archive_files
from cdk_triton.artifacts.program import write_program
from cdk_triton.client.contract import called_models
from cdk_triton.errors import ConfigurationError, LocalError
from cdk_triton.rehearsal.document import write_folder
from cdk_triton.rehearsal.files import Golden
from cdk_triton.rehearsal.requests import Asked, golden_requests
from cdk_triton.rehearsal.variables import rehearsed_variables
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.inference_type import GENERATING
from cdk_triton.triton.repository import PromisedFiles
from cdk_triton.triton.shared_memory import with_shared_memory

if TYPE_CHECKING:
    from cdk_triton.client import InferenceResult
    from cdk_triton.triton import Mode, Model, ModelRepository

__all__ = ["Rehearsed", "rehearse", "rehearse_or_say_why", "require_single_answers"]

_GRACE_SECONDS: Final = 45.0  # the server's own exit timeout is 30 s
RANDOM: Final = "a random request"


class Rehearsed(NamedTuple):
    """How a rehearsal went.

    Attributes:
        reason: why it failed; None if the repository loads and answers as expected.
        load_seconds: how long the models took to load; None if they did not.
        requests: for each request `name`, `reason` (None if it passed), `seconds` and `largest_differences`, by output.
        stand_ins: the backends and programs that were stand-ins.
        log: the file with what the server printed; None if no server was started.
        answers: the answers, if they were to be kept.
    """

    reason: str | None
    load_seconds: float | None
    requests: Sequence[Mapping[str, Any]]
    stand_ins: Sequence[str]
    log: Path | None
    answers: Sequence[InferenceResult] = ()


def requests_of(repository: ModelRepository, mode: Mode, environment: ContainerEnvironment) -> Iterable[Asked]:
    """The golden requests of a repository; without any, a random one, if its entry model takes single requests.

    A container of Triton's generate protocol does not read such requests, so it only loads the models.

    Raises:
        ConfigurationError: a golden file cannot be used, which shows when it is read.
    """
    if environment.inference_type in GENERATING:
        return []
    name = environment.default_model_name
    model = repository.entry_model(mode) if name is None else repository.model(name)
    if repository.rehearsal is not None:
        require_single_answers(repository, model)
        return golden_requests(repository)
    return [] if model is None else _random_request(repository, model)


def require_single_answers(repository: ModelRepository, model: Model | None) -> None:
    """Reject golden requests to a model whose requests have any number of answers, which an endpoint never returns.

    A construct does not come here: the rules CT652 and CT340 report the model at synth.

    Raises:
        ConfigurationError: the model, or one that it runs as an ensemble, is decoupled.
    """
    called = [] if model is None else called_models(repository, model)
    if decoupled := next((each for each in called if _is_decoupled(each)), None):
        raise ConfigurationError(
            f"{decoupled.name!r} is decoupled, so a golden request has no single answer to compare: remove the golden "
            f"requests of {repository.root}, or model_transaction_policy from the config.pbtxt of a model that returns "
            "one response for each request"
        )


def rehearse_or_say_why(repository: ModelRepository, mode: Mode, environment: ContainerEnvironment) -> Rehearsed:
    """Rehearse with the requests of the repository; what prevents it is the reason of a failure."""
    try:
        return rehearse(repository, mode, environment, requests_of(repository, mode, environment))
    except ConfigurationError as error:
        return Rehearsed(str(error), None, (), (), None)


def rehearse(
    repository: ModelRepository,
    mode: Mode,
    environment: ContainerEnvironment,
    requests: Iterable[Asked],
    *,
    keep_answers: bool = False,
) -> Rehearsed:
    """Start the server of this machine with a repository, send requests, and compare the answers.

    Args:
        repository: the repository; its files are copied.
        mode: how an endpoint serves it.
        environment: the container's settings.
        requests: the requests.
        keep_answers: whether `Rehearsed.answers` has the answers.

    Raises:
        LocalError: this machine cannot run a server.
        ConfigurationError: files of the repository are made by recipes, so it cannot load here.
    """
    _require_files(repository)
    entry = repository.entry_model(mode)
    name = None if entry is None else entry.name
    settings = with_shared_memory(environment, None)  # as a construct sets it, or more models fit there than here
    variables = rehearsed_variables(repository.rehearsal, mode, settings, name)
    log = _log(repository)
    with tempfile.TemporaryDirectory(prefix="cdk-triton-rehearsal-") as directory:
        work = Path(directory)
        (work / "in").mkdir()
        _copy(repository, work / "in" / "repository")
        write_folder(work / "in", repository, mode, variables, requests, keep_answers=keep_answers)
        _run(work, log)
        return _read(work / "out", log, keep_answers=keep_answers)


def _random_request(repository: ModelRepository, model: Model) -> list[Asked]:
    from cdk_triton.cli.requests.inputs import random_inputs
    from cdk_triton.cli.requests.signature import of_config
    from cdk_triton.client.payload import encode

    config = model.config
    if config is None or not all(map(_takes_single_requests, called_models(repository, model))):
        return []
    try:
        inputs = random_inputs(of_config(config, str(model.config_path)).inputs)
    except ConfigurationError:  # Triton completes the configuration when it loads the model
        return []
    # A model may return an output only sometimes, but older servers take an ensemble without one for a deadlock.
    outputs = [each.name for each in config.output] if model.is_ensemble else None
    return [Asked(RANDOM, Golden(*encode(inputs, {"outputs": outputs})), private=False)]


def _takes_single_requests(model: Model) -> bool:
    return not _is_decoupled(model) and (model.config is None or not model.config.HasField("sequence_batching"))


def _is_decoupled(model: Model) -> bool:
    return model.config is not None and model.config.model_transaction_policy.decoupled


def _require_files(repository: ModelRepository) -> None:
    made = [path for each in repository.recipes for path in each.produces]
    there = {file.path.as_posix() for file in repository.files}
    missing = [path for path in made if path not in there]
    if missing:
        by = (
            "a recipe makes" if not isinstance(repository.recipes[0], PromisedFiles) else "the list 'produced' promises"
        )
        raise ConfigurationError(
            f"{repository.root} cannot be loaded as it is, because {by} {missing[0]}, which is not there: deploy the "
            "app to the local AWS, which builds it"
        )


def _log(repository: ModelRepository) -> Path:
    directory = cache_directory() / "rehearsals"
    directory.mkdir(parents=True, exist_ok=True)
    place = hashlib.sha256(os.fsencode(repository.root.resolve())).hexdigest()[:8]  # several are called `models`
    return directory / f"{repository.name}-{place}.log"


def _copy(repository: ModelRepository, target: Path) -> None:
    """Copies, because a server writes into its repository: bytecode of Python models, and CPU instead of GPU."""
    for file in archive_files(repository):
        copy = target / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.source is None:
            copy.touch()
        else:
            shutil.copyfile(file.source, copy)
            copy.chmod(0o755 if file.source.stat().st_mode & 0o100 else 0o644)


def _run(work: Path, log: Path) -> None:
    from cdk_triton_local import build_tools, process
    from cdk_triton_local.triton.paths import shell_safe

    program = work / "program.pyz"
    write_program(program)
    (work / "root").mkdir()
    environment = process.child_environment({"CDK_TRITON_STAND_IN_PYTHON": sys.executable})
    environment["PATH"] = f"{build_tools.tools_directory()}:{environment.get('PATH', '/usr/bin:/bin')}"
    folders = [str(work / "in"), str(work / "out"), str(shell_safe(work / "root"))]
    with (work / "events").open("wb") as output:
        child = process.start(
            [sys.executable, str(program), "rehearse", *folders], environment=environment, output=output
        )
        try:
            child.wait()
        except BaseException:  # Ctrl-C among them
            child.stop(grace=_GRACE_SECONDS)
            raise
        finally:
            _write_log(work / "events", log)


def _write_log(events: Path, log: Path) -> None:
    """What the server printed, and what the program said if it did not begin."""
    lines = map(_printed, events.read_text(encoding="utf-8", errors="replace").splitlines())
    log.write_text("".join(f"{line}\n" for line in lines if line is not None), encoding="utf-8")


def _printed(line: str) -> str | None:
    try:
        row = json.loads(line)
    except ValueError:  # of the program itself: a traceback, or a line that was cut
        return line
    return row.get("text") or row.get("reason") or "" if row["event"] in ("output", "refused") else None


def _read(out: Path, log: Path, *, keep_answers: bool) -> Rehearsed:
    try:
        found = json.loads((out / "rehearsal.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise LocalError(f"the rehearsal ended before it began: {''.join(last)}; its log is {log}") from None
    rows = found["requests"]
    is_kept = keep_answers and found["reason"] is None
    answers = [_answer(out, number, row) for number, row in enumerate(rows)] if is_kept else []
    return Rehearsed(found["reason"], found["load_seconds"], rows, found["stand_ins"], log, answers)


def _answer(out: Path, number: int, row: Mapping[str, Any]) -> InferenceResult:
    from cdk_triton.client.payload import decode

    return decode((out / f"answer{number}").read_bytes(), row["content_type"], where="the server")
