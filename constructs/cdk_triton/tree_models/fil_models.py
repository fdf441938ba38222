"""The models that the backend `fil` loads, and what their files contain, for several rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, is_pointer
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.tree_models.parameters import FilParameters
from cdk_triton.tree_models.reader.file import Damaged, Pickle, TooLarge, forest_file
from cdk_triton.tree_models.reader.forest import Forest

__all__ = ["FilFile", "FilForest", "FilModel", "fil_file_rule", "fil_files", "fil_model_rule", "forest_rule"]


@dataclass(frozen=True)
class FilModel:
    """A model of the backend `fil`.

    Attributes:
        owner: the model, with its configuration.
        parameters: its parameters, as the release reads them.
    """

    owner: ConfiguredModel
    parameters: FilParameters

    def parameter_field(self, name: str) -> str:
        """The field of a parameter, as findings write it."""
        return f'parameters["{name}"]' if name in self.parameters.texts else "parameters"


@dataclass(frozen=True)
class FilFile:
    """The file of a version of such a model, which exists and is no pointer of Git LFS.

    Attributes:
        model: the model.
        each: the file.
        content: what is in the file.
    """

    model: FilModel
    each: BackendFile
    content: Forest | Damaged | Pickle | TooLarge

    def unloadable(self, found: str, fix: str) -> Problem:
        """A problem of the file for which the server does not load the model."""
        return self.each.problem(f"{found}, so the server would not load {self.each.model.name!r}", fix)

    def refused(self, found: str, words: str, fix: str) -> Problem:
        """A problem of the file for which the server does not load the model; `words` are the server's."""
        return self.each.problem(would_not_load(self.each.model, found, words), fix)


@per_check
def _fil_models(context: CheckContext) -> Iterator[FilModel]:
    for each in configured(context):
        if known_backend(context, each.model) == "fil":
            yield FilModel(each, FilParameters.of(each.config, context.platform))


fil_model_rule = rules_about(_fil_models)
"""Register a rule about each of these models; the parameters are those of `rule`."""


@per_check
def fil_files(context: CheckContext) -> Iterator[FilFile]:
    """The files of tree models that exist."""
    models = {each.owner.name: each for each in _fil_models(context)}
    for each in backend_files(context):
        model = models.get(each.model.name)
        if model is not None and each.file is not None and not is_pointer(context, each.file):
            yield FilFile(model, each, context.contents(forest_file, each.file))


fil_file_rule = rules_about(fil_files)
"""Register a rule about each of these files; the parameters are those of `rule`."""


@dataclass(frozen=True)
class FilForest:
    """A file with a tree model in the format that the configuration names.

    Attributes:
        file: the file.
        forest: the tree model.
    """

    file: FilFile
    forest: Forest

    @property
    def owner(self) -> ConfiguredModel:
        """The model, with its configuration."""
        return self.file.model.owner

    @property
    def parameters(self) -> FilParameters:
        """The parameters of the model."""
        return self.file.model.parameters


@per_check
def _forests(context: CheckContext) -> Iterator[FilForest]:
    for file in fil_files(context):
        if isinstance(file.content, Forest) and file.content.format == file.model.parameters.model_type:
            yield FilForest(file, file.content)


forest_rule = rules_about(_forests)
"""Register a rule about each of these models, the parameters are those of `rule`."""
