"""What becomes of `initialize` of each Python model, with the configuration and the files of the repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import rules_about
from cdk_triton.python_models.modules import needed_sources
from cdk_triton.python_models.reader.initialize import outcome_of
from cdk_triton.python_models.reader.initialize_method import Outcome, Served
from cdk_triton.python_models.reader.values import Message, Text
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name

__all__ = ["Initialized", "initialize_rule", "initialized"]


class Initialized(NamedTuple):
    """A Python model whose `initialize` can be followed.

    Attributes:
        file: the model's file.
        outcome: the errors of the method.
        is_first: whether no code of the repository runs before the method that may make files.
    """

    file: BackendFile
    outcome: Outcome
    is_first: bool


@per_check
def initialized(context: CheckContext) -> Iterator[Initialized]:
    """The models whose `initialize` nothing replaces, and whose configuration they do not complete themselves."""
    for file, sources in needed_sources(context):
        source = sources[file.path]
        if source.initialize is None or source.model is None:
            continue
        if "auto_complete_config" in source.model.methods or not source.model.is_complete:
            continue
        if is_newer_than_schema(context.platform):
            continue
        name = Text() if context.is_renamed(file.model) else file.model.name  # of SageMaker's choice
        places = _Places(file)
        served = Served(
            name, file.model.directory, file.path, _config(file, name), places.is_misplaced, places.is_nowhere
        )
        is_first = source.initialize.is_first and not any(each.may_make_files for each in sources.values())
        yield Initialized(file, outcome_of(source.initialize, served), is_first)


initialize_rule = rules_about(initialized)
"""Register a rule about `initialize` of each of these models; the parameters are those of `rule`."""


class _Places:
    """Where the files of a model are."""

    def __init__(self, each: BackendFile) -> None:
        self._each = each
        self._names = {path.name for path in each.files}
        self._all = self._names | {part.name for path in each.files for part in path.parents}

    def is_misplaced(self, path: PurePosixPath) -> bool:
        """Whether a file is elsewhere in the model's directory."""
        return path.name in self._names and self._is_missing(path)

    def is_nowhere(self, path: PurePosixPath) -> bool:
        """Whether nothing in the model's directory has the name of a file."""
        return path.name not in self._all and self._is_missing(path)

    def _is_missing(self, path: PurePosixPath) -> bool:
        each = self._each
        is_own = path.is_relative_to(each.model.directory)
        return is_own and not each.files.has(path) and not each.files.has_directory(path)


def _config(each: BackendFile, name: str | Text) -> Message:
    """The configuration as the server writes it in JSON, as far as it is known."""
    config = each.config
    parameters = {name: Message({"string_value": one.string_value}) for name, one in config.parameters.items()}
    known = {
        "name": name,
        "max_batch_size": config.max_batch_size,
        "input": [_tensor(tensor) for tensor in config.input],
        "output": [_tensor(tensor) for tensor in config.output],
        "parameters": Message(parameters),
    }
    return Message(known, frozenset(ModelConfig.DESCRIPTOR.fields_by_name))


def _tensor(tensor: ModelInput | ModelOutput) -> Message:
    known = {"name": tensor.name, "data_type": enum_name(tensor, "data_type")}
    return Message(known, frozenset(tensor.DESCRIPTOR.fields_by_name))
