"""A directory of Triton models, read once and frozen.

A model repository is `<model>/config.pbtxt` beside `<model>/<version>/…`, one directory per model; an archive for a
multi-model endpoint may also be one model by itself, with `config.pbtxt` at the top. Reading takes everything as the
server would find it in the archive. It follows links and skips the litter of editors and systems. It keeps a
configuration that cannot be parsed with its error, so that `ModelRepository.check` can report everything at once.

This module is the one place that imports upwards: `ModelRepository.check`, `.report` and the acknowledgements are a
facade of `cdk_triton.checks`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, Protocol

from cdk_triton._arguments import has_attribute, listed, one, require_type, several
from cdk_triton._tokens import reject_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.findings import Finding
from cdk_triton.triton.model import CONFIG_NAME, Model, read_model
from cdk_triton.triton.rehearsal import Rehearsal
from cdk_triton.triton.repository_settings import RepositorySettings, read_settings
from cdk_triton.triton.tree import RepositoryFile, Tree, read_tree
from cdk_triton.triton.versions import is_version_name

if TYPE_CHECKING:
    from cdk_triton.checks import Report
    from cdk_triton.sagemaker import ServingPlatform

__all__ = ["Mode", "ModelRepository", "PromisedFiles", "Recipe", "RepositoryFile", "repository_above", "repository_of"]

Mode = Literal["single", "multi"]
"""How an endpoint serves the repository: `single` (one archive per container) or `multi` (a multi-model endpoint)."""


class Recipe(Protocol):
    """What the checks use of a recipe, a declared build that adds files to the repository.

    It is a Protocol, because this package must not import the package of the recipes.
    """

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that the build writes, relative to the repository, with `/`, such as `bert/1/model.plan`."""


@dataclass(frozen=True)
class PromisedFiles:
    """The missing files that `cdk-triton.toml` lists and no recipe produces, as a recipe that builds nothing."""

    produces: tuple[str, ...]


_PATH: Final = one(
    lambda value: isinstance(value, str | os.PathLike), "write the directory's path in quotes, such as 'models'"
)

_RECIPES: Final = several(
    has_attribute("produces"), "give a list of recipes, such as recipes=[TensorRTPlan('bert', onnx='bert.onnx')]"
)

_REHEARSAL: Final = one(
    lambda value: isinstance(value, Rehearsal), "write Rehearsal([GoldenRequest('golden/cat.json')]), or omit it"
)


def _with_promises(recipes: tuple[Recipe, ...], promised: tuple[str, ...], tree: Tree) -> tuple[Recipe, ...]:
    kept = {path for recipe in recipes for path in recipe.produces} | {file.path.as_posix() for file in tree.files}
    rest = tuple(path for path in promised if path not in kept)
    return (*recipes, PromisedFiles(rest)) if rest else recipes


