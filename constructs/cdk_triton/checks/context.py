"""The view of a repository that rules get, and the values that several rules derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, TypeVar, cast, get_args, overload

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import Mode, ModelRepository, RepositoryFile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CheckContext", "per_check"]

Contents = TypeVar("Contents")
Derived = TypeVar("Derived")

_NOT_READ = object()


@dataclass(frozen=True)
class CheckContext:
    """What a rule works on: a repository, and how the repository will be served.

    A rule uses no clock and no network, and reads files with `contents`. Two checks are exceptions, and run in a
    separate process with a time limit: the package `onnx` checks the graphs of ONNX files, and with `preflight`,
    TensorRT's parser checks networks. The results of `onnx` are cached between runs. The findings of both checks depend
    on the installed packages and, if a process reaches its limit, on the machine.

    Attributes:
        repository: the repository.
        mode: `single` or `multi`.
        platform: the release and instance type, or None if they are not given.
        default_model: the default model that the user chose for a single-model container, or None.
        additional_models: the further models that a single-model container loads.
        environment: the container's environment, or None if it is not given. `default_model` and `additional_models`
            come from it.
        preflight: whether to run TensorRT's own parser, which takes seconds.

    Raises:
        ConfigurationError: the mode is neither `single` nor `multi`.
    """

    repository: ModelRepository
    mode: Mode = "single"
    platform: ServingPlatform | None = None
    default_model: str | None = None
    additional_models: tuple[str, ...] = ()
    environment: ContainerEnvironment | None = None
    preflight: bool = False

    def __post_init__(self) -> None:
        """Reject a mode that does not exist."""
        if self.mode not in get_args(Mode):
            raise ConfigurationError(f"mode is {self.mode!r}: use 'single' or 'multi'")

    @cached_property
    def entry(self) -> Model | None:
        """The model that callers will invoke, or None if the repository does not determine it."""
        if self.mode == "single" and self.default_model is not None:
            return self.repository.model(self.default_model)
        return self.repository.entry_model(self.mode)

    @cached_property
    def loaded_models(self) -> tuple[Model, ...]:
        """The models that the server would load, as far as the files show, or all models if the entry model is unknown.

        The server runs with explicit model control. It loads the entry model, the steps of an ensemble, and the
        additional models. A rule about one model checks only these, because a directory that is not loaded does no
        harm.
        """
        entry = self.entry
        if entry is None or any(model.is_ensemble and model.config is None for model in self.repository.models):
            return self._recognisable_models
        names = dict.fromkeys((entry.name, *self.additional_models))
        pending = list(names)
        for name in pending:  # grows while we walk
            model = self.repository.model(name)
            new = [step for step in model.graph.model_names if step not in names] if model is not None else []
            names.update(dict.fromkeys(new))
            pending += new
            if model is not None and model.is_ensemble and not all(map(self.repository.model, model.graph.model_names)):
                return self._recognisable_models  # a misspelt step: any model may be the one that is meant
        return tuple(model for model in self.repository.models if model.name in names)

    @property
    def _recognisable_models(self) -> tuple[Model, ...]:
        models = self.repository.models
        return tuple(model for model in models if model.is_recognisable) or models  # not `scripts/` and the like

    @property
    def release(self) -> str | None:
        """The Triton release that serves; None if it is not given."""
        return self.platform.release if self.platform is not None else None

    def contents(self, read: Callable[[Path], Contents], file: RepositoryFile) -> Contents:
        """The result of `read` for a file, cached for the other rules of this check.

        A rule does not open files itself. `read` is a function of a path. Write your own function, because the
        library's readers are not public.
        """
        key = (read, file.path)
        found = self._contents.get(key, _NOT_READ)
        if found is _NOT_READ:
            found = self._contents[key] = read(file.source)
        return cast(Contents, found)

    @cached_property
    def _contents(self) -> dict[object, object]:
        return {}

    @cached_property
    def _derived(self) -> dict[object, object]:
        return {}

    def is_renamed(self, model: Model) -> bool:
        """Whether the server renames the model, which it does with the entry model of a multi-model endpoint."""
        return self.mode == "multi" and model is self.entry


@overload
def per_check(derive: Callable[[CheckContext], Iterator[Derived]]) -> Callable[[CheckContext], tuple[Derived, ...]]: ...


@overload
def per_check(derive: Callable[[CheckContext], Derived]) -> Callable[[CheckContext], Derived]: ...


def per_check(derive: Callable[[CheckContext], object]) -> Callable[[CheckContext], object]:
    """Decorate a function, so that it computes its value only once for each check.

    The function runs when the first rule needs the value; the other rules of the check get the cached value.

    If the function returns an iterator, its items are cached as a tuple.
    """

    @wraps(derive)
    def kept(context: CheckContext) -> object:
        found = context._derived.get(derive, _NOT_READ)
        if found is _NOT_READ:
            found = derive(context)
            found = context._derived[derive] = tuple(found) if isinstance(found, Iterator) else found
        return found

    return kept
