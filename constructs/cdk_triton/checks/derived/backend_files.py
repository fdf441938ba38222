"""Which file each backend loads: what the rules about files have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import PLATFORMS, ConfiguredModel, completed_pair, configured
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.tree_models import parameters as fil_parameters
from cdk_triton.triton import backend_fields
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import ModelRepository, RepositoryFile
from cdk_triton.triton.schema import ModelConfig

__all__ = [
    "BackendFile",
    "Files",
    "backend_files",
    "below",
    "file_rule",
    "is_ort_model",
    "is_pointer",
    "model_files",
    "repository_files",
]

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_POINTER_SIZES = range(len(_POINTER), 1024)

# Backend → the file that it loads where the configuration names none.
_DEFAULT = {
    "onnxruntime": "model.onnx",
    "tensorrt": "model.plan",
    "pytorch": "model.pt",
    "openvino": "model.xml",
    "python": "model.py",
    "dali": "model.dali",
}


class Files:
    """The files of a model or of the whole repository, those that recipes will make included."""

    def __init__(self, owner: Model | ModelRepository) -> None:
        self._owner = owner

    @cached_property
    def _files(self) -> dict[PurePosixPath, RepositoryFile | None]:
        models = (self._owner,) if isinstance(self._owner, Model) else self._owner.models
        made = {path: None for model in models for path in model.produced}
        return {**made, **{file.path: file for file in self._owner.files}}

    @cached_property
    def _directories(self) -> dict[PurePosixPath, set[str]]:
        """Directory → the names of what is in it."""
        names: dict[PurePosixPath, set[str]] = {}
        for path in self._files:
            for entry, directory in zip((path, *path.parents), path.parents, strict=False):
                known = names.setdefault(directory, set())
                if entry.name in known:
                    break  # and so are the directories above
                known.add(entry.name)
        return names

    @cached_property
    def _stems(self) -> dict[tuple[PurePosixPath, str], list[str]]:
        names: dict[tuple[PurePosixPath, str], list[str]] = {}
        for directory, inside in self._directories.items():
            for name in sorted(inside):
                stem, dot, _ = name.partition(".")
                if dot:
                    names.setdefault((directory, stem), []).append(name)
        return names

    def __iter__(self) -> Iterator[PurePosixPath]:
        """The paths, in no order."""
        return iter(self._files)

    def file(self, path: PurePosixPath) -> RepositoryFile | None:
        """The file, if it is there already."""
        return self._files.get(path)

    def has(self, path: PurePosixPath) -> bool:
        """Whether the path is a file, now or after the build."""
        return path in self._files

    def has_directory(self, path: PurePosixPath) -> bool:
        """Whether the path is a directory that is not empty."""
        return path in self._directories

    def finds(self, text: str) -> bool:
        """Whether a path can be opened: each directory on the way exists, even one that `..` leaves again."""
        path = PurePosixPath()
        parts = text.split("/")
        for index, part in enumerate(parts):
            path = path.parent if part == ".." else path / part
            is_directory = path == PurePosixPath() or self.has_directory(path)
            if not (is_directory or (index == len(parts) - 1 and part and self.has(path))):
                return False
        return True

    def names_of(self, directory: PurePosixPath, stem: str) -> list[str]:
        """The names in a directory with this text before their first dot, sorted."""
        return self._stems.get((directory, stem), [])

    def names_in(self, directory: PurePosixPath) -> list[str]:
        """The names of the files and directories in a directory, sorted."""
        return sorted(self._directories.get(directory, ()))


@dataclass(frozen=True)
class BackendFile:
    """The file that a backend loads for one version of a model.

    Attributes:
        owner: the model, with its configuration; the configuration is empty if the model does not have one.
        backend: the backend that loads it.
        version: the version's directory.
        path: the file, or the directory of TensorFlow's saved models.
        name: the path of the file, relative to the version's directory.
        alternatives: files that the backend loads if that one is missing.
        files: all files of the model.
        field: the field that names the file, or "" if it is the backend's default.
    """

    owner: ConfiguredModel
    backend: str
    version: PurePosixPath
    path: PurePosixPath
    name: str
    alternatives: tuple[PurePosixPath, ...]
    files: Files
    field: str

    @property
    def context(self) -> CheckContext:
        """The check."""
        return self.owner.context

    @property
    def model(self) -> Model:
        """The model."""
        return self.owner.model

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.owner.config

    def problem(self, message: str, fix: str, *, line: int | None = None) -> Problem:
        """A problem of the file."""
        return Problem(self.path, message, fix, line=line)

    def unloadable(self, found: str, words: str, fix: str, *, line: int | None = None, joint: str = ", so ") -> Problem:
        """A problem of the file for which the server does not load the model; `words` are the server's."""
        return self.problem(would_not_load(self.model, found, words, joint), fix, line=line)

    @cached_property
    def is_there(self) -> bool:
        """Whether the file exists, or an alternative does."""
        if self.backend == "tensorflow" and self.path.name != "model.graphdef" and self.files.has_directory(self.path):
            return True
        return any(self.files.has(path) for path in (self.path, *self.alternatives))

    @cached_property
    def file(self) -> RepositoryFile | None:
        """The file that the backend would read, if it is there already."""
        found = (self.files.file(path) for path in (self.path, *self.alternatives))
        return next((file for file in found if file is not None), None)