@dataclass(frozen=True)
class ModelRepository:
    """A directory of Triton models, read once.

    Attributes:
        root: the directory.
        models: one model for each directory that contains a file, sorted by name. If `config.pbtxt` is at the top, the
            root is the only model, under its own name.
        files: the directory's files, sorted by path, except those that editors, systems or version control leave
            behind. The archive contains these files, except those that only builds read.
        acknowledgements: the codes of the warnings that the owner accepts, each with the reason.
        recipes: the recipes whose builds will add files to the repository.
        read_ns: the time when reading began, in nanoseconds since 1970.
        image_modules: the Python modules of your own image, from `cdk-triton.toml`; None without that list.
        rehearsal: the golden requests; None without them.
    """

    root: Path
    models: tuple[Model, ...] = ()
    files: tuple[RepositoryFile, ...] = ()
    acknowledgements: Mapping[str, str] = field(default_factory=dict)
    recipes: tuple[Recipe, ...] = ()
    read_ns: int = field(default=0, compare=False)
    image_modules: tuple[str, ...] | None = None
    rehearsal: Rehearsal | None = None

    def __post_init__(self) -> None:
        """Reject a repository that was not read.

        Raises:
            ConfigurationError: the model does not have a file.
        """
        if not self.files:
            root = repr(str(self.root))
            raise ConfigurationError(f"ModelRepository({root}) is empty: write ModelRepository.from_directory({root})")

    @classmethod
    def from_directory(
        cls,
        path: str | Path,
        *,
        acknowledge: Mapping[str, str] = {},
        recipes: Iterable[Recipe] = (),
        rehearsal: Rehearsal | None = None,
    ) -> ModelRepository:
        """Read a model repository.

        Args:
            path: the directory that holds the models' directories.
            acknowledge: codes of warnings that you accept, each with the reason; the checks do not report these. The
                table `[acknowledge]` of a file `cdk-triton.toml` in the directory does the same for every app that
                reads it; if a code is in both, the reason given here takes precedence.
            recipes: the recipes whose builds will add files. The checks assume that these files exist, like the files
                in the list `produced` of `cdk-triton.toml`.
            rehearsal: the golden requests that a server answers in the deployment, before an endpoint changes. None:
                those of the table `[rehearsal]` of `cdk-triton.toml`, if it is there.

        Raises:
            RepositoryError: the directory is missing, empty or unreadable; a link leads out of the directory, or to a
                path that does not exist; or an acknowledgement has an unknown code, the code of an error, or no reason.
            ConfigurationError: `recipes` is not a list of recipes, or `rehearsal` is not a Rehearsal.
        """
        require_type("path", path, _PATH)
        if rehearsal is not None:
            require_type("rehearsal", rehearsal, _REHEARSAL)
        reject_token(path, "path")
        if path == "":
            raise ConfigurationError("path is empty: name the directory that holds the models, such as 'models'")
        root, read_ns = Path(path), time.time_ns()
        tree = read_tree(root)
        settings = read_settings(root)
        acknowledgements = _acknowledgements(settings, acknowledge)
        builds = _with_promises(listed("recipes", recipes, _RECIPES), settings.produced, tree)
        produced = tuple(PurePosixPath(path) for each in builds for path in each.produces)
        top_level = {file.path.name for file in tree.files if len(file.path.parts) == 1}
        if CONFIG_NAME in top_level:
            models = [read_model(tree, PurePosixPath(), root.resolve().name, produced)]
        else:
            below = _by_top_directory(tree)
            made: dict[str, tuple[PurePosixPath, ...]] = {}
            for file in produced:
                made[file.parts[0]] = (*made.get(file.parts[0], ()), file)
            models = [read_model(below[name], PurePosixPath(name), name, made.get(name, ())) for name in below]
        return cls(
            root,
            tuple(models),
            tree.files,
            acknowledgements,
            builds,
            read_ns,
            settings.image_modules,
            settings.rehearsal if rehearsal is None else rehearsal,
        )

    @cached_property
    def name(self) -> str:
        """The directory's name."""
        # Resolving asks the system of every directory above; only a link or `..` is written with another name.
        is_plain = self.root.name not in ("", "..") and not self.root.is_symlink()
        return self.root.name if is_plain else self.root.resolve().name

    @cached_property
    def ensembles(self) -> tuple[Model, ...]:
        """The models that are ensembles."""
        return tuple(model for model in self.models if model.is_ensemble)

    @property
    def size(self) -> int:
        """The size of all files before compression, in bytes."""
        return sum(file.size for file in self.files)

    @cached_property
    def model_directories(self) -> tuple[str, ...]:
        """The argument of `serve_arguments`: the directories at the top of the archive, and a `config.pbtxt` there."""
        paths = (file.path.parts for file in self.files)
        return tuple(sorted({path[0] for path in paths if len(path) > 1 or path[0] == CONFIG_NAME}))

    @cached_property
    def hidden_models(self) -> tuple[str, ...]:
        """The directories with a `config.pbtxt` that are no models, because another `config.pbtxt` is at the top."""
        if CONFIG_NAME not in self.model_directories:
            return ()
        paths = (file.path.parts for file in self.files)
        names = {path[0] for path in paths if len(path) == 2 and path[1] == CONFIG_NAME}
        return tuple(sorted(name for name in names if not is_version_name(name)))

    def model(self, name: str) -> Model | None:
        """The model of that name, or None."""
        return self._models_by_name.get(name)

    @cached_property
    def _models_by_name(self) -> Mapping[str, Model]:
        return {model.name: model for model in self.models}

    def entry_model(self, mode: Mode = "single") -> Model | None:
        """The model that callers invoke.

        Args:
            mode: `single` returns the container's default model. This is the first of these that exists: the only
                model; the only directory that has a configuration or a version; the only ensemble that is not a step of
                another ensemble. `multi` returns the model that SageMaker's loader selects. This is the only model, or
                else the only model whose configuration looks like that of an ensemble (sagemaker_server.cc,
                SageMakerMMELoadModel).

        Returns:
            The model, or None if the repository does not determine it. The checks then report a finding.
        """
        if len(self.models) == 1:
            return self.models[0]
        if mode == "multi":
            candidates = [model for model in self.models if model.is_literally_ensemble]
        else:
            steps = {name for model in self.ensembles for name in model.graph.model_names if name != model.name}
            recognisable = [model for model in self.models if model.is_recognisable]
            if len(recognisable) == 1:
                return recognisable[0]
            candidates = [model for model in self.ensembles if model.name not in steps]
        return candidates[0] if len(candidates) == 1 else None

    def check(
        self,
        mode: Mode = "single",
        platform: ServingPlatform | str | None = None,
        *,
        default_model: str | None = None,
        additional_models: Iterable[str] = (),
        environment: ContainerEnvironment | None = None,
        preflight: bool = False,
    ) -> tuple[Finding, ...]:
        """Check the repository, and return the findings without the acknowledged warnings.

        Args:
            mode: how an endpoint will serve the repository: `single` or `multi`.
            platform: the release and instance type that will serve the repository, or the short form
                "25.09/ml.g5.2xlarge". Without a platform, the rules that need one are skipped.
            default_model: the model that a single-model container loads; by default `entry_model()`.
            additional_models: further models that a single-model container loads (`--load-model`).
            environment: the container's other settings. Without an environment, the rules about these settings are
                skipped, and some rules warn about the effect of the default settings.
            preflight: whether to check the networks of TensorRT plans with TensorRT's own parser. This needs the extra
                `preflight`, and takes seconds for each network. If False, the rules that need the parser are skipped.

        Returns:
            The findings, errors first, then by path, code and field. The tuple may be empty.

        Raises:
            ConfigurationError: the mode is neither `single` nor `multi`, there is no such platform, or the extra
                `preflight` is not installed.
        """
        return self.report(
            mode,
            platform,
            default_model=default_model,
            additional_models=additional_models,
            environment=environment,
            preflight=preflight,
        ).findings

    def report(
        self,
        mode: Mode = "single",
        platform: ServingPlatform | str | None = None,
        *,
        default_model: str | None = None,
        additional_models: Iterable[str] = (),
        environment: ContainerEnvironment | None = None,
        preflight: bool = False,
    ) -> Report:
        """Check as `check` does; the result also contains the acknowledged warnings and the skipped rules."""
        from cdk_triton.checks import check_repository  # upwards: the facade that the module's docstring declares

        return check_repository(
            self,
            mode,
            platform,
            default_model=default_model,
            additional_models=additional_models,
            environment=environment,
            preflight=preflight,
        )


