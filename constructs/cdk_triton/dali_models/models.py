"""The pipelines of a repository: for each version of a DALI model, the file that the backend loads or a build reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from cdk_triton._dali_signature import PipelineSignature
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, is_pointer, repository_files
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.dali_models.reader.definition import Definition, Read, pipeline_definition
from cdk_triton.dali_models.reader.serialized import serialized_outputs_on_gpu, serialized_pipeline
from cdk_triton.python_models.modules import python_version
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import RepositoryFile
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["DaliPipelineFile", "Defined", "dali_pipelines", "defined_rule", "outputs_on_gpu", "pipeline_rule"]


@runtime_checkable
class _BuildRecipe(Protocol):
    """A recipe that reads a file and writes another one."""

    @property
    def produces(self) -> tuple[str, ...]: ...

    @property
    def consumes(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class DaliPipelineFile:
    """The file that a pipeline comes from.

    Attributes:
        owner: the version of the model that has the pipeline.
        path: the file.
        is_built: whether a recipe builds what the backend loads from the file.
        content: the definition, or the signature of a serialised pipeline; None if the reader does not know it.
    """

    owner: BackendFile
    path: PurePosixPath
    is_built: bool
    content: Read | PipelineSignature | None

    def failing(self, line: int | None, found: str, said: str, fix: str) -> Problem:
        """A problem of the file for which the server does not load the model; `said` are its words, or Python's."""
        text = found if line is None else f"line {line} {found}"
        name = self.owner.model.name
        message = would_not_load(self.owner.model, text, said)
        if self.is_built:
            message = f"{text}, so the build of {name!r} would fail: {said}"
        return Problem(self.path, message, fix, line=line)


@per_check
def dali_pipelines(context: CheckContext) -> Iterator[DaliPipelineFile]:
    """The file of every DALI model that the server would load, as far as it is there before a build."""
    for each in backend_files(context):
        if each.backend == "dali" and (found := _pipeline_of(context, each)) is not None:
            yield found


pipeline_rule = rules_about(dali_pipelines)
"""Register a rule about each of these files; the parameters are those of `rule`."""


@dataclass(frozen=True)
class Defined:
    """A pipeline with its definition, `dali.py`.

    Attributes:
        file: the file.
        definition: what it defines.
    """

    file: DaliPipelineFile
    definition: Definition


@per_check
def _defined(context: CheckContext) -> Iterator[Defined]:
    for each in dali_pipelines(context):
        if isinstance(each.content, Definition):
            yield Defined(each, each.content)


defined_rule = rules_about(_defined)
"""Register a rule about each pipeline whose definition is read; the parameters are those of `rule`."""


def outputs_on_gpu(context: CheckContext, model: Model) -> frozenset[int]:
    """The outputs of a DALI model that every version certainly leaves in the memory of the GPU, from 0."""
    held = [frozenset(_on_gpu(context, each)) for each in dali_pipelines(context) if each.owner.model is model]
    return frozenset.intersection(*held) if held else frozenset()


def _on_gpu(context: CheckContext, each: DaliPipelineFile) -> tuple[int, ...]:
    if isinstance(each.content, Definition):
        return each.content.outputs_on_gpu
    file = each.owner.files.file(each.path)
    return () if file is None else context.contents(serialized_outputs_on_gpu, file)


def _pipeline_of(context: CheckContext, each: BackendFile) -> DaliPipelineFile | None:
    """What the backend tries first is a serialised pipeline; if it cannot load one, it goes on to `dali.py`."""
    there = [path for path in (each.path, *each.alternatives) if each.files.has(path)]
    for path in there:
        file = each.files.file(path)
        is_built = file is None
        if file is None:
            file = _source(context, path)
        if file is None or is_pointer(context, file):
            return None
        content = _content(context, file)
        if not isinstance(content, Unreadable) or path is there[-1]:
            return DaliPipelineFile(each, file.path, is_built, content)
    return None


def _source(context: CheckContext, made: PurePosixPath) -> RepositoryFile | None:
    """The Python file that a recipe makes a file from."""
    for recipe in context.repository.recipes:
        if isinstance(recipe, _BuildRecipe) and made.as_posix() in recipe.produces:
            sources = [path for path in recipe.consumes if path.endswith(".py")]
            return repository_files(context).file(PurePosixPath(sources[0])) if len(sources) == 1 else None
    return None


def _content(context: CheckContext, file: RepositoryFile) -> Read | PipelineSignature | None:
    if file.path.suffix == ".py":
        return context.contents(pipeline_definition(python_version(context)), file)
    return context.contents(serialized_pipeline, file)
