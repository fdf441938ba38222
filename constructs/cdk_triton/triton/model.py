"""One model of a repository: its configuration, its versions and its files, as the server would find them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cdk_triton.errors import ModelConfigError, RepositoryError
from cdk_triton.triton.text_format_reader import decoded
from cdk_triton.triton.tree import RepositoryFile, Tree
from cdk_triton.triton.versions import is_version_name, served_versions

if TYPE_CHECKING:
    from cdk_triton.triton.ensemble import EnsembleGraph
    from cdk_triton.triton.schema import ModelConfig

__all__ = ["CONFIG_NAME", "Model", "read_model"]

CONFIG_NAME = "config.pbtxt"

# How a multi-model endpoint finds the ensemble in an archive: server, sagemaker_server.h, platform_ensemble_regex_.
# RE2's \s is not quite Python's.
_ENSEMBLE_LITERAL = re.compile(r'platform:[\t\n\f\r ]*"ensemble"')


@dataclass(frozen=True)
class Model:
    """One model of a repository.

    Attributes:
        name: the name that the server gives the model, which is the name of its directory.
        directory: the model's directory, relative to the repository; `.` if the repository itself is the model.
        config_text: the text of `config.pbtxt`, or None if the file is missing. Bytes that are not UTF-8 are read as
            `decoded` describes.
        subdirectories: the names of the directories in the model's directory, including empty ones, sorted.
        files: everything in the model's directory, sorted, with paths relative to the repository.
        produced: the files that recipes will write into the model's directory, with paths relative to the repository.
        skips_unknown_fields: whether `config` skips unknown fields; if False, such fields make `config` None.
    """

    name: str
    directory: PurePosixPath
    config_text: str | None
    subdirectories: tuple[str, ...]
    files: tuple[RepositoryFile, ...]
    produced: tuple[PurePosixPath, ...] = ()
    skips_unknown_fields: bool = field(default=False, compare=False)

    @cached_property
    def config(self) -> ModelConfig | None:
        """The configuration as written, or None if it is missing or cannot be read."""
        return self._parsed[0]

    @cached_property
    def config_error(self) -> ModelConfigError | None:
        """Why the configuration cannot be read, or None."""
        return self._parsed[1]

    @cached_property
    def _parsed(self) -> tuple[ModelConfig | None, ModelConfigError | None]:
        """Parsed at the first use, because cached answers of a repository do not need it."""
        if self.config_text is None:
            return None, None
        from cdk_triton.triton.model_config import parse_model_config  # imports protobuf

        path = str(self.config_path)
        try:
            return parse_model_config(self.config_text, path=path), None
        except ModelConfigError as error:
            fault = error
        config = None
        if self.skips_unknown_fields:
            with suppress(ModelConfigError):
                config = parse_model_config(self.config_text, path=path, allow_unknown_fields=True)
        return config, fault

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The versions that have a directory, in ascending order; the version policy is not applied."""
        return tuple(sorted(int(name) for name in self.subdirectories if is_version_name(name)))

    @cached_property
    def served_versions(self) -> tuple[int, ...]:
        """The versions that the server would load under the version policy, in ascending order."""
        return served_versions(self.subdirectories, self.config)

    @property
    def is_recognisable(self) -> bool:
        """Whether the directory has a configuration or a version, unlike a directory such as `scripts/`."""
        return CONFIG_NAME in self.subdirectories or self.config_text is not None or bool(self.versions)

    @cached_property
    def is_ensemble(self) -> bool:
        """Whether the model is an ensemble. If the configuration cannot be read, its text decides."""
        if self.config is None:
            return self.is_literally_ensemble
        return self.config.platform == "ensemble"

    @property
    def is_literally_ensemble(self) -> bool:
        """Whether a multi-model endpoint treats the model as an ensemble.

        SageMaker's loader does not parse the configuration. It searches the text for `platform:`, spaces, `"ensemble"`
        (sagemaker_server.cc). A comment matches; single quotes or a space before the colon do not.
        """
        return self.ensemble_literal_line is not None

    @property
    def ensemble_literal_line(self) -> int | None:
        """The line of `config.pbtxt`, from 1, by which a multi-model endpoint recognises an ensemble, or None."""
        text = self.config_text or ""
        match = _ENSEMBLE_LITERAL.search(text)
        return None if match is None else text.count("\n", 0, match.start()) + 1

    @cached_property
    def graph(self) -> EnsembleGraph:
        """The data flow of an ensemble; empty for any other model."""
        from cdk_triton.triton.ensemble import EnsembleGraph

        return EnsembleGraph((), {}) if self.config is None else EnsembleGraph.from_config(self.config)

    @cached_property
    def backend_name(self) -> str | None:
        """The backend that the server determines for the model; None for an ensemble, or if it cannot be determined."""
        if self.is_ensemble:
            return None
        from cdk_triton.triton.backend_fields import completed_pair

        return completed_pair(self.config, self.name, lambda: self.first_version_entries)[1] or None

    def tolerant(self) -> Model:
        """A copy of the model whose `config` skips the fields that the schema does not have.

        The copy keeps `config_error`, which names the first of these fields.
        """
        return self if self.config_error is None else replace(self, skips_unknown_fields=True)

    @cached_property
    def config_path(self) -> PurePosixPath:
        """The path of `config.pbtxt`, relative to the repository, even if the file is missing."""
        return self.directory / CONFIG_NAME

    @property
    def size(self) -> int:
        """The size of all files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def looks_like_a_repository(self) -> bool:
        """Whether the directory contains models but is not a model, because the user gave the repository's parent."""
        if self.config_text is not None or self.versions:
            return False
        depth = len(self.directory.parts) + 2
        return any(file.path.name == CONFIG_NAME and len(file.path.parts) == depth for file in self.files)

    @cached_property
    def first_version_entries(self) -> Mapping[str, bool]:
        """The entries of the model's first subdirectory: name → whether the entry is a directory."""
        if not self.subdirectories:
            return {}
        first = self.directory / self.subdirectories[0]
        depth = len(first.parts)
        paths = [*(file.path for file in self.files), *self.produced]
        return {path.parts[depth]: len(path.parts) > depth + 1 for path in paths if path.parts[:depth] == first.parts}


def read_model(tree: Tree, directory: PurePosixPath, name: str, produced: tuple[PurePosixPath, ...]) -> Model:
    """Read a model: `tree` has the files below its directory, `produced` those that recipes will add."""
    depth = len(directory.parts) + 1
    existing = {path.name for path in tree.directories if len(path.parts) == depth}
    subdirectories = tuple(sorted(existing | {path.parts[depth - 1] for path in produced if len(path.parts) > depth}))
    path = (*directory.parts, CONFIG_NAME)
    source = next((file.source for file in tree.files if file.path.parts == path), None)
    text = None if source is None else decoded(_read_bytes(source))
    return Model(name, directory, text, subdirectories, tree.files, produced)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RepositoryError(f"{file} cannot be read: {error.strerror}; make it readable") from error