def repository_of(repository: ModelRepository | str | Path) -> ModelRepository:
    """The repository, which may be given as its directory.

    Raises:
        RepositoryError: the directory cannot be read.
    """
    return repository if isinstance(repository, ModelRepository) else ModelRepository.from_directory(repository)


def repository_above(repository: ModelRepository) -> Path | None:
    """The directory above, if it has more models than this one; None otherwise.

    Then a user has probably named the directory of a model instead of the repository.
    """
    root = repository.root if repository.root.name not in ("", "..") else repository.root.resolve()
    above = root.parent
    others = (each for each in above.glob(f"*/{CONFIG_NAME}") if each.parent.name != root.name)
    return above if any(others) and not (above / CONFIG_NAME).exists() else None


def _acknowledgements(settings: RepositorySettings, given: Mapping[str, str]) -> Mapping[str, str]:
    if not settings.acknowledge and given == {}:
        return {}
    from cdk_triton.checks import acknowledgements_of  # upwards: the facade that the module's docstring declares

    return acknowledgements_of(settings, given)


def _by_top_directory(tree: Tree) -> Mapping[str, Tree]:
    """Directories that contain a file, sorted by name."""
    files: dict[str, list[RepositoryFile]] = {}
    for file in tree.files:
        if len(file.path.parts) > 1:
            files.setdefault(file.path.parts[0], []).append(file)
    directories: dict[str, list[PurePosixPath]] = {}
    for path in tree.directories:
        directories.setdefault(path.parts[0], []).append(path)
    return {name: Tree(tuple(files[name]), tuple(directories[name])) for name in sorted(files)}