@per_check
def repository_files(context: CheckContext) -> Files:
    """All files of the repository, also those outside the models' directories."""
    return Files(context.repository)


@per_check
def model_files(context: CheckContext) -> Mapping[str, Files]:
    """The files of each model that is loaded, by the model's name."""
    return {model.name: Files(model) for model in context.loaded_models}


@per_check
def backend_files(context: CheckContext) -> Iterator[BackendFile]:
    """The file for every version that the server would load.

    The result omits faults that other rules report: an unreadable configuration, a version whose directory has another
    name. It also omits backends that need no file or are unknown.
    """
    files_of, owners = model_files(context), {each.name: each for each in configured(context)}
    for model in context.loaded_models:
        owner = owners.get(model.name) or ConfiguredModel(context, model, ModelConfig())
        config = owner.config
        platform, backend = completed_pair(context, model)
        is_rejected = not platform and backend in PLATFORMS  # reported by CT284
        if model.is_ensemble or not backend or is_rejected or model.config_error is not None:
            continue
        files = files_of[model.name]
        library = f"libtriton_{backend}.so"
        own_backends = {path.parent for path in files if path.name == library}
        if model.directory in own_backends:
            continue
        for version in model.served_versions:
            directory = model.directory / str(version)
            if version not in model.versions or directory in own_backends:
                continue
            named = _named(context.platform, model, config, backend, is_aoti=platform == "torch_aoti")
            path = directory if named is None else below(directory, named[0])
            is_own = path.parts[: len(model.directory.parts)] == model.directory.parts
            if named is not None and is_own:  # elsewhere is another model's business
                if not files.has(path) and files.has_directory(path):
                    path = path / _in_directory(backend, config, context.platform)
                others = _alternatives(config, backend, directory)
                yield BackendFile(owner, backend, directory, path, named[0], others, files, named[1])


file_rule = rules_about(backend_files)
"""Register a rule about each of these files; the parameters are those of `rule`."""


def _named(
    platform: ServingPlatform | None, model: Model, config: ModelConfig, backend: str, *, is_aoti: bool
) -> tuple[str, str] | None:
    """The name of the file and the field that sets it; None if it is not known, or if no file is needed."""
    default = config.default_model_filename
    if config.cc_model_filenames and backend != "python":
        capability = None if platform is None else platform.instance.compute_capability
        if capability is None:
            return None
        if capability in config.cc_model_filenames:
            return config.cc_model_filenames[capability], f'cc_model_filenames["{capability}"]'
    if default:
        return default, "default_model_filename"
    if backend_fields.is_named_by_model(config, model.name, model.first_version_entries, backend):
        return f"model.{backend}", ""
    if backend == "tensorflow":
        return ("model.graphdef" if config.platform == "tensorflow_graphdef" else "model.savedmodel"), ""
    if backend == "fil":
        name = _in_directory(backend, config, platform)
        return (name, "") if name else None
    if backend == "pytorch" and is_aoti:
        return "model.pt2", ""
    if backend == "pytorch" and config.runtime == "model.py":
        return "model.py", ""
    return (_DEFAULT[backend], "") if backend in _DEFAULT else None


def _in_directory(backend: str, config: ModelConfig, platform: ServingPlatform | None) -> str:
    """The file that a backend loads from the directory that a configuration names; "" if the directory is meant."""
    if backend == "fil":  # src/model.h
        return fil_parameters.FILES.get(fil_parameters.FilParameters.of(config, platform).model_type, "")
    return "model.onnx" if backend == "onnxruntime" else ""


def _alternatives(config: ModelConfig, backend: str, directory: PurePosixPath) -> tuple[PurePosixPath, ...]:
    if backend == "dali":
        return (directory / "dali.py",)
    if backend == "pytorch" and config.runtime == "model.py":
        return (directory / "model.py", directory / "model.pt")
    if backend == "tensorflow" and not config.platform and not config.default_model_filename:
        return (directory / "model.graphdef",)
    return ()


def is_pointer(context: CheckContext, file: RepositoryFile) -> bool:
    """Whether the file is a pointer, because Git LFS has not fetched the content: reported by CT127."""
    return file.size in _POINTER_SIZES and context.contents(_is_git_lfs_pointer, file)


def _is_git_lfs_pointer(path: Path) -> bool:
    return _head(path, len(_POINTER)) == _POINTER


def is_ort_model(path: Path) -> bool:
    """Whether the file is a model in ONNX Runtime's own format, a FlatBuffer with an identifier."""
    return _head(path, 8)[4:] == b"ORTM"


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(size)
    except OSError:
        return b""


def below(directory: PurePosixPath, name: str) -> PurePosixPath:
    """The path of a name in a version's directory, as the server joins them: an absolute name is below it, too."""
    if name not in ("", ".", "..") and "/" not in name:
        return directory / name
    return PurePosixPath(normpath(f"{directory}/{name}"))
