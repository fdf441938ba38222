"""`DaliPipeline`: a Python file with a DALI pipeline, serialised by the DALI of the image that serves it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from cdk_triton._arguments import FLAG, require_type
from cdk_triton.artifacts.recipes.sources import required_text
from cdk_triton.artifacts.recipes.values import model_of, path_in_model, whole_number
from cdk_triton.dali_models.configured import configured_tensors
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.releases import is_at_least
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.versions import LARGEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import Model, ModelRepository

__all__ = ["DaliPipeline"]

_AUTOSERIALIZED_SINCE: Final = "24.05"
"""The first release whose `python3` finds DALI, which the backend needs to serialise a file by itself (server: build.py
of each release branch)."""

_SERIALIZED: Final = "model.dali"
_FALLBACK: Final = "dali.py"


@dataclass(frozen=True)
class DaliPipeline:
    """A Python file with one `@pipeline_def`, for a model of the DALI backend.

    By default, Triton serialises the pipeline whenever it loads the model (`@autoserialize`), with the same DALI that
    then runs the pipeline. The build tries this in advance, in the serving image and on the serving GPU, and fails if
    the pipeline cannot be serialised or loaded, or has other inputs or outputs than `config.pbtxt`. For example,
    `DaliPipeline("preprocess")` checks `preprocess/1/dali.py`, and adds no file. A `pipeline` outside the version
    directory is copied to `<version>/dali.py`, with the decorator `@autoserialize` added if it is missing. The archive
    omits the original.

    With `serialize=True`, the archive contains `<version>/model.dali` instead of the Python file. Every release can
    load it, without running Python. The build serialises the pipeline in two processes, and warns if the bytes of the
    results differ.

    Attributes:
        model: the directory of the model in the repository.
        pipeline: the Python file, relative to the model's directory. None: `<version>/dali.py`.
        version: the number of the version directory, at least 1.
        serialize: whether to write a serialised pipeline. Releases before 24.05 require True.

    Raises:
        ConfigurationError: a path leaves the model's directory, the pipeline is not a `.py` file, or a value has the
            wrong type or is out of its range.
    """

    model: str
    pipeline: str | None = None
    version: int = 1
    serialize: bool = False

    def __post_init__(self) -> None:
        """Reject values that no repository could fix."""
        whole_number(self.version, f"version of {self}", 1, LARGEST_VERSION)
        require_type(f"serialize of {self}", self.serialize, FLAG)
        path = path_in_model(self.model, self._pipeline, f"pipeline of {self}")
        if PurePosixPath(path).suffix != ".py":
            raise ConfigurationError(
                f"pipeline of {self} is {self.pipeline!r} but must be a Python file, such as '1/dali.py'"
            )

    def __str__(self) -> str:
        return f"DaliPipeline({self.model!r})"

    @property
    def _source(self) -> str:
        """The Python file, relative to the repository."""
        return path_in_model(self.model, self._pipeline, f"pipeline of {self}")

    @property
    def _target(self) -> str | None:
        """Relative to the repository; None if the source itself is served."""
        if self.serialize:
            return self._in_version(_SERIALIZED)
        return None if self._is_served else self._in_version(_FALLBACK)

    @property
    def produces(self) -> tuple[str, ...]:
        """See `BuildRecipe.produces`."""
        return () if self._target is None else (self._target,)

    @property
    def consumes(self) -> tuple[str, ...]:
        """See `BuildRecipe.consumes`."""
        return () if self._target is None else (self._source,)

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """See `BuildRecipe.s3_files`."""
        return {}

    def parameters(self) -> dict[str, object]:
        """See `BuildRecipe.parameters`."""
        return {"recipe": "dali_pipeline", "source": self._source, "target": self._target, "serialize": self.serialize}

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """See `BuildRecipe.validate`."""
        model = model_of(repository, self.model, str(self))
        if model.backend_name != "dali":
            backend = f"the backend {model.backend_name!r}" if model.backend_name else "no backend"
            raise ConfigurationError(
                f"{self} needs a model of the DALI backend, but {model.config_path} has {backend}: write "
                'backend: "dali" there, or remove the recipe'
            )
        release = platform.release
        if not self.serialize and release is not None and not is_at_least(release, _AUTOSERIALIZED_SINCE):
            raise ConfigurationError(
                f"{self} lets Triton serialise the pipeline, but the python3 of Triton {release} does not find DALI "
                f"(the first release whose python3 does is {_AUTOSERIALIZED_SINCE}): write serialize=True"
            )
        self._check_is_loaded(repository, model)
        required_text(repository, self._source, f"the pipeline of {self}")  # the rules check what it contains

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """See `BuildRecipe.step`."""
        config = model_of(repository, self.model, str(self)).config or ModelConfig()
        inputs, outputs = configured_tensors(config)
        return {
            "recipe": "dali_pipeline",
            "name": f"the DALI pipeline of {self.model}",
            "source": self._source,
            "target": self._target,
            "serialize": self.serialize,
            "max_batch_size": config.max_batch_size,
            "inputs": inputs,
            "outputs": outputs,
        }

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """See `BuildRecipe.estimated_minutes`: the time of four starts of Python with DALI."""
        return 0.5

    @property
    def _pipeline(self) -> str:
        return f"{self.version}/{_FALLBACK}" if self.pipeline is None else self.pipeline

    @property
    def _is_served(self) -> bool:
        return PurePosixPath(self._source).parent == PurePosixPath(self._in_version("_")).parent

    def _in_version(self, name: str) -> str:
        return PurePosixPath(self.model, str(self.version), name).as_posix()

    def _check_is_loaded(self, repository: ModelRepository, model: Model) -> None:
        """The backend tries the default file name, then `dali.py` (dali_backend: dali_model.h)."""
        default = (model.config.default_model_filename if model.config is not None else "") or _SERIALIZED
        served = PurePosixPath(self._target or self._source).name
        if served not in (default, _FALLBACK):
            names = sorted({default, _FALLBACK})
            raise ConfigurationError(
                f"the DALI backend would not load {served} of {self}, because it looks for {' and '.join(names)} only: "
                f"write default_model_filename: {served!r} into {model.config_path}"
            )
        if served != default and any(file.path.as_posix() == self._in_version(default) for file in repository.files):
            raise ConfigurationError(
                f"the DALI backend would load {self._in_version(default)} instead of {served} of {self}: remove "
                f"{self._in_version(default)}"
            )
