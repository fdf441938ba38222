"""The requests of Python models for models that the server loads (BLS)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import completes_tensors
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.derived.decoupling import decoupled_models
from cdk_triton.checks.registry import Problem, in_line, rules_about
from cdk_triton.python_models.modules import needed_sources
from cdk_triton.python_models.reader.model_calls import ModelCall

__all__ = ["ModelRequest", "request_rule", "way_back"]


@dataclass(frozen=True)
class ModelRequest:
    """A request of a Python model for another model that the server loads.

    Attributes:
        owner: the model that sends it, with its configuration.
        path: the file that sends it.
        call: the request.
        callee: the other model, with its configuration.
    """

    owner: ConfiguredModel
    path: PurePosixPath
    call: ModelCall
    callee: ConfiguredModel

    @property
    def caller(self) -> str:
        """The name of the model that sends it."""
        return self.owner.name

    def problem(self, line: int, does: str, said: str, fix: str) -> Problem:
        """A problem of a line; `said` is the error that the caller gets."""
        return in_line(self.path, line, f"{does}, so {self.caller!r} gets an error: {said}", fix)


def way_back(request: ModelRequest) -> tuple[str, ...] | None:
    """The models through which a request leads back to the model that sends it, each of which waits for the next one.

    A request to the same model leads back at once, through no other model.

    Returns:
        The names, from the callee on; None if the request does not lead back.
    """
    asked: dict[str, dict[str, None]] = {}
    for one in _requests(request.owner.context):
        if _waits(one):
            asked.setdefault(one.caller, {})[one.callee.name] = None
    if not _waits(request):
        return None
    ways: list[tuple[str, ...]] = [(request.callee.name,)]
    seen = set[str]()
    for way in ways:
        if way[-1] == request.caller:
            return way[:-1]
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [(*way, name) for name in asked.get(way[-1], ())]
    return None


def _waits(request: ModelRequest) -> bool:
    """Whether the model that sends a request waits for one response of the other one, whatever the version."""
    call = request.call
    is_decoupled = call.model in decoupled_models(request.owner.context)
    return bool(call.plain) and call.version is None and not is_decoupled


@per_check
def _requests(context: CheckContext) -> Iterator[ModelRequest]:
    callees = {each.name: each for each in configured(context) if not context.is_renamed(each.model)}
    seen = set()
    for each, sources in needed_sources(context):
        for path, source in sources.items():
            for call in source.references.calls:
                if call.model in callees and (path, call) not in seen:
                    seen.add((path, call))
                    yield ModelRequest(each.owner, path, _with_all_inputs(call, each.owner), callees[call.model])


def _with_all_inputs(call: ModelCall, owner: ConfiguredModel) -> ModelCall:
    """A request with the inputs of the model that sends it, if it passes on all of them."""
    config = owner.config
    if call.passed_on is not None:
        return call
    if config.HasField("sequence_batching") or config.batch_input or completes_tensors(owner, "input"):
        return replace(call, passed_on=())  # other inputs may be among them
    names = tuple(tensor.name for tensor in config.input if not tensor.optional)
    return replace(call, inputs=names, has_all_inputs=len(names) == len(config.input), passed_on=names)


request_rule = rules_about(_requests)
"""Register a rule about each of these requests; the parameters are those of `rule`."""
