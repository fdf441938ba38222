"""The command `golden record`: writes the expected outputs of golden requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton._wording import listed
from cdk_triton.errors import ConfigurationError, InvocationError, LocalError, ModelError

if TYPE_CHECKING:
    from cdk_triton.client import InferenceResult
    from cdk_triton.triton import ModelRepository
    from cdk_triton.triton.rehearsal import GoldenRequest

__all__ = ["app"]

app = typer.Typer(help="Record what a server answers to the golden requests of a repository.", no_args_is_help=True)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The model repository.", show_default=False)]
EndpointOption = Annotated[
    str | None, typer.Option("--endpoint", metavar="NAME", help="Ask this endpoint, on AWS or on the local AWS.")
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Start a server on this machine and ask it. Needs the extra `local`.")
]
TargetOption = Annotated[
    str | None,
    typer.Option("--target-model", metavar="NAME", help="The target model of a multi-model endpoint, or its ensemble."),
]
ComponentOption = Annotated[
    str | None,
    typer.Option("--component", metavar="NAME", help="The inference component of an endpoint that has components."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


@app.callback()
def _group() -> None:
    """Keep `record` a command of its own."""


@app.command()
def record(
    directory: Directory,
    endpoint: EndpointOption = None,
    local: LocalOption = False,
    target_model: TargetOption = None,
    component: ComponentOption = None,
    force: ForceOption = False,
) -> None:
    """Write the answer to each golden request of a repository into its `expect` file.

    Example: cdk-triton golden record models/text --local
    """
    from cdk_triton.triton import ModelRepository

    if (endpoint is None) is not local:
        raise typer.BadParameter("name one server: --endpoint NAME, or --local")
    if endpoint is None and (target_model or component):
        raise typer.BadParameter("--target-model and --component belong to --endpoint")
    repository = ModelRepository.from_directory(directory)
    try:
        recorded = _to_record(repository, force=force)
        answers: Iterable[InferenceResult] = (
            _of_this_machine(repository, recorded)
            if endpoint is None
            else _of_endpoint(repository, recorded, endpoint, target_model, component)
        )
        _write(repository, recorded, answers, "this machine" if endpoint is None else f"the endpoint {endpoint}")
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from error


def _to_record(repository: ModelRepository, *, force: bool) -> list[GoldenRequest]:
    """The golden requests with an `expect` file.

    Raises:
        ConfigurationError: there is none, the model has no single answer, or a file exists already.
    """
    from cdk_triton.cli.rehearsal.running import require_single_answers

    requests = [] if repository.rehearsal is None else repository.rehearsal.requests
    found = [each for each in requests if each.expect is not None]
    require_single_answers(repository, repository.entry_model("single"))
    if not found:
        raise ConfigurationError(
            f"{repository.root} has no golden request with an expect file: write [[rehearsal.requests]] into "
            'cdk-triton.toml, with request = "golden/NAME.json" and expect = "golden/NAME.npz"'
        )
    if foreign := [str(each.expect) for each in found if Path(str(each.expect)).suffix != ".npz"]:
        raise ConfigurationError(f"expect is {foreign[0]!r}, but recorded answers are .npz files: rename it")
    existing = [str(each.expect) for each in found if (repository.root / str(each.expect)).exists()]
    if existing and not force:
        raise ConfigurationError(f"{listed(existing)} exists already: add --force to replace it")
    return found


def _of_this_machine(repository: ModelRepository, recorded: Sequence[GoldenRequest]) -> list[InferenceResult]:
    from cdk_triton.cli.extras import require_extra
    from cdk_triton.cli.progress import working
    from cdk_triton.cli.rehearsal.running import rehearse
    from cdk_triton.rehearsal.files import golden_request
    from cdk_triton.rehearsal.requests import Asked, request_name
    from cdk_triton.triton import ContainerEnvironment

    require_extra("local", "golden record --local")
    root = repository.root
    asked = (Asked(request_name(each, root), golden_request(root / each.request)) for each in recorded)
    with working(f"asking {repository.name} on this machine"):
        rehearsed = rehearse(repository, "single", ContainerEnvironment(), asked, keep_answers=True)
    if rehearsed.reason is not None:
        raise LocalError(f"{rehearsed.reason}; the log of the server is {rehearsed.log}")
    return list(rehearsed.answers)


def _of_endpoint(
    repository: ModelRepository,
    recorded: Sequence[GoldenRequest],
    name: str,
    target_model: str | None,
    component: str | None,
) -> Iterator[InferenceResult]:
    from cdk_triton.cli.artifacts.aws import Aws, sentences
    from cdk_triton.cli.endpoints.reading import read_endpoint
    from cdk_triton.cli.requests.options import check_target
    from cdk_triton.client import TritonClient
    from cdk_triton.client.runtime import default_runtime
    from cdk_triton.rehearsal.files import read_request
    from cdk_triton.rehearsal.requests import request_name

    with sentences(InvocationError):
        aws = Aws()
        target, component = check_target(read_endpoint(aws, name), target_model, component)
        client = TritonClient(name, default_runtime(aws.session))
        for each in recorded:
            request = read_request(repository.root / each.request)
            try:
                answer = client._infer(
                    request.inputs, request.step, target_model=target, inference_component=component, **request.options
                )
            except ModelError as error:  # the words of a model may be those of the request
                asked = request_name(each, repository.root)
                raise InvocationError(
                    f"{asked}: the model container of the endpoint {name!r} answered {error.status}; to see its "
                    f"message, which may repeat the request, run `cdk-triton invoke {name} --data FILE`"
                ) from error
            yield answer


def _write(
    repository: ModelRepository, recorded: Sequence[GoldenRequest], answers: Iterable[InferenceResult], origin: str
) -> None:
    from cdk_triton.rehearsal.files import write_arrays

    for golden, answer in zip(recorded, answers, strict=True):
        file = repository.root / str(golden.expect)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        version = f"version {answer.model_version} of {answer.model_name}"
        write_arrays(file, answer.outputs, f"recorded by `cdk-triton golden record` from {origin}, {version}, {now}")
        typer.echo(f"wrote {file}: {listed(list(answer.outputs))}")
